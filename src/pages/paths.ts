/**
 * The one place that names files. All paths are relative to the output folder and use forward slashes:
 *
 *     runes/v1/index.json                                  status
 *     runes/v1/manifest.json                               what the build holds
 *     runes/v1/digests/840000.json                         digests of the blocks from 840000 to 840999
 *     runes/v1/stats/840000.json                           stats of the blocks from 840000 to 840099, and of their runes
 *     runes/v1/stats.json                                  stats of all blocks, for charts
 *     runes/v1/blocks.json, runes/v1/feed.json             the last blocks, for clients that poll and for feed readers
 *     runes/v1/blocks/840000.json                          first page of a list: default limit, offset 0
 *     runes/v1/blocks/840000/20/20.json                    <limit>/<offset>.json, only for lists of more than one page
 *     runes/v1/blocks/840000/mint.json, .../mint/60/0.json the block's list filtered by operation
 *     runes/v1/transactions/0x<txid>.json                  ids as the dialect spells them
 *
 * A page of three records or more may have compressed files beside it: `840000.json.br`, `840000.json.gz`.
 *
 * With Parquet files, beside the API:
 *
 *     activity/index.json                                  which ranges there are
 *     activity/840000.parquet                              the records of the blocks from 840000 to 840099
 *
 * In layout `packed`, instead of the lists' files:
 *
 *     runes/v1/pointers/840000.json, pointers/0x<hash>.json    which edition of a block is held, and how many records it has
 *     runes/v1/blocks/840000-0x1a2b3c4d/60/120.json            pages of the largest size of this edition: their content never changes
 *     runes/v1/blocks/840000-0x1a2b3c4d/mint/60/0.json         the same, filtered by operation
 *     runes/v1/transactions/3fa.json                           index of the transactions whose ids begin with these digits
 */
import {
  type ActivityList,
  type Dialect,
  defaultLimit,
  ENCODINGS,
  type Encoding,
  isHeight,
  maximumLimit,
  type Operation,
  type Site,
  spellHex,
} from './lists.ts';

/** Stands in every output folder from the first moment on, so that an unfinished build is known as this program's too. */
export const MARKER_PATH = '.rune-activity-mirror';
/** The marker's text of a build that is whole. */
export const FINISHED = 'This folder is made by rune-activity-mirror. Builds replace and remove files in it.\n';

const API_ROOT = 'runes/v1';
/** The page for people. */
export const LANDING_PATH = 'index.html';
export const STATUS_PATH = `${API_ROOT}/index.json`;
export const MANIFEST_PATH = `${API_ROOT}/manifest.json`;
export const DIGESTS_FOLDER = `${API_ROOT}/digests`;
export const STATS_FOLDER = `${API_ROOT}/stats`;
/** The stats of all blocks. */
export const STATS_PATH = `${API_ROOT}/stats.json`;
/** The last blocks. */
export const LATEST_PATH = `${API_ROOT}/blocks.json`;
export const FEED_PATH = `${API_ROOT}/feed.json`;
/** The documents about all blocks. */
export const STATS_PATHS: readonly string[] = [STATS_PATH, LATEST_PATH, FEED_PATH];
export const BLOCKS_FOLDER = `${API_ROOT}/blocks`;
export const TRANSACTIONS_FOLDER = `${API_ROOT}/transactions`;
export const POINTERS_FOLDER = `${API_ROOT}/pointers`;

/** The folders that hold nothing but what builds make of the data. */
export const LIST_FOLDERS: readonly string[] = [BLOCKS_FOLDER, TRANSACTIONS_FOLDER, POINTERS_FOLDER, DIGESTS_FOLDER, STATS_FOLDER];

/** How many heights share a file of digests. */
export const DIGESTS_PER_FILE = 1000;

/** The file with the digest of the block at this height. */
export const digestsPath = (height: number): string => `${DIGESTS_FOLDER}/${height - (height % DIGESTS_PER_FILE)}.json`;

/** How many heights share a file of stats. */
export const STATS_PER_FILE = 100;

/** The file with the stats of the block at this height. */
export const statsFilePath = (height: number): string => `${STATS_FOLDER}/${height - (height % STATS_PER_FILE)}.json`;
/** The folder of bulk data. */
export const ACTIVITY_FOLDER = 'activity';
/** The list of the Parquet files. */
export const RANGES_PATH = `${ACTIVITY_FOLDER}/index.json`;

/** How many heights share a Parquet file: some hundred thousand records, and some ten megabytes. */
export const HEIGHTS_PER_RANGE = 100;

/** The first height of the range that this one is in. */
export const firstOfRange = (height: number): number => height - (height % HEIGHTS_PER_RANGE);

/** The Parquet file of the range that begins with this height. */
export const rangePath = (first: number): string => `${ACTIVITY_FOLDER}/${first}.parquet`;

const RANGE_FILE = /^activity\/(?:index[.]json|[0-9]+[.]parquet)(?:[.]tmp)?$/;

/** Whether this is the name of a file of bulk data, finished or not. What else is in its folder is someone else's. */
export const isRangeFile = (path: string): boolean => RANGE_FILE.test(path);

/** A page: a window that a file of its own exists for. */
export interface PageId {
  readonly limit: number;
  readonly offset: number;
}

/**
 * The path of a list without the ending: `<stem>.json` is its first page, `<stem>/` the folder of the others.
 * Throws for an id that is not hex or decimal digits.
 */
export function stemOf(list: ActivityList, site: Site): string {
  if (list.kind === 'transaction') return `${TRANSACTIONS_FOLDER}/${idName(list.txId, site.dialect)}`;
  return blockStem(blockName(list.block, site.dialect), list.operation);
}

/** The name that a block of a request has in paths: a height, or its hash as the dialect spells it. */
export const blockName = (block: string, dialect: Dialect): string => (isHeight(block) ? matched(block, HEIGHT) : idName(block, dialect));

/** The name of a tx id or a block hash in paths. Throws for anything but 64 lower-case hex digits: no other text becomes a path. */
export const idName = (id: string, dialect: Dialect): string => spellHex(matched(id, HASH), dialect);

const HASH = /^[0-9a-f]{64}$/;
const HEIGHT = /^[0-9]+$/;

/** The text, if it is what paths are made of. */
function matched(text: string, rule: RegExp): string {
  if (!rule.test(text)) throw new Error(`${JSON.stringify(text.slice(0, 80))} cannot be part of a path: it does not match ${rule}`);
  return text;
}

/** The stem of a block's list from the block's name. */
export const blockStem = (name: string, operation?: Operation): string =>
  operation === undefined ? `${BLOCKS_FOLDER}/${name}` : `${BLOCKS_FOLDER}/${name}/${operation}`;

/** The file of one page of a list, e.g. `runes/v1/blocks/840000/60/120.json`. */
export const pagePath = (stem: string, page: PageId, site: Site): string =>
  page.offset === 0 && page.limit === defaultLimit(site) ? `${stem}.json` : `${stem}/${page.limit}/${page.offset}.json`;

/** Whether a list of this many records has more pages than the first, and so a folder. */
const hasFolder = (total: number, site: Site): boolean => total > defaultLimit(site);

/**
 * Every page that a list of `total` records has: its first page, and, when that does not hold all of it, the pages of
 * every size that begin within the list. The first page is the first one given.
 */
export function pagesOf(total: number, site: Site): PageId[] {
  const pages: PageId[] = [{ limit: defaultLimit(site), offset: 0 }];
  if (!hasFolder(total, site)) return pages;
  for (const limit of site.pageSizes) {
    for (let offset = limit === defaultLimit(site) ? limit : 0; offset < total; offset += limit) {
      pages.push({ limit, offset });
    }
  }
  return pages;
}

/**
 * The pages of a list in layout `packed`: those of the largest size. The paths of all of them are by `packedPagePath`: there is no first
 * page of its own.
 */
export function packedPagesOf(total: number, site: Site): PageId[] {
  const limit = maximumLimit(site);
  return Array.from({ length: Math.ceil(total / limit) }, (_, i) => ({ limit, offset: i * limit }));
}

/** The file of one page in layout `packed`, e.g. `runes/v1/blocks/840000-0x1a2b3c4d/60/0.json`. */
export const packedPagePath = (stem: string, page: PageId): string => `${stem}/${page.limit}/${page.offset}.json`;

/** Pages of fewer records fit into one network packet as they are. */
export const LEAST_RECORDS_TO_COMPRESS = 3;

/** The compressed files of a page of a list, which is longer than the page's offset. */
export const encodingsOf = (page: PageId, total: number, site: Site): readonly Encoding[] =>
  Math.min(page.limit, total - page.offset) < LEAST_RECORDS_TO_COMPRESS ? [] : site.compress;

/** A compressed file of a page, e.g. `runes/v1/blocks/840000.json.gz`. */
export const sidecarPath = (path: string, encoding: Encoding): string => `${path}.${encoding}`;

/** A page's file and its compressed ones. */
export const withSidecars = (path: string, page: PageId, total: number, site: Site): string[] => [
  path,
  ...encodingsOf(page, total, site).map((encoding) => sidecarPath(path, encoding)),
];

const SIDECAR_ENDING = `[.](?:${ENCODINGS.join('|')})`;

/** What the files of a page end with, as an expression that means the same in JavaScript and in SQL. */
export const PAGE_ENDING = `[.]json(?:${SIDECAR_ENDING})?`;

const ENDS_AS_PAGE = new RegExp(`${PAGE_ENDING}$`);

/** Whether this is the path of a page of a list. */
export const isPagePath = (path: string, site: Site): boolean =>
  path.endsWith('.json') &&
  (path.startsWith(`${BLOCKS_FOLDER}/`) || (site.layout === 'files' && path.startsWith(`${TRANSACTIONS_FOLDER}/`)));

/** Whether this is the path of a compressed file of a page. */
export const isSidecarPath = (path: string): boolean => ENDS_AS_PAGE.test(path) && !path.endsWith('.json');

/** The name of a list's first page or of a pointer without its endings, those of a compressed file included. */
export const withoutEnding = (name: string): string => name.replace(ENDS_AS_PAGE, '');

/** Digits of a block's digest in its edition's name. */
export const EDITION_DIGITS = 8;

/**
 * The name of a block as it is now, e.g. `840000-0x1a2b3c4d`: its height and the beginning of its digest, as the dialect spells hex. Pages
 * under this name never change, so an index and the pages that it names can't be of different times.
 */
export const editionName = (height: number, digest: string, dialect: Dialect): string =>
  `${height}-${spellHex(matched(digest, HASH).slice(0, EDITION_DIGITS), dialect)}`;

/** The pointer of a block in layout `packed`; `name` is its height or its hash, see `blockName`. */
export const pointerPath = (name: string): string => `${POINTERS_FOLDER}/${name}.json`;

/** The part of the index that holds a transaction, in layout `packed`. */
export const shardPath = (prefix: string): string => `${TRANSACTIONS_FOLDER}/${matched(prefix, PREFIX)}.json`;

const PREFIX = /^[0-9a-f]{1,16}$/;

/** Names all files of a build (docs/files.md lists them). Paths are relative to the output folder and use forward slashes. */
import { FILE_NAME } from '../format/fileName.ts';
import type { ActivityList, Operation } from './blockAndTransactionLists.ts';
import { type Dialect, defaultLimit, type Site } from './mirrorOptions.ts';
import { isHeight, spellHex } from './parseIds.ts';
import type { Window } from './parseQuery.ts';

/** The marker file of an output folder. A build writes it first, so that even an unfinished output is recognised. */
export const MARKER_PATH = '.rune-activity-mirror';
/** Text of the marker file after a build has finished. */
export const FINISHED = 'This folder is made by rune-activity-mirror. Builds replace and remove files in it.\n';

const API_ROOT = 'runes/v1';
export const LANDING_PATH = 'index.html';
export const STATUS_PATH = `${API_ROOT}/index.json`;
export const MANIFEST_PATH = `${API_ROOT}/manifest.json`;
export const DIGESTS_FOLDER = `${API_ROOT}/digests`;
export const STATS_FOLDER = `${API_ROOT}/stats`;
export const STATS_PATH = `${API_ROOT}/stats.json`;
export const LATEST_PATH = `${API_ROOT}/blocks.json`;
export const FEED_PATH = `${API_ROOT}/feed.json`;
export const SEARCH_FOLDER = `${API_ROOT}/search`;
export const CHANGES_FOLDER = `${API_ROOT}/changes`;
export const CHANGES_INDEX_PATH = `${CHANGES_FOLDER}/index.json`;
export const BLOCKS_FOLDER = `${API_ROOT}/blocks`;
export const TRANSACTIONS_FOLDER = `${API_ROOT}/transactions`;
/** The files of archives. They are outside of `runes/`, because many hosts treat everything there as JSON. */
export const ARCHIVE_FOLDER = 'archive';

/** The folders that have only files of builds. */
export const LIST_FOLDERS: readonly string[] = [
  BLOCKS_FOLDER,
  TRANSACTIONS_FOLDER,
  DIGESTS_FOLDER,
  STATS_FOLDER,
  SEARCH_FOLDER,
  CHANGES_FOLDER,
];

export const DIGESTS_PER_FILE = 1000;

export const digestsPath = (height: number): string => `${DIGESTS_FOLDER}/${height - (height % DIGESTS_PER_FILE)}.json`;

export const STATS_PER_FILE = 100;

export const statsFilePath = (height: number): string => `${STATS_FOLDER}/${height - (height % STATS_PER_FILE)}.json`;

export const changesPath = (height: number): string => `${CHANGES_FOLDER}/${matched(String(height), HEIGHT)}.json`;

/** Returns the search file of letters in upper case. CON becomes `co/n.json`, because Windows has no files named `con.json`. */
export const searchPath = (letters: string): string => {
  const [first, ...rest] = [letters.slice(0, 2), ...letters.slice(2)].map((part) => matched(part, LETTERS).toLowerCase());
  return `${SEARCH_FOLDER}/${[first, ...rest].join('/')}.json`;
};

export const ROWS_FOLDER = 'rows';

/** `sha256` is that of the file's bytes, 64 hex digits. */
const rowsPath = (name: string, sha256: string, ending: string): string =>
  `${ROWS_FOLDER}/${name}-${matched(sha256, HASH).slice(0, 16)}.${ending}`;

/** Returns the path of a published file of rows, or of the runes that its blocks etched. */
export const rowFilePath = (first: number, last: number, sha256: string, isRunes = false): string =>
  rowsPath(`${first}-${last}`, sha256, isRunes ? 'runes.parquet' : 'parquet');

export const rowsIndexPath = (sha256: string): string => rowsPath('index', sha256, 'json');

const ROWS_FILE = /^rows\/(?:index-[0-9a-f]{16}[.]json|(?:[0-9]+-[0-9]+|runes)-[0-9a-f]{16}(?:[.]runes)?[.]parquet)(?:[.]tmp)?$/;

/** True for files of rows, including temporary ones. All other files in the folder `rows` are from other programs. */
export const isRowsFile = (path: string): boolean => ROWS_FILE.test(path);

/**
 * Returns the path of a list without extension. `<stem>.json` is the first page, and `<stem>/` has the other pages. A block is named by its
 * height, or by its hash in the dialect's spelling. Throws unless the id is a hash or a height.
 */
export function stemOf(list: ActivityList, site: Site): string {
  if (list.kind === 'transaction') return `${TRANSACTIONS_FOLDER}/${idName(list.txId, site.dialect)}`;
  return blockStem(isHeight(list.block) ? matched(list.block, HEIGHT) : idName(list.block, site.dialect), list.operation);
}

/** Names a tx id or block hash in paths. Throws unless it has 64 lower-case hex digits, so that no other text becomes a path. */
export const idName = (id: string, dialect: Dialect): string => spellHex(matched(id, HASH), dialect);

const HASH = /^[0-9a-f]{64}$/;
const LETTERS = /^[A-Z]{1,2}$/;
const HEIGHT = /^[0-9]+$/;

function matched(text: string, rule: RegExp): string {
  if (!rule.test(text)) throw new Error(`${JSON.stringify(text.slice(0, 80))} cannot be part of a path: it does not match ${rule}`);
  return text;
}

export const blockStem = (name: string, operation?: Operation): string =>
  operation === undefined ? `${BLOCKS_FOLDER}/${name}` : `${BLOCKS_FOLDER}/${name}/${operation}`;

/** Returns the file of a page, e.g. `runes/v1/blocks/840000/60/120.json`. */
export const pagePath = (stem: string, page: Window, site: Site): string =>
  page.offset === 0 && page.limit === defaultLimit(site) ? `${stem}.json` : `${stem}/${page.limit}/${page.offset}.json`;

/**
 * Returns all pages of a list of `total` records, the first page first. A list that fits into its first page has no other pages. Any other
 * list has pages of every size.
 */
export function pagesOf(total: number, site: Site): Window[] {
  const pages: Window[] = [{ limit: defaultLimit(site), offset: 0 }];
  if (total <= defaultLimit(site)) return pages;
  for (const limit of site.pageSizes)
    for (let offset = limit === defaultLimit(site) ? limit : 0; offset < total; offset += limit) pages.push({ limit, offset });
  return pages;
}

/** The extension of a page, as a regular expression that works in both JavaScript and SQL. */
export const PAGE_ENDING = '[.]json$';

const ENDS_AS_PAGE = new RegExp(PAGE_ENDING);

export const isPagePath = (path: string, site: Site): boolean =>
  site.layout === 'files' && path.endsWith('.json') && [BLOCKS_FOLDER, TRANSACTIONS_FOLDER].some((folder) => path.startsWith(`${folder}/`));

/** Removes the extension from the file name of a first page. */
export const withoutEnding = (name: string): string => name.replace(ENDS_AS_PAGE, '');

export const archivePath = (name: string): string => `${ARCHIVE_FOLDER}/${matched(name, FILE_NAME)}.bin`;

/** Returns an archive file's name (64 hex digits) from its path, which may be absolute. Undefined for other paths. */
export const archiveNameOf = (path: string): string | undefined => NAMED_BY_CONTENT.exec(path)?.[1];

const NAMED_BY_CONTENT = new RegExp(`(?:^|[\\\\/])${ARCHIVE_FOLDER}[\\\\/]([0-9a-f]{64})[.]bin$`);

// Before format 3, names had 32 digits. Builds remove files with such names, too.
const ARCHIVE_FILE = new RegExp(`^${ARCHIVE_FOLDER}/(?:[0-9a-f]{32}){1,2}[.]bin(?:[.]tmp)?$`);

/** True for the path of an archive's file, finished or temporary. */
export const isArchivePath = (path: string): boolean => ARCHIVE_FILE.test(path);

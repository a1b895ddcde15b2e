/**
 * The one place that names files. All paths are relative to the output folder and use forward slashes:
 *
 *     runes/v1/index.json                                  status
 *     runes/v1/manifest.json                               what the build holds
 *     runes/v1/digests/840000.json                         digests of the blocks from 840000 to 840999
 *     runes/v1/blocks/840000.json                          first page of a list: default limit, offset 0
 *     runes/v1/blocks/840000/20/20.json                    <limit>/<offset>.json, only for lists of more than one page
 *     runes/v1/blocks/840000/mint.json, .../mint/60/0.json the block's list filtered by operation
 *     runes/v1/transactions/0x<txid>.json                  ids as the dialect spells them
 */
import { type ActivityList, defaultLimit, type Operation, type Site, spellHex } from './lists.ts';

const API_ROOT = 'runes/v1';
export const STATUS_PATH = `${API_ROOT}/index.json`;
export const MANIFEST_PATH = `${API_ROOT}/manifest.json`;
export const DIGESTS_FOLDER = `${API_ROOT}/digests`;
export const BLOCKS_FOLDER = `${API_ROOT}/blocks`;
export const TRANSACTIONS_FOLDER = `${API_ROOT}/transactions`;

/** How many heights share a file of digests. */
export const DIGESTS_PER_FILE = 1000;

/** The file with the digest of the block at this height. */
export const digestsPath = (height: number): string => `${DIGESTS_FOLDER}/${height - (height % DIGESTS_PER_FILE)}.json`;

/** A page: a window that a file of its own exists for. */
export interface PageId {
  readonly limit: number;
  readonly offset: number;
}

/**
 * The path of a list without the ending: `<stem>.json` is its first page, `<stem>/` the folder of the others.
 * Safe by construction: ids are hex or decimal digits by the time they are in an ActivityList.
 */
export function stemOf(list: ActivityList, site: Site): string {
  if (list.kind === 'transaction') return `${TRANSACTIONS_FOLDER}/${spellHex(list.txId, site.dialect)}`;
  return blockStem(list.block.length === 64 ? spellHex(list.block, site.dialect) : list.block, list.operation);
}

/** The stem of a block's list from the name that the block has in paths: a height, or its hash as the dialect spells it. */
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

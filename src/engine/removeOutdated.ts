/** Removes files that no longer belong to the output. */
import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { int, literal, nullable, type Store, text, type Values } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { codeOf, emptyIfMissing } from '../errors.ts';
import type { Loaded } from '../input/loadInput.ts';
import {
  ARCHIVE_FOLDER,
  BLOCKS_FOLDER,
  blockStem,
  DIGESTS_FOLDER,
  digestsPath,
  idName,
  isArchivePath,
  isRowsFile,
  LIST_FOLDERS,
  PAGE_ENDING,
  pagePath,
  pagesOf,
  ROWS_FOLDER,
  STATS_FOLDER,
  statsFilePath,
  TRANSACTIONS_FOLDER,
  withoutEnding,
} from '../pages/filePaths.ts';
import type { Site } from '../pages/mirrorOptions.ts';
import { spellHex } from '../pages/parseIds.ts';
import { pathsOf, publishedIndex } from '../rows/publishRows.ts';
import { yieldNow } from '../yieldNow.ts';
import { listsOf } from './render/pageFiles.ts';
import type { StateTables } from './state/state.ts';
import type { BlockChanges } from './state/updateState.ts';
import type { WrittenArchive } from './writeArchive.ts';

const namesIn = (root: string, folder: string): string[] => emptyIfMissing(() => readdirSync(join(root, folder)));
const pathsIn = (root: string, folder: string): string[] => namesIn(root, folder).map((name) => `${folder}/${name}`);

/** Lists the archive files in an output folder that do not belong to `archive`; all archive files if it is undefined. */
export const outdatedFiles = (out: string, archive: WrittenArchive | undefined): string[] =>
  pathsIn(out, ARCHIVE_FOLDER).filter((path) => isArchivePath(path) && archive?.paths.has(path) !== true);

/** Removes files, and folders that become empty. If a folder is a symbolic link, removes the link and never follows it. */
class Remover {
  /** Paths of checked folders. They and all their parents are real folders, not links. */
  readonly #folders = new Set<string>(['.']);
  count = 0;

  constructor(private readonly root: string) {}

  /** Removes all files at or below `path` that are not in `expected`. Ignores a path that does not exist. */
  removeUnexpected(path: string, expected: ReadonlySet<string> = new Set()): void {
    if (!this.#isInside(dirname(path))) return;
    const stats = lstatSync(join(this.root, path), { throwIfNoEntry: false });
    if (stats?.isDirectory() === true) {
      for (const entry of readdirSync(join(this.root, path))) this.removeUnexpected(`${path}/${entry}`, expected);
      this.#removeEmpty(path);
    } else if (stats !== undefined && !expected.has(path)) {
      rmSync(join(this.root, path));
      this.count += 1;
      this.#removeEmpty(dirname(path));
    }
  }

  /** True when a folder and its parents are real folders. Removes the first of them that is a link or a file. */
  #isInside(folder: string): boolean {
    if (this.#folders.has(folder)) return true;
    if (!this.#isInside(dirname(folder))) return false;
    const stats = lstatSync(join(this.root, folder), { throwIfNoEntry: false });
    if (stats?.isDirectory() === true) {
      this.#folders.add(folder);
      return true;
    }
    if (stats !== undefined) rmSync(join(this.root, folder));
    return false;
  }

  #removeEmpty(folder: string): void {
    if (LIST_FOLDERS.includes(folder)) return;
    try {
      rmdirSync(join(this.root, folder));
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return;
      throw error;
    }
    this.#folders.delete(folder);
    this.#removeEmpty(dirname(folder));
  }
}

/** Columns of a block from which the paths of its files are computed. */
const BLOCK = { block_height: int, block_hash: text, records: int, operations: text, digest: text } as const;
type BlockRow = Values<typeof BLOCK>;

const pagePaths = (stem: string, total: number, site: Site): string[] => pagesOf(total, site).map((page) => pagePath(stem, page, site));

/** Returns the names of a block in the blocks folder: its height and its hash. */
const namesOf = ({ block_height, block_hash }: Pick<BlockRow, 'block_height' | 'block_hash'>, site: Site): string[] => [
  String(block_height),
  idName(block_hash, site.dialect),
];

/** The output from which files are removed, and the blocks that it has now. */
interface Removal {
  readonly root: string;
  readonly site: Site;
  readonly state: StateTables;
  readonly store: Store;
}

/** What an incremental build changed. `transactions` has all transactions that it read. */
interface Changed extends Pick<BlockChanges, 'old'> {
  readonly transactions: Loaded['transactions'];
}

/**
 * Removes the files with the paths `others`, and the pages of changed blocks of the last build that the output no longer has. A full build
 * does not know these blocks. So without `changed`, lists the folders of the output, and removes all files that belong to no block of the
 * state. Returns the number of removed files.
 */
export async function removeOutdated(removal: Removal, others: readonly string[], changed: Changed | undefined): Promise<number> {
  const { root, site } = removal;
  const remover = new Remover(root);
  if (site.layout === 'files') {
    for (const { name, records } of await (changed === undefined ? listedTransactions(removal) : oldTransactions(removal, changed))) {
      await yieldNow();
      const path = `${TRANSACTIONS_FOLDER}/${name}`;
      const expected = records === undefined ? [] : pagePaths(withoutEnding(path), records, site);
      remover.removeUnexpected(path, new Set(expected));
    }
    await sweepBlocks(removal, changed?.old.blocks, remover);
  }
  for (const path of [...others, ...(changed === undefined ? await strangers(removal) : [])]) {
    await yieldNow();
    remover.removeUnexpected(path);
  }
  // Builds a path only when it is removed, because a folder of layout `files` may have millions.
  for (const folder of site.layout === 'archive' && changed === undefined ? [TRANSACTIONS_FOLDER, BLOCKS_FOLDER] : [])
    for (const name of namesIn(root, folder)) {
      await yieldNow();
      remover.removeUnexpected(`${folder}/${name}`);
    }
  // Also removes the folder itself: hosts without code recognise layout `archive` by the absence of this folder.
  if (site.layout === 'archive' && changed === undefined) rmSync(join(root, TRANSACTIONS_FOLDER), { recursive: true, force: true });
  return remover.count;
}

/** Columns of files and folders of transactions, and the numbers of records of the transactions that have their names. */
const LISTED = { name: text, records: nullable(int) } as const;

/** Returns the names of the first page of a list and of the folder of its other pages. */
const entriesOf = (name: string): string[] => [`${name}.json`, name];

/** Returns the files and folders of the last build's transactions that are gone, or that have fewer records now. */
async function oldTransactions({ site, store }: Removal, { old, transactions }: Changed): Promise<Values<typeof LISTED>[]> {
  const rows = await store.rows(
    `SELECT o.tx_id AS name, t.records FROM ${old.transactions} o LEFT JOIN ${transactions} t USING (tx_id)
     WHERE t.records IS NULL OR t.records < o.records`,
    LISTED,
  );
  return rows.flatMap(({ name, records }) => entriesOf(idName(name, site.dialect)).map((entry) => ({ name: entry, records })));
}

/** Returns the folders, and files of unknown transactions. Compares names in DuckDB, because there may be millions of files. */
async function listedTransactions({ root, site, state, store }: Removal): Promise<Values<typeof LISTED>[]> {
  const names = namesIn(root, TRANSACTIONS_FOLDER).map((name) => [name]);
  const present = await store.append('present', columns('name VARCHAR'), names);
  return store.rows(
    `SELECT name, t.records FROM ${present} LEFT JOIN ${state.transactions} t
       ON regexp_replace(name, ${literal(PAGE_ENDING)}, '') = ${literal(spellHex('', site.dialect))} || t.tx_id
     WHERE t.tx_id IS NULL OR NOT ends_with(name, '.json')`,
    LISTED,
  );
}

/** Removes files and folders of the last build's changed blocks (`old`), or else of all blocks, that no list of a block has now. */
async function sweepBlocks(
  { root, site, state, store }: Removal,
  old: Changed['old']['blocks'] | undefined,
  remover: Remover,
): Promise<void> {
  const before = old && (await store.rows(`FROM ${old} ORDER BY block_height`, BLOCK));
  const entries = before?.flatMap((block) => namesOf(block, site).flatMap(entriesOf)) ?? namesIn(root, BLOCKS_FOLDER);
  const isTheirs = old === undefined ? 'true' : `block_height IN (SELECT block_height FROM ${old})`;
  const blocks = await store.rows(`FROM ${state.blocks} WHERE ${isTheirs}`, BLOCK);
  const named = new Map(blocks.flatMap((block) => namesOf(block, site).map((name) => [name, block])));
  for (const entry of entries) {
    await yieldNow();
    const name = withoutEnding(entry);
    const block = named.get(name);
    const lists = block === undefined ? [] : listsOf({ ...block, operations: block.operations.split(',').map(Number) }, site);
    const expected = lists.flatMap(([operation, total]) => pagePaths(blockStem(name, operation), total, site));
    remover.removeUnexpected(`${BLOCKS_FOLDER}/${entry}`, new Set(expected));
  }
}

/** Lists digests, statistics and rows without a block. Omits rows with other names, which no build wrote. */
async function strangers({ root, state, store }: Removal): Promise<string[]> {
  const heights = await store.rows(`SELECT block_height FROM ${state.blocks}`, { block_height: int });
  const files = heights.flatMap((row) => [digestsPath(row.block_height), statsFilePath(row.block_height)]);
  const expected = new Set([...files, ...pathsOf(await publishedIndex(state, store))]);
  return [DIGESTS_FOLDER, STATS_FOLDER, ROWS_FOLDER]
    .flatMap((folder) => pathsIn(root, folder))
    .filter((path) => !expected.has(path) && (isRowsFile(path) || !path.startsWith(`${ROWS_FOLDER}/`)));
}

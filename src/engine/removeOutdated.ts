/**
 * Removes files that no longer belong to the output. An incremental build computes their paths from the old and the new
 * state. A full build finds them by listing the folders of the output.
 */
import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { int, literal, nullable, type Store, text, type Values } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { codeOf, emptyIfMissing } from '../errors.ts';
import type { Loaded } from '../input/loadInput.ts';
import { OPERATIONS, type Operation } from '../pages/blockAndTransactionLists.ts';
import {
  BLOCKS_FOLDER,
  blockStem,
  DIGESTS_FOLDER,
  digestsPath,
  idName,
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
import type { StateTables } from './state/state.ts';
import type { BlockChanges } from './state/updateState.ts';

/** Lists the names in a folder; none when the folder does not exist. */
const namesIn = (folder: string): string[] => emptyIfMissing(() => readdirSync(folder));

/**
 * Removes files, and folders that become empty. If a folder is a symbolic link, removes the link and never follows it.
 */
class Remover {
  /** Paths of checked folders. They and all their parents are real folders, not links. */
  readonly #folders = new Set<string>(['.']);
  /** Number of files passed to `remove` so far. */
  count = 0;

  constructor(private readonly root: string) {}

  /** Removes files. Ignores files that do not exist. */
  remove(paths: readonly string[]): void {
    this.count += paths.length;
    for (const path of paths) {
      if (!this.#isInside(dirname(path))) continue;
      rmSync(join(this.root, path), { force: true, recursive: true });
      this.#removeEmpty(dirname(path));
    }
  }

  /** True when a path and its parents are real folders. Removes the first of them that is a link or a file. */
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

  /** Removes all files at or below `path` that are not in `expected`. */
  removeUnexpected(path: string, expected: ReadonlySet<string>): void {
    if (!lstatSync(join(this.root, path)).isDirectory()) {
      if (!expected.has(path)) this.remove([path]);
      return;
    }
    for (const entry of readdirSync(join(this.root, path))) this.removeUnexpected(`${path}/${entry}`, expected);
    this.#removeEmpty(path);
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

/** Returns the number of records in each list of a block. The list of all records has the operation `undefined`. */
function listsOf(block: BlockRow, site: Site): [operation: Operation | undefined, total: number][] {
  const counts = block.operations.split(',').map(Number);
  const byOperation = OPERATIONS.map((operation, code): [Operation, number] => [operation, counts[code] ?? 0]);
  return [[undefined, block.records], ...(site.operationPages ? byOperation.filter(([, count]) => count > 0) : [])];
}

const pagePaths = (stem: string, total: number, site: Site): string[] => pagesOf(total, site).map((page) => pagePath(stem, page, site));

/** Returns the paths of a block's files, grouped by the names of the block in the blocks folder: height and hash. */
function filesOfBlock(block: BlockRow, site: Site): Map<string, string[]> {
  const [height, hash] = [String(block.block_height), idName(block.block_hash, site.dialect)];
  const lists = listsOf(block, site);
  return new Map(
    [height, hash].map((name) => [name, lists.flatMap(([operation, total]) => pagePaths(blockStem(name, operation), total, site))]),
  );
}

/** The output from which files are removed. */
interface Removal {
  readonly root: string;
  readonly site: Site;
  readonly store: Store;
}

/**
 * Removes the pages that the last build had and this build does not have, and the files with the paths `others`.
 * `transactions` has all transactions that this build read. Returns the number of removed files.
 */
export async function removeOutdated(
  { root, site, store }: Removal,
  others: readonly string[],
  { old, written }: BlockChanges,
  transactions: Loaded['transactions'],
): Promise<number> {
  const remover = new Remover(root);
  const now = new Map<string, string[]>();
  if (site.layout === 'files') {
    for (const block of await store.rows(`SELECT * FROM ${written}`, BLOCK))
      for (const [name, paths] of filesOfBlock(block, site)) now.set(name, paths);
    for (const block of await store.rows(`SELECT * FROM ${old.blocks} ORDER BY block_height`, BLOCK)) {
      await yieldNow();
      for (const [name, paths] of filesOfBlock(block, site)) {
        const present = new Set(now.get(name));
        remover.remove(paths.filter((path) => !present.has(path)));
      }
    }
    await removeTransactions(old.transactions, transactions, site, remover, store);
  }
  remover.remove(others);
  return remover.count;
}

async function removeTransactions(
  old: BlockChanges['old']['transactions'],
  present: Loaded['transactions'],
  site: Site,
  remover: Remover,
  store: Store,
): Promise<void> {
  for (const row of await store.rows(
    `SELECT o.tx_id, o.records, t.records AS present FROM ${old} o LEFT JOIN ${present} t USING (tx_id)
       WHERE t.records IS NULL OR t.records < o.records`,
    { tx_id: text, records: int, present: nullable(int) },
  )) {
    await yieldNow();
    const stem = `${TRANSACTIONS_FOLDER}/${idName(row.tx_id, site.dialect)}`;
    const paths = row.present === undefined ? [] : pagePaths(stem, row.present, site);
    remover.remove(pagePaths(stem, row.records, site).filter((path) => !paths.includes(path)));
  }
}

/**
 * Lists the folders of the output, and removes `others` and all files that belong to no block of the state. Returns the
 * number of removed files.
 */
export async function sweep({ root, site, store }: Removal, others: readonly string[], state: StateTables): Promise<number> {
  const remover = new Remover(root);
  if (site.layout === 'files') await sweepTransactions(root, site, state, remover, store);
  else {
    for (const name of namesIn(join(root, TRANSACTIONS_FOLDER))) {
      await yieldNow();
      remover.removeUnexpected(`${TRANSACTIONS_FOLDER}/${name}`, new Set());
    }
    // Also removes the folder itself: hosts without code recognise layout `archive` by the absence of this folder.
    rmSync(join(root, TRANSACTIONS_FOLDER), { recursive: true, force: true });
  }
  await sweepBlocks(root, site, state, remover, store);
  for (const path of others) {
    await yieldNow();
    remover.removeUnexpected(path, new Set());
  }
  await sweepRows(root, state, remover, store);
  return remover.count;
}

/**
 * Removes unexpected files of transactions. Compares names in DuckDB, because the folder may have millions of files.
 */
async function sweepTransactions(root: string, site: Site, state: StateTables, remover: Remover, store: Store): Promise<void> {
  const present = await store.append(
    'present',
    columns('name VARCHAR'),
    namesIn(join(root, TRANSACTIONS_FOLDER)).map((name) => [name]),
  );
  // Selects the names that may be unexpected: names of unknown transactions, and folders. The loop below keeps the files
  // whose paths are expected, and removes the others.
  const suspects = await store.rows(
    `SELECT name, t.records FROM ${present} LEFT JOIN ${state.transactions} t
       ON regexp_replace(name, ${literal(PAGE_ENDING)}, '') = ${literal(spellHex('', site.dialect))} || t.tx_id
     WHERE t.tx_id IS NULL OR NOT ends_with(name, '.json')`,
    { name: text, records: nullable(int) },
  );
  for (const row of suspects) {
    await yieldNow();
    const path = `${TRANSACTIONS_FOLDER}/${row.name}`;
    const expected = row.records === undefined ? [] : pagePaths(withoutEnding(path), row.records, site);
    remover.removeUnexpected(path, new Set(expected));
  }
}

/** Removes the files of rows that the state does not have. Keeps files with other names, which no build wrote. */
async function sweepRows(root: string, state: StateTables, remover: Remover, store: Store): Promise<void> {
  const expected = new Set(pathsOf(await publishedIndex(state, store)));
  for (const name of namesIn(join(root, ROWS_FOLDER))) {
    const path = `${ROWS_FOLDER}/${name}`;
    if (isRowsFile(path)) remover.removeUnexpected(path, expected);
  }
}

async function sweepBlocks(root: string, site: Site, state: StateTables, remover: Remover, store: Store): Promise<void> {
  const blocks = new Map<string, BlockRow>();
  const files = new Set<string>();
  for (const block of await store.rows(`SELECT * FROM ${state.blocks}`, BLOCK)) {
    await yieldNow();
    if (site.layout === 'files') for (const name of filesOfBlock(block, site).keys()) blocks.set(name, block);
    for (const pathOf of [digestsPath, statsFilePath]) files.add(pathOf(block.block_height));
  }
  for (const entry of namesIn(join(root, BLOCKS_FOLDER))) {
    await yieldNow();
    const name = withoutEnding(entry);
    const block = blocks.get(name);
    const expected = block === undefined ? [] : (filesOfBlock(block, site).get(name) ?? []);
    remover.removeUnexpected(`${BLOCKS_FOLDER}/${entry}`, new Set(expected));
  }
  for (const folder of [DIGESTS_FOLDER, STATS_FOLDER]) {
    for (const entry of namesIn(join(root, folder))) remover.removeUnexpected(`${folder}/${entry}`, files);
  }
}

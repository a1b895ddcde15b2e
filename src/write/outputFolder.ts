/**
 * The output folder as a whole: whose it is, its own files, and what of an earlier build has to go.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf, InputError, messageOf } from '../errors.ts';
import { type Operation, type Site, spellHex } from '../pages/lists.ts';
import { BLOCKS_FOLDER, blockStem, MANIFEST_PATH, pagePath, pagesOf, TRANSACTIONS_FOLDER } from '../pages/paths.ts';
import { literal, type Store, toNumber, toText } from '../store/duckdb.ts';
import { writeFailure } from './pool.ts';
import { DiskSink } from './sinks.ts';

/** Stands in every output folder from the first moment on, so that an unfinished build is known as this program's too. */
const MARKER = '.rune-activity-mirror';
const MARKER_TEXT = 'This folder is made by rune-activity-mirror. Builds replace and remove files in it.\n';

export type OutputState = 'absent' | 'empty' | 'ours';

/** Looks at the output folder without touching it. Throws an InputError when it is someone else's. */
export function inspectOutput(root: string): OutputState {
  if (!existsSync(root)) return 'absent';
  if (!statSync(root).isDirectory()) throw new InputError(`the output ${root} is a file, not a folder`, ['Name a folder with --out.']);
  const entries = readdirSync(root);
  if (entries.length === 0) return 'empty';
  for (const folder of ['runes', dirname(BLOCKS_FOLDER), BLOCKS_FOLDER, TRANSACTIONS_FOLDER]) {
    if (lstatSync(join(root, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true) {
      throw new InputError(`${join(root, folder)} is a symbolic link; a build would write and remove files outside the output folder`, [
        'Replace it by a folder, or name another output folder with --out.',
      ]);
    }
  }
  if (entries.includes(MARKER) || isOurManifest(join(root, MANIFEST_PATH))) return 'ours';
  throw new InputError(`the output folder ${root} holds files that this program did not make, so it is left alone`, [
    'Name another folder with --out, or empty this one yourself.',
  ]);
}

function isOurManifest(path: string): boolean {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return typeof manifest === 'object' && manifest !== null && 'generator' in manifest && manifest.generator === 'rune-activity-mirror';
  } catch {
    return false;
  }
}

/** Makes the folder and marks it as this program's. Throws a BuildError when that is not possible. */
export function claimOutput(root: string): void {
  try {
    mkdirSync(root, { recursive: true });
    new DiskSink(root).file(MARKER, Buffer.from(MARKER_TEXT));
  } catch (error) {
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}

/**
 * Removes what an earlier build left behind: lists, pages and temporary files that the present data does not have. Only the two folders
 * of lists are looked at. Returns how many files went.
 */
export async function sweep(root: string, site: Site, store: Store): Promise<number> {
  try {
    return (await sweepTransactions(root, site, store)) + (await sweepBlocks(root, site, store));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    throw writeFailure({ message: messageOf(error), code: codeOf(error) });
  }
}

/** Entries of `transactions/` may be many, so they are compared in the store. */
async function sweepTransactions(root: string, site: Site, store: Store): Promise<number> {
  const folder = join(root, TRANSACTIONS_FOLDER);
  await store.insertTexts('present', readdirSync(folder, { encoding: 'utf8' }));
  const prefix = spellHex('', site.dialect);
  let removed = 0;
  // Everything is as it should be but: names of no transaction, and folders, whose pages are looked at one by one.
  const odd = await store.rows(
    `SELECT name, t.tx_id, t.records FROM present LEFT JOIN transactions t
       ON regexp_replace(name, '[.]json$', '') = ${literal(prefix)} || t.tx_id
     WHERE t.tx_id IS NULL OR NOT ends_with(name, '.json')`,
  );
  for (const row of odd) {
    const name = toText(row['name']);
    const stem = `${TRANSACTIONS_FOLDER}/${name}`;
    const expected = row['tx_id'] === null ? new Set<string>() : pagePaths(stem, toNumber(row['records']), site);
    removed += removeUnexpected(root, stem, expected);
  }
  return removed;
}

async function sweepBlocks(root: string, site: Site, store: Store): Promise<number> {
  const lists = new Map<string, Map<Operation | undefined, number>>();
  const counts = await store.rows(
    `SELECT block_height, operation, count(*) AS records FROM kept GROUP BY ALL
     UNION ALL SELECT block_height, NULL, records FROM blocks`,
  );
  for (const row of counts) {
    const height = toText(row['block_height']);
    const own = lists.get(height) ?? new Map<Operation | undefined, number>();
    own.set((row['operation'] ?? undefined) as Operation | undefined, toNumber(row['records']));
    lists.set(height, own);
  }
  for (const row of await store.rows('SELECT block_height, block_hash FROM blocks')) {
    const own = lists.get(toText(row['block_height']));
    if (own !== undefined) lists.set(spellHex(toText(row['block_hash']), site.dialect), own);
  }
  let removed = 0;
  for (const entry of readdirSync(join(root, BLOCKS_FOLDER))) {
    const name = entry.replace(/[.]json$/, '');
    const expected = new Set<string>();
    for (const [operation, records] of lists.get(name) ?? []) {
      for (const path of pagePaths(blockStem(name, operation), records, site)) expected.add(path);
    }
    removed += removeUnexpected(root, `${BLOCKS_FOLDER}/${entry}`, expected);
  }
  return removed;
}

const pagePaths = (stem: string, total: number, site: Site): Set<string> =>
  new Set(pagesOf(total, site).map((page) => pagePath(stem, page, site)));

/** Removes the files at or below `path` that are not expected, and folders that become empty. */
function removeUnexpected(root: string, path: string, expected: ReadonlySet<string>): number {
  const absolute = join(root, path);
  if (!lstatSync(absolute).isDirectory()) {
    if (expected.has(path)) return 0;
    rmSync(absolute);
    return 1;
  }
  let removed = 0;
  for (const entry of readdirSync(absolute)) removed += removeUnexpected(root, `${path}/${entry}`, expected);
  if (readdirSync(absolute).length === 0) rmSync(absolute, { recursive: true });
  return removed;
}

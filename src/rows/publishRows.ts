/**
 * Publishes the ledger rows of a build. If the input is a folder of rows (rowsFolder.ts), its files are linked, and its index is the
 * published one. Rows of other input are written in files of a hundred settled blocks, from the rows that the build has read, and from
 * files of the last build. The names and rows of all files depend only on the rows of the input and on its last block.
 */
import { join } from 'node:path';
import { KINDS, type Kind, namesOf, type RowFile, type RowsIndex, rowsName } from '../contract/rowsSchemas.ts';
import { sourcesUpTo } from '../contract/sources.ts';
import { type BlockRange, isWithin, portionsOf } from '../duckdb/blockRanges.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import type { Table } from '../duckdb/table.ts';
import type { DiskSink } from '../engine/render/diskSink.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { Loaded } from '../input/loadInput.ts';
import type { LedgerRows } from '../input/makeActivity.ts';
import type { WorkLimits } from '../limits.ts';
import { ROWS_FOLDER, rowsIndexPath } from '../pages/filePaths.ts';
import { UNSETTLED_BLOCKS } from '../pages/mirrorOptions.ts';
import { rowsIndexFile } from './rowsFolder.ts';
import { copyTable, entriesOf, type FileOfRows, HEIGHTS_PER_FILE, ledgerForm, RUNES, stampOf, type TableForm } from './rowsForm.ts';

/** Thrown if the build cannot copy rows from the last build, because a file was changed, lacks a column or is not there. */
export class ChangedRowsError extends Error {
  override readonly name = 'ChangedRowsError';
}

class UnfitRowsError extends Error {}

/** Output folder, folder for temporary files, and the sink that moves files to the output. */
export interface RowsTarget {
  readonly out: string;
  readonly scratch: string;
  readonly sink: DiskSink;
  readonly limits: Pick<WorkLimits, 'listedAtOnce'>;
}

export interface PublishedRows {
  /** Paths of files of the last build. */
  readonly outdated: readonly string[];
  /** Why no rows are published. */
  readonly why?: string;
}

interface Publishing extends RowsTarget {
  readonly loaded: Loaded;
  readonly ledger: LedgerRows;
  /** What the last build published. */
  readonly before: PublishedIndex | undefined;
  /** Receives the paths of the files that are written. */
  readonly made: string[];
  readonly state: StateTables;
  readonly store: Store;
}

/**
 * Writes the files of new and changed rows, the runes, and the list of all files. Publishes nothing if `loaded` has no rows, or rows
 * without a defined order. `state` must already have the new blocks. Throws a ChangedRowsError.
 */
export async function publishRows(target: RowsTarget, loaded: Loaded, state: StateTables, store: Store): Promise<PublishedRows> {
  const { rows } = loaded;
  const before = await publishedIndex(state, store);
  const old = pathsOf(before);
  const made: string[] = [];
  const nothing = async (why: string) => {
    await store.run(`DELETE FROM ${state.rowsIndex}`);
    return { outdated: [...old, ...made], why };
  };
  if ('why' in rows) return nothing(rows.why);
  try {
    const index = await indexOf({ ...target, loaded, ledger: rows, before, made, state, store });
    const { path, sha256, content } = rowsIndexFile(index);
    target.sink.file(path, content);
    await store.run(
      `DELETE FROM ${state.rowsIndex}; INSERT INTO ${state.rowsIndex} VALUES (${literal(String(content))}, ${literal(sha256)})`,
    );
    const present = new Set(pathsOf({ index, sha256 }));
    return { outdated: old.filter((one) => !present.has(one)) };
  } catch (error) {
    if (error instanceof UnfitRowsError) return nothing(error.message);
    throw error;
  }
}

interface PublishedIndex {
  readonly index: RowsIndex;
  readonly sha256: string;
}

/** Reads the index from the state. Returns undefined if the last build published no rows. */
export async function publishedIndex({ rowsIndex }: Pick<StateTables, 'rowsIndex'>, store: Store): Promise<PublishedIndex | undefined> {
  const [row] = await store.rows(`FROM ${rowsIndex}`, { content: text, sha256: text });
  return row && { index: JSON.parse(row.content) as RowsIndex, sha256: row.sha256 };
}

/** Paths of an index and of its files. */
export const pathsOf = (published: PublishedIndex | undefined): string[] =>
  published === undefined ? [] : [rowsIndexPath(published.sha256), ...namesOf(published.index).map((name) => `${ROWS_FOLDER}/${name}`)];

const pathOf = (file: Pick<RowFile, 'first' | 'last' | 'sha256'>, kind: Kind = 'files'): string => `${ROWS_FOLDER}/${rowsName(kind, file)}`;

/** Links or writes the files that the last build does not have. Returns the new index. */
async function indexOf(publishing: Publishing): Promise<RowsIndex> {
  const { out, sink, loaded, ledger, before, state, store } = publishing;
  const { folder, sources, network, ends = [] } = loaded;
  const spent = folder?.index.spent ?? ledger.hasSpent;
  const [tip] = await store.rows(`SELECT block_height AS height, block_hash AS hash FROM ${state.tip}`, { height: int, hash: text });
  const newest = ends.length === 0 ? undefined : [...ends];
  const head = { version: 1, sources: sourcesUpTo(tip?.height, sources), tip, network, ends: newest, spent } as const;
  if (folder !== undefined) {
    // The build has compared the files of the folder with their SHA-256.
    const known = new Set(pathsOf(before));
    for (const kind of KINDS)
      for (const file of folder.index[kind])
        if (!known.has(pathOf(file, kind))) sink.linkFrom(pathOf(file, kind), join(folder.path, rowsName(kind, file)));
    return { ...head, files: folder.index.files, runes: folder.index.runes };
  }
  const others = `SELECT count(*) AS number FROM ${state.held} WHERE block_height NOT IN (SELECT block_height FROM ${loaded.affected})`;
  if (before === undefined && (await store.number(others)) > 0) throw new ChangedRowsError('the last build published no rows');
  if (before !== undefined && before.index.spent !== spent)
    throw new ChangedRowsError(`unlike the input, the files in ${join(out, ROWS_FOLDER)} ${spent ? 'lack' : 'have'} spent outputs`);
  const files = await writeFiles(publishing);
  const runes = loaded.runes === undefined && before !== undefined ? before.index.runes : await writeRunes(publishing);
  return { ...head, files, runes };
}

/** Moves files that were made to the output. Returns their entries for the index. */
async function take(kind: Kind, files: readonly FileOfRows[], form: TableForm, { sink, made, store }: Publishing): Promise<RowFile[]> {
  const entries = await entriesOf(files, form, store);
  return entries.map((entry, i) => {
    // The rows were written in order, so a fault can only be that two rows of a transaction have the same event index.
    if (typeof entry === 'string') throw new UnfitRowsError(`the input has two events in one place: ${entry}`);
    made.push(pathOf(entry, kind));
    sink.take(pathOf(entry, kind), files[i]?.path ?? '');
    return entry;
  });
}

/** Returns SQL expressions of the first and the last height of a block's file: a hundred settled heights, or one. */
function rangeSql(tip: number): string {
  const first = `block_height - block_height % ${HEIGHTS_PER_FILE}`;
  const either = (hundred: string) =>
    `CASE WHEN ${first} + ${HEIGHTS_PER_FILE - 1} <= ${tip - UNSETTLED_BLOCKS} THEN ${hundred} ELSE block_height END`;
  return `${either(first)} AS first, ${either(`${first} + ${HEIGHTS_PER_FILE - 1}`)} AS last`;
}

/** Writes the files that have an affected block or a new range of heights. Returns the entries of all files. */
async function writeFiles(publishing: Publishing): Promise<RowFile[]> {
  const { scratch, limits, loaded, ledger, state, store } = publishing;
  const before = publishing.before?.index.files ?? [];
  const form = ledgerForm(ledger.hasSpent);
  const range = rangeSql(await store.number(`SELECT coalesce(max(block_height), 0) AS number FROM ${state.tip}`));
  const nameOf = ({ first, last }: BlockRange) => `${first}-${last}`;
  const touched = new Set((await store.rows(`SELECT DISTINCT ${range} FROM ${loaded.affected}`, { first: int, last: int })).map(nameOf));
  const ranges = await store.rows(
    `SELECT first, last, sum(records)::BIGINT AS records FROM (SELECT records, ${range} FROM ${state.held}) GROUP BY first, last ORDER BY first`,
    { first: int, last: int, records: int },
  );
  const wanted = new Set(ranges.map(nameOf));
  const kept = before.filter((file) => wanted.has(nameOf(file)) && !touched.has(nameOf(file)));
  const have = new Set(kept.map(nameOf));
  const stale = before.filter((file) => !have.has(nameOf(file)));
  const due = ranges.filter((one) => !have.has(nameOf(one)));
  const files = [...kept];
  for (const portion of portionsOf(due, limits.listedAtOnce)) {
    const rows = await dueRows(portion, stale, publishing);
    const made = portion.map(({ first, last }) => ({ first, last, path: join(scratch, `rows-${first}.parquet`) }));
    for (const { path, ...heights } of made)
      await store.run(copyTable(`SELECT * EXCLUDE (source) FROM ${rows} WHERE ${isWithin(heights)}`, form.order, path));
    await store.run(`DROP TABLE ${rows}`);
    for (const file of await take('files', made, form, publishing)) files.push(file);
  }
  return files.sort((a, b) => a.first - b.first);
}

/** Returns a table with the rows of these ranges: rows of affected blocks from the input, others from old files. */
async function dueRows(ranges: readonly BlockRange[], stale: readonly RowFile[], publishing: Publishing): Promise<Table> {
  const { out, loaded, ledger, store } = publishing;
  const isDue = `(${ranges.map(isWithin).join(' OR ')})`;
  const isAffected = `block_height IN (SELECT block_height FROM ${loaded.affected})`;
  const old: string[] = [];
  for (const file of stale.filter(({ first, last }) => ranges.some((range) => range.first <= last && first <= range.last))) {
    const path = join(out, pathOf(file));
    const kept = await store.number(
      `SELECT count(*) AS number FROM range(${file.first}, ${file.last + 1}) r(block_height) WHERE NOT ${isAffected} AND ${isDue}`,
    );
    if (kept === 0) continue;
    const stamp = await stampOf(path);
    if (stamp?.sha256 !== file.sha256) throw new ChangedRowsError(`${path} was changed since the last build`);
    old.push(path);
  }
  const more = old.length === 0 ? '' : `UNION ALL SELECT 0 AS source, * FROM ${readFiles('parquet', old)} WHERE NOT ${isAffected}`;
  const rows = `SELECT * FROM (SELECT * FROM ${ledger.table} WHERE ${isAffected} ${more}) WHERE ${isDue}`;
  return store.table('due_rows', ledger.table.columns, rows);
}

/** Writes all runes to one file, because tables of runes need not say in which blocks they were etched. */
async function writeRunes(publishing: Publishing): Promise<RowFile[]> {
  const { scratch, state, store } = publishing;
  const path = join(scratch, 'runes.parquet');
  const names = RUNES.fields.map(({ column }) => `"${column}"`);
  await store.run(copyTable(`SELECT ${names.join(', ')} FROM ${state.runes}`, RUNES.order, path));
  const heights = `SELECT coalesce(min(block_height), 0) AS first, coalesce(max(block_height), 0) AS last FROM ${state.runes}`;
  return take('runes', [{ ...(await store.row(heights, { first: int, last: int })), path }], RUNES, publishing);
}

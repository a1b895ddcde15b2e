/**
 * Publishes the ledger rows of a build. If the input is a folder of rows (rowsFolder.ts), its files are linked, and its
 * index is the published one. Rows of other input are written in files of a hundred settled blocks, from the rows that
 * the build has read, and from files of the last build. Full and incremental builds give the same result: the names and
 * rows of all files depend only on the rows of the input and on its last block.
 */
import { join } from 'node:path';
import { KINDS, type Kind, namesOf, type RowFile, type RowsIndex, rowsName } from '../contract/rowsSchemas.ts';
import { sourcesUpTo } from '../contract/sources.ts';
import { portionsOf } from '../duckdb/blockRanges.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import type { DiskSink } from '../engine/render/diskSink.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { Loaded } from '../input/loadInput.ts';
import type { LedgerRows } from '../input/makeActivity.ts';
import type { WorkLimits } from '../limits.ts';
import { ROWS_FOLDER, rowsIndexPath } from '../pages/filePaths.ts';
import { UNSETTLED_BLOCKS } from '../pages/mirrorOptions.ts';
import { rowsIndexFile } from './rowsFolder.ts';
import { contentOf, copyTable, formFault, HEIGHTS_PER_FILE, ledgerForm, RUNES, stampOf, type TableForm } from './rowsForm.ts';

/** Thrown if the build cannot copy rows from the last build, because a file was changed, lacks a column or is not there. */
export class ChangedRowsError extends Error {
  override readonly name = 'ChangedRowsError';
}

/** Thrown for rows that no build can publish. */
class UnfitRowsError extends Error {}

/** Output folder, folder for temporary files, and the sink that moves files to the output. */
export interface RowsTarget {
  readonly out: string;
  readonly scratch: string;
  readonly sink: DiskSink;
  readonly limits: Pick<WorkLimits, 'listedAtOnce'>;
}

const FILE = { first: int, last: int, rows: int, bytes: int, sha256: text, digest: text } as const;

/** Fields of the index, except the lists of files. */
type Head = Omit<RowsIndex, Kind>;

/** Paths of files of the last build that are no longer needed. `why` is the reason if no rows are published. */
export interface PublishedRows {
  readonly outdated: readonly string[];
  readonly why?: string;
}

/**
 * Writes the files of new and changed rows, the runes, and the list of all files. Publishes nothing if `loaded` has no
 * rows, or rows without a defined order. `state` must already have the new blocks. Rejects with a ChangedRowsError if
 * rows of the last build are needed, but were changed or are not there.
 */
export async function publishRows(target: RowsTarget, loaded: Loaded, state: StateTables, store: Store): Promise<PublishedRows> {
  const old = await publishedPaths(state, store);
  const nothing = async (why: string) => {
    const outdated = [...old, ...(await publishedPaths(state, store))];
    await store.run(`DELETE FROM ${state.rowFiles}; DELETE FROM ${state.rowsIndex}`);
    return { outdated, why };
  };
  if ('why' in loaded.rows) return nothing(loaded.rows.why);
  try {
    return { outdated: await publish(target, loaded, loaded.rows, state, store) };
  } catch (error) {
    if (error instanceof UnfitRowsError) return nothing(error.message);
    throw error;
  }
}

/** Returns the published files of each kind, heights ascending. */
async function publishedFiles({ rowFiles }: StateTables, store: Store): Promise<Record<Kind, RowFile[]>> {
  const rows = await store.rows(`FROM ${rowFiles} ORDER BY first, last`, { ...FILE, kind: text });
  const filesOf = (kind: Kind) => rows.filter((row) => row.kind === kind).map(({ kind: _, ...file }) => file);
  return { files: filesOf('files'), runes: filesOf('runes') };
}

/** Returns the paths of all published files, and of their index. */
export async function publishedPaths(state: StateTables, store: Store): Promise<string[]> {
  const index = await readIndex(state, store);
  return [...(index === undefined ? [] : [rowsIndexPath(index.sha256)]), ...pathsOf(await publishedFiles(state, store))];
}

const pathsOf = (files: Record<Kind, RowFile[]>): string[] => namesOf(files).map((name) => `${ROWS_FOLDER}/${name}`);

const pathOf = (file: Pick<RowFile, 'first' | 'last' | 'sha256'>, kind: Kind = 'files'): string => `${ROWS_FOLDER}/${rowsName(kind, file)}`;

const valuesOf = (kind: Kind, { first, last, rows, bytes, sha256, digest }: RowFile): string =>
  `(${[literal(kind), first, last, rows, bytes, literal(sha256), literal(digest)].join(', ')})`;

async function publish(target: RowsTarget, loaded: Loaded, ledger: LedgerRows, state: StateTables, store: Store): Promise<string[]> {
  const before = await readIndex(state, store);
  const old = await publishedPaths(state, store);
  const spent = loaded.folder?.index.spent ?? ledger.hasSpent;
  if (loaded.folder === undefined) {
    const others = `SELECT count(*) AS number FROM ${state.held} WHERE block_height NOT IN (SELECT block_height FROM ${loaded.affected})`;
    if (before === undefined && (await store.number(others)) > 0) throw new ChangedRowsError('the last build published no rows');
    if (before !== undefined && before.head.spent !== spent)
      throw new ChangedRowsError(
        `unlike the input, the files in ${join(target.out, ROWS_FOLDER)} ${spent ? 'lack' : 'have'} spent outputs`,
      );
    await writeFiles(target, loaded, ledger, state, store);
    if (loaded.runes !== undefined || before === undefined) await writeRunes(target, state, store);
  } else await linkFiles(target, loaded.folder, new Set(old), state, store);
  const [tip] = await store.rows(`SELECT block_height AS height, block_hash AS hash FROM ${state.tip}`, { height: int, hash: text });
  const { sources, network, ends = [] } = loaded;
  const head: Head = {
    version: 1,
    sources: sourcesUpTo(tip?.height, sources),
    tip,
    network,
    ...(ends.length === 0 ? {} : { ends: [...ends] }),
    spent,
  };
  const files = await publishedFiles(state, store);
  const index = rowsIndexFile({ ...head, ...files });
  target.sink.file(index.path, index.content);
  await store.run(`DELETE FROM ${state.rowsIndex};
    INSERT INTO ${state.rowsIndex} VALUES (${literal(JSON.stringify(head))}, ${literal(index.sha256)})`);
  const present = new Set([index.path, ...pathsOf(files)]);
  return old.filter((path) => !present.has(path));
}

/** Links the files of a folder of rows, except those with the paths `before`. The build has compared them with their SHA-256. */
async function linkFiles(
  { sink }: RowsTarget,
  { path, index }: NonNullable<Loaded['folder']>,
  before: ReadonlySet<string>,
  state: StateTables,
  store: Store,
): Promise<void> {
  for (const kind of KINDS)
    for (const file of index[kind])
      if (!before.has(pathOf(file, kind))) sink.linkFrom(pathOf(file, kind), join(path, rowsName(kind, file)));
  await store.run(`DELETE FROM ${state.rowFiles}`);
  const values = KINDS.flatMap((kind) => index[kind].map((file) => valuesOf(kind, file)));
  for (let i = 0; i < values.length; i += 1000)
    await store.run(`INSERT INTO ${state.rowFiles} VALUES ${values.slice(i, i + 1000).join(', ')}`);
}

/** Reads the list of files from the state. Returns undefined if the last build published no rows. */
export async function readIndex(
  { rowsIndex }: Pick<StateTables, 'rowsIndex'>,
  store: Store,
): Promise<{ readonly head: Head; readonly sha256: string } | undefined> {
  const [row] = await store.rows(`FROM ${rowsIndex}`, { head: text, sha256: text });
  return row && { head: JSON.parse(row.head) as Head, sha256: row.sha256 };
}

/** Returns SQL expressions of the first and the last height of a block's file: a hundred settled heights, or one. */
function rangeSql(tip: number): string {
  const first = `block_height - block_height % ${HEIGHTS_PER_FILE}`;
  const either = (hundred: string) =>
    `CASE WHEN ${first} + ${HEIGHTS_PER_FILE - 1} <= ${tip - UNSETTLED_BLOCKS} THEN ${hundred} ELSE block_height END`;
  return `${either(first)} AS first, ${either(`${first} + ${HEIGHTS_PER_FILE - 1}`)} AS last`;
}

/** Writes the files that have an affected block or a new range of heights, and forgets those that they replace. */
async function writeFiles(
  target: RowsTarget,
  { affected }: Loaded,
  { table, hasSpent }: LedgerRows,
  state: StateTables,
  store: Store,
): Promise<void> {
  const form = ledgerForm(hasSpent);
  const tip = await store.number(`SELECT coalesce(max(block_height), 0) AS number FROM ${state.tip}`);
  const range = rangeSql(tip);
  const isTouched = `(first, last) IN (SELECT (first, last) FROM (SELECT ${range} FROM ${affected}))`;
  const ranges = await store.table(
    'row_ranges',
    columns('first BIGINT, last BIGINT, records BIGINT'),
    `SELECT first, last, sum(records)::BIGINT AS records FROM (SELECT records, ${range} FROM ${state.held}) GROUP BY first, last`,
  );
  const stale = await store.rows(
    `SELECT * EXCLUDE (kind) FROM ${state.rowFiles} WHERE kind = 'files' AND (${isTouched} OR (first, last) NOT IN (SELECT (first, last) FROM ${ranges}))`,
    FILE,
  );
  const due = await store.rows(
    `FROM ${ranges} WHERE ${isTouched} OR (first, last) NOT IN (SELECT (first, last) FROM ${state.rowFiles} WHERE kind = 'files') ORDER BY first`,
    { first: int, last: int, records: int },
  );
  const made = join(target.scratch, 'rows.parquet');
  const replaced = stale.map(({ first, last }) => `(${first}, ${last})`).join(', ');
  if (stale.length > 0) await store.run(`DELETE FROM ${state.rowFiles} WHERE kind = 'files' AND (first, last) IN (${replaced})`);
  for (const portion of portionsOf(due, target.limits.listedAtOnce)) {
    const rows = await restOf(target.out, portion, stale, table, affected, store);
    for (const range of portion) {
      const within = `SELECT * EXCLUDE (source) FROM ${rows} WHERE block_height BETWEEN ${range.first} AND ${range.last}`;
      await store.run(copyTable(within, form.order, made));
      const file = { ...range, ...(await factsOf(made, form, store)) };
      await store.run(`INSERT INTO ${state.rowFiles} VALUES ${valuesOf('files', file)}`);
      target.sink.take(pathOf(file), made);
    }
    await store.run(`DROP TABLE ${rows}`);
  }
  await store.run(`DROP TABLE ${ranges}`);
}

/** Returns a table with the rows of these ranges: rows of affected blocks from the input, others from old files. */
async function restOf(
  out: string,
  ranges: readonly Pick<RowFile, 'first' | 'last'>[],
  stale: readonly RowFile[],
  table: LedgerRows['table'],
  affected: Loaded['affected'],
  store: Store,
): Promise<Table> {
  const isDue = `(${ranges.map(({ first, last }) => `block_height BETWEEN ${first} AND ${last}`).join(' OR ')})`;
  const isAffected = `block_height IN (SELECT block_height FROM ${affected})`;
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
  return store.table('due_rows', table.columns, `SELECT * FROM (SELECT * FROM ${table} WHERE ${isAffected} ${more}) WHERE ${isDue}`);
}

/** Writes all runes to one file, because tables of runes need not say in which blocks they were etched. */
async function writeRunes({ scratch, sink }: RowsTarget, state: StateTables, store: Store): Promise<void> {
  const made = join(scratch, 'runes.parquet');
  const names = RUNES.fields.map(({ column }) => `"${column}"`);
  await store.run(copyTable(`SELECT ${names.join(', ')} FROM ${state.runes}`, RUNES.order, made));
  const heights = `SELECT coalesce(min(block_height), 0) AS first, coalesce(max(block_height), 0) AS last FROM ${state.runes}`;
  const file = { ...(await store.row(heights, { first: int, last: int })), ...(await factsOf(made, RUNES, store)) };
  await store.run(`DELETE FROM ${state.rowFiles} WHERE kind = 'runes'; INSERT INTO ${state.rowFiles} VALUES ${valuesOf('runes', file)}`);
  sink.take(pathOf(file, 'runes'), made);
}

async function factsOf(path: string, form: TableForm, store: Store): Promise<Omit<RowFile, 'first' | 'last'>> {
  const fault = await formFault(path, form, store);
  // The rows were written in order. So the fault can only be that two rows of a transaction have the same event index,
  // and therefore no defined order.
  if (fault !== undefined) throw new UnfitRowsError(`the input has two events in one place: ${fault}`);
  const [content, stamp] = [await contentOf(path, form, store), await stampOf(path)];
  if (stamp === undefined) throw new Error(`${path} was not written`);
  return { rows: content.rows, ...stamp, digest: content.digest };
}

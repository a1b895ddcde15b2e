/**
 * The form of Parquet files with ledger rows: their columns, types and order. Pulls write this form, builds read and publish it, and pulls
 * from other mirrors fetch it. The bytes of a file depend on DuckDB's version, but the digest of its rows does not.
 */
import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Field, LEDGER_FIELDS, NODE_LEDGER_FIELDS, RUNE_DETAILS, RUNE_FIELDS } from '../contract/fields.ts';
import type { RowFile } from '../contract/rowsSchemas.ts';
import { joinedBlobs, readDoubles } from '../duckdb/columns.ts';
import { readFiles, readParquetSchemas } from '../duckdb/readFilesSql.ts';
import { identifier, int, literal, type Store, text } from '../duckdb/store.ts';
import { columnsOf } from '../duckdb/table.ts';
import { JSON_TEXT, jsonOf } from '../engine/render/renderRecordSql.ts';
import { isAbsence } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import { sha256Of } from '../input/changedFiles.ts';

export interface TableForm {
  readonly fields: readonly Field[];
  /** SQL expressions for ORDER BY. Together they differ for any two rows. */
  readonly order: readonly string[];
}

/**
 * Form of ledger rows. Blocks ascend; within a block, transactions and events descend, as in lists of the API. If spent outputs are
 * unknown, there is no column `spent`, in which NULL means that a transaction spends nothing.
 */
export const ledgerForm = (hasSpent: boolean): TableForm => ({
  fields: hasSpent ? NODE_LEDGER_FIELDS : LEDGER_FIELDS,
  order: ['block_height', '-tx_index', '-event_index'],
});

export const NODE_LEDGER = ledgerForm(true);

/** Runes, with all columns that a table of runes may have. */
export const RUNES: TableForm = { fields: [...RUNE_FIELDS, ...RUNE_DETAILS], order: ['number', 'id'] };

/** Heights of a file of settled blocks: about 100,000 rows, which need little memory. All of history has 1,400 files. */
export const HEIGHTS_PER_FILE = 100;

export function hundredOf(height: number): { readonly first: number; readonly last: number } {
  const first = height - (height % HEIGHTS_PER_FILE);
  return { first, last: first + HEIGHTS_PER_FILE - 1 };
}

/**
 * Higher levels of compression take more time and make the files larger, because ids and addresses are nearly random. A block has a few
 * thousand rows, so a query for one block reads one or two row groups.
 */
const PARQUET = 'FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 40960';

/** Returns SQL that writes rows to a Parquet file. Equal rows give equal bytes, with any number of threads. */
export const copyTable = (rows: string, order: readonly string[], path: string): string =>
  `COPY (SELECT * FROM (${rows}) ORDER BY ${order.join(', ')}) TO ${literal(resolve(path))} (${PARQUET})`;

/** Returns SQL of the cells of a row as a JSON array and a line feed. Needs the macro that JSON_TEXT creates. */
function lineOf(fields: readonly Field[]): string {
  const free = fields.filter(({ kind }) => kind === 'text').map(({ column }) => identifier(column));
  return jsonOf(free, (escaped) => {
    const cells = fields.flatMap(({ column, kind }) => {
      const name = identifier(column);
      const isBare = kind === 'integer' || kind === 'flag';
      const cell = isBare ? `${name}::VARCHAR` : `'"' || ${free.includes(name) ? escaped(name) : name} || '"'`;
      return [`','`, `coalesce(${cell}, 'null')`];
    });
    return [`'['`, ...cells.slice(1), `']\n'`];
  });
}

type Stamp = Pick<RowFile, 'bytes' | 'sha256'>;

/** Describes how files differ from a form, in their columns, their types or the order of rows, by path. Omits files that fit. */
export async function formFaults(paths: readonly string[], { fields, order }: TableForm, store: Store): Promise<Map<string, string>> {
  const faults = new Map<string, string>();
  if (paths.length === 0) return faults;
  const expected = Object.entries(columnsOf(fields)).map((column) => column.join(' '));
  const elements = await store.rows(
    `SELECT file_name AS file, name || ' ' || CASE WHEN repetition_type = 'REPEATED' THEN 'nested' ELSE coalesce(duckdb_type, 'nested') END AS "column"
     FROM ${readParquetSchemas(paths)}`,
    { file: text, column: text },
  );
  const files = groupBy(elements, ({ file }) => file);
  for (const path of paths) {
    // The first element stands for all columns.
    const [, ...columns] = (files.get(resolve(path)) ?? []).map(({ column }) => column);
    if (columns.join() !== expected.join()) faults.set(path, `it has unexpected columns: ${columns.join(', ').slice(0, 500)}`);
  }
  const fit = paths.filter((path) => !faults.has(path));
  if (fit.length === 0) return faults;
  const place = `(file, ${order.join(', ')})`;
  // OVER () without ORDER BY goes through the rows in the order of the files.
  const unsorted = await store.rows(
    `SELECT DISTINCT file FROM (SELECT file, ${place} AS place, lag(${place}) OVER () AS before
       FROM (SELECT file_index::BIGINT AS file, * FROM ${readFiles('parquet', fit)}))
     WHERE NOT coalesce(before IS NULL OR before < place, false)`,
    { file: int },
  );
  for (const { file } of unsorted) faults.set(fit[file] ?? '', 'its rows are not sorted');
  return faults;
}

/** Counts the rows of files, which must have the form, and computes their digests, which do not depend on the program that wrote them. */
export async function contentsOf(
  paths: readonly string[],
  { fields }: TableForm,
  store: Store,
): Promise<Pick<RowFile, 'rows' | 'digest'>[]> {
  const found = paths.map(() => ({ rows: 0, hash: createHash('sha256') }));
  await store.run(JSON_TEXT);
  const rows = `SELECT file_index::DOUBLE, encode(${lineOf(fields)}) FROM ${readFiles('parquet', paths)}`;
  for await (const chunk of paths.length === 0 ? [] : store.stream(rows)) {
    const files = readDoubles(chunk, 0);
    const { bytes, offsets } = joinedBlobs(chunk, 1);
    for (let [row, end] = [0, 0]; row < files.length; row = end) {
      const file = found[files[row] ?? 0];
      while (end < files.length && files[end] === files[row]) end += 1;
      file?.hash.update(bytes.subarray(offsets[row], offsets[end]));
      if (file !== undefined) file.rows += end - row;
    }
  }
  return found.map(({ rows, hash }) => ({ rows, digest: hash.digest('hex') }));
}

/** Reads a file and computes its stamp. Returns undefined if the path is not an existing regular file. */
export async function stampOf(path: string): Promise<Stamp | undefined> {
  try {
    const stats = lstatSync(path);
    return stats.isFile() ? { bytes: stats.size, sha256: await sha256Of(path) } : undefined;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** A file with rows of the heights from `first` to `last`, both inclusive. */
export interface FileOfRows extends Pick<RowFile, 'first' | 'last'>, Partial<Pick<RowFile, 'sha256'>> {
  readonly path: string;
}

/** Returns the entry of each file for an index, or what is wrong with the file: its form, or another SHA-256 than it should have. */
export async function entriesOf(files: readonly FileOfRows[], form: TableForm, store: Store): Promise<(RowFile | string)[]> {
  const [stamps, faults] = [new Map<string, Stamp>(), new Map<string, string>()];
  for (const { path, sha256 } of files) {
    const stamp = await stampOf(path);
    if (stamp === undefined) faults.set(path, 'it is missing, or no regular file');
    else if (sha256 !== undefined && sha256 !== stamp.sha256) faults.set(path, 'its SHA-256 differs from the index');
    else stamps.set(path, stamp);
  }
  for (const [path, fault] of await formFaults([...stamps.keys()], form, store)) faults.set(path, fault);
  const fit = [...stamps.keys()].filter((path) => !faults.has(path));
  const contents = await contentsOf(fit, form, store);
  const entries = new Map(fit.map((path, i) => [path, { ...stamps.get(path), ...contents[i] }]));
  return files.map(({ path, first, last }) => {
    const { rows = 0, bytes = 0, sha256 = '', digest = '' } = entries.get(path) ?? {};
    return faults.get(path) ?? { first, last, rows, bytes, sha256, digest };
  });
}

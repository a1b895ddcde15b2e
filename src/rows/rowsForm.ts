/**
 * The form of Parquet files with ledger rows: their columns, types and order. Pulls write this form, builds read and
 * publish it, and pulls from other mirrors fetch it. The bytes of a file depend on DuckDB's version, but the digest of
 * its rows does not.
 */
import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Field, LEDGER_FIELDS, NODE_LEDGER_FIELDS, RUNE_DETAILS, RUNE_FIELDS } from '../contract/fields.ts';
import { joinedBlobs } from '../duckdb/columns.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, literal, type Store, text } from '../duckdb/store.ts';
import { columnsOf } from '../duckdb/table.ts';
import { JSON_TEXT, jsonOf } from '../engine/render/renderRecordSql.ts';
import { isAbsence } from '../errors.ts';
import { sha256Of } from '../input/checksums.ts';

export interface TableForm {
  readonly fields: readonly Field[];
  /** SQL expressions for ORDER BY. Together they differ for any two rows. */
  readonly order: readonly string[];
}

/**
 * Form of ledger rows. Blocks ascend; within a block, transactions and events descend, as in lists of the API. If spent
 * outputs are unknown, there is no column `spent`, in which NULL means that a transaction spends nothing.
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

/** Returns the range of heights of the file of a settled block. */
export function hundredOf(height: number): { readonly first: number; readonly last: number } {
  const first = height - (height % HEIGHTS_PER_FILE);
  return { first, last: first + HEIGHTS_PER_FILE - 1 };
}

/**
 * Higher levels of compression take more time and make the files larger, because ids and addresses are nearly random. A
 * block has a few thousand rows, so a query for one block reads one or two row groups.
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

export interface Stamp {
  readonly bytes: number;
  /** SHA-256 of the content, 64 hex digits. */
  readonly sha256: string;
}

/** Number and digest of the rows of a file. They do not depend on the program that wrote the file. */
export interface Content {
  readonly rows: number;
  /** SHA-256 of the rows: see contract/rowsSchemas.ts. */
  readonly digest: string;
}

/** Describes how a file differs from a form, in its columns, their types or the order of rows. Undefined if it fits. */
export async function formFault(path: string, { fields, order }: TableForm, store: Store): Promise<string | undefined> {
  const scan = readFiles('parquet', [path]);
  const found = await store.rows(`DESCRIBE SELECT * FROM ${scan}`, { column_name: text, column_type: text });
  const columns = found.map((row) => `${row.column_name} ${row.column_type}`).join(', ');
  const expected = Object.entries(columnsOf(fields)).map((column) => column.join(' '));
  if (columns !== expected.join(', ')) return `it has unexpected columns: ${columns.slice(0, 500)}`;
  const place = `(${order.join(', ')})`;
  // OVER () without ORDER BY goes through the rows in the order of the file.
  const odd = await store.number(`SELECT count(*) FILTER (WHERE NOT coalesce(before IS NULL OR before < place, false)) AS number
     FROM (SELECT ${place} AS place, lag(${place}) OVER () AS before FROM ${scan})`);
  return odd > 0 ? 'its rows are not sorted' : undefined;
}

/** Counts the rows of a file, which must have the form, and computes their digest. */
export async function contentOf(path: string, { fields }: TableForm, store: Store): Promise<Content> {
  await store.run(JSON_TEXT);
  const hash = createHash('sha256');
  let rows = 0;
  for await (const chunk of store.stream(`SELECT encode(${lineOf(fields)}) FROM ${readFiles('parquet', [path])}`)) {
    hash.update(joinedBlobs(chunk, 0).bytes);
    rows += chunk.rowCount;
  }
  return { rows, digest: hash.digest('hex') };
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

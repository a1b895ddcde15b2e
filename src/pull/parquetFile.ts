/** Writes rows as Parquet files. Equal rows always give equal bytes, so unchanged files are recognised. */
import { resolve } from 'node:path';
import type { Field } from '../contract/fields.ts';
import { readCsv } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { columnsOf } from '../duckdb/table.ts';
import { copyTable } from '../rows/rowsForm.ts';
import { workFile } from './writePulled.ts';

export interface CsvRows {
  /** CSV file in PostgreSQL's format: no header, and NULL is an empty field without quotes. Undefined for no rows. */
  readonly csv: string | undefined;
  readonly fields: readonly Field[];
  /** SQL expressions for ORDER BY. No two rows have the same values of all these expressions. */
  readonly order: readonly string[];
  /** SQL (FROM ...) of further rows with the same columns. */
  readonly more?: string | undefined;
  /** SQL condition for the rows to write. Default: all rows. */
  readonly where?: string;
}

/** Resolves after the latest conversion. Conversions run one after another, because each uses all cores. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Converts rows to a temporary Parquet file, after all conversions that were started before. `folder` is the folder
 * `pulled`. Resolves to the path of the file. Rejects with the errors of DuckDB.
 */
export function writeParquet(folder: string, { csv, fields, order, more, where = 'true' }: CsvRows, store: Store): Promise<string> {
  const names = fields.map(({ column }) => column);
  const typed = Object.entries(columnsOf(fields))
    .map(([name, type]) => `${csv === undefined ? 'NULL' : `"${name}"`}::${type} AS "${name}"`)
    .join(', ');
  // DuckDB cannot read an empty file, so a query without rows replaces it.
  const fetched =
    csv === undefined
      ? `SELECT * FROM (SELECT ${typed}) WHERE false`
      : `SELECT ${typed} FROM ${readCsv([csv], names, '\\n', ['header = false'])}`;
  const temporary = workFile(folder, '.parquet');
  const all = `FROM fetched${more === undefined ? '' : ` UNION ALL BY NAME ${more}`}`;
  const rows = `WITH fetched AS (${fetched}) FROM (${all}) WHERE ${where}`;
  const copy = copyTable(rows, order, resolve(temporary));
  const written = last.then(() => store.run(copy));
  last = written.catch(() => undefined);
  return written.then(() => temporary);
}

/** Writes rows as Parquet files. The same rows always make the same bytes. */
import { resolve } from 'node:path';
import type { Field } from '../contract/fields.ts';
import { literal, type Store } from '../store/duckdb.ts';
import { readCsv } from '../store/files.ts';
import { columnsOf } from '../store/table.ts';
import { workFile } from './write.ts';

export interface CsvRows {
  /** CSV as PostgreSQL writes it: an unquoted empty field is NULL. No header. Undefined for no rows. */
  readonly csv: string | undefined;
  readonly fields: readonly Field[];
  /** SQL of the order of all rows. */
  readonly order: string;
  /** SQL of further rows with the same columns, which may refer to the rows of the CSV as `fetched`. */
  readonly more?: string | undefined;
}

/** SQL of the order of ledger rows in files: transactions and events from last to first. */
export const LEDGER_ORDER = 'block_height, tx_index DESC, event_index DESC';

/** The last conversion. One runs at a time: each uses all cores. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Converts rows to a temporary Parquet file, after the conversions that began before. `folder` is the folder `pulled`.
 * Returns the path. Throws the errors of DuckDB.
 */
export function writeParquet(folder: string, { csv, fields, order, more }: CsvRows, store: Store): Promise<string> {
  // Without new_line, DuckDB takes a carriage return in the first row for the end of lines.
  const options = [`header = false, new_line = '\\n'`];
  const names = fields.map(({ column }) => column);
  const typed = Object.entries(columnsOf(fields))
    .map(([name, type]) => `${csv === undefined ? 'NULL' : `"${name}"`}::${type} AS "${name}"`)
    .join(', ');
  // DuckDB cannot read an empty file.
  const fetched =
    csv === undefined ? `SELECT * FROM (SELECT ${typed}) WHERE false` : `SELECT ${typed} FROM ${readCsv([csv], names, options)}`;
  const temporary = workFile(folder, '.parquet');
  const copy = `COPY (WITH fetched AS (${fetched}) SELECT * FROM (FROM fetched${more === undefined ? '' : ` UNION ALL BY NAME ${more}`}) ORDER BY ${order})
     TO ${literal(resolve(temporary))} (FORMAT parquet, COMPRESSION zstd)`;
  const written = last.then(() => store.run(copy));
  last = written.catch(() => undefined);
  return written.then(() => temporary);
}

/** Writes rows as Parquet files. The same rows always make the same bytes. */
import { resolve } from 'node:path';
import type { Field } from '../contract/fields.ts';
import { literal, type Store } from '../store/duckdb.ts';
import { readCsv } from '../store/files.ts';

export interface CsvRows {
  /** CSV as PostgreSQL writes it: an unquoted empty field is NULL. No header. Undefined for no rows. */
  readonly csv: string | undefined;
  readonly fields: readonly Field[];
  /** SQL of the order of all rows. */
  readonly order: string;
  /** SQL of further rows with the same columns, which may refer to the rows of the CSV as `fetched`. */
  readonly more?: string | undefined;
}

/** Converts rows to a Parquet file. Throws the errors of DuckDB. */
export async function writeParquet(parquet: string, { csv, fields, order, more }: CsvRows, store: Store): Promise<void> {
  // Without new_line, DuckDB takes a carriage return in the first row for the end of lines.
  const options = [`header = false, new_line = '\\n'`];
  const columns = fields.map(({ column }) => column);
  // DuckDB cannot read an empty file.
  const fetched =
    csv === undefined
      ? `SELECT * FROM (${noRows(fields)}) WHERE false`
      : `SELECT ${fields.map(typed).join(', ')} FROM ${readCsv([csv], columns, options)}`;
  await store.run(
    `COPY (WITH fetched AS (${fetched}) SELECT * FROM (FROM fetched${more === undefined ? '' : ` UNION ALL BY NAME ${more}`}) ORDER BY ${order})
     TO ${literal(resolve(parquet))} (FORMAT parquet, COMPRESSION zstd)`,
  );
}

/** Type of a column in the Parquet file. Text keeps the digits of amounts. */
const typeOf = ({ kind }: Field): string => (kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR');

/** SQL of a column, cast to its type in the Parquet file. */
const typed = (field: Field): string => `"${field.column}"::${typeOf(field)} AS "${field.column}"`;

/** SQL of an empty result with these columns. */
const noRows = (fields: readonly Field[]): string =>
  `SELECT ${fields.map((field) => `NULL::${typeOf(field)} AS "${field.column}"`).join(', ')}`;

/** Writes rows as Parquet files. Equal rows always give equal bytes, so unchanged files are recognised. */
import { resolve } from 'node:path';
import { readCsv } from '../duckdb/readFilesSql.ts';
import type { Store } from '../duckdb/store.ts';
import { columnsOf } from '../duckdb/table.ts';
import { type Content, contentOf, copyTable, type TableForm } from '../rows/rowsForm.ts';
import { workFile } from './writePulled.ts';

export interface CsvRows {
  /** CSV file in PostgreSQL's format: no header, and NULL is an empty field without quotes. Undefined for no rows. */
  readonly csv: string | undefined;
  readonly form: TableForm;
  /** SQL (FROM ...) of further rows with the same columns. */
  readonly more?: string | undefined;
}

/** Resolves after the latest conversion. Conversions run one after another, because each uses all cores. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Converts rows to a temporary Parquet file, after all conversions that were started before. `folder` is the folder
 * `pulled`. Resolves to the path of the file and its content. Rejects with the errors of DuckDB.
 */
export function writeParquet(folder: string, { csv, form, more }: CsvRows, store: Store): Promise<Content & { readonly path: string }> {
  const names = form.fields.map(({ column }) => column);
  const typed = Object.entries(columnsOf(form.fields))
    .map(([name, type]) => `${csv === undefined ? 'NULL' : `"${name}"`}::${type} AS "${name}"`)
    .join(', ');
  // DuckDB cannot read an empty file, so a query without rows replaces it.
  const added =
    csv === undefined
      ? `SELECT * FROM (SELECT ${typed}) WHERE false`
      : `SELECT ${typed} FROM ${readCsv([csv], names, '\\n', ['header = false'])}`;
  const path = workFile(folder, '.parquet');
  const rows = `FROM (${added})${more === undefined ? '' : ` UNION ALL BY NAME ${more}`}`;
  const written = last.then(async () => {
    await store.run(copyTable(rows, form.order, resolve(path)));
    return { path, ...(await contentOf(path, form, store)) };
  });
  last = written.catch(() => undefined);
  return written;
}

/** Returns SQL that reads files. All such SQL is in this module, because it must escape special characters in paths. */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { LineFile } from '../disk/lineFile.ts';
import { literal } from './store.ts';

/** Makes a path absolute, because DuckDB expands `~`, and escapes wildcards. */
const pathLiteral = (path: string): string => literal(resolve(path).replace(/[*?[]/g, '[$&]'));

const listOf = (paths: readonly string[]): string => `[${paths.map(pathLiteral).join(', ')}]`;

/**
 * Returns the call of a table function that reads the rows of files. `options` are DuckDB's, such as `file_row_number = true`. With
 * `hive_partitioning`, a folder named `address=x` would replace the column `address` of its files.
 */
export const readFiles = (format: 'parquet' | 'csv' | 'json', paths: readonly string[], options: readonly string[] = []): string =>
  `read_${format}(${[listOf(paths), 'hive_partitioning = false', ...options].join(', ')})`;

/** Maximum size of a CSV row in bytes. A row may have all inputs of a block: 24,400 of up to 140 characters each, which are 3.4 MB. */
const LONGEST_ROW = 8 * 1024 * 1024;

/** Bytes per read of a CSV file. DuckDB's default, 16 times the longest row, would need more memory. */
const CSV_BUFFER = 4 * LONGEST_ROW;

/** Line end of a CSV file, as DuckDB writes it. */
export type LineEnd = '\\n' | '\\r\\n' | '\\r';

/**
 * Returns the call of a table function that reads CSV files as PostgreSQL writes them: an unquoted empty field is NULL, and "" is an empty
 * string. All columns are text. Without `new_line`, DuckDB would guess: a line break in a text of the first row could end a line.
 */
export const readCsv = (paths: readonly string[], columns: readonly string[], lineEnd: LineEnd, options: readonly string[]): string =>
  readFiles('csv', paths, [
    `auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, compression = 'none'`,
    `new_line = '${lineEnd}'`,
    `max_line_size = ${LONGEST_ROW}, buffer_size = ${CSV_BUFFER}, columns = {${columns.map((name) => `${literal(name)}: 'VARCHAR'`).join(', ')}}`,
    ...options,
  ]);

/** Minimum of DuckDB's `maximum_object_size` in bytes, because smaller buffers make reading slower. */
const LEAST_OBJECT = 64 * 1024;

/**
 * Returns the call of a table function that reads a file with one JSON object per line. `columns` has names and types in DuckDB's notation.
 * Each thread of DuckDB allocates twice `maximum_object_size`, so this option is no larger than the longest line needs.
 */
export const readLines = ({ file, longest }: Pick<LineFile, 'file' | 'longest'>, columns: string): string =>
  readFiles(
    'json',
    [file],
    [`format = 'newline_delimited', maximum_object_size = ${Math.max(longest, LEAST_OBJECT)}, columns = {${columns}}`],
  );

/** Returns the call of a table function that reads the schemas of Parquet files: a row per column, or part of a column. */
export const readParquetSchemas = (paths: readonly string[]): string => `parquet_schema(${listOf(paths)})`;

/**
 * Returns the call of a table function that reads all files of a folder (`writeRows` in store.ts). It names the files: for a pattern,
 * DuckDB takes the rows of the first as an estimate of all, and would build the hash table of a join from the larger side.
 */
export const readRows = (folder: string): string => {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.parquet'));
  const paths = names.sort().map((name) => join(folder, name));
  return readFiles('parquet', paths);
};

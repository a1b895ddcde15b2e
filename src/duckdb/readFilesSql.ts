/**
 * SQL that reads files. Only this module makes it, because DuckDB interprets special characters in paths and would read
 * the wrong files.
 */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { literal } from './store.ts';

/**
 * Returns a path as an SQL literal: absolute, so `~` is not the home folder, and with the characters of patterns
 * escaped.
 */
const pathLiteral = (path: string): string => literal(resolve(path).replace(/[*?[]/g, '[$&]'));

const listOf = (paths: readonly string[]): string => `[${paths.map(pathLiteral).join(', ')}]`;

/**
 * Returns SQL of the rows of files. `options` are DuckDB's, such as `file_row_number = true`. `hive_partitioning` is
 * off, because a folder named `address=x` would replace the column `address` of its files.
 */
export const readFiles = (format: 'parquet' | 'csv' | 'json', paths: readonly string[], options: readonly string[] = []): string =>
  `read_${format}(${[listOf(paths), 'hive_partitioning = false', ...options].join(', ')})`;

/**
 * The most bytes of a CSV row. The widest row has all rune inputs of a transaction: a block has room for 24,400, and
 * each takes up to 140 characters, so 3.4 MB.
 */
const LONGEST_ROW = 8 * 1024 * 1024;

/** Bytes of a CSV file that DuckDB reads at once. Its default is 16 of the longest rows. */
const CSV_BUFFER = 4 * LONGEST_ROW;

/**
 * Returns SQL of the rows of CSV files as PostgreSQL writes them: an unquoted empty field is NULL, and "" is an empty
 * string. All columns are text. `options` are DuckDB's.
 */
export const readCsv = (paths: readonly string[], columns: readonly string[], options: readonly string[]): string =>
  readFiles('csv', paths, [
    `auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, compression = 'none'`,
    `max_line_size = ${LONGEST_ROW}, buffer_size = ${CSV_BUFFER}, columns = {${columns.map((name) => `${literal(name)}: 'VARCHAR'`).join(', ')}}`,
    ...options,
  ]);

/** Returns SQL that writes the rows of a query to Parquet files: for each value of the column `part`, those in the folder `part=<value>`. */
export const writePartitioned = (rows: string, folder: string, part: string): string =>
  `COPY (${rows}) TO ${literal(resolve(folder))} (FORMAT parquet, PARTITION_BY (${part}))`;

/** The most bytes of a line of JSON that has one record or one document. */
const LONGEST_LINE = 1024 * 1024;

/**
 * Returns SQL of the rows of a file with one JSON object in each line. `columns` are names and types in DuckDB's
 * notation. Each thread of DuckDB has a buffer of twice the longest line, and no more than the file.
 */
export const readLines = (path: string, columns: string, longest = LONGEST_LINE): string =>
  readFiles(
    'json',
    [path],
    [
      `format = 'newline_delimited'`,
      `maximum_object_size = ${Math.max(Math.min(longest, statSync(path).size), 64 * 1024)}`,
      `columns = {${columns}}`,
    ],
  );

/** Returns SQL of the metadata of Parquet row groups, with one row per column and row group. */
export const readParquetGroups = (paths: readonly string[]): string => `parquet_metadata(${listOf(paths)})`;

/** Returns SQL of the footer of a Parquet file, in one row. */
export const readParquetFooter = (path: string): string => `parquet_file_metadata(${pathLiteral(path)})`;

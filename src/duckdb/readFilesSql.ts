/** Returns SQL that reads files. All such SQL is here, because DuckDB interprets special characters in paths. */
import { resolve } from 'node:path';
import type { LineFile } from '../disk/lineFile.ts';
import { literal } from './store.ts';

/** Returns an absolute path as an SQL literal, because DuckDB expands `~`. Escapes wildcard characters. */
const pathLiteral = (path: string): string => literal(resolve(path).replace(/[*?[]/g, '[$&]'));

const listOf = (paths: readonly string[]): string => `[${paths.map(pathLiteral).join(', ')}]`;

/**
 * Returns the SQL call that reads the rows of files. `options` are DuckDB's, such as `file_row_number = true`.
 * `hive_partitioning` is off, because a folder named `address=x` would replace the column `address` of its files.
 */
export const readFiles = (format: 'parquet' | 'csv' | 'json', paths: readonly string[], options: readonly string[] = []): string =>
  `read_${format}(${[listOf(paths), 'hive_partitioning = false', ...options].join(', ')})`;

/**
 * Bytes of the longest CSV row. The longest row lists all rune inputs of a transaction. A block has room for 24,400
 * inputs of up to 140 characters each, so a row has at most 3.4 MB.
 */
const LONGEST_ROW = 8 * 1024 * 1024;

/** Bytes per read of a CSV file. DuckDB's default is 16 times the longest row. */
const CSV_BUFFER = 4 * LONGEST_ROW;

/**
 * Returns the SQL call that reads CSV files as PostgreSQL writes them: an unquoted empty field is NULL, and "" is an
 * empty string. All columns are text. `options` are DuckDB's.
 */
export const readCsv = (paths: readonly string[], columns: readonly string[], options: readonly string[]): string =>
  readFiles('csv', paths, [
    `auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, compression = 'none'`,
    `max_line_size = ${LONGEST_ROW}, buffer_size = ${CSV_BUFFER}, columns = {${columns.map((name) => `${literal(name)}: 'VARCHAR'`).join(', ')}}`,
    ...options,
  ]);

/** Returns SQL that writes rows to Parquet files. Each value of the column `part` gets its own subfolder. */
export const writePartitioned = (rows: string, folder: string, part: string): string =>
  `COPY (${rows}) TO ${literal(resolve(folder))} (FORMAT parquet, PARTITION_BY (${part}))`;

/** Bytes of the shortest longest line. Smaller buffers make reading slower. */
const LEAST_OBJECT = 64 * 1024;

/**
 * Returns the SQL call that reads a file with one JSON object per line. `columns` are names and types in DuckDB's
 * notation. Each thread of DuckDB allocates twice `maximum_object_size`, so it follows the longest line.
 */
export const readLines = ({ file, longest }: Pick<LineFile, 'file' | 'longest'>, columns: string): string =>
  readFiles(
    'json',
    [file],
    [`format = 'newline_delimited'`, `maximum_object_size = ${Math.max(longest, LEAST_OBJECT)}`, `columns = {${columns}}`],
  );

/** Returns the SQL call that reads metadata of Parquet row groups, one row per column and row group. */
export const readParquetGroups = (paths: readonly string[]): string => `parquet_metadata(${listOf(paths)})`;

/** Returns the SQL call that reads the footer of a Parquet file, as one row. */
export const readParquetFooter = (path: string): string => `parquet_file_metadata(${pathLiteral(path)})`;

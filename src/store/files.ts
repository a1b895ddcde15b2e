/**
 * SQL that reads files. All of it is made here, because each of DuckDB's conveniences for paths is a wrong answer for a file that has an unusual name.
 */
import { resolve } from 'node:path';
import { literal } from './duckdb.ts';

/** A path as DuckDB reads it: absolute, because `~/x` is the home folder to it, and not as a pattern, which `a[1].json` is to it. */
const pathLiteral = (path: string): string => literal(resolve(path).replace(/[*?[]/g, '[$&]'));

const listOf = (paths: readonly string[]): string => `[${paths.map(pathLiteral).join(', ')}]`;

/**
 * SQL of the rows of some files; `options` are DuckDB's, such as `file_row_number = true`. Without `hive_partitioning = false` a folder `address=x` in a
 * path would be a column of every row, in place of the file's own.
 */
export const readFiles = (format: 'parquet' | 'csv' | 'json', paths: readonly string[], options: readonly string[] = []): string =>
  `read_${format}(${[listOf(paths), 'hive_partitioning = false', ...options].join(', ')})`;

/** SQL of what Parquet files say of their row groups, a row for each column of each group. */
export const readParquetGroups = (paths: readonly string[]): string => `parquet_metadata(${listOf(paths)})`;

/** SQL of what a Parquet file says of itself, in one row. */
export const readParquetFooter = (path: string): string => `parquet_file_metadata(${pathLiteral(path)})`;

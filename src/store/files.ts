/**
 * SQL that reads files. Only this module makes it, because DuckDB interprets special characters in paths and would read
 * the wrong files.
 */
import { resolve } from 'node:path';
import { literal } from './duckdb.ts';

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

/** The most bytes of a line of JSON. */
const LONGEST_LINE = 64 * 1024 * 1024;

/** Returns SQL of the rows of a file with one JSON object in each line. `columns` are names and types in DuckDB's notation. */
export const readLines = (path: string, columns: string): string =>
  readFiles('json', [path], [`format = 'newline_delimited'`, `maximum_object_size = ${LONGEST_LINE}`, `columns = {${columns}}`]);

/** Returns SQL of the metadata of Parquet row groups, with one row per column and row group. */
export const readParquetGroups = (paths: readonly string[]): string => `parquet_metadata(${listOf(paths)})`;

/** Returns SQL of the footer of a Parquet file, in one row. */
export const readParquetFooter = (path: string): string => `parquet_file_metadata(${pathLiteral(path)})`;

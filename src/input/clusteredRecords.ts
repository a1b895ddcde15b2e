/**
 * Checks whether the records of each block are close together in the input. Rendering keeps the records of incomplete
 * blocks in memory, so loading sorts a large source whose blocks are scattered.
 */

import { readParquetGroups } from '../duckdb/readFilesSql.ts';
import { int, nullable } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { exceeds } from '../limits.ts';
import { pathsOf, type RawSource, type Reading } from './rawSource.ts';

/** Maximum average number of row groups that contain the same height. With more, a large source is sorted. */
const MOST_OVERLAP = 3;

/** True if Parquet files need no sorting, because they are small or few of their row groups have the same heights. */
export async function isClustered(source: RawSource, { limits, store }: Reading): Promise<boolean> {
  const groups = await store.row(
    `SELECT coalesce(sum(rows), 0) AS rows, count(*) FILTER (low IS NULL) AS unknown,
       (sum(high - low + 1) > ${MOST_OVERLAP} * (max(high) - min(low) + 1))::INTEGER AS overlap
     FROM (SELECT row_group_num_rows AS rows, TRY_CAST(stats_min_value AS DOUBLE) AS low, TRY_CAST(stats_max_value AS DOUBLE) AS high
           FROM ${readParquetGroups(pathsOf(source.members))} WHERE path_in_schema = 'block_height')`,
    { rows: int, unknown: int, overlap: nullable(int) },
  );
  if (!exceeds(limits, 'unsortedRecords', groups.rows)) return true;
  return groups.unknown === 0 && groups.overlap !== 1;
}

/** True if a canonical table needs no sorting, because it is small or the rows of most blocks are consecutive. */
export async function isTableClustered(table: TableWith<'block_height'>, { limits, store }: Reading): Promise<boolean> {
  const n = await store.number(`SELECT count(*) AS number FROM ${table}`);
  if (!exceeds(limits, 'unsortedRecords', n)) return true;
  const counts = await store.row(
    `SELECT count(*) FILTER (WHERE height IS DISTINCT FROM before) AS runs, approx_count_distinct(height) AS heights
     FROM (SELECT block_height AS height, lag(block_height) OVER () AS before FROM ${table})`,
    { runs: int, heights: int },
  );
  return counts.runs <= 2 * counts.heights + 16;
}

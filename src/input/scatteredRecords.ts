/**
 * Divides a source whose blocks are scattered into files by ranges of blocks. Rendering reads one range of blocks after the other, and
 * would otherwise read all rows of such a source each time.
 */
import { join } from 'node:path';
import { type BlockRange, blockRanges } from '../duckdb/blockRanges.ts';
import { readRows } from '../duckdb/readFilesSql.ts';
import { int, MOST_PARTS, type Store } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { exceeds } from '../limits.ts';
import { RECORDS, type Records } from './canonicalRecordSql.ts';
import type { Reading } from './rawSource.ts';

/** Number of rows that DuckDB reads or skips together. */
const ROW_GROUP = 122_880;

/** Maximum average number of ranges of blocks in a row group, above which the blocks of a source are scattered. */
const MOST_RANGES = 3;

/** Bytes of memory that DuckDB needs for a record, from which it computes how many it may keep before it writes them. */
const RECORD_BYTES = 1024;

/**
 * Returns the ranges of blocks by which rows must be divided, or undefined if the rows are few, or if the blocks are not scattered.
 * `blocks` is SQL of the number of records of each block. `heights` is SQL of the rows' column `block_height`.
 */
export async function scatteredRanges(
  blocks: string,
  heights: string,
  { limits: { servedAtOnce }, store }: { readonly limits: Pick<Reading['limits'], 'servedAtOnce'>; readonly store: Store },
): Promise<readonly BlockRange[] | undefined> {
  const count = await store.number(`SELECT coalesce(sum(records), 0)::BIGINT AS number FROM (${blocks})`);
  if (!exceeds({ servedAtOnce }, 'servedAtOnce', count)) return undefined;
  const counts = await store.view('counts', columns('block_height BIGINT, records BIGINT'), blocks);
  const ranges = await blockRanges(counts, { listedAtOnce: servedAtOnce }, store);
  const groups = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last
     FROM (SELECT block_height, row_number() OVER () // ${Math.min(ROW_GROUP, servedAtOnce)} AS number FROM ${heights}) GROUP BY number`,
    { first: int, last: int },
  );
  let overlaps = 0;
  for (const group of groups) for (const range of ranges) if (range.first <= group.last && range.last >= group.first) overlaps += 1;
  return overlaps <= MOST_RANGES * (groups.length + ranges.length) ? undefined : ranges;
}

/** Writes the records of a relation into a file for each range, or for a few ranges, and returns a view of the files. */
export async function dividedRecords(records: Records, ranges: readonly BlockRange[], store: Store): Promise<Records> {
  const each = Math.ceil(ranges.length / MOST_PARTS);
  const ends = ranges.filter((_, i) => i % each === each - 1).slice(0, -1);
  const part = `CASE ${ends.map(({ last }, i) => `WHEN block_height <= ${last} THEN ${i}`).join(' ')} ELSE ${ends.length} END`;
  const folder = join(store.scratch, store.nameOf('scattered'));
  await store.writeRows(`SELECT *, ${ends.length === 0 ? 0 : part} AS part FROM ${records}`, folder, {
    by: 'part',
    rowBytes: RECORD_BYTES,
  });
  return store.view('canonical', RECORDS, `SELECT ${Object.keys(RECORDS).map((name) => `"${name}"`)} FROM ${readRows(folder)}`);
}

/**
 * Checks whether the records of each block are close together in the input. Rendering keeps the records of incomplete
 * blocks in memory, so loading sorts a large source whose blocks are scattered.
 */
import { exceeds } from '../limits.ts';
import type { Reading } from './rawSource.ts';

/**
 * Maximum average number of incomplete blocks while a source is read. A block is incomplete while only some of its rows
 * were read. With more incomplete blocks, a large source is sorted.
 */
const MOST_OVERLAP = 3;

/**
 * True if rows need no sorting, because they are few, or because few blocks overlap. `rows` is a table or SQL in
 * parentheses with the column `block_height`.
 */
export async function isClustered(rows: string, { limits, store }: Pick<Reading, 'limits' | 'store'>): Promise<boolean> {
  const count = await store.number(`SELECT count(*) AS number FROM ${rows}`);
  if (!exceeds(limits, 'unsortedRecords', count)) return true;
  // A block is incomplete from its first row to its last. So the sum of the distances between these rows, divided by
  // the number of rows, is the average number of incomplete blocks.
  const sum = await store.number(
    `SELECT coalesce(sum(last - first + 1), 0)::BIGINT AS number FROM (
       SELECT min(place) AS first, max(place) AS last FROM (SELECT block_height, row_number() OVER () AS place FROM ${rows}) GROUP BY block_height)`,
  );
  return sum <= MOST_OVERLAP * count;
}

/**
 * Counts records by block, rune and operation, with one GROUP BY over a few columns of the written blocks.
 */
import { OPERATIONS } from '../pages/lists.ts';
import type { Store } from '../store/duckdb.ts';

/**
 * Makes the tables `counted` and `times` from the records in `kept`, for the blocks in `written`. A block's timestamp is
 * the lowest of its records; in valid data all are the same.
 */
export async function countWritten(store: Store): Promise<void> {
  const counts = OPERATIONS.map((name) => `count(*) FILTER (operation = '${name}')::INTEGER AS ${name}`);
  await store.run(`CREATE TEMP TABLE counted AS
    SELECT block_height, rune_id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, ${counts.join(', ')}, min("timestamp") AS "timestamp"
    FROM kept SEMI JOIN written USING (block_height) GROUP BY block_height, rune_id, rune_number, rune_name, rune_spaced_name`);
  await store.run('CREATE TEMP TABLE times AS SELECT block_height, min("timestamp") AS "timestamp" FROM counted GROUP BY block_height');
}

/** Tells whether the blocks that were read are a complete history, so that the data has all mints and burns. */
import { int, type Store } from '../../duckdb/store.ts';
import type { StateTables } from './state.ts';

/**
 * True if all blocks from 0 up to the tip were read and none has records. Then no rune exists at the tip, because an
 * etching is a record. The block in which rune 1:0 begins to exist always has this rune.
 */
export async function isKnownEmpty({ blocks, readBlocks, tip }: StateTables, store: Store): Promise<boolean> {
  const { heights, read } = await store.row(
    `SELECT tip + 1 AS heights, coalesce(sum(least(last, tip) - first + 1) FILTER (first <= tip), 0)::BIGINT AS read
     FROM (SELECT coalesce(max(block_height), -1) AS tip FROM ${tip}) LEFT JOIN ${readBlocks} ON true
     GROUP BY tip`,
    { heights: int, read: int },
  );
  return heights > 0 && read === heights && (await store.number(`SELECT count(*) AS number FROM ${blocks}`)) === 0;
}

/**
 * True when a block up to the tip has no records, and no source read it. Ignores blocks below the first read block or
 * the first etching. If the input does not list the blocks that were read, such gaps cannot be detected, and the result
 * is false.
 */
export async function hasUnreadBlocks(state: StateTables, store: Store): Promise<boolean> {
  const { unread } = await store.row(
    `WITH limits AS (SELECT greatest(min(first), (SELECT min(block_height) FROM ${state.runes})) AS low,
         (SELECT block_height FROM ${state.tip}) AS tip FROM ${state.readBlocks} HAVING count(*) > 0),
       known AS (SELECT unnest(range(greatest(first, low), least(last, tip) + 1)) AS height FROM ${state.readBlocks}, limits
         UNION SELECT block_height FROM ${state.blocks}, limits WHERE block_height >= low)
     SELECT coalesce((SELECT tip - low + 1 FROM limits) - (SELECT count(*) FROM known), 0) AS unread`,
    { unread: int },
  );
  return unread > 0;
}

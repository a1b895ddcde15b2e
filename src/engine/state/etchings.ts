/**
 * Finds out what a build can say about etchings, from its state.
 */

import { int, type Store } from '../../duckdb/store.ts';
import { columns, type Table, type TableWith } from '../../duckdb/table.ts';
import type { StateTables } from './state.ts';

/** Columns of etchings. `ordinal` counts from 0; `row_hash` is a hash of the row in the runes table. */
const ETCHINGS = columns('ordinal BIGINT, id VARCHAR, block_height BIGINT, row_hash HUGEINT');
export type EtchingTable = Table<typeof ETCHINGS>;

export interface Etchings {
  /** In the order of the etchings: by block, transaction and number. */
  readonly table: EtchingTable;
  readonly runes: StateTables['runes'];
  /** Number of etchings: the runes of the runes table up to the tip. */
  readonly total: number;
  /** True when the data has all mints and burns, because it begins at the chain's first rune block. */
  readonly hasCounts: boolean;
}

/** The order of etchings, oldest first. The last two only matter for wrong data. */
const ORDER = 'block_height, tx_index, number, id';

/** Lists runes up to the block `tip` in the order of their etchings. */
export const orderEtchings = (
  runes: TableWith<'id' | 'block_height' | 'tx_index' | 'number'>,
  tip: number,
  store: Store,
): Promise<EtchingTable> =>
  store.table(
    'etchings',
    ETCHINGS,
    `SELECT (row_number() OVER (ORDER BY ${ORDER}) - 1)::BIGINT AS ordinal, id, block_height, hash(r)::HUGEINT AS row_hash
     FROM ${runes} AS r WHERE block_height <= ${tip}`,
  );

/**
 * Lists the etchings in the state, and describes them. Returns undefined when the input does not have all
 * of them: it has no runes table, one without all columns, or records of a rune that is not in it.
 *
 * The data begins at the first rune block when it has the block of every etching. A rune's etching is a record, so a
 * missing block of an etching is a gap. Number 0 must be there, because a runes table may lack older runes.
 */
export async function listEtchings(state: StateTables, store: Store): Promise<Etchings | undefined> {
  const { tip } = await store.row(`SELECT coalesce(max(block_height), -1) AS tip FROM ${state.tip}`, { tip: int });
  const { runes, incomplete, others } = await store.row(
    `SELECT count(*) AS runes, count(*) FILTER (NOT is_complete) AS incomplete,
       (SELECT count(*) FROM ${state.files} WHERE form NOT IN ('ledger', 'node-ledger', 'runes', 'no-records')) AS others FROM ${state.runes}`,
    { runes: int, incomplete: int, others: int },
  );
  if (runes === 0 || incomplete > 0) return undefined;
  // Rows of a ledger without a rune are left out. Other forms of input name runes that the table may lack.
  if (others > 0) {
    const { unknown } = await store.row(
      `SELECT count(*) AS unknown FROM ${state.blockRunes} WHERE rune_id NOT IN (SELECT id FROM ${state.runes})`,
      { unknown: int },
    );
    if (unknown > 0) return undefined;
  }
  const { total, gaps, firsts } = await store.row(
    `SELECT count(*) AS total, count(*) FILTER (number = 0) AS firsts,
       count(*) FILTER (block_height NOT IN (SELECT block_height FROM ${state.blocks})) AS gaps
     FROM ${state.runes} WHERE block_height <= ${tip}`,
    { total: int, gaps: int, firsts: int },
  );
  const hasCounts = gaps === 0 && firsts > 0 && !(await hasUnreadBlocks(state, store));
  return { table: await orderEtchings(state.runes, tip, store), runes: state.runes, total, hasCounts };
}

/**
 * True when the sources of the input did not read a block between their first one and the tip, and the input does not
 * have it either. Input that does not say what was read may have gaps that nobody sees.
 */
async function hasUnreadBlocks(state: StateTables, store: Store): Promise<boolean> {
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

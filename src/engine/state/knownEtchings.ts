/** Lists the etchings that a build knows from its state. */
import { int, literal, type Store } from '../../duckdb/store.ts';
import { columns, type Table } from '../../duckdb/table.ts';
import { FORMS_OF_ROWS } from '../../input/recognise.ts';
import type { StateTables } from './state.ts';

/** Columns of etchings. `ordinal` is the position in the order of etchings, from 0 on. */
const ETCHINGS = columns('ordinal BIGINT, id VARCHAR, block_height BIGINT');
export type EtchingTable = Table<typeof ETCHINGS>;

export interface Etchings {
  /** Ordered by block, transaction and number. */
  readonly table: EtchingTable;
  readonly runes: StateTables['runes'];
  /** Height of the highest block; -1 without blocks. */
  readonly tip: number;
  /** Number of runes in the runes table that were etched at or below the tip. */
  readonly total: number;
  /** True when the data has all mints and burns, because it has no gaps, and begins at the first block with runes. */
  readonly hasCounts: boolean;
}

/** Order of etchings, oldest first. The last two columns are for wrong data, in which a transaction etches two runes. */
export const ETCHING_ORDER = 'block_height, tx_index, number, id';

/**
 * Lists the etchings in the state. Returns undefined when the input may lack some etchings: it has no runes table, a runes table that lacks
 * columns, or records of a rune that the runes table lacks. No table is needed if the blocks show that there are no runes. `hasCounts`
 * needs records of every block with an etching, because an etching is a record. It also needs the rune with the number 0, without which the
 * runes table may lack the oldest runes. And every block from the first block that was read, or from the first etching, must have records
 * or have been read. If the input does not list the blocks that were read, such gaps cannot be detected.
 */
export async function listEtchings(state: StateTables, store: Store): Promise<Etchings | undefined> {
  const isKnown = `form IN (${FORMS_OF_ROWS.map(literal).join(', ')})`;
  const { tip, runes, incomplete, blocks, read, others } = await store.row(
    `WITH tip AS (SELECT coalesce(max(block_height), -1) AS tip FROM ${state.tip})
     SELECT (SELECT tip FROM tip) AS tip, (SELECT count(*) FROM ${state.runes}) AS runes,
       (SELECT count(*) FROM ${state.runes} WHERE NOT is_complete) AS incomplete, (SELECT count(*) FROM ${state.blocks}) AS blocks,
       (SELECT coalesce(sum(least(last, tip) - first + 1) FILTER (first <= tip), 0)::BIGINT FROM ${state.readBlocks}, tip) AS read,
       (SELECT count(*) FROM ${state.files} WHERE NOT ${isKnown}) AS others`,
    { tip: int, runes: int, incomplete: int, blocks: int, read: int, others: int },
  );
  // If all blocks were read and none has records, no rune exists, because an etching is a record. The block in which rune 1:0 begins to
  // exist always has this rune.
  const isEmpty = tip >= 0 && read === tip + 1 && blocks === 0;
  if ((runes === 0 && !isEmpty) || incomplete > 0) return undefined;
  // A build omits ledger rows of runes that the runes table lacks, but keeps records of such runes from input in other formats.
  const unknown = `SELECT count(*) AS number FROM ${state.blockRunes} WHERE rune_id NOT IN (SELECT id FROM ${state.runes})`;
  if (others > 0 && (await store.number(unknown)) > 0) return undefined;
  const { total, firsts, gaps, unread } = await store.row(
    `WITH tip AS (SELECT ${tip} AS tip),
       low AS (SELECT greatest(min(first), (SELECT min(block_height) FROM ${state.runes})) AS low, tip FROM ${state.readBlocks}, tip GROUP BY tip),
       known AS (SELECT unnest(range(greatest(first, low), least(last, tip) + 1)) AS height FROM ${state.readBlocks}, low
         UNION SELECT block_height FROM ${state.blocks}, low WHERE block_height >= low),
       etched AS (SELECT block_height, number FROM ${state.runes}, tip WHERE block_height <= tip)
     SELECT (SELECT count(*) FROM etched) AS total, (SELECT count(*) FROM etched WHERE number = 0) AS firsts,
       (SELECT count(*) FROM etched ANTI JOIN ${state.blocks} USING (block_height)) AS gaps,
       coalesce((SELECT tip - low + 1 FROM low) - (SELECT count(*) FROM known), 0) AS unread`,
    { total: int, firsts: int, gaps: int, unread: int },
  );
  return {
    table: await store.view('etchings', ETCHINGS, `SELECT ordinal, id, block_height FROM ${state.runes} WHERE block_height <= ${tip}`),
    runes: state.runes,
    tip,
    total,
    hasCounts: gaps === 0 && (firsts > 0 || isEmpty) && unread <= 0,
  };
}

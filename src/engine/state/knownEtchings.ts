/** Lists the etchings that a build knows from its state. */
import { int, literal, type Store } from '../../duckdb/store.ts';
import { columns, type Table } from '../../duckdb/table.ts';
import { FORMS_OF_ROWS } from '../../input/recognise.ts';
import { hasUnreadBlocks, isKnownEmpty } from './completeHistory.ts';
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

/**
 * Order of etchings, oldest first. The last two columns are for wrong data, in which a transaction etches two runes.
 */
export const ETCHING_ORDER = 'block_height, tx_index, number, id';

/**
 * Lists the etchings in the state. Returns undefined when the input may lack some etchings: it has no runes table, a
 * runes table that lacks columns, or records of a rune that the runes table lacks. No table is needed if the blocks show
 * that there are no runes.
 *
 * `hasCounts` needs records of every block with an etching, because an etching is a record. It also needs the rune with
 * the number 0, without which the runes table may lack the oldest runes.
 */
export async function listEtchings(state: StateTables, store: Store): Promise<Etchings | undefined> {
  const { tip } = await store.row(`SELECT coalesce(max(block_height), -1) AS tip FROM ${state.tip}`, { tip: int });
  const { runes, incomplete, others } = await store.row(
    `SELECT count(*) AS runes, count(*) FILTER (NOT is_complete) AS incomplete,
       (SELECT count(*) FROM ${state.files} WHERE form NOT IN (${FORMS_OF_ROWS.map(literal).join(', ')})) AS others FROM ${state.runes}`,
    { runes: int, incomplete: int, others: int },
  );
  const isEmpty = await isKnownEmpty(state, store);
  if ((runes === 0 && !isEmpty) || incomplete > 0) return undefined;
  // A build omits ledger rows of runes that the runes table lacks, but keeps records of such runes from input in other
  // formats.
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
  const hasCounts = gaps === 0 && (firsts > 0 || isEmpty) && !(await hasUnreadBlocks(state, store));
  return {
    table: await store.view('etchings', ETCHINGS, `SELECT ordinal, id, block_height FROM ${state.runes} WHERE block_height <= ${tip}`),
    runes: state.runes,
    tip,
    total,
    hasCounts,
  };
}

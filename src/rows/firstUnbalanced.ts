/** Checks that ledger rows conserve runes. */
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import type { RunesOfRows } from './blocksOfRows.ts';

/**
 * Describes the first transaction in rows from a node that creates or loses units of a rune. Returns undefined if there
 * is none. In a valid transaction, outputs receive all units that are sent, minted or premined, except units that are
 * in burn records without an address.
 */
export async function firstUnbalanced(path: string, runes: RunesOfRows, store: Store): Promise<string | undefined> {
  const units = `coalesce(amount, '0')::BIGNUM`;
  const [row] = await store.rows(
    `SELECT block_height AS height, tx_index AS "index", rune_id AS rune FROM (
       SELECT block_height, tx_index, rune_id, bool_or(operation = 'etching' AND premine IS NULL) AS is_unknown,
         sum(CASE WHEN operation IN ('send', 'mint') THEN ${units} WHEN operation = 'etching' THEN premine::BIGNUM ELSE '0'::BIGNUM END) AS made,
         sum(CASE WHEN operation = 'receive' THEN ${units} ELSE '0'::BIGNUM END) AS received,
         sum(CASE WHEN operation = 'burn' AND address IS NULL THEN ${units} ELSE '0'::BIGNUM END) AS burned
       FROM ${readFiles('parquet', [path])} LEFT JOIN ${runes} ON id = rune_id
       GROUP BY ALL)
     WHERE NOT is_unknown AND (received > made OR made - received > burned) ORDER BY height, "index" LIMIT 1`,
    { height: int, index: int, rune: text },
  );
  return row && `block ${row.height} does not conserve rune ${row.rune} in its transaction ${row.index}`;
}

/** Checks that ledger rows conserve runes. */
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';

/**
 * Returns SQL that adds up what transactions do to runes. `rows` is SQL of rows with an operation, an address, `units`, and in an etching
 * the `premine`, NULL if it is unknown. `group` is the transaction and the rune. In a valid transaction, outputs receive all units that are
 * sent, minted or premined, except units that are in burn records without an address. `unaddressed` are the units that scripts without an
 * address receive, minus those that they send or burn.
 */
export function movesOf(rows: string, group: string): string {
  const sum = (condition: string, units = 'units') => `sum(CASE WHEN ${condition} THEN ${units}::BIGNUM ELSE '0'::BIGNUM END)`;
  return `SELECT *, NOT is_unknown AND (received > made OR made - received > burned) AS is_unbalanced,
      received_there - sent_there - (burned - (made - received)) AS unaddressed
    FROM (SELECT ${group}, bool_or(operation = 'etching' AND premine IS NULL) AS is_unknown,
        ${sum(`operation IN ('send', 'mint')`)} + ${sum(`operation = 'etching'`, 'premine')} AS made,
        ${sum(`operation = 'receive'`)} AS received,
        ${sum(`operation = 'burn' AND address IS NULL`)} AS burned,
        ${sum(`operation = 'receive' AND address IS NULL`)} AS received_there,
        ${sum(`operation = 'send' AND address IS NULL`)} AS sent_there
      FROM (${rows}) GROUP BY ALL)`;
}

/** Describes the first transaction in rows from a node that creates or loses units of a rune. Undefined if there is none. */
export async function firstUnbalanced(path: string, runes: TableWith<'id' | 'premine'>, store: Store): Promise<string | undefined> {
  const rows = `SELECT *, coalesce(amount, '0') AS units FROM ${readFiles('parquet', [path])} LEFT JOIN ${runes} ON id = rune_id`;
  const [row] = await store.rows(
    `SELECT block_height AS height, tx_index AS "index", rune_id AS rune FROM (${movesOf(rows, 'block_height, tx_index, rune_id')})
     WHERE is_unbalanced ORDER BY height, "index" LIMIT 1`,
    { height: int, index: int, rune: text },
  );
  return row && `block ${row.height} does not conserve rune ${row.rune} in its transaction ${row.index}`;
}

/**
 * Counts records by block, rune and operation, and sums what was minted and burned, with one GROUP BY over a few columns
 * of the written blocks.
 */
import { OPERATIONS, type Operation } from '../pages/lists.ts';
import type { Store } from '../store/duckdb.ts';

/** Lower digits of a sum: no integer type has the 39 digits of an amount and room to add some, so sums have two parts. */
export const LOWER_DIGITS = 18;

/** SQL that is true for records whose amount is summed. The text functions below take longer than all the counts. */
const IS_SUMMED = `operation IN ('mint', 'burn') AND amount IS NOT NULL`;

/** SQL of a summed amount: its digits, which are smallest units, and its number of decimals. NULL for other records. */
const DIGITS = `CASE WHEN ${IS_SUMMED} THEN replace(amount, '.', '') END`;
const DECIMALS = `CASE WHEN ${IS_SUMMED} THEN CASE WHEN contains(amount, '.') THEN strlen(amount) - strpos(amount, '.') ELSE 0 END END`;

/** SQL of the two parts of the sum of an operation's amounts, as columns `<name>_upper` and `<name>_lower`. */
const sumOf = (operation: Operation, name: string): string[] =>
  ['upper', 'lower'].map((part) => `coalesce(sum(${part}) FILTER (operation = '${operation}'), 0)::HUGEINT AS ${name}_${part}`);

/** Makes the tables `counted` and `times` (store/tables.ts) from the records in `kept`. */
export async function countWritten(store: Store): Promise<void> {
  const counts = OPERATIONS.map((name) => `count(*) FILTER (operation = '${name}')::INTEGER AS ${name}`);
  await store.run(`CREATE TEMP TABLE counted AS
    SELECT block_height, rune_id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, ${counts.join(', ')},
      ${[...sumOf('mint', 'minted'), ...sumOf('burn', 'burned')].join(', ')},
      (CASE WHEN min(decimals) < max(decimals) THEN -1 ELSE min(decimals) END)::INTEGER AS decimals, min("timestamp") AS "timestamp"
    FROM (
      SELECT * EXCLUDE (digits), right(digits, ${LOWER_DIGITS})::BIGINT AS lower,
        CASE WHEN strlen(digits) > ${LOWER_DIGITS} THEN left(digits, strlen(digits) - ${LOWER_DIGITS})::HUGEINT END AS upper
      FROM (SELECT block_height, rune_id, rune_number, rune_name, rune_spaced_name, operation, "timestamp", ${DIGITS} AS digits, ${DECIMALS} AS decimals
        FROM kept SEMI JOIN written USING (block_height)))
    GROUP BY block_height, rune_id, rune_number, rune_name, rune_spaced_name`);
  await store.run('CREATE TEMP TABLE times AS SELECT block_height, min("timestamp") AS "timestamp" FROM counted GROUP BY block_height');
}

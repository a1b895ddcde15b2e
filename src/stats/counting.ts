/**
 * Counts records by block, rune and operation, and sums what was minted and burned, with one GROUP BY over a few columns
 * of the written blocks.
 */
import { OPERATIONS, type Operation } from '../pages/lists.ts';
import type { Store } from '../store/duckdb.ts';

/** Lower digits of a sum: no integer type has the 39 digits of an amount and room to add some, so sums have two parts. */
export const LOWER_DIGITS = 18;

/** SQL of an amount in smallest units with 39 digits, as text. A missing amount is 0. */
const UNITS = `lpad(ltrim(replace(coalesce(amount, '0'), '.', ''), '0'), 39, '0')`;
const DECIMALS = `CASE WHEN contains(amount, '.') THEN length(amount) - strpos(amount, '.') WHEN amount IS NOT NULL THEN 0 END`;
const IS_SUMMED = `operation IN ('mint', 'burn') AND amount IS NOT NULL`;

/** SQL of the two parts of the sum of an operation's amounts, as columns `<name>_upper` and `<name>_lower`. */
const sumOf = (operation: Operation, name: string): string[] => {
  const isCounted = `operation = '${operation}'`;
  const part = (text: string) => `coalesce(sum(${text}::HUGEINT) FILTER (${isCounted}), 0)::HUGEINT`;
  return [
    `${part(`left(${UNITS}, ${39 - LOWER_DIGITS})`)} AS ${name}_upper`,
    `${part(`right(${UNITS}, ${LOWER_DIGITS})`)} AS ${name}_lower`,
  ];
};

/** SQL of the decimals that all amounts of mints and burns have; -1 when they differ, NULL without such amounts. */
const SUM_DECIMALS = `(CASE WHEN min(${DECIMALS}) FILTER (${IS_SUMMED}) < max(${DECIMALS}) FILTER (${IS_SUMMED}) THEN -1
  ELSE min(${DECIMALS}) FILTER (${IS_SUMMED}) END)::INTEGER`;

/**
 * Makes the tables `counted` and `times` from the records in `kept`, for the blocks in `written`. A block's timestamp is
 * the lowest of its records; in valid data all are the same.
 */
export async function countWritten(store: Store): Promise<void> {
  const counts = OPERATIONS.map((name) => `count(*) FILTER (operation = '${name}')::INTEGER AS ${name}`);
  await store.run(`CREATE TEMP TABLE counted AS
    SELECT block_height, rune_id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, ${counts.join(', ')},
      ${[...sumOf('mint', 'minted'), ...sumOf('burn', 'burned')].join(', ')}, ${SUM_DECIMALS} AS decimals, min("timestamp") AS "timestamp"
    FROM kept SEMI JOIN written USING (block_height) GROUP BY block_height, rune_id, rune_number, rune_name, rune_spaced_name`);
  await store.run('CREATE TEMP TABLE times AS SELECT block_height, min("timestamp") AS "timestamp" FROM counted GROUP BY block_height');
}

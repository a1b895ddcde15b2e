/** Counts records by block, rune and operation, and sums minted and burned amounts, in one pass over written blocks. */
import { blockRanges, isWithin } from '../../duckdb/blockRanges.ts';
import type { Store } from '../../duckdb/store.ts';
import { columns, type Table, type TableWith } from '../../duckdb/table.ts';
import type { WorkLimits } from '../../limits.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';

/** Number of digits in the lower part of a sum (lists/balanceChanges.sql.ts). */
export const LOWER_DIGITS = 18;

export const decimalsOf = (amount: string): string =>
  `CASE WHEN contains(${amount}, '.') THEN strlen(${amount}) - strpos(${amount}, '.') ELSE 0 END`;

/** SQL condition for records whose amounts are summed. Other amounts are not parsed, because text functions are slow. */
const IS_SUMMED = `operation IN ('mint', 'burn') AND amount IS NOT NULL`;

/** SQL expressions of a summed amount: in smallest units, as text, and its number of decimals. NULL if the amount is not summed. */
const DIGITS = `CASE WHEN ${IS_SUMMED} THEN replace(amount, '.', '') END`;
const DECIMALS = `CASE WHEN ${IS_SUMMED} THEN ${decimalsOf('amount')} END`;

/** Returns SQL that sums the amounts of an operation in two parts, as columns `<name>_upper` and `<name>_lower`. */
const sumOf = (operation: Operation, name: string): string[] =>
  ['upper', 'lower'].map((part) => `coalesce(sum(${part}) FILTER (operation = '${operation}'), 0)::HUGEINT AS ${name}_${part}`);

const SUMS = { minted_upper: 'HUGEINT', minted_lower: 'HUGEINT', burned_upper: 'HUGEINT', burned_lower: 'HUGEINT' } as const;

/**
 * Columns of counts by block and rune. In wrong data, a rune may have two names. Then it has a row for each name. Minted and burned amounts
 * are in smallest units. The upper part of an amount is in units of 10^18. `decimals` is the number of decimals of all amounts, or -1 when
 * it differs between amounts.
 */
export const BLOCK_RUNES = {
  block_height: 'BIGINT',
  rune_id: 'VARCHAR',
  number: 'BIGINT',
  name: 'VARCHAR',
  spaced_name: 'VARCHAR',
  ...(Object.fromEntries(OPERATIONS.map((operation) => [operation, 'INTEGER'])) as Record<Operation, 'INTEGER'>),
  ...SUMS,
  decimals: 'INTEGER',
} as const;

const GROUPED = ['rune_id', 'number', 'name', 'spaced_name', 'decimals'] as const;

/**
 * Sums of BLOCK_RUNES over all blocks. An incremental build updates these sums, because summing all rows of BLOCK_RUNES again would read
 * some ten million rows on mainnet. `blocks` is the number of summed rows.
 */
export const RUNE_COUNTS = {
  ...columns('rune_id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, decimals INTEGER, blocks BIGINT'),
  ...(Object.fromEntries(OPERATIONS.map((operation) => [operation, 'BIGINT'])) as Record<Operation, 'BIGINT'>),
  ...SUMS,
} as const;
const SUMMED = Object.entries(RUNE_COUNTS).slice(GROUPED.length);

/** Returns SQL that sums rows of RUNE_COUNTS. Rows may be negative, to subtract them (`asCounts`). */
export const summedChanges = (rows: string, groups: readonly string[] = GROUPED): string =>
  `SELECT ${groups.join(', ')}, ${SUMMED.map(([name, type]) => `sum(${name})::${type} AS ${name}`).join(', ')}
   FROM (${rows}) GROUP BY ${groups.join(', ')}`;

/** Returns SQL that sums rows as `summedChanges` does, and omits runes whose sum of blocks is 0. */
export const summedCounts = (rows: string, groups?: readonly string[]): string => `${summedChanges(rows, groups)} HAVING sum(blocks) > 0`;

/** Returns SQL that converts BLOCK_RUNES to RUNE_COUNTS. With sign -1, adding the result subtracts the rows. */
export const asCounts = (rows: string, sign: 1 | -1): string =>
  `SELECT ${GROUPED.join(', ')}, ${sign}::BIGINT AS blocks,
     ${SUMMED.slice(1)
       .map(([name, type]) => `(${sign} * ${name})::${type} AS ${name}`)
       .join(', ')} FROM ${rows}`;

const COUNTED = { ...BLOCK_RUNES, timestamp: 'BIGINT' } as const;

type Countable = TableWith<
  'block_height' | 'rune_id' | 'rune_number' | 'rune_name' | 'rune_spaced_name' | 'operation' | 'amount' | 'timestamp'
>;

/** Counts the records of `kept` in the blocks `written`, one range of blocks after the other, because a first build writes all blocks. */
export async function countWritten(
  kept: Countable,
  written: TableWith<'block_height' | 'records'>,
  limits: Pick<WorkLimits, 'listedAtOnce'>,
  store: Store,
): Promise<Table<typeof COUNTED>> {
  const counts = OPERATIONS.map((name) => `count(*) FILTER (operation = '${name}')::INTEGER AS ${name}`);
  const counted = await store.table('counted', COUNTED);
  for (const range of await blockRanges(written, limits, store)) {
    await store.run(
      `INSERT INTO ${counted}
      SELECT block_height, rune_id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, ${counts.join(', ')},
        ${[...sumOf('mint', 'minted'), ...sumOf('burn', 'burned')].join(', ')},
        (CASE WHEN min(decimals) < max(decimals) THEN -1 ELSE min(decimals) END)::INTEGER AS decimals, min("timestamp") AS "timestamp"
      FROM (
        SELECT * EXCLUDE (digits), right(digits, ${LOWER_DIGITS})::BIGINT AS lower,
          CASE WHEN strlen(digits) > ${LOWER_DIGITS} THEN left(digits, strlen(digits) - ${LOWER_DIGITS})::HUGEINT END AS upper
        FROM (SELECT block_height, rune_id, rune_number, rune_name, rune_spaced_name, operation, "timestamp", ${DIGITS} AS digits, ${DECIMALS} AS decimals
          FROM ${kept} SEMI JOIN ${written} USING (block_height) WHERE ${isWithin(range)}))
      GROUP BY block_height, rune_id, rune_number, rune_name, rune_spaced_name`,
    );
  }
  return counted;
}

/**
 * Counts records by block, rune and operation, and sums what was minted and burned, with one GROUP BY over a few columns
 * of the written blocks.
 */

import type { Store } from '../../duckdb/store.ts';
import { type Columns, columns, type Table, type TableWith } from '../../duckdb/table.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';

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

/**
 * Columns of records by block, rune and operation. A rune with two names, which only wrong data has, has two rows. What
 * was minted and burned is in smallest units: the upper part counts 10^18. `decimals` is that of the amounts, -1 when they
 * differ.
 */
export const BLOCK_RUNES = {
  block_height: 'BIGINT',
  rune_id: 'VARCHAR',
  number: 'BIGINT',
  name: 'VARCHAR',
  spaced_name: 'VARCHAR',
  ...(Object.fromEntries(OPERATIONS.map((operation) => [operation, 'INTEGER'])) as Record<Operation, 'INTEGER'>),
  minted_upper: 'HUGEINT',
  minted_lower: 'HUGEINT',
  burned_upper: 'HUGEINT',
  burned_lower: 'HUGEINT',
  decimals: 'INTEGER',
} as const;

const COUNTED = { ...BLOCK_RUNES, timestamp: 'BIGINT' } as const;

/** The columns of records that are counted. */
type Countable = TableWith<
  'block_height' | 'rune_id' | 'rune_number' | 'rune_name' | 'rune_spaced_name' | 'operation' | 'amount' | 'timestamp'
>;

/** The records of written blocks. */
export interface CountedBlocks {
  readonly counted: Table<typeof COUNTED>;
  /** The time of each block: the lowest of its records. In valid data all are equal. */
  readonly times: Table<Columns<'block_height BIGINT, timestamp BIGINT'>>;
}

/** Counts the records in `kept` of the blocks in `written`. */
export async function countWritten(kept: Countable, written: TableWith<'block_height'>, store: Store): Promise<CountedBlocks> {
  const counts = OPERATIONS.map((name) => `count(*) FILTER (operation = '${name}')::INTEGER AS ${name}`);
  const counted = await store.table(
    'counted',
    COUNTED,
    `SELECT block_height, rune_id, rune_number AS number, rune_name AS name, rune_spaced_name AS spaced_name, ${counts.join(', ')},
      ${[...sumOf('mint', 'minted'), ...sumOf('burn', 'burned')].join(', ')},
      (CASE WHEN min(decimals) < max(decimals) THEN -1 ELSE min(decimals) END)::INTEGER AS decimals, min("timestamp") AS "timestamp"
    FROM (
      SELECT * EXCLUDE (digits), right(digits, ${LOWER_DIGITS})::BIGINT AS lower,
        CASE WHEN strlen(digits) > ${LOWER_DIGITS} THEN left(digits, strlen(digits) - ${LOWER_DIGITS})::HUGEINT END AS upper
      FROM (SELECT block_height, rune_id, rune_number, rune_name, rune_spaced_name, operation, "timestamp", ${DIGITS} AS digits, ${DECIMALS} AS decimals
        FROM ${kept} SEMI JOIN ${written} USING (block_height)))
    GROUP BY block_height, rune_id, rune_number, rune_name, rune_spaced_name`,
  );
  const times = await store.table(
    'times',
    columns('block_height BIGINT, timestamp BIGINT'),
    `SELECT block_height, min("timestamp") AS "timestamp" FROM ${counted} GROUP BY block_height`,
  );
  return { counted, times };
}

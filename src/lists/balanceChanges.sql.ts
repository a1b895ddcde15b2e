/**
 * SQL of amounts in smallest units. No integer type has the 39 digits of an amount and room to add some, so a sum has
 * two parts: `upper` counts 10^18.
 */

import type { TableWith } from '../duckdb/table.ts';
import { LOWER_DIGITS } from '../engine/state/countBlocks.ts';

/** Digits of the largest amount, 2^128 - 1. */
const MOST_DIGITS = 39;

/**
 * SQL of the smallest units of an amount in decimal digits. Only wrong data has amounts that do not fit the decimals of
 * the rune: digits beyond these are left out, and an amount with too many digits is 0.
 */
export function unitsOf(amount: string, divisibility: string): string {
  const whole = `ltrim(split_part(${amount}, '.', 1), '0')`;
  const digits = `${whole} || rpad(split_part(${amount}, '.', 2), ${divisibility}::INTEGER, '0')`;
  return `CASE WHEN strlen(${whole}) + ${divisibility} <= ${MOST_DIGITS} THEN '0' || ${digits} ELSE '0' END`;
}

/** SQL of the two parts of a sum of units. `units` is a column of decimal digits, `sign` an integer. */
export const sumsOf = (units: string, sign: string): string =>
  `coalesce(sum(${sign} * right(${units}, ${LOWER_DIGITS})::BIGINT), 0)::HUGEINT AS lower,
   coalesce(sum(CASE WHEN strlen(${units}) > ${LOWER_DIGITS} THEN ${sign} * left(${units}, -${LOWER_DIGITS})::HUGEINT END), 0)::HUGEINT AS upper`;

/** SQL of columns that join the parts of a sum: both have the same sign, and `lower` has at most 18 digits. */
export function joinedParts(upper: string, lower: string): string {
  const base = 10n ** BigInt(LOWER_DIGITS);
  const [u, l] = [`(${upper} + ${lower} // ${base})`, `(${lower} % ${base})`];
  const shift = `CASE WHEN ${u} > 0 AND ${l} < 0 THEN 1 WHEN ${u} < 0 AND ${l} > 0 THEN -1 ELSE 0 END`;
  return `(${u} - ${shift})::HUGEINT AS upper, (${l} + ${shift} * ${base})::HUGEINT AS lower`;
}

/** SQL of the decimal digits of a sum whose parts are joined. */
export const digitsOf = (upper: string, lower: string): string =>
  `CASE WHEN ${upper} = 0 THEN ${lower}::VARCHAR ELSE ${upper}::VARCHAR || lpad(abs(${lower})::VARCHAR, ${LOWER_DIGITS}, '0') END`;

/** Records that change balances, and their runes. */
export interface Changes {
  readonly records: TableWith<'block_height' | 'rune_id' | 'address' | 'operation' | 'amount'>;
  readonly runes: TableWith<'id' | 'block_height' | 'divisibility'>;
}

/**
 * Returns SQL of the changes of balances in the blocks from height `first` to `last`: id of the rune, address, `upper`,
 * `lower`. An address with records of a rune has a row, even if the sum is 0. A record of a rune below the block of its
 * etching, which only wrong data has, changes nothing.
 */
export const changesIn = (first: number, last: number, { records, runes }: Changes): string =>
  `SELECT id, address, ${joinedParts('upper', 'lower')} FROM (
     SELECT id, address, ${sumsOf('units', 'sign')} FROM (
       SELECT r.id, l.address, ${unitsOf('l.amount', 'r.divisibility')} AS units, CASE l.operation WHEN 'receive' THEN 1 ELSE -1 END AS sign
       FROM ${records} AS l JOIN ${runes} AS r ON r.id = l.rune_id AND r.block_height <= l.block_height
       WHERE l.block_height BETWEEN ${first} AND ${last} AND l.address IS NOT NULL AND l.operation IN ('receive', 'send', 'burn'))
     GROUP BY id, address)`;

/** SQL of the two parts of a sum in decimal digits, as columns `upper` and `lower`. */
export function partsOf(digits: string): string {
  const sign = `CASE WHEN starts_with(${digits}, '-') THEN -1 ELSE 1 END`;
  const unsigned = `ltrim(${digits}, '-')`;
  return `${sign} * CASE WHEN strlen(${unsigned}) > ${LOWER_DIGITS} THEN left(${unsigned}, -${LOWER_DIGITS})::HUGEINT ELSE 0 END AS upper,
    ${sign} * right(${unsigned}, ${LOWER_DIGITS})::HUGEINT AS lower`;
}

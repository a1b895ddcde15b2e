/**
 * SQL that adds amounts in smallest units. A sum is `upper` times 10^18 plus `lower`, because a HUGEINT has too few digits for 39-digit
 * amounts, and adding BIGNUMs takes more than twice as long.
 */
import { columns, type TableWith } from '../duckdb/table.ts';
import { decimalsOf, LOWER_DIGITS } from '../engine/state/countBlocks.ts';

/** Number of digits of the largest amount, 2^128 - 1. */
export const MOST_DIGITS = 39;

/**
 * Returns the SQL expression of the decimal digits of an amount in smallest units. Of wrong data, cuts off decimals beyond the rune's
 * divisibility, and makes 0 of an amount with too many digits.
 */
export function unitsOf(amount: string, divisibility: string): string {
  const whole = `ltrim(split_part(${amount}, '.', 1), '0')`;
  const digits = `${whole} || rpad(split_part(${amount}, '.', 2), ${divisibility}::INTEGER, '0')`;
  // Nearly all amounts are short and have as many decimals as the rune. The first case takes a third of the time of the second.
  return `CASE WHEN strlen(${amount}) <= ${LOWER_DIGITS} AND ${decimalsOf(amount)} = ${divisibility} THEN replace(${amount}, '.', '')
    WHEN strlen(${whole}) + ${divisibility} <= ${MOST_DIGITS} THEN '0' || ${digits} ELSE '0' END`;
}

/** Returns SQL that sums `units` (decimal digits) times `sign` (1 or -1): the last 18 digits, and the digits before them. */
export const sumsOf = (units: string, sign: string): string =>
  `coalesce(sum(${sign} * right(${units}, ${LOWER_DIGITS})::BIGINT), 0)::HUGEINT AS lower,
   coalesce(sum(CASE WHEN strlen(${units}) > ${LOWER_DIGITS} THEN ${sign} * left(${units}, -${LOWER_DIGITS})::HUGEINT END), 0)::HUGEINT AS upper`;

/** Returns SQL that normalises a sum: both parts then have the same sign, and `lower` has at most 18 digits. */
export function joinedParts(upper: string, lower: string): string {
  const base = 10n ** BigInt(LOWER_DIGITS);
  // Dividing HUGEINTs is slow, so the SQL divides only if `lower` has more than 18 digits, which is rare.
  const ifLarge = (large: string, small: string) => `CASE WHEN abs(${lower}) >= ${base} THEN ${large} ELSE ${small} END`;
  const [u, l] = [`(${upper} + ${ifLarge(`${lower} // ${base}`, '0')})`, `(${ifLarge(`${lower} % ${base}`, lower)})`];
  const shift = `CASE WHEN ${u} > 0 AND ${l} < 0 THEN 1 WHEN ${u} < 0 AND ${l} > 0 THEN -1 ELSE 0 END`;
  return `(${u} - ${shift})::HUGEINT AS upper, (${l} + ${shift} * ${base})::HUGEINT AS lower`;
}

/** Returns the SQL expression of a normalised sum's decimal digits. */
export const digitsOf = (upper: string, lower: string): string =>
  `CASE WHEN ${upper} = 0 THEN ${lower}::VARCHAR ELSE ${upper}::VARCHAR || lpad(abs(${lower})::VARCHAR, ${LOWER_DIGITS}, '0') END`;

/** Columns of records that change balances. `amount` is a decimal string in units of the rune. */
const CHANGING = columns('block_height BIGINT, rune_id VARCHAR, address VARCHAR, operation VARCHAR, amount VARCHAR');

export interface Changes {
  readonly records: TableWith<keyof typeof CHANGING>;
  readonly runes: TableWith<'id' | 'block_height' | 'divisibility'>;
}

/**
 * Returns SQL that selects the changes of balances in some blocks: id of the rune, address, `units` as decimal digits, and `sign` (1 or
 * -1). Ignores records of a rune in blocks below its etching, which only wrong data has.
 */
export const changesIn = (first: number, last: number, { records, runes }: Changes): string =>
  `SELECT r.id, l.address, ${unitsOf('l.amount', 'r.divisibility')} AS units, (CASE l.operation WHEN 'receive' THEN 1 ELSE -1 END)::INTEGER AS sign
   FROM ${records} AS l JOIN ${runes} AS r ON r.id = l.rune_id AND r.block_height <= l.block_height
   WHERE l.block_height BETWEEN ${first} AND ${last} AND l.address IS NOT NULL AND l.operation IN ('receive', 'send', 'burn')`;

/** Returns SQL that adds up changes (`changesIn`) by the columns `group`. Each group has a row, even if the sum is 0. */
export const summedChanges = (changes: string, group: string): string =>
  `SELECT ${group}, ${joinedParts('upper', 'lower')} FROM (SELECT ${group}, ${sumsOf('units', 'sign')} FROM (${changes}) GROUP BY ${group})`;

/** Returns SQL that splits a sum in decimal digits into columns `upper` and `lower`. */
export function partsOf(digits: string): string {
  const sign = `CASE WHEN starts_with(${digits}, '-') THEN -1 ELSE 1 END`;
  const unsigned = `ltrim(${digits}, '-')`;
  return `${sign} * CASE WHEN strlen(${unsigned}) > ${LOWER_DIGITS} THEN left(${unsigned}, -${LOWER_DIGITS})::HUGEINT ELSE 0 END AS upper,
    ${sign} * right(${unsigned}, ${LOWER_DIGITS})::HUGEINT AS lower`;
}

/**
 * Selects the rows of a start (input/readStart.ts) in the forms from which lists are made. An output of the start is a
 * `receive` at the height where it was made. So the lowest level of each list has the ledger of the start.
 */
import type { TableWith } from '../duckdb/table.ts';
import { LOWER_DIGITS } from '../engine/state/countBlocks.ts';
import type { StartRows } from '../input/readStart.ts';

/** Returns SQL that selects a start's outputs, with a row for each rune, as in the view `received`. */
export const startReceived = ({ outputs }: StartRows, runes: TableWith<'id' | 'divisibility'>): string =>
  `SELECT block_height, tx_index, "timestamp", address, rune_id, shift_decimals(units, divisibility) AS amount, outpoint AS "output"
   FROM ${outputs} JOIN (SELECT id, divisibility FROM ${runes}) ON id = rune_id`;

/** Returns SQL of the two parts of an amount (balanceChanges.sql.ts) as columns `<name>_upper` and `<name>_lower`. */
const parts = (name: string): string =>
  `CASE WHEN strlen(${name}) > ${LOWER_DIGITS} THEN left(${name}, -${LOWER_DIGITS})::HUGEINT ELSE 0 END AS ${name}_upper, right(${name}, ${LOWER_DIGITS})::HUGEINT AS ${name}_lower`;

/** Columns of counts by block and rune that etchings need. */
export const COUNTS = [
  'block_height',
  'rune_id',
  'mint',
  'burn',
  'minted_upper',
  'minted_lower',
  'burned_upper',
  'burned_lower',
  'decimals',
] as const;

/** Returns SQL that selects a start's counts of mints and burns, as counts of its block. */
export const startCounts = ({ runes }: StartRows): string =>
  `SELECT start_height AS block_height, rune_id, mints AS mint, burns AS burn, ${parts('minted')}, ${parts('burned')}, NULL::INTEGER AS decimals FROM ${runes}`;

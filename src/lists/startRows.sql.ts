/**
 * Converts the rows of a start (input/readStart.ts) to the rows from which lists are made. An output of the start
 * counts as a `receive` record at the height where the output was made. So the lowest level of each list
 * (format/levels.ts) has the ledger of the start.
 */
import type { TableWith } from '../duckdb/table.ts';
import { LOWER_DIGITS } from '../engine/state/countBlocks.ts';
import type { StartRows } from '../input/readStart.ts';

/**
 * Returns SQL that selects a start's outputs, a row for each rune, as in the view `received` (unspentOutputs.sql.ts).
 */
export const startReceived = ({ outputs }: StartRows, runes: TableWith<'id' | 'divisibility'>): string =>
  `SELECT block_height, tx_index, "timestamp", address, rune_id, shift_decimals(units, divisibility) AS amount, outpoint AS "output"
   FROM ${outputs} JOIN (SELECT id, divisibility FROM ${runes}) ON id = rune_id`;

/** Returns SQL for the two parts of an amount (balanceChanges.sql.ts) as columns `<name>_upper` and `<name>_lower`. */
const parts = (name: string): string =>
  `CASE WHEN strlen(${name}) > ${LOWER_DIGITS} THEN left(${name}, -${LOWER_DIGITS})::HUGEINT ELSE 0 END AS ${name}_upper, right(${name}, ${LOWER_DIGITS})::HUGEINT AS ${name}_lower`;

/** Returns SQL that selects a start's counts of mints and burns. The columns are those of RUNE_COUNTS. */
export const startCounts = ({ runes }: StartRows): string =>
  `SELECT rune_id, NULL::INTEGER AS decimals, 1 AS blocks, mints AS mint, burns AS burn, ${parts('minted')}, ${parts('burned')} FROM ${runes}`;

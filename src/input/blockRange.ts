/**
 * The heights that a build is limited to.
 */
import { MAX_INTEGER } from '../contract/fields.ts';

/** Block heights, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** SQL of "this height is in the range". */
export const isInRange = (height: string, range: BlockRange | undefined): string =>
  range === undefined ? 'true' : `${height} BETWEEN ${range.from} AND ${range.to}`;

/**
 * SQL of "this height is in the range, or is none at all". What has no height would be in no range, and a mirror put together of ranges would lack it
 * without a word: so each has to see it, and refuse it.
 */
export const mayBeInRange = (height: string, range: BlockRange | undefined): string =>
  range === undefined ? 'true' : `${isInRange(height, range)} OR ${height} IS NULL OR ${height} NOT BETWEEN 0 AND ${MAX_INTEGER}`;

/** The range as words after "records", with a space before; nothing for all blocks. */
export const describeRange = (range: BlockRange | undefined): string =>
  range === undefined ? '' : ` of the blocks from ${range.from}${range.to === MAX_INTEGER ? ' on' : ` to ${range.to}`}`;

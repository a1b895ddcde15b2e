/** Range of block heights of a build (`--blocks`). */
import { MAX_INTEGER } from '../contract/fields.ts';

/** First and last block height, both included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

export const isInRange = (height: string, range: BlockRange | undefined): string =>
  range === undefined ? 'true' : `${height} BETWEEN ${range.from} AND ${range.to}`;

/**
 * Returns SQL that is true for a height in the range and for an invalid height. Records with an invalid height are in no range, but a build
 * must read them to reject them.
 */
export const mayBeInRange = (height: string, range: BlockRange | undefined): string =>
  range === undefined ? 'true' : `${isInRange(height, range)} OR ${height} IS NULL OR ${height} NOT BETWEEN 0 AND ${MAX_INTEGER}`;

/** Describes a range in a message, after the word "records": " of the blocks from 1 to 5". Empty for all blocks. */
export const describeRange = (range: BlockRange | undefined): string =>
  range === undefined ? '' : ` of the blocks from ${range.from}${range.to === MAX_INTEGER ? ' on' : ` to ${range.to}`}`;

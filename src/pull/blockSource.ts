/** What a pull knows about its source. */
import type { Rules, Sources } from '../contract/sources.ts';
import type { Heights } from './heightRange.ts';

/** Highest valid height. Bitcoin's chain reaches it in about 170 years, so a greater height means wrong data. */
export const HIGHEST = 10_000_000;

/**
 * Maximum number of blocks that a source may list, and that one pull fetches. Bounds the memory: a block takes some 300
 * bytes. Mainnet has 137,000 blocks with runes in 2026, and gets 53,000 more a year.
 */
export const MOST_BLOCKS = 1_000_000;

/** Range of blocks that a source has. Blocks within the range may be missing. */
export interface Extent extends Heights {
  /** False if the source lists no records at this height. */
  has(height: number): boolean;
}

/** A file that a pull has fetched. */
export interface Fetched {
  /** Path relative to the folder `pulled`. */
  readonly path: string;
  readonly records: number;
  readonly bytes: number;
}

/** Returns the `origin` of a source that makes the rows of all heights by the same rules. */
export const allBy = (rules: Rules): Sources => [{ rules, blocks: [[0, HIGHEST]] }];

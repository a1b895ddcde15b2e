/** Heights of blocks, and how many of them a source may claim. */

/** Range of heights, both ends included. */
export interface Heights {
  readonly first: number;
  readonly last: number;
}

/** Highest valid height. Bitcoin's chain reaches it in about 170 years, so a greater height means wrong data. */
export const HIGHEST = 10_000_000;

/**
 * Maximum number of blocks that a source may list. Bounds the memory: a block takes some 300 bytes. Mainnet has 137,000
 * blocks with runes in 2026, and gets 53,000 more a year.
 */
export const MOST_BLOCKS = 1_000_000;

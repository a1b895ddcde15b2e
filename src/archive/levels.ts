/**
 * Which heights the levels of a sorted table have. Like the cut of segments, the rule depends only on the tip.
 *
 * The newest level is written with every block, the one below it every 64 blocks, the lowest every 4,096. So a block
 * writes some hundred kilobytes, and a reader looks into three levels at most. The lower levels end some blocks below
 * the tip, so that a reorganisation rarely changes them.
 */

/** Blocks that only the newest level has. Reorganisations are rarely deeper. */
const UNSETTLED = 8;
const STEPS = [4096, 64];

/** Blocks of a day. */
const DAY = 144;

/**
 * Steps of the levels of lists. These have more entries for each block than the table of ids, so a finer newest level
 * keeps a block's files small.
 */
export const LIST_STEPS = [4032, DAY, 16];

/** A range of heights, both inclusive. */
export interface LevelRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Returns the ranges of the levels for a tip, the lowest level first. `steps` descend, each a multiple of the next. The
 * levels above `lowest`, the first block of a window that moves, become longer in the same steps: so a block that
 * leaves the window only changes a short level.
 */
export function levelRanges(tip: number, steps: readonly number[] = STEPS, lowest = 0): LevelRange[] {
  const ends = steps.map((step) => Math.max(Math.floor((tip + 1 - UNSETTLED) / step) * step, 0));
  const starts = steps.map((step) => Math.ceil(lowest / step) * step);
  // A short window has no level of the longest steps.
  const isWithin = (_: number, i: number) => (starts[i] ?? 0) <= (ends[i] ?? 0);
  const ranges: LevelRange[] = [];
  let first = lowest;
  for (const end of [...starts.filter(isWithin).reverse(), ...ends.filter(isWithin), tip + 1]) {
    if (end > first) ranges.push({ first, last: end - 1 });
    first = Math.max(end, first);
  }
  return ranges;
}

/**
 * Returns the last block of the levels of lists but the newest two; -1 without such levels. Balances of runes with many
 * holders are ranked up to this block, which changes once a day.
 */
export const lastRanked = (tip: number): number => Math.max(Math.floor((tip + 1 - UNSETTLED) / DAY) * DAY, 0) - 1;

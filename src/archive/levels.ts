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

/** A range of heights, both inclusive. */
export interface LevelRange {
  readonly first: number;
  readonly last: number;
}

/** Returns the ranges of the levels for a tip, the lowest level first. */
export function levelRanges(tip: number): LevelRange[] {
  const ends = STEPS.map((step) => Math.max(Math.floor((tip + 1 - UNSETTLED) / step) * step, 0));
  const ranges: LevelRange[] = [];
  let first = 0;
  for (const end of [...ends, tip + 1]) {
    if (end > first) ranges.push({ first, last: end - 1 });
    first = Math.max(end, first);
  }
  return ranges;
}

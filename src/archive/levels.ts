/**
 * Which heights the levels of a sorted table have. Like the cut of segments, the rule depends only on the tip.
 *
 * With the steps 4,096 and 64, the newest level is written with every block, the one below it every 64 blocks, the lowest
 * every 4,096. So a block writes some hundred kilobytes, and a reader looks into three levels at most. The lower levels
 * end some blocks below the tip, so that a reorganisation rarely changes them.
 */

/** Where levels end. */
export interface LevelSteps {
  /** Levels end at multiples of these numbers of blocks. They descend, and each is a multiple of the next. */
  readonly steps: readonly number[];
  /** Blocks that only the newest level has. */
  readonly unsettled: number;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Readers ask all levels at once, so the root must not have many steps. */
const MOST_STEPS = 8;

/** True for the steps of a root. */
export function areLevelSteps(value: unknown): value is LevelSteps {
  const { steps, unsettled } = Object(value) as Readonly<Record<string, unknown>>;
  if (!isCount(unsettled) || !Array.isArray(steps) || steps.length === 0 || steps.length > MOST_STEPS || !steps.every(isCount))
    return false;
  return steps.every((step, i) => step > 0 && (i === 0 || (step < Number(steps[i - 1]) && Number(steps[i - 1]) % step === 0)));
}

/** A range of heights, both inclusive. */
export interface LevelRange {
  readonly first: number;
  readonly last: number;
}

/** A file of a level of documents (documents.ts). */
export interface DocumentFile {
  /** Keys in the file are equal to this text or after it, and those in earlier files before it. */
  readonly from: string;
  readonly file: string;
  /** Size of the file, in bytes. */
  readonly bytes: number;
  /** Size of the directory, in bytes. */
  readonly directory: number;
}

/** The documents of the blocks of its range. */
export interface DocumentLevel extends LevelRange {
  /** Ascending by key. */
  readonly files: readonly DocumentFile[];
}

/**
 * Returns the ranges of the levels for a tip, the lowest level first. The levels above `lowest`, the first block of a
 * window that moves, become longer in the same steps: so a block that leaves the window only changes a short level.
 */
export function levelRanges(tip: number, { steps, unsettled }: LevelSteps, lowest = 0): LevelRange[] {
  const ends = steps.map((step) => lastEnd(tip, step, unsettled));
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
export function lastRanked(tip: number, { steps, unsettled }: LevelSteps): number {
  const step = steps.at(-2);
  return step === undefined ? -1 : lastEnd(tip, step, unsettled) - 1;
}

/** Returns the height after the last block of the newest level that ends at a multiple of a step; 0 without such a level. */
const lastEnd = (tip: number, step: number, unsettled: number): number => Math.max(Math.floor((tip + 1 - unsettled) / step) * step, 0);

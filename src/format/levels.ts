/**
 * Levels: ranges of heights, each with its own files of tables or documents. The ranges depend on the tip and, in
 * layout `files`, on the lowest block.
 *
 * With the steps 4,096 and 64, a build writes the newest level with every block, the level below it every 64 blocks,
 * and the lowest level every 4,096 blocks. So a new block takes some hundred kilobytes, and a reader looks into at most
 * three levels. Levels below the newest end some blocks below the tip, so that a reorganisation rarely changes them.
 */

/** The rule by which heights are divided into levels. */
export interface LevelSteps {
  /** Each level except the newest ends at a multiple of a step. Steps descend, and each is a multiple of the next. */
  readonly steps: readonly number[];
  /** Number of the highest blocks that are always in the newest level. */
  readonly unsettled: number;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Most steps of a root, because readers search all levels at the same time. */
const MOST_STEPS = 8;

/** True when a value from a root has valid steps. */
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
  /** Lower bound of the keys in the file. Keys in earlier files sort before it. */
  readonly from: string;
  readonly file: string;
  /** Size of the file, in bytes. */
  readonly bytes: number;
  /** Size of the directory, in bytes. */
  readonly directory: number;
}

export interface DocumentLevel extends LevelRange {
  /** Ascending by key. */
  readonly files: readonly DocumentFile[];
}

/**
 * Returns the ranges of the levels, the lowest first. `lowest` is the lowest block of the mirror, which rises if the
 * mirror has a moving window of blocks. So the lowest levels are short too: a block that leaves changes little.
 *
 * If the mirror begins with the ledger after block `start`, the lowest level has this ledger. It is never joined with
 * other levels, because records above block `start` cannot give it again.
 */
export function levelRanges(tip: number, { steps, unsettled }: LevelSteps, lowest = 0, start?: number): LevelRange[] {
  if (start !== undefined) return [{ first: 0, last: start }, ...levelRanges(tip, { steps, unsettled }, Math.max(lowest, start + 1))];
  const ends = steps.map((step) => lastEnd(tip, step, unsettled));
  const starts = steps.map((step) => Math.ceil(lowest / step) * step);
  // A short window has no levels of the longest steps.
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
 * Returns the last block of all levels of lists except the newest two; -1 without such levels. Some long lists of
 * holders are as of this block, which changes once a day.
 */
export const lastRanked = (tip: number, levels: LevelSteps): number => lowerEnds(tip, levels)[0] ?? -1;

/**
 * Returns the newest multiple of each step except the last one, minus 1, the highest first: blocks at which levels of
 * lists end. With the usual steps, these are the newest ends of 144 and of 4,032 blocks.
 */
export function lowerEnds(tip: number, { steps, unsettled }: LevelSteps): number[] {
  const ends = steps.slice(0, -1).map((step) => lastEnd(tip, step, unsettled) - 1);
  return [...new Set(ends)].filter((end) => end >= 0).reverse();
}

/** Returns the height above the newest level that ends at a multiple of `step`; 0 without such a level. */
const lastEnd = (tip: number, step: number, unsettled: number): number => Math.max(Math.floor((tip + 1 - unsettled) / step) * step, 0);

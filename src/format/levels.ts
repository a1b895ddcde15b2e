/**
 * Levels: ranges of heights, each with its own files of documents (documents.ts). The ranges depend on the tip and, in layout `files`, on
 * the lowest block.
 *
 * With the steps 4,096 and 64, a build writes the newest level with every block, the level below it every 64 blocks, and the lowest level
 * every 4,096 blocks. So a build writes only some hundred kilobytes for a new block, and a reader searches at most three levels. All levels
 * but the newest end at least `unsettled` blocks below the tip, so that a reorganisation rarely changes them.
 */

export interface LevelSteps {
  /** Each level except the newest ends directly below a multiple of a step. Steps descend, and each step is a multiple of the next step. */
  readonly steps: readonly number[];
  /** Number of the highest blocks that are always in the newest level. */
  readonly unsettled: number;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Maximum number of steps in a root, which limits the number of concurrent requests: readers search all levels at once. */
const MOST_STEPS = 8;

/** Maximum number of levels: the newest, and two for each step (`levelRanges`). */
export const MOST_LEVELS = 2 * MOST_STEPS + 1;

export function areLevelSteps(value: unknown): value is LevelSteps {
  const { steps, unsettled } = Object(value) as Readonly<Record<string, unknown>>;
  if (!isCount(unsettled) || !Array.isArray(steps) || steps.length === 0 || steps.length > MOST_STEPS || !steps.every(isCount))
    return false;
  return steps.every((step, i) => step > 0 && (i === 0 || (step < Number(steps[i - 1]) && Number(steps[i - 1]) % step === 0)));
}

/** A range of heights. `first` and `last` are included. */
export interface LevelRange {
  readonly first: number;
  readonly last: number;
}

/** A file of a level of documents (documents.ts). */
export interface DocumentFile {
  /** Lower bound of the keys in the file. Keys in earlier files sort before it. */
  readonly from: string;
  readonly file: string;
  /** Size of the file's content in bytes, without its digests (tails.ts). */
  readonly bytes: number;
  /** Size of the directory, in bytes; 0 if `members` has the directory. */
  readonly directory: number;
  /** The directory (documents.ts) of a file that readers need first, so that it takes no round of reads. Lengths are in bytes. */
  readonly members?: readonly (readonly [from: string, length: number])[];
}

export interface DocumentLevel extends LevelRange {
  /** Ascending by key. */
  readonly files: readonly DocumentFile[];
}

/** True if a range has any of some heights. Takes the smaller number of steps. */
export function hasAny(heights: ReadonlySet<number>, { first, last }: LevelRange): boolean {
  if (last - first > heights.size) return [...heights].some((height) => height >= first && height <= last);
  for (let height = first; height <= last; height += 1) if (heights.has(height)) return true;
  return false;
}

/**
 * Returns the ranges of the levels, in ascending order. In a mirror of the last N blocks, each new block removes the lowest block, which
 * changes the first level. So if `lowest`, the lowest block, is not 0, the first levels are short, like the newest levels.
 */
export function levelRanges(tip: number, { steps, unsettled }: LevelSteps, lowest = 0): LevelRange[] {
  const ends = steps.map((step) => lastEnd(tip, step, unsettled));
  const starts = steps.map((step) => Math.ceil(lowest / step) * step);
  // Ignores a step that has no multiple between the lowest block and the unsettled blocks.
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
 * Returns the last block below the newest two levels of lists; -1 without such a block. It changes about once a day. For some long lists of
 * holders (lists/balances.ts), answers give the state after it.
 */
export function lastRanked(tip: number, { steps, unsettled }: LevelSteps): number {
  const step = steps.at(-2);
  return step === undefined ? -1 : lastEnd(tip, step, unsettled) - 1;
}

/** Returns the highest multiple of `step` that leaves `unsettled` blocks above it; 0 without such a multiple. */
const lastEnd = (tip: number, step: number, unsettled: number): number => Math.max(Math.floor((tip + 1 - unsettled) / step) * step, 0);

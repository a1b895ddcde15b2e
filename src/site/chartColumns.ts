/** Columns and the scale of the chart of activity. */

import type { ActivityEntry, Stats } from '../contract/statsSchemas.ts';
import { runsOf } from '../groupBy.ts';
import { OPERATIONS } from '../pages/blockAndTransactionLists.ts';

export interface Column {
  readonly entry: ActivityEntry;
  /** First and last of the column's heights that the mirror covers. */
  readonly first: number;
  readonly last: number;
  /**
   * Number of blocks in the column. Counts only blocks with activity if each entry is a single block, otherwise all
   * blocks. At the ends of the mirror, a column may have fewer blocks than the others.
   */
  readonly blocks: number;
  /** Number of records. */
  readonly total: number;
  /** True if many heights without activity precede this column. */
  readonly followsGap: boolean;
}

/** A gap of more than this many buckets breaks the axis. */
const GAP_IN_BUCKETS = 20;

/** Returns a column for each entry. */
export function columnsOf({ activity, bucket, first, last }: Pick<Stats, 'activity' | 'bucket' | 'first' | 'last'>): Column[] {
  const runs = runsOf(activity, (before, after) => after.height - before.height > bucket * GAP_IN_BUCKETS);
  return runs.flatMap((run, i) =>
    run.map((entry, n) => {
      // An entry covers `bucket` heights. The mirror may lack some of them at its start and its end.
      const [from, to] = [Math.max(entry.height, first ?? 0), Math.min(entry.height + bucket - 1, last ?? Number.POSITIVE_INFINITY)];
      const total = OPERATIONS.reduce((sum, name) => sum + entry[name], 0);
      return { entry, first: from, last: to, blocks: to - from + 1, total, followsGap: i > 0 && n === 0 };
    }),
  );
}

/** Returns a scale with two to six ticks, from 0 to a round number that is at least `most`. */
export function linear(most: number): { readonly top: number; readonly ticks: readonly number[] } {
  const least = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(least));
  // A tick is a number of records, so 2.5 is no step.
  const step = Math.max(1, power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= least && (each !== 2.5 || power >= 10)) ?? 10));
  const steps = Math.ceil(most / step) || 1;
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, i) => i * step) };
}

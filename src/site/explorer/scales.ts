/**
 * The arithmetic of the charts. Pure.
 */

import type { ActivityEntry, Stats } from '../../contract/stats.ts';
import { OPERATIONS, type Operation } from '../../pages/lists.ts';

/** What one column of the chart stands for. */
export interface Column {
  readonly first: number;
  readonly last: number;
  /** Of the first block, in seconds. */
  readonly timestamp: number;
  readonly operations: Readonly<Record<Operation, number>>;
  readonly total: number;
  /** Whether many heights lie between the column before and this one. */
  readonly follows: 'start' | 'near' | 'gap';
}

/** More heights than this many columns' without activity are a break of the axis, and not worth it below. */
const GAP_IN_BUCKETS = 20;

/** The entries as columns, one step each however far their heights are apart; several in one where there would be more than `most`. */
export function columnsOf({ activity, bucket }: Pick<Stats, 'activity' | 'bucket'>, most: number): Column[] {
  const runs = runsOf(activity, bucket * GAP_IN_BUCKETS);
  const together = Math.max(1, Math.ceil(activity.length / most));
  return runs.flatMap((run, i) =>
    Array.from({ length: Math.ceil(run.length / together) }, (_, n) => {
      const entries = run.slice(n * together, (n + 1) * together);
      return columnOf(entries, bucket, n > 0 ? 'near' : i > 0 ? 'gap' : 'start');
    }),
  );
}

function runsOf(activity: readonly ActivityEntry[], gap: number): ActivityEntry[][] {
  const runs: ActivityEntry[][] = [];
  let before = Number.NEGATIVE_INFINITY;
  for (const entry of activity) {
    if (entry.height - before > gap) runs.push([]);
    runs.at(-1)?.push(entry);
    before = entry.height;
  }
  return runs;
}

function columnOf(entries: readonly ActivityEntry[], bucket: number, follows: Column['follows']): Column {
  const sum = (name: Operation) => entries.reduce((total, entry) => total + entry[name], 0);
  const operations = { etching: sum('etching'), mint: sum('mint'), burn: sum('burn'), send: sum('send'), receive: sum('receive') };
  return {
    first: entries[0]?.height ?? 0,
    last: (entries.at(-1)?.height ?? 0) + bucket - 1,
    timestamp: entries[0]?.timestamp ?? 0,
    operations,
    total: OPERATIONS.reduce((total, name) => total + operations[name], 0),
    follows,
  };
}

/** A scale from 0 to a round number at or above `most`, with three to five ticks. */
export function linear(most: number): { readonly top: number; readonly ticks: readonly number[] } {
  const least = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= least) ?? 10));
  const steps = Math.ceil(most / step) || 1;
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, i) => i * step) };
}

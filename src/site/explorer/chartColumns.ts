/** Columns and scales of the charts, and groups of entries. Uses no DOM. */

import type { ActivityEntry, Stats } from '../../contract/statsSchemas.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';

export interface Column {
  /** First and last of the column's heights that the mirror covers. */
  readonly first: number;
  readonly last: number;
  /**
   * Number of blocks in the column. Counts only blocks with activity if each entry is a single block, otherwise all
   * blocks.
   */
  readonly blocks: number;
  /** Number of blocks in a full column. Columns at the start, at the end and before a gap may have fewer. */
  readonly of: number;
  /** Time of the first block, in seconds since 1970. */
  readonly timestamp: number;
  readonly operations: Readonly<Record<Operation, number>>;
  readonly total: number;
  /** `gap` if many heights without activity precede this column. */
  readonly follows: 'start' | 'near' | 'gap';
}

/** A gap of more than this many buckets breaks the axis. */
const GAP_IN_BUCKETS = 20;

/** Converts entries to columns of equal width. Merges neighbouring entries if there are more than `most`. */
export function columnsOf(stats: Pick<Stats, 'activity' | 'bucket' | 'first' | 'last'>, most: number): Column[] {
  const { activity, bucket } = stats;
  const runs = runsOf(activity, (before, after) => after.height - before.height > bucket * GAP_IN_BUCKETS);
  const together = Math.max(1, Math.ceil(activity.length / most));
  return runs.flatMap((run, i) =>
    Array.from({ length: Math.ceil(run.length / together) }, (_, n) => {
      const entries = run.slice(n * together, (n + 1) * together);
      return columnOf(entries, together, stats, n > 0 ? 'near' : i > 0 ? 'gap' : 'start');
    }),
  );
}

/** Splits entries into groups. `isBreak` returns true if a new group begins between two consecutive entries. */
export function runsOf<Entry>(entries: readonly Entry[], isBreak: (before: Entry, after: Entry) => boolean): Entry[][] {
  const runs: Entry[][] = [];
  for (const [i, entry] of entries.entries()) {
    const before = entries[i - 1];
    if (before === undefined || isBreak(before, entry)) runs.push([entry]);
    else runs.at(-1)?.push(entry);
  }
  return runs;
}

function columnOf(
  entries: readonly ActivityEntry[],
  together: number,
  { bucket, first: lowest, last: highest }: Pick<Stats, 'bucket' | 'first' | 'last'>,
  follows: Column['follows'],
): Column {
  const sum = (name: Operation) => entries.reduce((total, entry) => total + entry[name], 0);
  const operations = { etching: sum('etching'), mint: sum('mint'), burn: sum('burn'), send: sum('send'), receive: sum('receive') };
  // An entry covers `bucket` heights. The mirror may lack some of them at its start and its end.
  const [from, to] = [entries[0]?.height ?? 0, (entries.at(-1)?.height ?? 0) + bucket - 1];
  const [first, last] = [Math.max(from, lowest ?? from), Math.min(to, highest ?? to)];
  return {
    first,
    last,
    blocks: entries.length * bucket - (first - from) - (to - last),
    of: together * bucket,
    timestamp: entries[0]?.timestamp ?? 0,
    operations,
    total: OPERATIONS.reduce((total, name) => total + operations[name], 0),
    follows,
  };
}

/** Returns a scale with two to six ticks, from 0 to a round number that is at least `most`. */
export function linear(most: number): { readonly top: number; readonly ticks: readonly number[] } {
  const least = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * ([1, 2, 2.5, 5, 10].find((each) => each * power >= least) ?? 10));
  const steps = Math.ceil(most / step) || 1;
  return { top: steps * step, ticks: Array.from({ length: steps + 1 }, (_, i) => i * step) };
}

/** Computes the data of the activity chart in `stats.json`. */
import type { ActivityEntry, Stats } from '../../contract/statsSchemas.ts';
import { addCounts, MOST_ENTRIES, noCounts } from './blockStats.ts';

/** Yields bucket sizes in heights: 1, 2, 5, 10, 20, 50 and so on. */
function* bucketSizes(): Generator<number> {
  for (let power = 1; ; power *= 10) yield* [power, 2 * power, 5 * power];
}

/**
 * Sums `parts`, each with the counts of `size` heights, into buckets. Uses the smallest bucket size that gives at most
 * MOST_ENTRIES entries. The heights of `parts` must ascend. If `size` is above 1, there must be more than MOST_ENTRIES
 * parts, because buckets smaller than `size` cannot be computed from them.
 */
export function activityOf(parts: readonly ActivityEntry[], size = 1): Pick<Stats, 'bucket' | 'activity'> {
  for (const bucket of bucketSizes()) {
    const activity = bucket < size ? undefined : entriesOf(parts, bucket);
    if (activity !== undefined && activity.length <= MOST_ENTRIES) return { bucket, activity };
  }
  throw new Error('no size of buckets is large enough');
}

/** Returns the chart entries for a bucket size. Buckets without blocks have no entry. */
function entriesOf(parts: readonly ActivityEntry[], bucket: number): ActivityEntry[] {
  const all: ActivityEntry[] = [];
  for (const part of parts) {
    const height = part.height - (part.height % bucket);
    let entry = all.at(-1);
    if (entry?.height !== height) {
      entry = { height, blocks: 0, timestamp: part.timestamp, ...noCounts() };
      all.push(entry);
    }
    entry.blocks += part.blocks;
    addCounts(entry, part);
  }
  return all;
}

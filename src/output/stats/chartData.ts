/** Computes the data of the activity chart in `stats.json`. */
import type { ActivityEntry, BlockStats, Stats } from '../../contract/statsSchemas.ts';
import { addCounts, type Counts, noCounts } from './blockStats.ts';

type Activity = Counts & Pick<BlockStats, 'height' | 'timestamp'>;

/** Maximum number of entries in a chart, because a screen cannot show more. */
const MOST_ENTRIES = 300;

/** Yields bucket sizes in heights: 1, 2, 5, 10, 20, 50 and so on. */
function* bucketSizes(): Generator<number> {
  for (let power = 1; ; power *= 10) yield* [power, 2 * power, 5 * power];
}

/** Counts the chart entries of blocks (heights ascending) for a bucket size. Buckets without blocks have no entry. */
function entriesOf(blocks: readonly Activity[], size: number): number {
  let entries = 0;
  let next = 0;
  for (const { height } of blocks) {
    if (height < next) continue;
    entries += 1;
    next = height - (height % size) + size;
  }
  return entries;
}

/** Sums blocks (heights ascending) by bucket. Uses the smallest bucket size that gives at most MOST_ENTRIES entries. */
export function activityOf(blocks: readonly Activity[]): Pick<Stats, 'bucket' | 'activity'> {
  for (const bucket of bucketSizes()) if (entriesOf(blocks, bucket) <= MOST_ENTRIES) return { bucket, activity: entries(blocks, bucket) };
  throw new Error('no size of buckets is large enough');
}

function entries(blocks: readonly Activity[], bucket: number): ActivityEntry[] {
  const all: ActivityEntry[] = [];
  for (const block of blocks) {
    const height = block.height - (block.height % bucket);
    let entry = all.at(-1);
    if (entry?.height !== height) {
      entry = { height, blocks: 0, timestamp: block.timestamp, ...noCounts() };
      all.push(entry);
    }
    entry.blocks += 1;
    addCounts(entry, block);
  }
  return all;
}

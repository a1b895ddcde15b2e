/**
 * The entries of the charts in `stats.json`.
 */
import type { ActivityEntry, BlockFigures } from '../contract/stats.ts';
import { addCounts, type Counts, noCounts } from './figures.ts';

/** The most entries: what a chart on a screen can show. */
const MOST_ENTRIES = 300;

/** 1, 2, 5, 10, 20, 50 and so on. */
function* bucketSizes(): Generator<number> {
  for (let power = 1; ; power *= 10) yield* [power, 2 * power, 5 * power];
}

/** How many entries these heights, ascending, come to. Heights far apart do not make more: entries without blocks are left out. */
function entriesOf(blocks: readonly Pick<BlockFigures, 'height'>[], size: number): number {
  let entries = 0;
  let next = 0;
  for (const { height } of blocks) {
    if (height < next) continue;
    entries += 1;
    next = height - (height % size) + size;
  }
  return entries;
}

/** Sums of blocks, heights ascending, by the smallest size of buckets that makes few enough of them. */
export function activityOf(blocks: readonly (Counts & Pick<BlockFigures, 'height' | 'timestamp'>)[]): {
  readonly bucket: number;
  readonly activity: ActivityEntry[];
} {
  for (const bucket of bucketSizes()) if (entriesOf(blocks, bucket) <= MOST_ENTRIES) return { bucket, activity: entries(blocks, bucket) };
  throw new Error('no size of buckets is large enough');
}

function entries(blocks: readonly (Counts & Pick<BlockFigures, 'height' | 'timestamp'>)[], bucket: number): ActivityEntry[] {
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

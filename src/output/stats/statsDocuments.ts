/**
 * Creates the documents for charts, polling clients and feed readers. Builds write them, and verification compares
 * them.
 */
import type { BlockStats, LatestBlocks, Stats } from '../../contract/statsSchemas.ts';
import { FEED_PATH, LATEST_PATH, STATS_PATH } from '../../pages/filePaths.ts';
import type { OwnFile } from '../../site/assets.ts';
import { activityOf } from './activityBuckets.ts';
import { addCounts, type BuildStats, countsOf, LATEST_BLOCKS, noCounts } from './blockStats.ts';
import { feedOf } from './feed.ts';

/** Returns the path and content of each document. `siteUrl` is the mirror's URL with a final slash, if known. */
export function statsDocuments(stats: BuildStats, siteUrl: string | undefined): OwnFile[] {
  const documents = [
    [STATS_PATH, statsOf(stats)],
    [LATEST_PATH, latestOf(stats.latest)],
    [FEED_PATH, feedOf(stats.latest, siteUrl)],
  ] as const;
  return documents.map(([path, document]) => [path, Buffer.from(`${JSON.stringify(document)}\n`)]);
}

function statsOf({ first, transactions, latest, activity, bucket, runes }: BuildStats): Stats {
  const operations = noCounts();
  let blocks = 0;
  for (const entry of activity) {
    addCounts(operations, entry);
    blocks += entry.blocks;
  }
  const records = Object.values(operations).reduce((sum, count) => sum + count, 0);
  const last = latest.at(-1)?.height ?? null;
  return { first, last, blocks, transactions, records, operations, ...activityOf(activity, bucket), runes: [...runes] };
}

/** Returns the content of `blocks.json`. The heights of `blocks` must ascend. */
function latestOf(blocks: readonly BlockStats[]): LatestBlocks {
  return {
    tip: blocks.at(-1)?.height ?? null,
    blocks: blocks
      .slice(-LATEST_BLOCKS)
      .reverse()
      .map((block) => {
        const { height, hash, timestamp, records, transactions } = block;
        return { height, hash, timestamp, records, transactions, operations: countsOf(block) };
      }),
  };
}

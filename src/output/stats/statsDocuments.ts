/** Creates the documents for charts, polling clients and feed readers, both in builds and in verifications. */
import type { BlockStats, LatestBlocks, Stats } from '../../contract/statsSchemas.ts';
import { FEED_PATH, LATEST_PATH, STATS_PATH } from '../../pages/filePaths.ts';
import type { OwnFile } from '../../site/assets.ts';
import { addCounts, type BuildStats, countsOf, noCounts, runeOf } from './blockStats.ts';
import { activityOf } from './chartData.ts';
import { feedOf } from './feed.ts';

/** Number of blocks in `blocks.json`. */
const LATEST_BLOCKS = 100;

/** Returns the path and content of each document. `siteUrl` is the mirror's URL with a final slash, if known. */
export function statsDocuments(stats: BuildStats, siteUrl: string | undefined): OwnFile[] {
  const documents = [
    [STATS_PATH, statsOf(stats)],
    [LATEST_PATH, latestOf(stats.blocks)],
    [FEED_PATH, feedOf(stats.blocks, siteUrl)],
  ] as const;
  return documents.map(([path, document]) => [path, Buffer.from(`${JSON.stringify(document)}\n`)]);
}

/** Returns the content of `stats.json`. */
function statsOf({ blocks, runes }: BuildStats): Stats {
  const operations = noCounts();
  let [transactions, records] = [0, 0];
  for (const block of blocks) {
    addCounts(operations, block);
    transactions += block.transactions;
    records += block.records;
  }
  const [first, last] = [blocks[0]?.height ?? null, blocks.at(-1)?.height ?? null];
  return { first, last, blocks: blocks.length, transactions, records, operations, ...activityOf(blocks), runes: runes.map(runeOf) };
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

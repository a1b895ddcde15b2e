/**
 * The documents about all blocks: for charts, for clients that poll, for feed readers. They follow from the figures, whether these were counted by a
 * build, read from files, or counted again.
 */
import type { BlockFigures, LatestBlocks, Stats } from '../contract/stats.ts';
import { FEED_PATH, LATEST_PATH, STATS_PATH } from '../pages/paths.ts';
import type { OwnFile } from '../site/assets.ts';
import { activityOf } from './activity.ts';
import { feedOf } from './feed.ts';
import { addCounts, countsOf, type Figures, noCounts, runeOf } from './figures.ts';

/** How many blocks `blocks.json` has. */
const LATEST_BLOCKS = 100;

/** Paths and contents of the documents; `siteUrl` is the address of the mirror, with a slash at its end, if it is known. */
export function statsDocuments(figures: Figures, siteUrl: string | undefined): OwnFile[] {
  const documents = [
    [STATS_PATH, statsOf(figures)],
    [LATEST_PATH, latestOf(figures.blocks)],
    [FEED_PATH, feedOf(figures.blocks, siteUrl)],
  ] as const;
  return documents.map(([path, document]) => [path, Buffer.from(`${JSON.stringify(document)}\n`)]);
}

/** The figures of all blocks. */
function statsOf({ blocks, runes }: Figures): Stats {
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

/** The last blocks of these, heights ascending. */
function latestOf(blocks: readonly BlockFigures[]): LatestBlocks {
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

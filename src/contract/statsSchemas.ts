/** Schemas of the stats documents. They contain no times of builds, so that equal input gives equal bytes. */
import { z } from 'zod';
import { count, objectOf, optional } from './schemaParts.ts';
import { hex64 } from './schemas.ts';

const operations = {
  etching: count.describe('Number of etching records.'),
  mint: count.describe('Number of mint records.'),
  burn: count.describe('Number of burn records.'),
  send: count.describe('Number of send records.'),
  receive: count.describe('Number of receive records.'),
};
export const byOperation = objectOf('Number of records by operation.', operations);

/** Block hash in the dialect of the build. */
const blockHash = z
  .string()
  .regex(/^(?:0x)?[0-9a-f]{64}$/)
  .describe('Hash of the block, in the same form as in lists.');

const height = count.describe('Block height.');
const timestamp = count.describe('Block time, in seconds since 1970 (UTC).');
const transactions = count.describe('Number of transactions with activity.');
const records = count.describe('Number of records.');

export const blockStats = objectOf('Stats of a block.', { height, hash: blockHash, timestamp, transactions, records, ...operations });
export type BlockStats = z.infer<typeof blockStats>;

export const runeStats = objectOf('Stats of a rune.', {
  id: z.string().describe('Rune id: height of the block and index of the transaction that etched the rune.'),
  number: count.describe('Rune number.'),
  name: z.string().describe('Name without spacers.'),
  spaced_name: z.string().describe('Name with its spacers.'),
  records,
  ...operations,
});
export type RuneStats = z.infer<typeof runeStats>;

/** Schema of `runes/v1/stats/840000.json`. All other stats documents are computed from these files. */
export const statsFile = objectOf('The stats of 100 heights.', {
  blocks: z.array(blockStats).min(1).describe('Heights ascending. Heights without activity are left out.'),
  runes: z.array(runeStats).min(1).describe('The runes in the records of these blocks, ordered by id (block and transaction, as numbers).'),
});
const activityEntry = objectOf('One bucket of the activity chart.', {
  height: count.describe('Lowest height of the bucket.'),
  blocks: z.int().min(1).describe('Number of blocks in the bucket.'),
  timestamp: count.describe('Time of the first block in the bucket, in seconds since 1970 (UTC).'),
  ...operations,
});
export type ActivityEntry = z.infer<typeof activityEntry>;

/** Schema of `runes/v1/stats.json`. */
export const stats = objectOf('The stats of all blocks. The size of this document has an upper limit.', {
  first: count.nullable().describe('Height of the lowest block; null without blocks.'),
  last: count.nullable().describe('Height of the highest block; null without blocks.'),
  blocks: count.describe('Blocks with activity.'),
  transactions,
  records,
  operations: byOperation,
  bucket: z.int().min(1).describe('Heights per entry of `activity`: 1, 2, 5, 10, 20, 50 and so on.'),
  activity: z
    .array(activityEntry)
    .describe('At most 150 entries, heights ascending and multiples of `bucket`. Buckets without blocks are left out.'),
  runes: z.array(runeStats).describe('At most 20 runes, most records first.'),
  recent: z
    .array(objectOf('The most active runes of some heights.', { first: height, last: height, runes: z.array(runeStats) }))
    .describe('The same for the last 144 and the last 1,008 heights; empty without blocks.'),
});
export type Stats = z.infer<typeof stats>;

/** Schema of `runes/v1/blocks.json`. */
export const latestBlocks = objectOf('The last blocks of the mirror.', {
  tip: count.nullable().describe('Height of the highest block; null without blocks.'),
  blocks: z
    .array(z.strictObject({ height, hash: blockHash, timestamp, records, transactions, operations: byOperation }))
    .describe('At most 100 blocks, newest first.'),
});
export type LatestBlocks = z.infer<typeof latestBlocks>;

/** Schema of `runes/v1/feed.json`. Links are absolute in a build with `--site-url`, otherwise relative to the feed. */
export const feed = objectOf('JSON Feed 1.1 of the last blocks.', {
  version: z.literal('https://jsonfeed.org/version/1.1').describe('Version of the feed format.'),
  title: z.string().describe('Title of the feed.'),
  home_page_url: optional(z.string(), 'URL of the mirror; left out if the build does not know it.'),
  feed_url: optional(z.string(), 'URL of the feed; left out if the build does not know it.'),
  description: z.string().describe('Description of the feed.'),
  language: z.string().describe('Language of the feed.'),
  items: z
    .array(
      z.strictObject({
        id: hex64.describe('Hash of the block without `0x`, so a block that replaces another is a new item.'),
        url: z.string().describe('URL of the block; relative to the feed if the build does not know the URL of the mirror.'),
        title: z.string().describe('Title of the item.'),
        content_text: z.string().describe('Number of records by operation, and the hash of the block.'),
        date_published: optional(z.string(), 'Time of the block, in UTC. Left out from the year 10000 on.'),
      }),
    )
    .describe('At most 30 items, one for each block, newest first.'),
});
export type Feed = z.infer<typeof feed>;

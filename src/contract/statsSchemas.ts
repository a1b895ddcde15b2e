/** Schemas of the stats documents. They contain no times of builds, so that equal input gives equal bytes. */
import { z } from 'zod';
import { hex64 } from './schemas.ts';

const integer = z.int().min(0);

const operations = {
  etching: integer.describe('Number of etching records.'),
  mint: integer.describe('Number of mint records.'),
  burn: integer.describe('Number of burn records.'),
  send: integer.describe('Number of send records.'),
  receive: integer.describe('Number of receive records.'),
};
export const byOperation = z.strictObject(operations).describe('Number of records by operation.');

/** Block hash in the dialect of the build. */
const blockHash = z
  .string()
  .regex(/^(?:0x)?[0-9a-f]{64}$/)
  .describe('Hash of the block, in the same form as in lists.');

const height = integer.describe('Block height.');
const timestamp = integer.describe('Block time, in seconds since 1970 (UTC).');
const transactions = integer.describe('Number of transactions with activity.');
const records = integer.describe('Number of records.');

export const blockStats = z
  .strictObject({ height, hash: blockHash, timestamp, transactions, records, ...operations })
  .describe('Stats of a block.');
export type BlockStats = z.infer<typeof blockStats>;

export const runeStats = z
  .strictObject({
    id: z.string().describe('Rune id: height of the block and index of the transaction that etched the rune.'),
    number: integer.describe('Rune number.'),
    name: z.string().describe('Name without spacers.'),
    spaced_name: z.string().describe('Name with its spacers.'),
    records,
    ...operations,
  })
  .describe('Stats of a rune.');
export type RuneStats = z.infer<typeof runeStats>;

/** Schema of `runes/v1/stats/840000.json`. All other stats documents are computed from these files. */
export const statsFile = z
  .strictObject({
    blocks: z.array(blockStats).min(1).describe('Heights ascending. Heights without activity are left out.'),
    runes: z
      .array(runeStats)
      .min(1)
      .describe('The runes in the records of these blocks, ordered by id (block and transaction, as numbers).'),
  })
  .describe('The stats of 100 heights.');
export type StatsFile = z.infer<typeof statsFile>;

const activityEntry = z
  .strictObject({
    height: integer.describe('Lowest height of the bucket.'),
    blocks: z.int().min(1).describe('Number of blocks in the bucket.'),
    timestamp: integer.describe('Time of the first block in the bucket, in seconds since 1970 (UTC).'),
    ...operations,
  })
  .describe('One bucket of the activity chart.');
export type ActivityEntry = z.infer<typeof activityEntry>;

/** Schema of `runes/v1/stats.json`. */
export const stats = z
  .strictObject({
    first: integer.nullable().describe('Height of the lowest block; null without blocks.'),
    last: integer.nullable().describe('Height of the highest block; null without blocks.'),
    blocks: integer.describe('Blocks with activity.'),
    transactions,
    records,
    operations: byOperation,
    bucket: z.int().min(1).describe('Heights per entry of `activity`: 1, 2, 5, 10, 20, 50 and so on.'),
    activity: z
      .array(activityEntry)
      .describe('At most 300 entries, heights ascending and multiples of `bucket`. Buckets without blocks are left out.'),
    runes: z.array(runeStats).describe('At most 20 runes, most records first.'),
  })
  .describe('The stats of all blocks. The size of this document has an upper limit.');
export type Stats = z.infer<typeof stats>;

/** Schema of `runes/v1/blocks.json`. */
export const latestBlocks = z
  .strictObject({
    tip: integer.nullable().describe('Height of the highest block; null without blocks.'),
    blocks: z
      .array(z.strictObject({ height, hash: blockHash, timestamp, records, transactions, operations: byOperation }))
      .describe('At most 100 blocks, newest first.'),
  })
  .describe('The last blocks of the mirror.');
export type LatestBlocks = z.infer<typeof latestBlocks>;

/** Schema of `runes/v1/feed.json`. Links are absolute in a build with `--site-url`, otherwise relative to the feed. */
export const feed = z
  .strictObject({
    version: z.literal('https://jsonfeed.org/version/1.1').describe('Version of the feed format.'),
    title: z.string().describe('Title of the feed.'),
    home_page_url: z.string().optional().describe('URL of the mirror; left out if the build does not know it.'),
    feed_url: z.string().optional().describe('URL of the feed; left out if the build does not know it.'),
    description: z.string().describe('Description of the feed.'),
    language: z.string().describe('Language of the feed.'),
    items: z
      .array(
        z.strictObject({
          id: hex64.describe('Hash of the block without `0x`, so a block that replaces another is a new item.'),
          url: z.string().describe('URL of the block; relative to the feed if the build does not know the URL of the mirror.'),
          title: z.string().describe('Title of the item.'),
          content_text: z.string().describe('Number of records by operation, and the hash of the block.'),
          date_published: z.string().optional().describe('Time of the block, in UTC. Left out from the year 10000 on.'),
        }),
      )
      .describe('At most 30 items, one for each block, newest first.'),
  })
  .describe('JSON Feed 1.1 of the last blocks.');
export type Feed = z.infer<typeof feed>;

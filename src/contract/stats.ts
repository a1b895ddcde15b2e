/**
 * The documents of figures: what each block and each rune did, counted. None has a time of its making, so that the same input makes the same bytes.
 */
import { z } from 'zod';

const integer = z.int().min(0);

/** Records by operation. */
const operations = {
  etching: integer.describe('Number of etching records.'),
  mint: integer.describe('Number of mint records.'),
  burn: integer.describe('Number of burn records.'),
  send: integer.describe('Number of send records.'),
  receive: integer.describe('Number of receive records.'),
};
export const byOperation = z.strictObject(operations).describe('Number of records by operation.');

/** As the dialect of the build spells it. */
const blockHash = z
  .string()
  .regex(/^(?:0x)?[0-9a-f]{64}$/)
  .describe('Block hash, in the dialect of the mirror.');

const height = integer.describe('Block height.');
const timestamp = integer.describe('Block time, in seconds since 1970 (UTC).');
const transactions = integer.describe('Number of transactions with activity.');
const records = integer.describe('Number of records.');

export const blockFigures = z
  .strictObject({ height, hash: blockHash, timestamp, transactions, records, ...operations })
  .describe('Statistics of a block.');
export type BlockFigures = z.infer<typeof blockFigures>;

export const runeFigures = z
  .strictObject({
    id: z.string().describe('Rune id: height of the block and index of the transaction that etched the rune.'),
    number: integer.describe('Rune number.'),
    name: z.string().describe('Name without spacers.'),
    spaced_name: z.string().describe('Name with its spacers.'),
    records,
    ...operations,
  })
  .describe('Statistics of a rune.');
export type RuneFigures = z.infer<typeof runeFigures>;

/** `runes/v1/stats/840000.json`. All other documents of figures follow from these files. */
export const statsFile = z
  .strictObject({
    blocks: z.array(blockFigures).min(1).describe('Blocks by ascending height, without heights that have no activity.'),
    runes: z.array(runeFigures).min(1).describe('Runes with records in these blocks, by id (block, then transaction, as numbers).'),
  })
  .describe('Statistics of a hundred heights.');
export type StatsFile = z.infer<typeof statsFile>;

const activityEntry = z
  .strictObject({
    height: integer.describe('Lowest height of the entry, a multiple of `bucket`.'),
    blocks: z.int().min(1).describe('Number of blocks with activity.'),
    timestamp: integer.describe('Time of the first of these blocks, in seconds since 1970 (UTC).'),
    ...operations,
  })
  .describe('One bucket of the activity chart.');
export type ActivityEntry = z.infer<typeof activityEntry>;

/** `runes/v1/stats.json`. */
export const stats = z
  .strictObject({
    first: integer.nullable().describe('Lowest height with activity; null if the mirror has no blocks.'),
    last: integer.nullable().describe('Highest height with activity; null if the mirror has no blocks.'),
    blocks: integer.describe('Number of blocks with activity.'),
    transactions,
    records,
    operations: byOperation,
    bucket: z.int().min(1).describe('Heights per entry of `activity`: 1, 2, 5, 10, 20, 50 and so on.'),
    activity: z.array(activityEntry).describe('At most 300 entries, by ascending height, without entries that have no blocks.'),
    runes: z.array(runeFigures).describe('At most 20 runes, most records first.'),
  })
  .describe('Statistics of all blocks. Its size does not grow with their number.');
export type Stats = z.infer<typeof stats>;

/** `runes/v1/blocks.json`. */
export const latestBlocks = z
  .strictObject({
    tip: integer.nullable().describe('Highest height with activity; null if the mirror has no blocks.'),
    blocks: z
      .array(z.strictObject({ height, hash: blockHash, timestamp, records, transactions, operations: byOperation }))
      .describe('At most 100 blocks, newest first.'),
  })
  .describe('The last blocks with activity.');
export type LatestBlocks = z.infer<typeof latestBlocks>;

/** `runes/v1/feed.json`. Links are absolute in a build with `--site-url`, and else relative to the feed. */
export const feed = z
  .strictObject({
    version: z.literal('https://jsonfeed.org/version/1.1').describe('Version of the JSON Feed format.'),
    title: z.string().describe('Feed title.'),
    home_page_url: z.string().optional().describe('URL of the mirror; omitted if the build does not know it.'),
    feed_url: z.string().optional().describe('URL of the feed; omitted if the build does not know it.'),
    description: z.string().describe('Feed description.'),
    language: z.string().describe('Language of the feed.'),
    items: z
      .array(
        z.strictObject({
          id: z
            .string()
            .regex(/^[0-9a-f]{64}$/)
            .describe('Block hash without `0x`. A replaced block is a new item.'),
          url: z.string().describe('URL of the block; relative to the feed if the build does not know its own URL.'),
          title: z.string().describe('Item title.'),
          content_text: z.string().describe('Summary of the block.'),
          date_published: z.string().optional().describe('Block time in UTC; omitted if the year does not have four digits.'),
        }),
      )
      .describe('One item per block, at most 30, newest first.'),
  })
  .describe('JSON Feed 1.1 of the last blocks.');
export type Feed = z.infer<typeof feed>;

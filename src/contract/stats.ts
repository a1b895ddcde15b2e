/**
 * The documents of figures: what each block and each rune did, counted. None has a time of its making, so that the same input makes the same bytes.
 */
import { z } from 'zod';

const integer = z.int().min(0);

/** Records by operation. */
const operations = {
  etching: integer.describe('Records of etchings.'),
  mint: integer.describe('Records of mints.'),
  burn: integer.describe('Records of burns.'),
  send: integer.describe('Records of sends.'),
  receive: integer.describe('Records of receives.'),
};
export const byOperation = z.strictObject(operations).describe('Records by operation.');

/** As the dialect of the build spells it. */
const blockHash = z
  .string()
  .regex(/^(?:0x)?[0-9a-f]{64}$/)
  .describe('Hash of the block, spelled as in the lists.');

const height = integer.describe('Height of the block.');
const timestamp = integer.describe('Time of the block, in seconds since 1970 (UTC).');
const transactions = integer.describe('Transactions with activity.');
const records = integer.describe('Records.');

export const blockFigures = z
  .strictObject({ height, hash: blockHash, timestamp, transactions, records, ...operations })
  .describe('What a block holds.');
export type BlockFigures = z.infer<typeof blockFigures>;

export const runeFigures = z
  .strictObject({
    id: z.string().describe('Height of the block and index of the transaction that etched the rune.'),
    number: integer.describe('Number of the rune.'),
    name: z.string().describe('Name without spacers.'),
    spaced_name: z.string().describe('Name with its spacers.'),
    records,
    ...operations,
  })
  .describe('What was done with a rune.');
export type RuneFigures = z.infer<typeof runeFigures>;

/** `runes/v1/stats/840000.json`. All other documents of figures follow from these files. */
export const statsFile = z
  .strictObject({
    blocks: z.array(blockFigures).min(1).describe('Heights ascending; heights without activity are left out.'),
    runes: z
      .array(runeFigures)
      .min(1)
      .describe('The runes that these blocks have records of, in the order of their ids (by block and transaction, as numbers).'),
  })
  .describe('The figures of a hundred heights.');
export type StatsFile = z.infer<typeof statsFile>;

const activityEntry = z
  .strictObject({
    height: integer.describe('The lowest height that may be in it.'),
    blocks: z.int().min(1).describe('How many blocks are in it.'),
    timestamp: integer.describe('Time of its first block held, in seconds since 1970 (UTC).'),
    ...operations,
  })
  .describe('Some heights of a chart.');
export type ActivityEntry = z.infer<typeof activityEntry>;

/** `runes/v1/stats.json`. */
export const stats = z
  .strictObject({
    first: integer.nullable().describe('The lowest height held; null when there is no block.'),
    last: integer.nullable().describe('The highest height held; null when there is no block.'),
    blocks: integer.describe('Blocks with activity.'),
    transactions,
    records,
    operations: byOperation,
    bucket: z.int().min(1).describe('How many heights share an entry of `activity`: 1, 2, 5, 10, 20, 50 and so on.'),
    activity: z
      .array(activityEntry)
      .describe('At most 300, heights ascending and multiples of `bucket`; heights without blocks are left out.'),
    runes: z.array(runeFigures).describe('At most 20, the one with the most records first.'),
  })
  .describe('The figures of all blocks, small however many there are.');
export type Stats = z.infer<typeof stats>;

/** `runes/v1/blocks.json`. */
export const latestBlocks = z
  .strictObject({
    tip: integer.nullable().describe('The highest height held; null when there is no block.'),
    blocks: z
      .array(z.strictObject({ height, hash: blockHash, timestamp, records, transactions, operations: byOperation }))
      .describe('At most 100, the newest first.'),
  })
  .describe('The last blocks held.');
export type LatestBlocks = z.infer<typeof latestBlocks>;

/** `runes/v1/feed.json`. Links are absolute in a build with `--site-url`, and else relative to the feed. */
export const feed = z
  .strictObject({
    version: z.literal('https://jsonfeed.org/version/1.1').describe('The form of the feed.'),
    title: z.string().describe('Title of the feed.'),
    home_page_url: z.string().optional().describe('Address of the mirror; left out when the build was not told.'),
    feed_url: z.string().optional().describe('Address of the feed; left out when the build was not told.'),
    description: z.string().describe('What the feed is about.'),
    language: z.string().describe('Language of its texts.'),
    items: z
      .array(
        z.strictObject({
          id: z
            .string()
            .regex(/^[0-9a-f]{64}$/)
            .describe('Hash of the block without `0x`: a block that replaces another is another item.'),
          url: z.string().describe('Where the block is; relative to the feed when the build was not told its address.'),
          title: z.string().describe('Title of the item.'),
          content_text: z.string().describe('What the block holds, in words.'),
          date_published: z.string().optional().describe('In UTC; left out for a time that has no year of four digits.'),
        }),
      )
      .describe('A block each, at most 30, the newest first.'),
  })
  .describe('A JSON Feed 1.1 of the last blocks.');
export type Feed = z.infer<typeof feed>;

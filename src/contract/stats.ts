/**
 * The documents of figures: what each block and each rune did, counted. None has a time of its making, so that the same input makes the same bytes.
 */
import { z } from 'zod';

const integer = z.int().min(0);

/** Records by operation. */
const operations = { etching: integer, mint: integer, burn: integer, send: integer, receive: integer };

/** As the dialect of the build spells it: `0x` and 64 hex digits, or the digits alone. */
const blockHash = z.string().regex(/^(?:0x)?[0-9a-f]{64}$/);

/** What a block holds. `timestamp` is in seconds since 1970. */
const blockFigures = z.strictObject({
  height: integer,
  hash: blockHash,
  timestamp: integer,
  transactions: integer,
  records: integer,
  ...operations,
});
export type BlockFigures = z.infer<typeof blockFigures>;

/** What was done with a rune. */
const runeFigures = z.strictObject({
  id: z.string(),
  number: integer,
  name: z.string(),
  spaced_name: z.string(),
  records: integer,
  ...operations,
});
export type RuneFigures = z.infer<typeof runeFigures>;

/**
 * `runes/v1/stats/840000.json`: the blocks of a hundred heights, ascending, and the runes that they have records of, in the order of their ids
 * (by block and transaction, as numbers). All other documents of figures follow from these files.
 */
export const statsFile = z.strictObject({ blocks: z.array(blockFigures).min(1), runes: z.array(runeFigures).min(1) });
export type StatsFile = z.infer<typeof statsFile>;

/** Some heights of a chart: `height` is the lowest that may be in it, `timestamp` that of its first block held, in seconds since 1970. */
const activityEntry = z.strictObject({ height: integer, blocks: z.int().min(1), timestamp: integer, ...operations });
export type ActivityEntry = z.infer<typeof activityEntry>;

/** `runes/v1/stats.json`: the figures of all blocks, small however many there are. */
export const stats = z.strictObject({
  /** Lowest and highest height held; null when there is no block. */
  first: integer.nullable(),
  last: integer.nullable(),
  blocks: integer,
  transactions: integer,
  records: integer,
  operations: z.strictObject(operations),
  /** How many heights share an entry of `activity`: 1, 2, 5, 10, 20, 50 and so on. */
  bucket: z.int().min(1),
  /** At most 300, heights ascending and multiples of `bucket`; heights without blocks are left out. */
  activity: z.array(activityEntry),
  /** At most 20, the one with the most records first. */
  runes: z.array(runeFigures),
});
export type Stats = z.infer<typeof stats>;

/** `runes/v1/blocks.json`: the last blocks held, at most 100, the newest first. `tip` is the highest height, null when there is no block. */
export const latestBlocks = z.strictObject({
  tip: integer.nullable(),
  blocks: z.array(
    z.strictObject({
      height: integer,
      hash: blockHash,
      timestamp: integer,
      records: integer,
      transactions: integer,
      operations: z.strictObject(operations),
    }),
  ),
});
export type LatestBlocks = z.infer<typeof latestBlocks>;

/**
 * `runes/v1/feed.json`: a JSON Feed 1.1 of the last blocks, at most 30, the newest first. Links are absolute in a build with `--site-url`, and else
 * relative to the feed.
 */
export const feed = z.strictObject({
  version: z.literal('https://jsonfeed.org/version/1.1'),
  title: z.string(),
  home_page_url: z.string().optional(),
  feed_url: z.string().optional(),
  description: z.string(),
  language: z.string(),
  items: z.array(
    z.strictObject({
      /** The hash of the block, 64 hex digits in both dialects: a block that replaces another is another item. */
      id: z.string().regex(/^[0-9a-f]{64}$/),
      url: z.string(),
      title: z.string(),
      content_text: z.string(),
      /** In UTC; left out for a time that has no year of four digits. */
      date_published: z.string().optional(),
    }),
  ),
});
export type Feed = z.infer<typeof feed>;

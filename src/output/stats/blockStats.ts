/**
 * Stats of blocks and runes as objects, and functions that sum and sort them. SQL counts the records
 * (engine/state/countBlocks.ts, output/stats/statsFiles.ts).
 */
import type { ActivityEntry, BlockStats, RuneStats } from '../../contract/statsSchemas.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';

export type Counts = Record<Operation, number>;

export interface BuildStats {
  /** Height of the lowest block; null without blocks. */
  readonly first: number | null;
  readonly transactions: number;
  /** At least the last LATEST_BLOCKS blocks, or all blocks if the build has fewer. Heights ascend. */
  readonly latest: readonly BlockStats[];
  /**
   * Sums of all blocks, by buckets of `bucket` heights. Heights ascend. If `bucket` is above 1, there are more than
   * MOST_ENTRIES sums, so a chart joins them into larger buckets.
   */
  readonly activity: readonly ActivityEntry[];
  readonly bucket: number;
  /** The most active runes, in the order of `mostActive`. */
  readonly runes: readonly RuneStats[];
}

/** Number of blocks in `blocks.json`. */
export const LATEST_BLOCKS = 100;

/** Maximum number of entries in a chart, 7 pixels each on a wide screen. More heights get larger buckets. */
export const MOST_ENTRIES = 150;

/** Returns only the counts of an object, with keys in the order of OPERATIONS. */
export const countsOf = ({ etching, mint, burn, send, receive }: Readonly<Counts>): Counts => ({ etching, mint, burn, send, receive });

export function addCounts(sum: Counts, counts: Readonly<Counts>): void {
  for (const operation of OPERATIONS) sum[operation] += counts[operation];
}

export const noCounts = (): Counts => ({ etching: 0, mint: 0, burn: 0, send: 0, receive: 0 });

/** Maximum number of runes in `stats.json`, which lists only the most active runes. */
export const MOST_ACTIVE = 20;

/** Returns the MOST_ACTIVE runes with the most records, most first. Sorts runes with equal numbers of records by id. */
export const mostActive = (runes: Iterable<RuneStats>): RuneStats[] =>
  [...runes].sort((a, b) => b.records - a.records || compareIds(keyOf(a.id), keyOf(b.id))).slice(0, MOST_ACTIVE);

/** Regular expression for rune ids in valid data, `block:tx`. Wrong data may have any text as an id. */
export const ID_FORM = '([0-9]{1,15}):([0-9]{1,15})';
const id = new RegExp(`^${ID_FORM}$`);

interface IdKey {
  /** Height in the id. Infinity if the id does not match ID_FORM. */
  readonly block: number;
  readonly tx: number;
  readonly id: string;
}

function keyOf(text: string): IdKey {
  const [, block, tx] = id.exec(text) ?? [];
  return { block: block === undefined ? Number.POSITIVE_INFINITY : Number(block), tx: Number(tx ?? 0), id: text };
}

/** Compares ids by block and transaction as numbers, and then by the bytes of the text. */
function compareIds(a: IdKey, b: IdKey): number {
  if (a.block !== b.block) return a.block < b.block ? -1 : 1;
  return a.tx - b.tx || compareText(a.id, b.id);
}

/** Compares texts by their UTF-8 bytes, as databases do. */
const compareText = (a: string, b: string): number => (a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b)));

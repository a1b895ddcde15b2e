/** Divides blocks into ranges, so that no statement groups, sorts or joins more than a bounded number of rows at once. */
import { countCrossing, type WorkLimits } from '../limits.ts';
import { int, type Store } from './store.ts';
import type { TableWith } from './table.ts';

/** Heights of some blocks, from `first` to `last`, both inclusive. */
export interface BlockRange {
  readonly first: number;
  readonly last: number;
}

/** Divides the blocks of a table, or those within a range, into ascending ranges of about `listedAtOnce` records, or of a larger block. */
export async function blockRanges(
  blocks: TableWith<'block_height' | 'records'>,
  { listedAtOnce }: Pick<WorkLimits, 'listedAtOnce'>,
  store: Store,
  within?: BlockRange,
): Promise<(BlockRange & { readonly records: number })[]> {
  const ranges = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last, sum(records)::BIGINT AS records FROM
       (SELECT block_height, records, sum(records) OVER (ORDER BY block_height) // ${listedAtOnce} AS range FROM ${blocks} WHERE ${within === undefined ? 'true' : isWithin(within)}) GROUP BY range ORDER BY first`,
    { first: int, last: int, records: int },
  );
  if (ranges.length > 1) countCrossing('listedAtOnce');
  return ranges;
}

export const isWithin = ({ first, last }: BlockRange): string => `block_height BETWEEN ${first} AND ${last}`;

/** Divides blocks, or ranges of blocks, into consecutive portions of at most `most` records, or of a single larger item. */
export function portionsOf<Item extends { readonly records: number }>(items: readonly Item[], most: number): Item[][] {
  const portions: Item[][] = [];
  let records = 0;
  for (const item of items) {
    records += item.records;
    if (portions.length === 0 || records > most) {
      portions.push([]);
      records = item.records;
    }
    portions.at(-1)?.push(item);
  }
  return portions;
}

/** Writes the lists of activity of an archive (activity.ts). A record has a row for each list that it belongs to. */
import { blockRanges, isWithin } from '../duckdb/blockRanges.ts';
import { readDoubles } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { int, literal, type Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import type { LevelBlocks, LevelPlan, PlacedPages } from '../engine/archive/listedRecords.ts';
import { type LevelForm, makeLevels } from '../engine/archive/makeLevels.ts';
import { HEX_END, PagedLists } from '../engine/archive/pagedLists.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { LevelRange } from '../format/levels.ts';
import type { PlacedLevel } from '../format/listTables.ts';
import { exceeds } from '../limits.ts';
import { yieldNow } from '../yieldNow.ts';
import { KEY_DIGITS, LISTED } from './activity.ts';

interface ActivityForm extends LevelForm<'activity'> {
  /** Records of the blocks of all levels that are not kept, and the pages of these blocks. */
  readonly records: TableWith<'block_height' | 'tx_index' | 'ord' | 'rune_id' | 'address'>;
  readonly levelBlocks: LevelBlocks;
  readonly pages: PlacedPages;
  /** Maximum number of records in a page. */
  readonly pageSize: number;
}

/** Writes the levels that changed since the last build. Returns all levels. */
export async function writeActivity(plans: readonly LevelPlan[], form: ActivityForm, store: Store): Promise<PlacedLevel[]> {
  const begins = await bytesBelow(plans, form.state, store);
  const beginOf = ({ first }: LevelRange) => begins[first] ?? 0;
  const levels = await makeLevels<PlacedLevel>(plans, form.old?.root.lists?.activity, (plan) =>
    store.joinAsWritten(async () => {
      const begin = beginOf(plan);
      const to = form.open('activity', plan);
      const lists = new PagedLists(to, form.limits.listPage);
      let [upper, lower, position] = [-1, -1, -1];
      for await (const chunk of sortedRows(await rowsOf(plan, begin, form, store), form.limits, store)) {
        await yieldNow();
        const [uppers = NONE, lowers = NONE, positions = NONE, lengths = NONE, records = NONE] = COLUMNS.map((_, i) =>
          readDoubles(chunk, i),
        );
        for (let row = 0; row < records.length; row += 1) {
          if (uppers[row] !== upper || lowers[row] !== lower) {
            [upper, lower] = [uppers[row] ?? 0, lowers[row] ?? 0];
            lists.hexList(Math.floor(upper / HEX_END), upper % HEX_END, lower);
          }
          const isFirst = lists.entry();
          // Names the page only if the entry before it is in another page.
          if (isFirst || positions[row] !== position) {
            position = positions[row] ?? 0;
            lists.number(position, false);
            lists.number(lengths[row] ?? 0, false);
          }
          lists.number(records[row] ?? 0, true);
        }
      }
      lists.finish();
      const level = await to.finish(plan);
      return level && { ...level, begin };
    }),
  );
  // Blocks below a kept level may have changed.
  return levels.map((level) => ({ ...level, begin: beginOf(level) }));
}

/** Returns, by the first height of each range, the size of the pages of all blocks below it, in bytes. */
async function bytesBelow(ranges: readonly LevelRange[], { blocks }: StateTables, store: Store): Promise<Readonly<Record<number, number>>> {
  const sums = ranges.map(({ first }) => `coalesce(sum(packed) FILTER (block_height < ${first}), 0)::BIGINT AS "${first}"`);
  if (sums.length === 0) return {};
  return store.row(`SELECT ${sums.join(', ')} FROM ${blocks}`, Object.fromEntries(ranges.map(({ first }) => [first, int])));
}

/** Columns of a sorted row. The first two are the key of the list. */
const COLUMNS = ['upper', 'lower', '"position"', 'length', 'in_page'];

const NONE = new Float64Array();

/** Memory that DuckDB needs to sort the row of a pointer, in bytes: about twice the size of the row's columns. */
const SORTED_BYTES = 128;

/** Number of hex digits of a key in the column `upper`; the others are in `lower`. Numbers sort faster than texts. */
const UPPER_DIGITS = 12;

/** Returns the rows of a level, with COLUMNS. The rows of a list begin with the newest record. */
async function rowsOf(plan: LevelRange, begin: number, { records, pages, pageSize, levelBlocks, limits }: ActivityForm, store: Store) {
  const listed = (isIn: string) =>
    `SELECT r.rune_id, r.address, r.block_height AS height, page_position - ${begin} AS "position", page_bytes::INTEGER AS length,
       (record % ${pageSize})::INTEGER AS in_page
     FROM (SELECT block_height, rune_id, address, row_number() OVER (PARTITION BY block_height ORDER BY tx_index DESC, ord DESC) - 1 AS record
       FROM ${records} WHERE ${isIn}) AS r
     JOIN (FROM ${pages} WHERE ${isIn}) AS p ON p.block_height = r.block_height AND p.page = record // ${pageSize}`;
  const ranges = await blockRanges(levelBlocks, limits, store, plan);
  const number = ranges.reduce((sum, range) => sum + range.records, 0);
  const keyed = exceeds(limits, 'keptRecords', number) ? keyedOnce : keyedEach;
  return {
    rows: (ranges.length === 0 ? [plan] : ranges).map((range) => keyed(listed(isWithin(range)))),
    ...{
      bound: 3 * number,
      most: `(SELECT count(*) + 2 * count(address) FROM ${records} WHERE ${isWithin(plan)})`,
      rowBytes: SORTED_BYTES,
    },
    ...{ key: 'upper', hashEnd: 16 ** UPPER_DIGITS, within: 'lower, height DESC, "position", in_page' },
    select: COLUMNS.map((name) => `${name}::DOUBLE`).join(', '),
  };
}

/** SQL expressions of the digests of the three lists of a record: of the texts of LISTED, with the columns of its id and address. */
const [OF_RUNE, OF_ADDRESS, OF_BOTH] = [LISTED.rune('rune_id'), LISTED.address('address'), LISTED.both('rune_id', 'address')].map(
  (text) => {
    const parts = text.split(/(:)/).map((part) => (['rune_id', 'address'].includes(part) ? part : literal(part)));
    return `sha256(${parts.join(' || ')})`;
  },
) as [string, string, string];

/** Returns SQL that adds the key of a list to rows. */
const withKey = (hash: string, rows: string): string =>
  `SELECT ('0x' || left(hash, ${UPPER_DIGITS}))::UBIGINT AS upper, ('0x' || substr(hash, ${UPPER_DIGITS + 1}, ${KEY_DIGITS - UPPER_DIGITS}))::UINTEGER AS lower,
     * EXCLUDE (hash) FROM (SELECT ${hash} AS hash, * FROM (${rows}))`;

const SORTED = 'upper, lower, height, "position", length, in_page';

/** Returns SQL that selects a row of SORTED for each list of each record. */
const keyedEach = (listed: string): string =>
  `SELECT ${SORTED} FROM (${withKey(`unnest([${OF_RUNE}] || CASE WHEN address IS NULL THEN [] ELSE [${OF_ADDRESS}, ${OF_BOTH}] END)`, listed)})`;

/**
 * The same for many records: computes the digests of their few runes and addresses only once, in half the time. Takes longer for few
 * records, because DuckDB plans three queries.
 */
function keyedOnce(listed: string): string {
  const hasAddress = 'FROM listed WHERE address IS NOT NULL';
  return `WITH listed AS MATERIALIZED (${listed})
    SELECT ${SORTED} FROM listed JOIN (${withKey(OF_RUNE, 'SELECT DISTINCT rune_id FROM listed')}) USING (rune_id)
    UNION ALL SELECT ${SORTED} FROM listed JOIN (${withKey(OF_ADDRESS, `SELECT DISTINCT address ${hasAddress}`)}) USING (address)
    UNION ALL SELECT ${SORTED} FROM (${withKey(OF_BOTH, hasAddress)})`;
}

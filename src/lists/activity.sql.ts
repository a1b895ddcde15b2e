/**
 * Writes the lists of activity of an archive (activity.ts). A listed record (engine/archive/listedRecords.ts) has a row
 * for each list that it belongs to.
 */
import { readDoubles } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { literal, type Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { makeLevels, type OpenLevel } from '../engine/archive/makeLevels.ts';
import { PagedLists } from '../engine/archive/pagedLists.ts';
import type { LevelRange } from '../format/levels.ts';
import type { PlacedLevel } from '../format/listTables.ts';
import type { WorkLimits } from '../limits.ts';
import { yieldNow } from '../yieldNow.ts';
import { KEY_DIGITS, LISTED } from './activity.ts';

interface ActivityForm {
  readonly records: TableWith<'block_height' | 'rune_id' | 'address' | 'page_position' | 'page_bytes' | 'in_page'>;
  readonly blocks: PackedBlocks;
  readonly limits: Pick<WorkLimits, 'keptRecords' | 'sortedAtOnce'>;
  /** Maximum number of entries in a document. */
  readonly page: number;
  readonly open: OpenLevel<'activity'>;
}

/** Writes the levels that changed since the last build, which had the levels `before`. Returns all levels. */
export async function writeActivity(
  plans: readonly LevelPlan[],
  before: readonly PlacedLevel[],
  form: ActivityForm,
  store: Store,
): Promise<PlacedLevel[]> {
  const levels = await makeLevels<PlacedLevel>(plans, before, async (plan) => {
    const begin = await bytesBelow(plan.first, form.blocks, store);
    const to = form.open('activity', plan);
    const lists = new PagedLists(to, form.page);
    let [upper, lower, position] = [-1, -1, -1];
    for await (const chunk of sortedRows(await rowsOf(plan, begin, form.records, store), form.limits, store)) {
      await yieldNow();
      const [uppers = NONE, lowers = NONE, positions = NONE, lengths = NONE, records = NONE] = COLUMNS.map((_, i) => readDoubles(chunk, i));
      for (const [row, record] of records.entries()) {
        if (uppers[row] !== upper || lowers[row] !== lower) {
          [upper, lower] = [uppers[row] ?? 0, lowers[row] ?? 0];
          lists.list(upper.toString(16).padStart(UPPER_DIGITS, '0') + lower.toString(16).padStart(KEY_DIGITS - UPPER_DIGITS, '0'));
        }
        const isFirst = lists.entry();
        // Names the page only if the entry before it is in another page.
        if (isFirst || positions[row] !== position) {
          position = positions[row] ?? 0;
          lists.number(position, false);
          lists.number(lengths[row] ?? 0, false);
        }
        lists.number(record, true);
      }
    }
    lists.finish();
    const level = await to.finish(plan);
    return level && { ...level, begin };
  });
  // Blocks below a kept level may have changed.
  return Promise.all(levels.map(async (level) => ({ ...level, begin: await bytesBelow(level.first, form.blocks, store) })));
}

/**
 * Returns the SQL expression of the text that identifies a list. `text` is a text of LISTED (activity.ts) that has the
 * names of columns in place of the rune id and the address.
 */
function textOf(text: string): string {
  const columns = ['rune_id', 'address'];
  return text
    .split(/(:)/)
    .map((part) => (columns.includes(part) ? part : literal(part)))
    .join(' || ');
}

/** Returns the size of the pages of all blocks below a height, in bytes. */
const bytesBelow = (height: number, blocks: PackedBlocks, store: Store): Promise<number> =>
  store.number(`SELECT coalesce(sum(packed), 0)::BIGINT AS number FROM ${blocks} WHERE block_height < ${height}`);

/** All blocks, with the sizes of their pages in the archive. */
type PackedBlocks = TableWith<'block_height' | 'packed'>;

/** Columns of a sorted row. The first two are the key of the list. */
const COLUMNS = ['upper', 'lower', '"position"', 'length', 'in_page'];

const NONE = new Float64Array();

/** Memory that DuckDB needs to sort the row of a pointer, in bytes: about twice the size of the row's columns. */
const SORTED_BYTES = 128;

/** Number of hex digits of a key in the column `upper`; the others are in `lower`. Numbers sort faster than texts. */
const UPPER_DIGITS = 12;

/** Returns the rows of a level, with COLUMNS. The rows of a list begin with the newest record. */
async function rowsOf({ first, last }: LevelRange, begin: number, records: ActivityForm['records'], store: Store) {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const page = `block_height AS height, page_position - ${begin} AS "position", page_bytes::INTEGER AS length, in_page::INTEGER AS in_page`;
  const listed = (text: string) =>
    `SELECT sha256(${textOf(text)}) AS hash, ${page} FROM ${records} WHERE ${isIn} AND ${text.includes('address') ? 'address IS NOT NULL' : 'true'}`;
  const lists = [LISTED.rune('rune_id'), LISTED.address('address'), LISTED.both('rune_id', 'address')];
  const digits = [`left(hash, ${UPPER_DIGITS})`, `substr(hash, ${UPPER_DIGITS + 1}, ${KEY_DIGITS - UPPER_DIGITS})`];
  const rows = `SELECT ('0x' || ${digits[0]})::UBIGINT AS upper, ('0x' || ${digits[1]})::UINTEGER AS lower, * EXCLUDE (hash)
    FROM (${lists.map(listed).join(' UNION ALL ')})`;
  const count = await store.number(`SELECT count(*) AS number FROM ${records} WHERE ${isIn}`);
  return {
    ...{ rows, most: `${lists.length * count}`, key: 'upper', within: 'lower, height DESC, "position", in_page', rowBytes: SORTED_BYTES },
    select: COLUMNS.map((name) => `${name}::DOUBLE`).join(', '),
  };
}

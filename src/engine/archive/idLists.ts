/** Writes the lists of transaction ids and block hashes of an archive (format/ids.ts). */
import { isWithin } from '../../duckdb/blockRanges.ts';
import { readDoubles } from '../../duckdb/columns.ts';
import { sortedRows, type UnsortedRows } from '../../duckdb/sortedRows.ts';
import type { Store } from '../../duckdb/store.ts';
import { columns, type Table } from '../../duckdb/table.ts';
import { ID_PAGE, KEY_DIGITS, parseIds } from '../../format/ids.ts';
import { type DocumentLevel, hasAny, type LevelRange, levelRanges } from '../../format/levels.ts';
import { lengthIn } from '../../format/pagedList.ts';
import { countCrossing } from '../../limits.ts';
import { yieldNow } from '../../yieldNow.ts';
import { type ArchiveSources, filledLevels } from './listedRecords.ts';
import { makeLevels, type OpenLevel } from './makeLevels.ts';
import { HEX_END, PagedLists } from './pagedLists.ts';
import type { ArchivedBlocks } from './segmentWriter.ts';
import { documentsOf, type StoredArchive } from './storedArchive.ts';

/** Writes the levels that changed since the last build. Returns all levels, the lowest first. */
export async function writeIds(
  { tip, replaced, limits }: Pick<ArchivedBlocks, 'tip' | 'replaced' | 'limits'>,
  { state, changes }: Pick<ArchiveSources, 'state' | 'changes'>,
  old: StoredArchive | undefined,
  open: OpenLevel<'ids'>,
  store: Store,
): Promise<DocumentLevel[]> {
  const before = old?.root.ids ?? [];
  const ranges = levelRanges(tip, limits.tableLevels);
  if (ranges.length > limits.tableLevels.steps.length) countCrossing('tableLevels');
  const isSame = (range: LevelRange) => before.some(({ first, last }) => first === range.first && last === range.last);
  const plans = ranges.map((range) => ({ ...range, isKept: isSame(range) && !hasAny(replaced, range) }));
  return makeLevels(await filledLevels(plans, state, store), before, async (range) => {
    const isKept = (height: number) => height >= range.first && height <= range.last && !replaced.has(height);
    const overlapping = before.filter(({ first, last }) => first <= range.last && last >= range.first);
    const kept = await store.append('kept_ids', IDS, old === undefined ? [] : idsOf(old, overlapping, isKept));
    const writer = open('ids', range);
    const lists = new PagedLists(writer, ID_PAGE);
    let current = -1;
    for await (const chunk of sortedRows(idRows(range, changes, kept), limits, store)) {
      await yieldNow();
      const [keys = NONE, heights = NONE, firsts = NONE, counts = NONE] = COLUMNS.map((_, i) => readDoubles(chunk, i));
      for (const [row, key] of keys.entries()) {
        if (key !== current) lists.hexList(Math.floor(key / HEX_END), key % HEX_END);
        current = key;
        lists.entry();
        lists.number(heights[row] ?? 0, false);
        lists.number(firsts[row] ?? 0, false);
        lists.number(counts[row] ?? 0, true);
      }
    }
    lists.finish();
    await store.run(`DROP TABLE ${kept}`);
    return writer.finish(range);
  });
}

const NONE = new Float64Array();

/** Ids as numbers: the key, and the values of an entry (IdEntry). */
const IDS = columns('key DOUBLE, height DOUBLE, first DOUBLE, count DOUBLE');
const COLUMNS = Object.keys(IDS).map((name) => `"${name}"`);

/** Memory that DuckDB needs to sort an entry, in bytes. */
const ROW_BYTES = 96;

/** Selects the entries of written blocks and of their transactions in a range, and those of blocks that are kept. */
function idRows(range: LevelRange, { transactions, written }: ArchiveSources['changes'], kept: Table): UnsortedRows {
  const select = (cells: readonly string[]) => `SELECT ${COLUMNS.map((name, i) => `(${cells[i]})::DOUBLE AS ${name}`).join(', ')}`;
  const keyOf = (id: string) => `('0x' || right(${id}, ${KEY_DIGITS}))::UBIGINT`;
  return {
    rows: [
      `${select([keyOf('tx_id'), 'block_height', '"first"', 'records'])} FROM ${transactions} WHERE ${isWithin(range)}`,
      `${select([keyOf('block_hash'), 'block_height', '0', '0'])} FROM ${written} WHERE ${isWithin(range)}`,
      `${select(COLUMNS)} FROM ${kept}`,
    ],
    ...{ key: '"key"', hashEnd: 16 ** KEY_DIGITS, within: 'height, "first", "count"', rowBytes: ROW_BYTES },
  };
}

/** Yields the entries of levels of the last build for whose heights `isKept` returns true. */
function* idsOf(old: StoredArchive, levels: readonly DocumentLevel[], isKept: (height: number) => boolean): Generator<number[]> {
  // The head of a list with pages has only their number of entries.
  for (const level of levels)
    for (const { key, values } of documentsOf(old, level))
      for (const { height, first, count } of lengthIn(values) === undefined ? parseIds(values) : [])
        if (isKept(height)) yield [Number.parseInt(key.slice(0, KEY_DIGITS), 16), height, first, count];
}

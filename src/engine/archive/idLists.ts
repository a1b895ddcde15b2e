/** Writes the lists of transaction ids and block hashes of an archive (format/ids.ts). */
import { readDoubles } from '../../duckdb/columns.ts';
import { sortedRows } from '../../duckdb/sortedRows.ts';
import type { Store } from '../../duckdb/store.ts';
import { ID_PAGE, KEY_DIGITS, parseIds } from '../../format/ids.ts';
import { type DocumentLevel, type LevelRange, levelRanges } from '../../format/levels.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import { yieldNow } from '../../yieldNow.ts';
import { mergeByKey, type StoredDocument } from './documentWriter.ts';
import { type ArchiveSources, hasAny } from './listedRecords.ts';
import type { OpenLevel } from './makeLevels.ts';
import { PagedLists, storedLists } from './pagedLists.ts';
import type { ArchivedBlocks } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Writes the levels that changed since the last build. Returns all levels, the lowest first. */
export async function writeIds(
  { tip, replaced, limits }: Pick<ArchivedBlocks, 'tip' | 'replaced' | 'limits'>,
  { changes }: Pick<ArchiveSources, 'changes'>,
  old: StoredArchive | undefined,
  open: OpenLevel<'ids'>,
  store: Store,
): Promise<DocumentLevel[]> {
  const before = old?.root.ids ?? [];
  const ranges = levelRanges(tip, limits.tableLevels);
  if (ranges.length > limits.tableLevels.steps.length) countCrossing('tableLevels');
  const levels: DocumentLevel[] = [];
  for (const range of ranges) {
    const same = before.find(({ first, last }) => first === range.first && last === range.last);
    if (same !== undefined && !hasAny(replaced, range)) {
      levels.push(same);
      continue;
    }
    const isKept = (height: number) => height >= range.first && height <= range.last && !replaced.has(height);
    const kept = before.filter((level) => old !== undefined && level.first <= range.last && level.last >= range.first);
    const writer = open('ids', range);
    const lists = new PagedLists(writer, ID_PAGE);
    const rows = newLists(range, changes, limits, store);
    const all =
      old === undefined || kept.length === 0 ? rows : mergeByKey([rows, ...kept.map((level) => keptLists(old, level, isKept))], join);
    for await (const { key, values } of all) {
      lists.list(key);
      for (const value of values) lists.text(value);
    }
    lists.finish();
    const level = await writer.finish(range);
    if (level !== undefined) levels.push(level);
  }
  return levels;
}

/** Joins lists with the same key. Entries are in the order of the chain. */
function join(same: readonly StoredDocument[], key: string): StoredDocument {
  const values = same.flatMap((list) => list.values);
  const entries = parseIds(values).map((entry, i) => ({ ...entry, text: values[i] ?? '' }));
  entries.sort((a, b) => a.height - b.height || a.first - b.first || a.count - b.count);
  return { key, values: entries.map(({ text }) => text) };
}

/** Memory that DuckDB needs to sort an entry, in bytes. */
const ROW_BYTES = 96;

/** Yields the lists of written blocks and of their transactions, ascending by key. */
async function* newLists(
  { first, last }: LevelRange,
  { transactions, written }: ArchiveSources['changes'],
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): AsyncGenerator<StoredDocument> {
  const isInRange = `block_height BETWEEN ${first} AND ${last}`;
  const keyOf = (id: string) => `('0x' || right(${id}, ${KEY_DIGITS}))::UBIGINT::DOUBLE`;
  const row = (id: string, first: string, count: string) =>
    `SELECT ${keyOf(id)} AS key, block_height::DOUBLE AS height, (${first})::DOUBLE AS first, (${count})::DOUBLE AS count`;
  const ids = {
    rows: [
      `${row('tx_id', 'first', 'records')} FROM ${transactions} WHERE ${isInRange}`,
      `${row('block_hash', '0', '0')} FROM ${written} WHERE ${isInRange}`,
    ],
    ...{ key: 'key', hashEnd: 16 ** KEY_DIGITS, within: 'height, first, count', rowBytes: ROW_BYTES },
  };
  let [current, values]: [number, string[]] = [-1, []];
  for await (const chunk of sortedRows(ids, limits, store)) {
    await yieldNow();
    const [keys = NONE, heights = NONE, firsts = NONE, counts = NONE] = [0, 1, 2, 3].map((column) => readDoubles(chunk, column));
    for (const [row, key] of keys.entries()) {
      if (key !== current) {
        if (values.length > 0) yield { key: textOf(current), values };
        [current, values] = [key, []];
      }
      values.push(`${heights[row]}.${firsts[row]}.${counts[row]}`);
    }
  }
  if (values.length > 0) yield { key: textOf(current), values };
}

const NONE = new Float64Array();

const textOf = (key: number): string => key.toString(16).padStart(KEY_DIGITS, '0');

/** Yields the lists of a level of the last build. Omits entries if `isKept` returns false for their height. */
function* keptLists(old: StoredArchive, level: DocumentLevel, isKept: (height: number) => boolean): Generator<StoredDocument> {
  for (const { key, values } of storedLists(old, level, ID_PAGE)) {
    const kept = values.filter((value) => isKept(Number(value.slice(0, value.indexOf('.')))));
    if (kept.length > 0) yield { key, values: kept };
  }
}

/**
 * Writes and reads sorted tables (format/sortedTable.ts). If the range or a block of a level
 * (format/levels.ts) changed, a build makes the level by merging levels of the last build and the entries of new
 * blocks. It keeps all other levels.
 */
import { readDoubles } from '../../duckdb/columns.ts';
import { sortedRows } from '../../duckdb/sortedRows.ts';
import type { Store } from '../../duckdb/store.ts';
import { type LevelRange, levelRanges } from '../../format/levels.ts';
import {
  countsFor,
  ENTRIES_PER_BLOCK,
  ENTRY_BYTES,
  FINEST_BITS,
  foldCounts,
  type Level,
  readEntry,
  type TableEntry,
  totalOf,
  writeEntry,
} from '../../format/sortedTable.ts';
import { countCrossing, type PublishedLimits, type WorkLimits } from '../../limits.ts';
import { yieldNow } from '../../yieldNow.ts';
import { Cursor } from './cursor.ts';
import { type ArchiveSources, hasAny } from './listedRecords.ts';
import { makeLevels } from './makeLevels.ts';
import type { ArchivedBlocks, PutFile } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';
import { BlockWriter, storedEntries } from './tableBlocks.ts';

export async function writeIds(
  blocks: ArchivedBlocks,
  { changes }: ArchiveSources,
  old: StoredArchive | undefined,
  put: PutFile,
  store: Store,
): Promise<Level[]> {
  const before = old?.root.ids ?? [];
  const ranges = levelRanges(blocks.tip, blocks.limits.tableLevels);
  if (ranges.length > blocks.limits.tableLevels.steps.length) countCrossing('tableLevels');
  const isKept = (range: LevelRange) =>
    !hasAny(blocks.replaced, range) && before.some(({ first, last }) => first === range.first && last === range.last);
  const plans = ranges.map((range) => ({ ...range, isKept: isKept(range) }));
  const levels = await makeLevels(plans, before, async (range) => {
    const writer = new TableWriter(blocks.objectSize, blocks.limits, put);
    const isOld = (height: number) => height >= range.first && height <= range.last && !blocks.replaced.has(height);
    const sources: Source[] = [new ChunkedEntries(entryChunks(newEntries(range, changes), blocks.limits, store))];
    for (const level of before) {
      if (old !== undefined && level.first <= range.last && level.last >= range.first)
        sources.push(new Cursor(keptEntries(old, level, isOld)));
    }
    await merge(sources, writer);
    return writer.finish(range);
  });
  return levels.sort((a, b) => totalOf(b) - totalOf(a) || a.first - b.first);
}

interface Source {
  /** Current entry of the sequence. Undefined after the last entry. */
  readonly current: TableEntry | undefined;
  /** Moves to the next entry. Returns a promise if the entry must first be read from DuckDB. */
  next(): Promise<void> | void;
  close(): Promise<void> | void;
}

const compareEntries = (a: TableEntry, b: TableEntry): number =>
  a.key - b.key || a.height - b.height || a.first - b.first || a.count - b.count;

async function merge(sources: readonly Source[], writer: TableWriter): Promise<void> {
  try {
    for (const source of sources) await source.next();
    for (let merged = 0; ; merged += 1) {
      if (merged % ENTRIES_PER_BLOCK === 0) await yieldNow();
      let least: Source | undefined;
      for (const source of sources) {
        if (source.current === undefined) continue;
        if (least?.current === undefined || compareEntries(source.current, least.current) < 0) least = source;
      }
      if (least?.current === undefined) return;
      writer.add(least.current);
      const waiting = least.next();
      if (waiting !== undefined) await waiting;
    }
  } finally {
    for (const source of sources) await source.close();
  }
}

/** Yields rows as sorted entries, in chunks. `rows` is SQL that selects key, height, first and count as DOUBLE. */
export async function* entryChunks(rows: string, limits: WorkLimits, store: Store): AsyncGenerator<TableEntry[]> {
  for await (const chunk of sortedRows({ rows, key: 'key', within: 'height, first, count', rowBytes: ROW_BYTES }, limits, store)) {
    const [keys = [], heights, firsts, counts] = [0, 1, 2, 3].map((column) => readDoubles(chunk, column));
    yield Array.from(keys, (key, i) => ({ key, height: heights?.[i] ?? 0, first: firsts?.[i] ?? 0, count: counts?.[i] ?? 0 }));
  }
}

/** Memory that DuckDB needs to sort an entry, in bytes. */
const ROW_BYTES = 96;

/** Returns SQL that selects the entries of written blocks (with count 0) and of their transactions. */
function newEntries({ first, last }: LevelRange, { transactions, written }: ArchiveSources['changes']): string {
  const isInRange = `block_height BETWEEN ${first} AND ${last}`;
  const keyOf = (id: string) => `('0x' || right(${id}, 12))::UBIGINT::DOUBLE`;
  return `SELECT ${keyOf('tx_id')} AS key, block_height::DOUBLE AS height, first::DOUBLE AS first, records::DOUBLE AS count
      FROM ${transactions} WHERE ${isInRange}
    UNION ALL SELECT ${keyOf('block_hash')}, block_height::DOUBLE, 0::DOUBLE, 0::DOUBLE FROM ${written} WHERE ${isInRange}`;
}

class ChunkedEntries implements Source {
  current: TableEntry | undefined;
  #chunk: readonly TableEntry[] = [];
  #at = 0;

  constructor(private readonly chunks: AsyncGenerator<TableEntry[]>) {}

  next(): Promise<void> | void {
    this.#at += 1;
    this.current = this.#chunk[this.#at];
    if (this.current === undefined) return this.#nextChunk();
  }

  async #nextChunk(): Promise<void> {
    const { value, done } = await this.chunks.next();
    this.#chunk = done === true ? [] : value;
    this.#at = 0;
    this.current = this.#chunk[0];
  }

  async close(): Promise<void> {
    await this.chunks.return(undefined);
  }
}

/** Yields the entries of a level of the last build. Omits entries if `isKept` returns false for their height. */
function* keptEntries(old: StoredArchive, level: Level, isKept: (height: number) => boolean): Generator<TableEntry> {
  for (const entry of entriesOf(old, level)) if (isKept(entry.height)) yield entry;
}

export const entriesOf = (old: StoredArchive, level: Level): Generator<TableEntry> => storedEntries(old, level, ENTRY_BYTES, readEntry);

const KEYS_PER_FINEST = 2 ** (48 - FINEST_BITS);

/**
 * Packs entries into files. The caller adds entries in ascending order. Fills unused entries of the last block with
 * 0xff.
 */
export class TableWriter {
  readonly #blocks: BlockWriter;
  readonly #counts = new Float64Array(2 ** FINEST_BITS);

  constructor(
    objectSize: number,
    private readonly limits: Pick<PublishedLimits, 'entriesPerCount'>,
    put: PutFile,
  ) {
    this.#blocks = new BlockWriter(objectSize, ENTRY_BYTES, 0xff, put);
  }

  add(entry: TableEntry): void {
    const at = this.#blocks.next();
    writeEntry(this.#blocks.view, at, entry);
    const finest = Math.floor(entry.key / KEYS_PER_FINEST);
    this.#counts[finest] = (this.#counts[finest] ?? 0) + 1;
  }

  /** Writes the last file. Returns undefined if no entry was added. */
  finish({ first, last }: LevelRange): Level | undefined {
    const { total } = this.#blocks;
    if (total === 0) return undefined;
    const counts = countsFor(total, this.limits.entriesPerCount);
    if (counts > 1) countCrossing('entriesPerCount');
    return { first, last, counts: foldCounts(this.#counts, counts), files: this.#blocks.finish() };
  }
}

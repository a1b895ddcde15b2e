/**
 * Writes the sorted tables of an archive (archive/sortedTable.ts). A level whose range or blocks changed is merged from
 * the levels of the last build and the entries of new blocks; the other levels stay as they are.
 */
import { crc32 } from '../archive/crc32.ts';
import { levelRanges } from '../archive/levels.ts';
import {
  BLOCK_BYTES,
  countsFor,
  ENTRIES_PER_BLOCK,
  ENTRY_BYTES,
  Entries,
  entriesPerFile,
  FINEST_BITS,
  fileBytes,
  foldCounts,
  type Level,
  type TableEntry,
  totalOf,
  UNUSED_HEIGHT,
  writeEntry,
} from '../archive/sortedTable.ts';
import { countCrossing, type PublishedLimits } from '../limits.ts';
import { readDoubles } from '../store/columns.ts';
import type { Store } from '../store/duckdb.ts';
import { yieldNow } from '../yieldNow.ts';
import type { ArchivedBlocks, PutFile } from './segments.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Writes the levels of the table of ids. Needs the tables `written` and `placed_transactions` (state/update.ts). */
export async function writeIds(blocks: ArchivedBlocks, old: StoredArchive | undefined, put: PutFile, store: Store): Promise<Level[]> {
  const before = old?.root.ids ?? [];
  const levels: Level[] = [];
  const ranges = levelRanges(blocks.tip, blocks.limits.tableLevels);
  if (ranges.length > blocks.limits.tableLevels.steps.length) countCrossing('tableLevels');
  for (const { first, last } of ranges) {
    const same = before.find((level) => level.first === first && level.last === last);
    const isChanged = [...blocks.replaced].some((height) => height >= first && height <= last);
    if (same !== undefined && !isChanged) {
      levels.push(same);
      continue;
    }
    const writer = new LevelWriter(blocks.objectSize, blocks.limits, put);
    const sources: Source[] = [new NewEntries(store, first, last)];
    for (const level of before) {
      if (old !== undefined && level.first <= last && level.last >= first) {
        sources.push(new OldEntries(old, level, (height) => height >= first && height <= last && !blocks.replaced.has(height)));
      }
    }
    await merge(sources, writer);
    const level = writer.finish(first, last);
    if (level !== undefined) levels.push(level);
  }
  return levels.sort((a, b) => totalOf(b) - totalOf(a) || a.first - b.first);
}

/** A sorted sequence of entries. */
interface Source {
  /** The current entry; undefined after the last. */
  readonly current: TableEntry | undefined;
  /** Moves to the next entry, which may have to be read first. */
  next(): Promise<void> | void;
  close(): Promise<void> | void;
}

const compareEntries = (a: TableEntry, b: TableEntry): number =>
  a.key - b.key || a.height - b.height || a.first - b.first || a.count - b.count;

/** Merges sequences into a level. */
async function merge(sources: readonly Source[], writer: LevelWriter): Promise<void> {
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

/** The entries of the blocks that this build wrote, sorted by DuckDB. */
class NewEntries implements Source {
  current: TableEntry | undefined;
  readonly #chunks: AsyncGenerator<readonly Float64Array[]>;
  #columns: readonly Float64Array[] = [];
  #row = 0;

  constructor(store: Store, first: number, last: number) {
    this.#chunks = chunksOf(store, first, last);
  }

  next(): Promise<void> | void {
    this.#row += 1;
    if (this.#row < (this.#columns[0]?.length ?? 0)) return this.#take();
    return this.#nextChunk();
  }

  async #nextChunk(): Promise<void> {
    const { value, done } = await this.#chunks.next();
    this.#columns = done === true ? [] : value;
    this.#row = 0;
    if (done === true) this.current = undefined;
    else this.#take();
  }

  #take(): void {
    const [key = 0, height = 0, first = 0, count = 0] = this.#columns.map((column) => column[this.#row] ?? 0);
    this.current = { key, height, first, count };
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

/** Yields columns of entries: key, height, first, count. The entry of a block has a count of 0. */
async function* chunksOf(store: Store, first: number, last: number): AsyncGenerator<readonly Float64Array[]> {
  const isInRange = `block_height BETWEEN ${first} AND ${last}`;
  const keyOf = (id: string) => `('0x' || right(${id}, 12))::UBIGINT::DOUBLE`;
  const sql = `SELECT ${keyOf('tx_id')} AS key, block_height::DOUBLE AS height, first::DOUBLE AS first, records::DOUBLE AS count
      FROM placed_transactions WHERE ${isInRange}
    UNION ALL SELECT ${keyOf('block_hash')}, block_height::DOUBLE, 0::DOUBLE, 0::DOUBLE FROM written WHERE ${isInRange}
    ORDER BY key, height, first, count`;
  for await (const chunk of store.stream(sql)) yield [0, 1, 2, 3].map((column) => readDoubles(chunk, column));
}

/** The entries of a level of the last build, without those of some heights. */
class OldEntries implements Source {
  current: TableEntry | undefined;
  readonly #entries: Generator<TableEntry>;
  readonly #isKept: (height: number) => boolean;

  constructor(old: StoredArchive, level: Level, isKept: (height: number) => boolean) {
    this.#entries = entriesOf(old, level);
    this.#isKept = isKept;
  }

  next(): void {
    do {
      const { value, done } = this.#entries.next();
      this.current = done === true ? undefined : value;
    } while (this.current !== undefined && !this.#isKept(this.current.height));
  }

  close(): void {
    this.#entries.return(undefined);
  }
}

/** Yields the entries of a level of the last build. */
export function* entriesOf(old: StoredArchive, level: Level): Generator<TableEntry> {
  let left = totalOf(level);
  for (const [index, file] of level.files.entries()) {
    const size = fileBytes(level, index, old.root.objectSize);
    for (const blocks of old.blocksOf(file, size)) {
      const entries = new Entries(blocks, 0);
      const count = Math.min(entries.end, left);
      for (let i = 0; i < count; i += 1) yield entries.at(i);
      left -= count;
    }
  }
}

const KEYS_PER_FINEST = 2 ** (48 - FINEST_BITS);

/** Packs ascending entries into files. */
export class LevelWriter {
  readonly #put: PutFile;
  readonly #limits: Pick<PublishedLimits, 'entriesPerCount'>;
  readonly #perFile: number;
  readonly #content: Buffer;
  readonly #view: DataView;
  readonly #counts = new Float64Array(2 ** FINEST_BITS);
  readonly #files: string[] = [];
  /** Entries in the current file. */
  #entries = 0;
  #total = 0;

  constructor(objectSize: number, limits: Pick<PublishedLimits, 'entriesPerCount'>, put: PutFile) {
    this.#put = put;
    this.#limits = limits;
    this.#perFile = entriesPerFile(objectSize);
    this.#content = Buffer.alloc((this.#perFile / ENTRIES_PER_BLOCK) * BLOCK_BYTES);
    this.#view = new DataView(this.#content.buffer, this.#content.byteOffset, this.#content.length);
  }

  add(entry: TableEntry): void {
    const block = Math.floor(this.#entries / ENTRIES_PER_BLOCK);
    writeEntry(this.#view, block * BLOCK_BYTES + (this.#entries % ENTRIES_PER_BLOCK) * ENTRY_BYTES, entry);
    const finest = Math.floor(entry.key / KEYS_PER_FINEST);
    this.#counts[finest] = (this.#counts[finest] ?? 0) + 1;
    this.#entries += 1;
    this.#total += 1;
    if (this.#entries === this.#perFile) this.#end();
  }

  /** Writes the current file. */
  #end(): void {
    const blocks = Math.ceil(this.#entries / ENTRIES_PER_BLOCK);
    for (let i = this.#entries; i < blocks * ENTRIES_PER_BLOCK; i += 1) {
      const at = (blocks - 1) * BLOCK_BYTES + (i % ENTRIES_PER_BLOCK) * ENTRY_BYTES;
      writeEntry(this.#view, at, { key: 2 ** 48 - 1, height: UNUSED_HEIGHT, first: 2 ** 32 - 1, count: 2 ** 24 - 1 });
    }
    for (let block = 0; block < blocks; block += 1) {
      const sum = (block + 1) * BLOCK_BYTES - 4;
      this.#view.setUint32(sum, crc32(this.#content, block * BLOCK_BYTES, sum));
    }
    this.#files.push(this.#put(this.#content.subarray(0, blocks * BLOCK_BYTES)));
    this.#entries = 0;
  }

  /** Writes the last file. Returns undefined without entries. */
  finish(first: number, last: number): Level | undefined {
    if (this.#entries > 0) this.#end();
    if (this.#total === 0) return undefined;
    const counts = countsFor(this.#total, this.#limits.entriesPerCount);
    if (counts > 1) countCrossing('entriesPerCount');
    return { first, last, counts: foldCounts(this.#counts, counts), files: this.#files };
  }
}

/**
 * Sorted tables in levels (levels.ts), as in an LSM tree: entries of 16 bytes, ascending by key. A lookup searches all
 * levels concurrently.
 *
 * A file is a sequence of blocks of 4,096 bytes. A block has 255 entries, 12 zero bytes, and the CRC-32 of all bytes
 * before. An entry has the fields of TableEntry: key (6 bytes), height (3), first (4) and count (3), all big-endian.
 * Unused entries at the end of the last file are filled with `ff`.
 *
 * Keys are parts of hashes, which are evenly distributed. So a reader can estimate the position of a key from the
 * counts of the level. One read of a few blocks almost always contains the key's entry. If someone makes many ids with
 * equal keys, lookups only need more reads.
 */
import { ArchiveError } from './archiveError.ts';
import { countBefore } from './binarySearch.ts';
import { crc32 } from './crc32.ts';
import type { LevelRange } from './levels.ts';

/**
 * An entry. In the table of ids, the fields are the height of the block, the index of the transaction's first record in
 * the block, and the transaction's number of records.
 */
export interface TableEntry {
  /** A number of 48 bits. */
  readonly key: number;
  readonly height: number;
  readonly first: number;
  readonly count: number;
}

/** A level of a sorted table. It has the entries that come from the blocks in its range. */
export interface Level extends LevelRange {
  /** Item i is the number of entries whose keys begin with the bits of i. The length is a power of two. */
  readonly counts: readonly number[];
  /** All files have the same number of entries, except the last. */
  readonly files: readonly string[];
}

export const ENTRY_BYTES = 16;
export const BLOCK_BYTES = 4096;
export const ENTRIES_PER_BLOCK = 255;
const KEY_BITS = 48;

/** Returns the number of entries of `entryBytes` bytes in a block. The last 4 bytes of a block are its checksum. */
export const entriesPerBlock = (entryBytes: number): number => Math.floor((BLOCK_BYTES - 4) / entryBytes);

/** Returns the offset in bytes of an entry in a sequence of blocks. `position` is the index of the entry. */
export function entryOffset(position: number, entryBytes: number): number {
  const perBlock = entriesPerBlock(entryBytes);
  return Math.floor(position / perBlock) * BLOCK_BYTES + (position % perBlock) * entryBytes;
}

/**
 * Returns the key of an id of 64 hex digits: its last 12 digits, because the first digits of block hashes are zeros.
 */
export const keyOf = (id: string): number => Number.parseInt(id.slice(-12), 16);

/** Returns the number of blocks in a file of a table. `objectSize` is the size of the file in bytes. */
export const blocksPerFile = (objectSize: number): number => Math.max(Math.floor(objectSize / BLOCK_BYTES), 1);

/**
 * Number of leading bits of the key by which a writer counts entries. Once the writer knows the total number of
 * entries, it adds up neighbouring counts until only as many are left as the level needs (`countsFor`).
 */
export const FINEST_BITS = 16;

/** Returns how many counts a level needs, so that a count is at most `perCount` on average. At most 2^FINEST_BITS. */
export function countsFor(entries: number, perCount: number): number {
  let counts = 1;
  while (entries > perCount * counts && counts < 2 ** FINEST_BITS) counts *= 2;
  return counts;
}

/** Adds up neighbouring counts of `finest`, so that `length` counts are left. `length` must be a power of two. */
export function foldCounts(finest: ArrayLike<number>, length: number): number[] {
  const counts = Array.from({ length }, () => 0);
  for (let i = 0; i < finest.length; i += 1) {
    const at = Math.floor((i * counts.length) / finest.length);
    counts[at] = (counts[at] ?? 0) + (finest[i] ?? 0);
  }
  return counts;
}

/** True if a level's counts are those that `foldCounts` returns for `finest`, and their number is a power of two. */
export const hasCounts = ({ counts }: Level, finest: ArrayLike<number>): boolean =>
  Number.isInteger(Math.log2(counts.length)) && JSON.stringify(counts) === JSON.stringify(foldCounts(finest, counts.length));

export const totalOf = ({ counts }: Level): number => counts.reduce((sum, count) => sum + count, 0);

/** Returns the size in bytes of the level's file with this index. `perBlock` is the number of entries in a block. */
export function fileBytes(level: Level, index: number, objectSize: number, perBlock = ENTRIES_PER_BLOCK): number {
  const each = blocksPerFile(objectSize);
  return Math.min(Math.ceil(totalOf(level) / perBlock) - index * each, each) * BLOCK_BYTES;
}

/** Reads and checks the blocks `from` to `to - 1` of a level. Blocks are numbered across all files of the level. */
export type ReadBlocks = (level: Level, from: number, to: number) => Promise<Uint8Array>;

/**
 * Margin on each side of an estimated position, divided by the square root of the number of entries. The standard
 * deviation is at most 0.5 times this root, so the margin is five standard deviations.
 */
const SPREAD = 2.5;

/** Finds all entries of a level with this key. Rejects when blocks cannot be read. */
export async function findEntries(level: Level, key: number, readBlocks: ReadBlocks): Promise<TableEntry[]> {
  const bits = Math.log2(level.counts.length);
  const width = 2 ** (KEY_BITS - bits);
  const bucket = Math.floor(key / width);
  // All entries before position `low` have a smaller key. All entries from `high` on have an equal or larger key.
  let low = 0;
  for (let i = 0; i < bucket; i += 1) low += level.counts[i] ?? 0;
  const end = low + (level.counts[bucket] ?? 0);
  let high = end;
  let [lowKey, highKey] = [bucket * width, (bucket + 1) * width];
  for (let round = 0; low < high; round += 1) {
    // If two estimates have not found the key, the keys are not evenly distributed. Then the next rounds halve the
    // range instead.
    const share = round < 2 ? (key - lowKey) / Math.max(highKey - lowKey, 1) : 0.5;
    const guess = low + share * (high - low);
    const margin = SPREAD * Math.sqrt(high - low) + 1;
    const from = Math.floor(Math.max(guess - margin, low) / ENTRIES_PER_BLOCK);
    const to = Math.ceil(Math.min(guess + margin, high) / ENTRIES_PER_BLOCK);
    const read = new Entries(await readBlocks(level, from, to), from * ENTRIES_PER_BLOCK);
    const [begin, stop] = [Math.max(read.begin, low), Math.min(read.end, high)];
    if (begin > low && read.keyAt(begin) >= key) {
      [high, highKey] = [begin, read.keyAt(begin)];
    } else if (stop < high && read.keyAt(stop - 1) < key) {
      [low, lowKey] = [stop, read.keyAt(stop - 1)];
    } else {
      const before = countBefore(stop - begin, (i) => read.keyAt(begin + i) < key);
      return entriesFrom(level, begin + before, end, key, read, readBlocks);
    }
  }
  return entriesFrom(level, high, end, key, undefined, readBlocks);
}

/** Returns the entries with this key. `at` is the position of the first such entry, if the level has the key. */
async function entriesFrom(
  level: Level,
  at: number,
  end: number,
  key: number,
  known: Entries | undefined,
  readBlocks: ReadBlocks,
): Promise<TableEntry[]> {
  const found: TableEntry[] = [];
  let entries = known;
  for (let i = at; i < end; i += 1) {
    if (entries === undefined || i >= entries.end) {
      const block = Math.floor(i / ENTRIES_PER_BLOCK);
      entries = new Entries(await readBlocks(level, block, block + 1), block * ENTRIES_PER_BLOCK);
    }
    const entry = entries.at(i);
    if (entry.key !== key) break;
    found.push(entry);
  }
  return found;
}

/** Reads the entries of consecutive blocks. */
export class Entries {
  readonly #view: DataView;
  /** Position of the blocks' first entry in the level. `end` is the position after their last entry. */
  readonly begin: number;
  readonly end: number;

  /** `blocks` must have passed `checkBlocks`. */
  constructor(blocks: Uint8Array, begin: number) {
    this.#view = new DataView(blocks.buffer, blocks.byteOffset, blocks.byteLength);
    this.begin = begin;
    this.end = begin + (blocks.length / BLOCK_BYTES) * ENTRIES_PER_BLOCK;
  }

  keyAt(position: number): number {
    return readKey(this.#view, entryOffset(position - this.begin, ENTRY_BYTES));
  }

  at(position: number): TableEntry {
    return readEntry(this.#view, entryOffset(position - this.begin, ENTRY_BYTES));
  }
}

/** Reads a key of 48 bits from a view. */
export const readKey = (view: DataView, at: number): number => view.getUint32(at) * 0x10000 + view.getUint16(at + 4);

export const readEntry = (view: DataView, at: number): TableEntry => ({
  key: readKey(view, at),
  height: view.getUint16(at + 6) * 0x100 + view.getUint8(at + 8),
  first: view.getUint32(at + 9),
  count: view.getUint16(at + 13) * 0x100 + view.getUint8(at + 15),
});

/** Throws an ArchiveError unless these bytes are complete blocks with the right checksums. */
export function checkBlocks(blocks: Uint8Array): void {
  const view = new DataView(blocks.buffer, blocks.byteOffset, blocks.byteLength);
  for (let at = 0; at < blocks.length; at += BLOCK_BYTES) {
    const sum = at + BLOCK_BYTES - 4;
    if (sum + 4 > blocks.length || view.getUint32(sum) !== crc32(blocks, at, sum))
      throw new ArchiveError('a table of the archive is damaged');
  }
}

export function writeEntry(view: DataView, at: number, { key, height, first, count }: TableEntry): void {
  view.setUint32(at, Math.floor(key / 0x10000));
  view.setUint16(at + 4, key % 0x10000);
  view.setUint16(at + 6, height >>> 8);
  view.setUint8(at + 8, height & 0xff);
  view.setUint32(at + 9, first);
  view.setUint16(at + 13, count >>> 8);
  view.setUint8(at + 15, count & 0xff);
}

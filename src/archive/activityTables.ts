/**
 * Activity by rune, by address, and by both, in an archive. A list is a row of pointers to the records in the pages of
 * the blocks, newest record first.
 *
 * Each level (levels.ts) has two tables. The **pointers** are grouped by list. The **heads** are a sorted
 * table (sortedTable.ts) that tells where a list begins among the pointers and how many it has. A list in several
 * levels continues in the level below, so its total is a sum, and the place of a window is arithmetic.
 *
 * The key of a list has 72 bits, because 48 would be too few for all pairs of a rune and an address. An entry of the heads
 * has the first 48 as `key` and the others as `height`.
 *
 * Pointers are blocks of 4,096 bytes: 341 pointers and the CRC-32 of these. A pointer has the position of a page (5 bytes),
 * its length (4), and the number of the record in the page (3), all big-endian. Positions count the bytes of all
 * pages from the first block of the level on, in ascending order of blocks. So they do not depend on how blocks are cut
 * into segments, nor on other levels, and no directory has to be read.
 */
import { ArchiveError } from './error.ts';
import { sha256, utf8Of } from './sha256.ts';
import { entryOffset, readKey, type TableEntry } from './sortedTable.ts';

/** The texts whose SHA-256 begins with the key. */
export const LISTED = {
  rune: (id: string) => `r:${id}`,
  address: (address: string) => `a:${address}`,
  both: (id: string, address: string) => `p:${id}:${address}`,
} as const;

/** A key of 72 bits: its first 48 and its last 24. */
export interface ListKey {
  readonly upper: number;
  readonly lower: number;
}

/** Returns the key of one of the texts. */
export function listKeyOf(text: string): ListKey {
  const view = new DataView(sha256(utf8Of(text)).buffer);
  return { upper: readKey(view, 0), lower: view.getUint16(6) * 0x100 + view.getUint8(8) };
}

/** Where a list, or a part of it, is among the pointers. */
export interface ListHead {
  readonly position: number;
  readonly count: number;
}

/** A longer list has several entries, one after another. */
export const MOST_IN_ENTRY = 2 ** 24 - 1;

/** Makes the entries of a list. */
export function headEntries({ upper, lower }: ListKey, { position, count }: ListHead): TableEntry[] {
  const entries: TableEntry[] = [];
  for (let done = 0; done < count; done += MOST_IN_ENTRY) {
    entries.push({ key: upper, height: lower, first: position + done, count: Math.min(count - done, MOST_IN_ENTRY) });
  }
  return entries;
}

/** Returns the entries with this key, of those that have its first 48 bits, as one head. Undefined without any. */
export function headOf(entries: readonly TableEntry[], { lower }: ListKey): ListHead | undefined {
  let head: ListHead | undefined;
  for (const { height, first, count } of entries) {
    if (height !== lower) continue;
    if (head !== undefined && first !== head.position + head.count) throw new ArchiveError('a list of the archive has gaps');
    head = { position: head?.position ?? first, count: (head?.count ?? 0) + count };
  }
  return head;
}

/** Where a record is. */
export interface Pointer {
  /** Position of its page, in bytes from the level's first page on. */
  readonly position: number;
  /** Size of the page in bytes. */
  readonly length: number;
  /** Its number in the page. */
  readonly record: number;
}

export const POINTER_BYTES = 12;
export const POINTERS_PER_BLOCK = 341;

/** Returns where a pointer is in its table, in bytes. */
export const pointerOffset = (position: number): number => entryOffset(position, POINTER_BYTES);

export const readPointer = (view: DataView, at: number): Pointer => ({
  position: view.getUint8(at) * 0x100000000 + view.getUint32(at + 1),
  length: view.getUint32(at + 5),
  record: view.getUint16(at + 9) * 0x100 + view.getUint8(at + 11),
});

export function writePointer(view: DataView, at: number, position: number, length: number, record: number): void {
  view.setUint8(at, Math.floor(position / 0x100000000));
  view.setUint32(at + 1, position % 0x100000000);
  view.setUint32(at + 5, length);
  view.setUint16(at + 9, record >>> 8);
  view.setUint8(at + 11, record & 0xff);
}

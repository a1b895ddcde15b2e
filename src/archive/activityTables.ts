/**
 * Lists of activity by rune, by address, and by both. A list is a sequence of pointers to records in the pages of
 * segments, newest record first.
 *
 * Each level (levels.ts) has two tables. The **pointers** are grouped by list. The **heads** are a sorted table
 * (sortedTable.ts): an entry has the position of a list in the pointers, and the list's number of records. A list
 * continues in the level below. So its total is the sum of its heads, and a reader can compute which pointers it needs.
 *
 * The key of a list has 72 bits, because 48 bits would be too few for all pairs of a rune and an address. An entry of
 * the heads has the first 48 bits as `key` and the other 24 as `height`.
 *
 * The pointers are in blocks of 4,096 bytes: 341 pointers and their CRC-32. A pointer has the position of a page
 * (5 bytes), the length of the page (4), and the index of the record in the page (3), all big-endian. A position counts
 * the bytes of pages from the level's first block on, by ascending height. So pointers do not depend on the cut into
 * segments or on other levels, and a reader needs no directory.
 */
import { ArchiveError } from './error.ts';
import { sha256, utf8Of } from './sha256.ts';
import { entryOffset, readKey, type TableEntry } from './sortedTable.ts';

/** The text of each kind of list. The SHA-256 of the text begins with the list's key. */
export const LISTED = {
  rune: (id: string) => `r:${id}`,
  address: (address: string) => `a:${address}`,
  both: (id: string, address: string) => `p:${id}:${address}`,
} as const;

/** A key of 72 bits: the first 48 as `upper`, the last 24 as `lower`. */
export interface ListKey {
  readonly upper: number;
  readonly lower: number;
}

/** Returns the key of the list with this text (see LISTED). */
export function listKeyOf(text: string): ListKey {
  const view = new DataView(sha256(utf8Of(text)).buffer);
  return { upper: readKey(view, 0), lower: view.getUint16(6) * 0x100 + view.getUint8(8) };
}

/** Position and length of a list, or of a part of a list, in the pointers of a level. */
export interface ListHead {
  readonly position: number;
  readonly count: number;
}

/** Most records in an entry of the heads. A longer list has several consecutive entries. */
export const MOST_IN_ENTRY = 2 ** 24 - 1;

/** Returns the entries of a list for the table of heads. */
export function headEntries({ upper, lower }: ListKey, { position, count }: ListHead): TableEntry[] {
  const entries: TableEntry[] = [];
  for (let done = 0; done < count; done += MOST_IN_ENTRY) {
    entries.push({ key: upper, height: lower, first: position + done, count: Math.min(count - done, MOST_IN_ENTRY) });
  }
  return entries;
}

/** Joins a list's entries into one head. `entries` share the key's first 48 bits. Undefined if none is of this list. */
export function headOf(entries: readonly TableEntry[], { lower }: ListKey): ListHead | undefined {
  let head: ListHead | undefined;
  for (const { height, first, count } of entries) {
    if (height !== lower) continue;
    if (head !== undefined && first !== head.position + head.count) throw new ArchiveError('the heads of a list of the archive have gaps');
    head = { position: head?.position ?? first, count: (head?.count ?? 0) + count };
  }
  return head;
}

/** The page of a record, and the record's index in the page. */
export interface Pointer {
  /** Position of the page, in bytes from the level's first page on. */
  readonly position: number;
  /** Size of the page in bytes. */
  readonly length: number;
  /** Index of the record in the page. */
  readonly record: number;
}

export const POINTER_BYTES = 12;
export const POINTERS_PER_BLOCK = 341;

/** Returns the offset of a pointer in its table, in bytes. */
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

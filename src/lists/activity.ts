/**
 * Lists of activity by rune, by address, and by a rune and an address. A list is a sequence of pointers to records in
 * the pages of segments, newest record first.
 *
 * Each level (format/levels.ts) has two tables. The **pointers** are grouped by list. The **heads** are a sorted table
 * (format/sortedTable.ts): an entry has the position of a list in the pointers, and the list's number of records in the
 * level. A list continues in the level below, so its total is the sum of these numbers. From them, a reader also
 * computes which pointers of which level a window needs.
 *
 * The key of a list has 72 bits: there are so many pairs of a rune and an address that some would share a key of 48
 * bits. An entry of the heads has the first 48 bits as `key` and the other 24 as `height`.
 *
 * The pointers are in blocks of 4,096 bytes: 341 pointers and their CRC-32. A pointer has the position of a page (5
 * bytes), the length of the page (4), and the index of the record in the page (3), all big-endian. A position is the
 * number of bytes of pages between the beginning of the level's first block and the page, by ascending height. So
 * pointers do not change when segments or other levels change, and a reader needs no directory of a segment.
 *
 * To read a window, a reader needs three rounds of requests: heads, pointers, pages.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { countBefore } from '../format/binarySearch.ts';
import type { ActivityLevel } from '../format/listTables.ts';
import { overlapping } from '../format/overlap.ts';
import type { Root } from '../format/root.ts';
import { sha256, utf8Of } from '../format/sha256.ts';
import { entryOffset, readKey, type TableEntry, totalOf } from '../format/sortedTable.ts';
import { groupBy } from '../groupBy.ts';
import { cutRecords, renderEnvelope } from '../pages/envelope.ts';
import type { FurtherRequest } from '../pages/optionalEndpoints.ts';
import type { Window } from '../pages/parseQuery.ts';
import { isNamed } from './etchings.ts';
import { lookUpName } from './nameTable.ts';

/** Texts that identify the lists of each kind. The key of a list is the first 72 bits of the SHA-256 of its text. */
export const LISTED = {
  rune: (id: string) => `r:${id}`,
  address: (address: string) => `a:${address}`,
  both: (id: string, address: string) => `p:${id}:${address}`,
} as const;

/** A key of 72 bits: `upper` is the first 48 bits, and `lower` the last 24. */
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

/** Maximum number of records in an entry of the heads. A longer list has several consecutive entries. */
export const MOST_IN_ENTRY = 2 ** 24 - 1;

export function headEntries({ upper, lower }: ListKey, { position, count }: ListHead): TableEntry[] {
  const entries: TableEntry[] = [];
  for (let done = 0; done < count; done += MOST_IN_ENTRY) {
    entries.push({ key: upper, height: lower, first: position + done, count: Math.min(count - done, MOST_IN_ENTRY) });
  }
  return entries;
}

/**
 * Finds the entries of a list among `entries`, which all have the same first 48 bits of the key, and joins them into
 * one head. Returns undefined if the list has no entry. Throws an ArchiveError if there are gaps between the parts of
 * the list.
 */
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
  /** Number of bytes from the beginning of the level's first page to the beginning of this page. */
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

/** A list of an archive: its part in each level that has records of the list, the newest level first. */
interface FoundList {
  readonly total: number;
  readonly parts: readonly { readonly level: ActivityLevel; readonly head: ListHead }[];
}

/** The text of a page, and the index of a record in the page. */
interface RecordInPage {
  readonly page: string;
  readonly record: number;
}

/**
 * Finds a list by its text (LISTED). An unknown list has no parts. Rejects with an ArchiveError for damaged files, and
 * if the archive has no lists of activity.
 */
export async function findList(archive: Archive, text: string): Promise<FoundList> {
  const key = listKeyOf(text);
  const { activity } = archive.root.lists ?? {};
  if (activity === undefined) throw new ArchiveError('the root of the archive has no lists of activity');
  const heads = await Promise.all(
    [...activity].reverse().map(async (level) => ({ level, head: headOf(await archive.find([level.heads], key.upper), key) })),
  );
  const parts = heads.flatMap(({ level, head }) => (head === undefined ? [] : [{ level, head }]));
  for (const { level, head } of parts) {
    if (head.position + head.count > totalOf(level.pointers))
      throw new ArchiveError('a list of the archive ends after the last pointer of its level');
  }
  return { total: parts.reduce((sum, { head }) => sum + head.count, 0), parts };
}

/** Reads the records `from` to `to - 1` of a list. `from` and `to` must not exceed the list's total. */
async function readRecords(archive: Archive, { parts }: FoundList, from: number, to: number): Promise<RecordInPage[]> {
  const wanted = overlapping(parts, ({ head }) => head.count, from, to).map(({ item: { level, head }, before }) =>
    readPointers(archive, level, head.position + Math.max(from - before, 0), head.position + Math.min(to - before, head.count)),
  );
  const pointers = (await Promise.all(wanted)).flat();
  const pages = await readPages(archive, pointers);
  return pointers.map(({ position, record }) => ({ page: pages.get(position) ?? '', record }));
}

/**
 * Reads the pointers `from` to `to - 1` of a level. Makes their positions relative to the archive's first page instead
 * of the level's first page.
 */
async function readPointers(archive: Archive, { begin, pointers }: ActivityLevel, from: number, to: number): Promise<Pointer[]> {
  const first = Math.floor(from / POINTERS_PER_BLOCK);
  const blocks = await archive.tableBlocks(pointers, first, Math.ceil(to / POINTERS_PER_BLOCK), POINTERS_PER_BLOCK);
  const view = new DataView(blocks.buffer, blocks.byteOffset, blocks.byteLength);
  return Array.from({ length: to - from }, (_, i) => {
    const { position, ...pointer } = readPointer(view, pointerOffset(from + i - first * POINTERS_PER_BLOCK));
    return { ...pointer, position: begin + position };
  });
}

/** Reads the pages of some pointers. Returns the text of each page by the page's position. */
async function readPages(archive: Archive, pointers: readonly Pointer[]): Promise<Map<number, string>> {
  const { segments } = archive.root;
  const begins = beginsOf(archive.root);
  const lengths = new Map(pointers.map(({ position, length }) => [position, length]));
  const places = [...lengths]
    .sort(([a], [b]) => a - b)
    .map(([position, length]) => {
      const at = countBefore(begins.length, (i) => (begins[i] ?? 0) <= position) - 1;
      const segment = segments[at];
      const offset = position - (begins[at] ?? 0);
      if (segment === undefined || offset + length > segment.bytes - segment.directory) {
        throw new ArchiveError('a pointer of the archive names a page that no segment has');
      }
      return { segment, position, offset, length };
    });
  const texts = await Promise.all(
    [...groupBy(places, ({ segment }) => segment)].map(async ([segment, some]) => {
      const pages = await archive.pagesAt(segment, some);
      return pages.map(({ text }, i) => [some[i]?.position ?? -1, text] as const);
    }),
  );
  return new Map(texts.flat());
}

const knownBegins = new WeakMap<Root, Float64Array>();

/** Returns the position of each segment's first page, which is the number of bytes of all pages in earlier segments. */
function beginsOf(root: Root): Float64Array {
  const known = knownBegins.get(root);
  if (known !== undefined) return known;
  const begins = new Float64Array(root.segments.length);
  let begin = 0;
  for (const [i, { bytes, directory }] of root.segments.entries()) {
    begins[i] = begin;
    begin += bytes - directory;
  }
  knownBegins.set(root, begins);
  return begins;
}

/** The rune id, the address, or both, that all records of a list must have. */
interface Subject {
  readonly rune: string | undefined;
  readonly address: string | undefined;
}

/** Returns the response body. Omits the key `rune` of records if the request names a rune. */
export async function answerActivity({ rune, address }: FurtherRequest, window: Window, archive: Archive): Promise<string> {
  const { offset, limit } = window;
  const isName = rune !== undefined && !rune.includes(':');
  const ids = isName ? (await lookUpName(archive, archive.root.lists?.names ?? [], rune)).map(({ id }) => id) : [rune];
  for (const id of ids) {
    const subject: Subject = { rune: id, address };
    const list = await findList(archive, textOf(subject));
    // The table of names may also return a rune whose name is different but has the same key (nameTable.ts). Only the
    // records show the name of the rune. So for a window past the end, reads the last record to compare the name.
    const from = isName ? Math.min(offset, Math.max(list.total - 1, 0)) : offset;
    const records = await recordsIn(list, from, Math.min(offset + limit, list.total), subject, archive);
    if (isName && !records.some((record) => isNamed((JSON.parse(record) as Parsed).rune, rune))) continue;
    const results = rune === undefined ? records : records.map((record) => `{${record.slice(runeEnd(record))}`);
    return renderEnvelope(window, list.total, offset < list.total ? results : []);
  }
  return renderEnvelope(window, 0, []);
}

function textOf({ rune, address }: Subject): string {
  if (rune === undefined) return LISTED.address(address ?? '');
  return address === undefined ? LISTED.rune(rune) : LISTED.both(rune, address);
}

/** Reads the records `from` to `to - 1` of a list. Rejects with an ArchiveError for a record of another subject. */
async function recordsIn(list: FoundList, from: number, to: number, subject: Subject, archive: Archive): Promise<string[]> {
  if (from >= to) return [];
  const found = await readRecords(archive, list, from, to);
  return found.map(({ page, record }) => {
    const { text, count } = cutRecords(page, record, 1);
    if (count !== 1 || !isOf(subject, text)) throw new ArchiveError('a list of the archive has a record of another rune or address');
    return text;
  });
}

interface Parsed {
  readonly rune: { readonly id: string; readonly number: number; readonly name: string };
  readonly address?: string;
}

function isOf({ rune, address }: Subject, record: string): boolean {
  const found = JSON.parse(record) as Parsed;
  if (rune !== undefined && found.rune.id !== rune) return false;
  // A host may decode each byte of a page as one character (pages/fileAccess.ts). The address in the record is then
  // decoded in the same way.
  return address === undefined || found.address === address || found.address === byteByByte(address);
}

/** Decodes each UTF-8 byte of a text as one character. */
const byteByByte = (text: string): string => Array.from(utf8Of(text), (byte) => String.fromCharCode(byte)).join('');

/** Matches the rune at the beginning of a record, up to the next key. */
const RUNE = /^\{"rune":\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\},/;

/** Returns the offset in a record's JSON at which the key after `rune` begins. */
function runeEnd(record: string): number {
  const [rune] = RUNE.exec(record) ?? [];
  if (rune === undefined) throw new ArchiveError('a record of the archive has no rune');
  return rune.length;
}

/**
 * Lists of activity by rune, by address, and by a rune and an address (format/pagedList.ts). An entry of a list is a pointer to a record in
 * the pages of segments, newest record first. Levels (format/levels.ts) continue each other, the newest first. A window usually takes three
 * rounds of requests: directories, heads with pages, pages of segments.
 *
 * A pointer is a text of three numbers, `position.length.index`: the position and the length of a page in bytes, and the index of the
 * record in the page. A pointer to the page of the pointer before it has only the index. A position is the number of bytes of pages between
 * the beginning of the level's first block and the page, by ascending height. So pointers do not change when segments or other levels
 * change, and a reader needs no directory of a segment.
 */
import { ArchiveError } from '../format/archiveError.ts';
import type { Archive } from '../format/archiveReader.ts';
import { countBefore } from '../format/binarySearch.ts';
import { damaged } from '../format/documents.ts';
import type { PlacedLevel } from '../format/listTables.ts';
import { findPagedList, type PagedList } from '../format/pagedList.ts';
import type { Root } from '../format/root.ts';
import { hexOf, sha256, utf8Of } from '../format/sha256.ts';
import { groupBy } from '../groupBy.ts';
import { cutRecords, renderEnvelope } from '../pages/envelope.ts';
import type { FurtherRequest } from '../pages/optionalEndpoints.ts';
import type { Window } from '../pages/parseQuery.ts';
import { isNamed, lookUpName } from './etchings.ts';

/**
 * Texts that identify the lists of each kind. The key of a list is the beginning of the SHA-256 of its text, because hashes are shorter
 * than addresses, and sorted hashes begin with the same digits.
 */
export const LISTED = {
  rune: (id: string) => `r:${id}`,
  address: (address: string) => `a:${address}`,
  both: (id: string, address: string) => `p:${id}:${address}`,
} as const;

/** Number of hex digits of a key. There are so many pairs of a rune and an address that some would share 12 digits. */
export const KEY_DIGITS = 18;

export const listKeyOf = (text: string): string => hexOf(sha256(utf8Of(text))).slice(0, KEY_DIGITS);

/** The page of a record, with its position in the pages of the archive and its length in bytes, and the record's index in the page. */
export interface Pointer {
  readonly position: number;
  readonly length: number;
  readonly record: number;
}

/** Parses the entries of a document of a level. Throws an ArchiveError for damaged entries. */
export function parsePointers(entries: readonly string[], { begin }: Pick<PlacedLevel, 'begin'>): Pointer[] {
  let [position, length]: [number, number] = [-1, 0];
  return entries.map((entry) => {
    const numbers = entry.split('.').map(Number);
    const record = numbers.at(-1) ?? -1;
    if (numbers.length > 1) [position = -1, length = 0] = numbers;
    const isPointer = numbers.length === 3 || numbers.length === 1;
    if (!isPointer || ![position, length, record].every((number) => Number.isSafeInteger(number) && number >= 0) || length === 0)
      throw damaged();
    return { position: begin + position, length, record };
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

/** Returns the position of each segment's first page. */
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
  const { activity } = archive.root.lists ?? {};
  const isName = rune !== undefined && !rune.includes(':');
  const ids = isName ? (await lookUpName(archive, rune)).map(({ id }) => id) : [rune];
  for (const id of ids) {
    const subject: Subject = { rune: id, address };
    if (activity === undefined) throw new ArchiveError('the root of the archive has no lists of activity');
    const list = await findPagedList(archive, [...activity].reverse(), listKeyOf(textOf(subject)), offset, parsePointers);
    // In wrong data, several runes have the same name, which only the records show. So for a window past the end, reads the last record.
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

/** Reads the records `from` to `to - 1`. `to` must not exceed the list's total. Rejects with an ArchiveError for another subject. */
async function recordsIn(list: PagedList<Pointer>, from: number, to: number, subject: Subject, archive: Archive): Promise<string[]> {
  if (from >= to) return [];
  const pointers = await list.read(from, to);
  const pages = await readPages(archive, pointers);
  return pointers.map(({ position, record }) => {
    const { text, count } = cutRecords(pages.get(position) ?? '', record, 1);
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
  if (address === undefined || found.address === address) return true;
  // A host may decode each byte of a page as one character (pages/fileAccess.ts), also of the address in the record.
  return found.address === Array.from(utf8Of(address), (byte) => String.fromCharCode(byte)).join('');
}

/** Matches the rune at the beginning of a record, up to the next key. */
const RUNE = /^\{"rune":\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\},/;

/** Returns the offset in a record's JSON at which the key after `rune` begins. */
function runeEnd(record: string): number {
  const [rune] = RUNE.exec(record) ?? [];
  if (rune === undefined) throw new ArchiveError('a record of the archive has no rune');
  return rune.length;
}

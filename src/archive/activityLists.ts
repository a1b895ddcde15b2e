/** Reads lists of activity from an archive. A window takes three rounds of reads: heads, pointers, pages. */
import { headOf, type ListHead, listKeyOf, POINTERS_PER_BLOCK, type Pointer, pointerOffset, readPointer } from './activityTables.ts';
import { countBefore } from './bisect.ts';
import type { Segment } from './directory.ts';
import { ArchiveError } from './error.ts';
import type { ActivityLevel } from './listTables.ts';
import { overlapping } from './overlap.ts';
import type { Archive } from './reader.ts';
import type { Root } from './root.ts';
import { totalOf } from './sortedTable.ts';

/** A list of an archive: its part in each level that has one, the newest level first. */
export interface FoundList {
  readonly total: number;
  readonly parts: readonly { readonly level: ActivityLevel; readonly head: ListHead }[];
}

/** The text of a page, and the index of a record in the page. */
export interface RecordInPage {
  readonly page: string;
  readonly record: number;
}

/** Finds a list by its text (LISTED). An unknown list has no parts. Rejects if the archive has no lists of activity. */
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
      throw new ArchiveError('a list of the archive exceeds the pointers of its level');
  }
  return { total: parts.reduce((sum, { head }) => sum + head.count, 0), parts };
}

/** Reads the records `from` to `to - 1` of a list. `from` and `to` must not exceed the list's total. */
export async function readRecords(archive: Archive, { parts }: FoundList, from: number, to: number): Promise<RecordInPage[]> {
  const wanted = overlapping(parts, ({ head }) => head.count, from, to).map(({ item: { level, head }, before }) =>
    readPointers(archive, level, head.position + Math.max(from - before, 0), head.position + Math.min(to - before, head.count)),
  );
  const pointers = (await Promise.all(wanted)).flat();
  const pages = await readPages(archive, pointers);
  return pointers.map(({ position, record }) => ({ page: pages.get(position) ?? '', record }));
}

/** Reads the pointers `from` to `to - 1` of a level. Returned positions count bytes from the archive's first page. */
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
  const bySegment = new Map<Segment, { position: number; offset: number; length: number }[]>();
  const lengths = new Map(pointers.map(({ position, length }) => [position, length]));
  for (const [position, length] of [...lengths].sort(([a], [b]) => a - b)) {
    const at = countBefore(begins.length, (i) => (begins[i] ?? 0) <= position) - 1;
    const segment = segments[at];
    const offset = position - (begins[at] ?? 0);
    if (segment === undefined || offset + length > segment.bytes - segment.directory) {
      throw new ArchiveError('a pointer of the archive names a page that no segment has');
    }
    const places = bySegment.get(segment);
    if (places === undefined) bySegment.set(segment, [{ position, offset, length }]);
    else places.push({ position, offset, length });
  }
  const texts = await Promise.all(
    [...bySegment].map(async ([segment, places]) => {
      const pages = await archive.pagesAt(segment, places);
      return pages.map(({ text }, i) => [places[i]?.position ?? -1, text] as const);
    }),
  );
  return new Map(texts.flat());
}

const knownBegins = new WeakMap<Root, Float64Array>();

/** Returns for each segment the position of its first page: the bytes of all pages in earlier segments. */
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

/** Writes segments (format/segmentDirectory.ts) from the pages of new blocks, and from compressed pages of the last build. */
import { cut, type Piece } from '../../format/cutSegments.ts';
import { hasAny } from '../../format/levels.ts';
import { type DirectoryEntry, renderEntry, type Segment } from '../../format/segmentDirectory.ts';
import type { Limits } from '../../limits.ts';
import { yieldNow } from '../../yieldNow.ts';
import { type SpooledBlock, SpoolReader } from '../render/blockSpool.ts';
import { gzipMember } from '../render/compress.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Stores a file of the archive, whose content is these parts. Returns its name. */
export type PutFile = (parts: readonly Uint8Array[]) => string;

/** Blocks of a new archive, and the settings that divide them into files. */
export interface ArchivedBlocks {
  /** Blocks that this build rendered, by height. */
  readonly spooled: ReadonlyMap<number, SpooledBlock>;
  /** Heights of rendered blocks, and of blocks that the mirror no longer has. */
  readonly replaced: ReadonlySet<number>;
  /** The highest block; -1 without blocks. */
  readonly tip: number;
  /** The lowest block; undefined if the levels of lists do not depend on it. */
  readonly lowest?: number | undefined;
  readonly objectSize: number;
  readonly limits: Limits;
}

/** A piece of a new segment: a block or a complete old segment, with a function that reads its pages. */
interface Source extends Piece {
  /** Segments of the last build that have exactly the pages of this piece. */
  readonly kept?: readonly Segment[];
  readonly read: () => { readonly pages: Uint8Array; readonly entries: readonly string[] };
}

/** Writes all segments that the last build does not have. Returns all segments, in ascending order. */
export async function writeSegments(blocks: ArchivedBlocks, old: StoredArchive | undefined, put: PutFile): Promise<Segment[]> {
  const spools = new SpoolReader();
  const segments: Segment[] = [];
  try {
    const pieces = [...newPieces(blocks, spools), ...(await oldPieces(blocks, old))].sort((a, b) => a.first - b.first);
    for (const { first, last, pieces: inside } of cut(pieces, blocks.tip, { objectSize: blocks.objectSize, ...blocks.limits })) {
      await yieldNow();
      const [only] = inside;
      if (inside.length === 1 && only?.kept !== undefined) {
        // Keeps the file. Only the range of heights of the segment may differ, by heights that have no blocks.
        for (const segment of only.kept) segments.push({ ...segment, first, last });
        continue;
      }
      const read = inside.map((piece) => piece.read());
      const pages = read.map((one) => one.pages);
      const entries = read.flatMap((one) => one.entries);
      if (lengthOf(pages) <= blocks.objectSize) segments.push(writeSegment({ first, last }, pages, entries, put));
      else for (const part of writeParts(first, Buffer.concat(pages), entries[0] ?? '', blocks.objectSize, put)) segments.push(part);
    }
    return segments;
  } finally {
    spools.remove();
  }
}

function newPieces({ spooled }: ArchivedBlocks, spools: SpoolReader): Source[] {
  return [...spooled].map(([height, { file, offset, bytes, entry }]) => ({
    first: height,
    last: height,
    bytes,
    read: () => {
      const content = spools.read(file, offset, bytes + entry);
      return { pages: content.subarray(0, bytes), entries: [content.toString('utf8', bytes)] };
    },
  }));
}

/** Returns the pieces of the last build: each segment without changed blocks, and each unchanged block of other segments. */
async function oldPieces({ replaced, tip }: ArchivedBlocks, old: StoredArchive | undefined): Promise<Source[]> {
  if (old === undefined) return [];
  const pieces: Source[] = [];
  const parts = new Map<number, [Segment, ...Segment[]]>();
  for (const segment of old.root.segments) {
    const { first, last, part } = segment;
    await yieldNow();
    const ofBlock = parts.get(first);
    if (part !== undefined && ofBlock !== undefined) ofBlock.push(segment);
    else if (part !== undefined) parts.set(first, [segment]);
    else if (last <= tip && !hasAny(replaced, segment)) pieces.push(wholeSegments([segment], old));
    else for (const piece of blocksOf(segment, replaced, old)) pieces.push(piece);
  }
  for (const [height, segments] of parts) if (!replaced.has(height)) pieces.push(wholeSegments(segments, old));
  return pieces;
}

/** Returns the piece of a segment, or of all segments of an unchanged block that fills several: a build keeps their files unread. */
const wholeSegments = (segments: readonly [Segment, ...Segment[]], old: StoredArchive): Source => ({
  first: segments[0].first,
  last: segments[0].last,
  bytes: segments.reduce((sum, { bytes, directory }) => sum + bytes - directory, 0),
  kept: segments,
  read: () => {
    const [segment] = segments;
    if (segments.length > 1) throw new Error(`block ${segment.first} is larger than a segment, so it cannot be joined with others`);
    const { pages, blocks } = old.segment(segment);
    return { pages, entries: [...blocks.values()].map(renderEntry) };
  },
});

function* blocksOf(segment: Segment, replaced: ReadonlySet<number>, old: StoredArchive): Generator<Source> {
  for (const block of old.segment(segment).blocks.values()) {
    if (replaced.has(block.height)) continue;
    const begin = block.offsets[0] ?? 0;
    const bytes = block.pages.reduce((sum, length) => sum + length, 0);
    // Reads the segment again when its pages are needed. Otherwise a build that changes every segment would keep all segments in memory.
    const read = () => ({ pages: old.segment(segment).pages.subarray(begin, begin + bytes), entries: [renderEntry(block)] });
    yield { first: block.height, last: block.height, bytes, read };
  }
}

function writeSegment(
  range: Pick<Segment, 'first' | 'last'> & Partial<Pick<Segment, 'part'>>,
  pages: readonly Uint8Array[],
  entries: readonly string[],
  put: PutFile,
): Segment {
  const directory = gzipMember(Buffer.from(`${entries.join('\n')}\n`));
  const { first, last, part } = range;
  const file = { file: put([...pages, directory]), bytes: lengthOf(pages) + directory.length, directory: directory.length };
  return { first, last, ...file, ...(part === undefined ? {} : { part }) };
}

const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** Writes a block that is larger than `objectSize` as several segments, each with complete pages. */
function writeParts(height: number, pages: Uint8Array, line: string, objectSize: number, put: PutFile): Segment[] {
  const entry = JSON.parse(line) as DirectoryEntry;
  const segments: Segment[] = [];
  let [page, offset] = [0, 0];
  while (page < entry.pages.length) {
    let [end, bytes] = [page, 0];
    while (end < entry.pages.length && (end === page || bytes + (entry.pages[end] ?? 0) <= objectSize)) {
      bytes += entry.pages[end] ?? 0;
      end += 1;
    }
    const counts = Object.entries(entry.operations).map(([operation, all]) => [operation, all.slice(page, end)] as const);
    const here = counts.filter(([, all]) => all.some((count) => count > 0));
    const operations = Object.fromEntries(here.map(([operation, all]) => [operation, all.reduce((sum, count) => sum + count, 0)]));
    const part = renderEntry({ ...entry, page, pages: entry.pages.slice(page, end), operations: Object.fromEntries(here) });
    const isWhole = page === 0 && end === entry.pages.length;
    const range = { first: height, last: height, ...(isWhole ? {} : { part: { page, operations } }) };
    segments.push(writeSegment(range, [pages.subarray(offset, offset + bytes)], [part], put));
    page = end;
    offset += bytes;
  }
  return segments;
}

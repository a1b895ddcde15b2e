/**
 * The directory of a segment has the lengths of the pages, and the operations in the pages. It is a gzip member at the end of the segment,
 * with a line of JSON for each block:
 *
 *     {"height":840000,"hash":"0000…","records":95,"pages":[2210,1312],"operations":{"mint":[60,31],"send":[0,4]}}
 *
 * `pages` has the lengths of the block's pages in bytes. In the segment, the pages follow each other in the same order, without gaps.
 * `operations` has the number of records of each operation in each page. If the pages of a block are in several segments, each of these
 * segments has a line for the block. `page` is then the index of the segment's first page in the block.
 */
import { ArchiveError } from './archiveError.ts';

/** A file with the pages of the blocks from height `first` to `last`, and at its end the directory of these pages. */
export interface Segment {
  readonly first: number;
  readonly last: number;
  readonly file: string;
  /** Size of the file's content in bytes, without its digests (tails.ts). */
  readonly bytes: number;
  /** Size of the directory, in bytes. */
  readonly directory: number;
  /** If the pages of a block are in several segments: the index of this segment's first page, and its records by operation. */
  readonly part?: { readonly page: number; readonly operations: Readonly<Record<string, number>> };
}

/** A line of a directory. */
export interface DirectoryEntry {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  /** Number of records of the block, in all of its segments. */
  readonly records: number;
  /** Omitted if it is 0. */
  readonly page?: number;
  readonly pages: readonly number[];
  /** Operations without records are omitted. */
  readonly operations: Readonly<Record<string, readonly number[]>>;
}

export interface PlacedBlock extends DirectoryEntry {
  /** Offset of each page in the segment, in bytes. */
  readonly offsets: readonly number[];
}

/** Renders a block's line of the directory, without a line feed. */
export const renderEntry = ({ height, hash, records, page = 0, pages, operations }: DirectoryEntry): string =>
  JSON.stringify({ height, hash, records, ...(page === 0 ? {} : { page }), pages, operations });

/** Parses a directory into blocks by height. Throws an ArchiveError if the lengths of the pages do not add up to the segment's. */
export function parseDirectory(text: string, segment: Segment): Map<number, PlacedBlock> {
  const blocks = new Map<number, PlacedBlock>();
  let offset = 0;
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const entry = entryOf(line);
    const offsets: number[] = [];
    for (const length of entry.pages) {
      offsets.push(offset);
      offset += length;
    }
    blocks.set(entry.height, { ...entry, offsets });
  }
  if (offset !== segment.bytes - segment.directory) throw new ArchiveError(`the directory of ${segment.file} is damaged`);
  return blocks;
}

function entryOf(line: string): DirectoryEntry {
  try {
    const entry = JSON.parse(line) as DirectoryEntry;
    if (Array.isArray(entry.pages) && typeof entry.operations === 'object') return entry;
  } catch {
    // Text that is not JSON causes the same error as JSON that is not an entry.
  }
  throw new ArchiveError('a directory of the archive is damaged');
}

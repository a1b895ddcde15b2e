/**
 * The directory of a segment: where the pages of its blocks are, and what they have. It is JSON, one line for each
 * block, compressed as a gzip member at the end of the segment:
 *
 *     {"height":840000,"hash":"0000…","records":95,"pages":[2210,1312],"operations":{"mint":[60,31],"send":[0,4]}}
 *
 * `pages` are the lengths of the pages in bytes. They follow each other in the segment, in the order of the blocks.
 * `operations` counts the records of each operation in each page. A block whose pages are in several files has a line
 * in each, with the number of its first page there as `page`.
 */
import { ArchiveError } from './error.ts';

/** A file with the pages of the blocks from height `first` to `last`, and the directory of these pages at its end. */
export interface Segment {
  readonly first: number;
  readonly last: number;
  readonly file: string;
  /** Size of the file, in bytes. */
  readonly bytes: number;
  /** Size of the directory, in bytes. */
  readonly directory: number;
  /**
   * Set when the pages of a block are in several files: the number of the file's first page in the block, and how many
   * records of each operation the file has.
   */
  readonly part?: { readonly page: number; readonly operations: Readonly<Record<string, number>> };
}

/** A line of a directory. */
export interface DirectoryEntry {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  /** Number of records of the whole block. */
  readonly records: number;
  /** Number of the first page that this segment has; left out for 0. */
  readonly page?: number;
  /** Length of each page that this segment has, in bytes. */
  readonly pages: readonly number[];
  /** For each operation that occurs here, its number of records in each page. */
  readonly operations: Readonly<Record<string, readonly number[]>>;
}

/** A block in a segment. */
export interface PlacedBlock extends DirectoryEntry {
  /** Where each page begins in the segment, in bytes. */
  readonly offsets: readonly number[];
}

/** Makes the line of a block, without a line feed. */
export const renderEntry = ({ height, hash, records, page = 0, pages, operations }: DirectoryEntry): string =>
  JSON.stringify({ height, hash, records, ...(page === 0 ? {} : { page }), pages, operations });

/** Parses the directory of a segment, by height. Throws an ArchiveError if it does not fit the segment. */
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

/** The directory's checksum was compared, so only a wrong program can make a line of another form. */
function entryOf(line: string): DirectoryEntry {
  try {
    const entry = JSON.parse(line) as DirectoryEntry;
    if (Array.isArray(entry.pages) && typeof entry.operations === 'object') return entry;
  } catch {
    // Not JSON: the same error as for a wrong form.
  }
  throw new ArchiveError('a directory of the archive is damaged');
}

/**
 * The root of an archive, which names all other files. docs/archive.md describes the format.
 *
 * Every file is named by its content and never changes. The manifest names the root, and the root names the files of
 * segments, tables and documents. So all files that a reader finds from a root belong to the same build, even while the
 * host replaces files.
 */
import { ArchiveError } from './archiveError.ts';
import { checkFormat, FORMAT, FormatError } from './formatVersion.ts';
import { areLevelSteps, type LevelSteps } from './levels.ts';
import type { ListTables } from './listTables.ts';
import type { Segment } from './segmentDirectory.ts';
import type { Level } from './sortedTable.ts';

export interface Root extends LevelSteps {
  /** Maximum number of records in a page. */
  readonly pageSize: number;
  /** Maximum size of a segment's pages, and of a table's file, in bytes. A segment with a single page may be larger. */
  readonly objectSize: number;
  /** Maximum number of heights in a segment. */
  readonly segmentBlocks: number;
  /** Ascending by height and page. */
  readonly segments: readonly Segment[];
  /**
   * Levels of the table of transaction ids and block hashes (sortedTable.ts). The level with the most entries comes
   * first.
   */
  readonly ids: readonly Level[];
  /** Undefined in a mirror without etchings and other lists. */
  readonly lists?: ListTables | undefined;
}

/** Maximum height. Tables store a height in 3 bytes, and mark unused entries with the largest 3-byte value. */
export const HIGHEST_HEIGHT = 2 ** 24 - 2;

/** Maximum size of an inflated page, directory or root, in bytes. It limits the memory that a damaged file can use. */
export const MOST_INFLATED = 64 * 1024 * 1024;

/**
 * Maximum of `objectSize`. Builds hold a file in memory while they make it, and pulls hold a few files.
 */
export const MOST_OBJECT = 64 * 1024 * 1024;

/** Maximum size of a file, in bytes. A file also has a directory and a tail, or a single page that is longer. */
export const MOST_FILE = 2 * MOST_OBJECT;

export function renderRoot({ pageSize, objectSize, segmentBlocks, ...tables }: Root): string {
  const { steps, unsettled, segments, ids, lists } = tables;
  const sizes = { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks };
  return `${JSON.stringify({ format: FORMAT, ...sizes, steps, unsettled, segments, ids, lists })}\n`;
}

/**
 * Parses a root. Checks only the format version, the maximum sizes and the steps of levels. Damage elsewhere is
 * unlikely, because a root is named by its SHA-256. Readers check names and offsets before each read. Throws a
 * FormatError for a root of another version, and an ArchiveError for invalid text.
 */
export function parseRoot(text: string): Root {
  try {
    const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
    checkFormat(fields['format']);
    const { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks, ...tables } = fields;
    const { steps, unsettled, segments, ids, lists } = tables;
    const further = lists === undefined ? {} : { lists };
    const areRight = [pageSize, objectSize, segmentBlocks].every(isCount) && [fields, lists ?? fields].every(areLevelSteps);
    if (areRight && Array.isArray(segments) && Array.isArray(ids))
      return { pageSize, objectSize, segmentBlocks, steps, unsettled, segments, ids, ...further } as unknown as Root;
  } catch (error) {
    if (error instanceof FormatError) throw error;
    // Text that is not JSON causes the same error as JSON that is not a root.
  }
  throw new ArchiveError('the root of the archive is damaged');
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;

/**
 * The root of an archive: names all of its files. docs/archive.md describes the format.
 *
 * Every file of an archive is named by its content and never changes. The manifest names the root, the root names the
 * segments and the files of the sorted tables. So a reader that has a root sees a single build, while the host
 * replaces files.
 */
import type { Segment } from './directory.ts';
import { ArchiveError } from './error.ts';
import { checkFormat, FORMAT, FormatError } from './format.ts';
import { areLevelSteps, type LevelSteps } from './levels.ts';
import type { ListTables } from './listTables.ts';
import type { Level } from './sortedTable.ts';

export interface Root extends LevelSteps {
  /** Records in a page. */
  readonly pageSize: number;
  /** Most bytes of pages in a segment, and size of a table's files. A single page may be larger. */
  readonly objectSize: number;
  /** Most heights of a segment. */
  readonly segmentBlocks: number;
  /** Ascending by height and page. */
  readonly segments: readonly Segment[];
  /** The table of transaction ids and block hashes. The level with the most entries comes first. */
  readonly ids: readonly Level[];
  /** Undefined in a mirror without etchings and other lists. */
  readonly lists?: ListTables | undefined;
}

/** Heights have 3 bytes in the tables, and the largest value marks unused space. */
export const HIGHEST_HEIGHT = 2 ** 24 - 2;

/** The largest size of an inflated page, directory or root, in bytes. Limits the memory that a damaged file can take. */
export const MOST_INFLATED = 64 * 1024 * 1024;

/** Makes the text of a root. */
export function renderRoot({ pageSize, objectSize, segmentBlocks, ...tables }: Root): string {
  const { steps, unsettled, segments, ids, lists } = tables;
  const sizes = { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks };
  return `${JSON.stringify({ format: FORMAT, ...sizes, steps, unsettled, segments, ids, lists })}\n`;
}

/**
 * Parses a root. A root is named by its content, so only its format version and the numbers by which readers count are
 * checked. Files and positions are checked where they are read. Throws a FormatError for a root of another version, and
 * an ArchiveError for any other text.
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
    // Not JSON: the same error as for a wrong form.
  }
  throw new ArchiveError('the root of the archive is damaged');
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;

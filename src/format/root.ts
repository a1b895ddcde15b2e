/**
 * The root of an archive (docs/files.md), which the manifest names and which names all other files. Files are named by their content and
 * never change, so all files that a reader finds from a root belong to the same build, even while the host replaces files.
 */
import { ArchiveError } from './archiveError.ts';
import { checkFormat, FORMAT, FormatError } from './formatVersion.ts';
import { areLevelSteps, type DocumentLevel, type LevelRange, type LevelSteps, levelRanges, MOST_LEVELS } from './levels.ts';
import type { ListTables } from './listTables.ts';
import type { Segment } from './segmentDirectory.ts';

export interface Root extends LevelSteps {
  /** Maximum number of records in a page. */
  readonly pageSize: number;
  /** Maximum size of a segment's pages, and of a table's file, in bytes. A segment with a single page may be larger. */
  readonly objectSize: number;
  /** Maximum number of heights in a segment. */
  readonly segmentBlocks: number;
  /** Ascending by height and page. */
  readonly segments: readonly Segment[];
  /** Transaction ids and block hashes (ids.ts), ascending by height. The root has the directories. */
  readonly ids: readonly DocumentLevel[];
  /** Undefined in a mirror without etchings and other lists. */
  readonly lists?: ListTables | undefined;
}

/** Maximum height. */
export const HIGHEST_HEIGHT = 2 ** 24 - 2;

/** Maximum size of an inflated page, directory or root, in bytes. It limits the memory that a damaged file can use. */
export const MOST_INFLATED = 64 * 1024 * 1024;

/** Size of a gzip member that may inflate to any size, and how many times its size a larger member may inflate to. */
const [FREE_BYTES, MOST_RATIO] = [1024 * 1024, 250];

/**
 * Returns the maximum size of an inflated member in bytes, because a small file must not fill the memory of a reader. Records and documents
 * have ids and amounts, so they inflate to at most some fifty times their size.
 */
export const mostInflated = (member: Uint8Array): number => Math.min(MOST_INFLATED, FREE_BYTES + member.length * MOST_RATIO);

/** Maximum number of objects and lists in a root, which need more memory than their text. */
const MOST_OBJECTS = 2_000_000;

/** Maximum of `objectSize`. Builds hold a file in memory while they make it, and pulls hold a few files. */
export const MOST_OBJECT = 64 * 1024 * 1024;

/** Maximum size of a file, in bytes. A file also has a directory and a tail, or a single page that is longer. */
export const MOST_FILE = 2 * MOST_OBJECT;

export function renderRoot({ pageSize, objectSize, segmentBlocks, ...tables }: Root): string {
  const { steps, unsettled, segments, ids, lists } = tables;
  const sizes = { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks };
  return `${JSON.stringify({ format: FORMAT, ...sizes, steps, unsettled, segments, ids, lists })}\n`;
}

/**
 * Parses a root, which may come from a stranger. Checks the format version, the maximum sizes, and the number and ranges of levels, because
 * readers search all levels at once. Readers check names and offsets before each read. Throws a FormatError for a root of another version,
 * and an ArchiveError for invalid text.
 */
export function parseRoot(text: string): Root {
  try {
    if (text.length > 2 * MOST_OBJECTS && (text.match(/[[{]/g)?.length ?? 0) > MOST_OBJECTS) throw new Error('too many objects');
    const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
    checkFormat(fields['format']);
    const { page_size: pageSize, object_size: objectSize, segment_blocks: segmentBlocks, ...tables } = fields;
    const { steps, unsettled, segments, ids, lists } = tables;
    const further = lists === undefined ? {} : { lists };
    const areRight = [pageSize, objectSize, segmentBlocks].every(isCount) && [fields, lists ?? fields].every(areLevelSteps);
    const haveLevels = areRight && areApart(ids as DocumentLevel[]) && (lists === undefined || haveRanges(lists as ListTables));
    if (haveLevels && Array.isArray(segments) && Array.isArray(ids))
      return { pageSize, objectSize, segmentBlocks, steps, unsettled, segments, ids, ...further } as unknown as Root;
  } catch (error) {
    if (error instanceof FormatError) throw error;
    // Text that is not JSON causes the same error as JSON that is not a root.
  }
  throw new ArchiveError('the root of the archive is damaged');
}

/** True if there are no more levels than steps allow, and no two of them overlap. Throws for anything but levels. */
function areApart(levels: readonly LevelRange[]): boolean {
  const sorted = [...levels].sort((a, b) => a.first - b.first);
  return levels.length <= MOST_LEVELS && sorted.every(({ first, last }, i) => first <= last && first > (sorted[i - 1]?.last ?? -1));
}

/** True if the ranges of all levels follow from the tip. Levels without content are left out. Throws for anything but lists. */
function haveRanges(lists: ListTables): boolean {
  const { tip, lowest, names, activity, etchings, balances, outputs } = lists;
  const isHeight = (height: number) => Number.isSafeInteger(height) && height >= 0 && height <= HIGHEST_HEIGHT;
  if (![tip + 1, lowest ?? 0].every(isHeight)) return false;
  // The levels of etchings begin at height 0.
  const [ofBlocks, ofEtchings] = [levelRanges(tip, lists, lowest), levelRanges(tip, lists)];
  const follow = (levels: readonly LevelRange[] = [], ranges: readonly LevelRange[]) =>
    areApart(levels) && levels.every(({ first, last }) => ranges.some((range) => range.first === first && range.last === last));
  const byBlocks = [activity, balances?.addresses, balances?.holders, outputs?.outputs, outputs?.addresses, outputs?.starts];
  return (
    [etchings?.levels, etchings?.runes].every((levels) => follow(levels, ofEtchings)) &&
    byBlocks.every((levels) => follow(levels, ofBlocks)) &&
    follow(names, etchings === undefined ? ofBlocks : ofEtchings)
  );
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;

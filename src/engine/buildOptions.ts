/**
 * Options of a build.
 */
import type { BlockRange } from '../input/blockRange.ts';
import type { Limits } from '../limits.ts';
import type { Site } from '../pages/mirrorOptions.ts';

/** The last blocks of the input, by height. Blocks without records count. */
export interface LastBlocks {
  readonly last: number;
}

export interface BuildOptions {
  /** Folders, files and globs; relative paths start at the working directory. Empty for the default (chooseInput.ts). */
  readonly inputs: readonly string[];
  /** Heights to build; undefined for all. */
  readonly blocks: BlockRange | LastBlocks | undefined;
  /** Output folder. */
  readonly out: string;
  /** Cache folder. */
  readonly cache: string;
  readonly site: Site;
  /** Size that the files of layout `archive` do not exceed, in bytes. */
  readonly objectSize: number;
  /** Add activity by rune and by address, and every other list that the data allows. */
  readonly lists: boolean;
  /** Public URL of the mirror, normalised by parseSiteUrl. */
  readonly siteUrl: string | undefined;
  /** Memory of the process, such as `1GB`. */
  readonly memoryLimit: string;
  /** Number of DuckDB threads, and the limit of writer threads. */
  readonly threads: number;
  /** Ignore the cache: build everything and compare every file. */
  readonly full: boolean;
  /** Load, render and count, but write nothing. */
  readonly dryRun: boolean;
  /** Sync all pages to the disk before the build is marked as finished. */
  readonly sync: boolean;
  readonly limits: Limits;
}

/** True for a build that writes pages into an archive: all of layout `archive`, or for lists of activity in layout `files`. */
export const archivesPages = ({ site, lists }: BuildOptions): boolean => site.layout === 'archive' || lists;

/** Options of a build whose heights are known. */
export type FixedOptions = BuildOptions & { readonly blocks: BlockRange | undefined };

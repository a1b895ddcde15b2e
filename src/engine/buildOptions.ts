import type { BlockRange } from '../input/blocksRead.ts';
import type { Limits } from '../limits.ts';
import type { SigningKey } from '../output/signingKeys.ts';
import type { Site } from '../pages/mirrorOptions.ts';

/** The last blocks of the input. `last` is a number of heights, including heights without records. */
export interface LastBlocks {
  readonly last: number;
}

export interface BuildOptions {
  /** Folders, files and globs, relative to the working directory. Empty for the default (chooseInput.ts). */
  readonly inputs: readonly string[];
  /** Heights to build; undefined for all. */
  readonly blocks: BlockRange | LastBlocks | undefined;
  readonly out: string;
  readonly cache: string;
  readonly site: Site;
  /** Maximum size of a file of the archive, in bytes. */
  readonly objectSize: number;
  /** True to add activity by rune and by address, and every other list for which the data is complete. */
  readonly lists: boolean;
  /** Public URL of the mirror, in the normal form of parseSiteUrl. */
  readonly siteUrl: string | undefined;
  /** Memory limit of the process, such as `1GB`. */
  readonly memoryLimit: string;
  /** Number of DuckDB threads, and maximum number of writer threads. */
  readonly threads: number;
  /** True to ignore the cache: build everything and compare every file. */
  readonly full: boolean;
  /** True to replace a mirror in the other dialect. */
  readonly changesDialect: boolean;
  /** True to load, render and count, but write nothing. */
  readonly dryRun: boolean;
  /** True to sync all pages to the disk before the build is marked as finished. */
  readonly sync: boolean;
  readonly limits: Limits;
  /** Keys that sign the manifest. Only in layout `archive`. */
  readonly keys: readonly SigningKey[];
  /** Clock of signatures. */
  readonly clock: () => Date;
}

/** True for a build that writes pages into an archive: in layout `archive`, or with lists in layout `files`. */
export const archivesPages = ({ site, lists }: BuildOptions): boolean => site.layout === 'archive' || lists;

/** Options after `LastBlocks` was replaced by a range of heights. */
export type FixedOptions = BuildOptions & { readonly blocks: BlockRange | undefined };

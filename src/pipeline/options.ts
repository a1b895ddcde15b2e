/**
 * What one build is asked to do.
 */
import type { BlockRange } from '../input/blockRange.ts';
import type { Site } from '../pages/lists.ts';

export interface BuildOptions {
  /** Folders, files and globs, relative to the working directory. */
  readonly inputs: readonly string[];
  /** Only blocks of these heights; all when undefined. */
  readonly blocks: BlockRange | undefined;
  readonly out: string;
  readonly cache: string;
  readonly site: Site;
  /** The public address of the mirror, as parseSiteUrl makes it, if it is known. */
  readonly siteUrl: string | undefined;
  /** What a build should stay near, e.g. `1GB`. */
  readonly memoryLimit: string;
  readonly threads: number;
  /** Build everything, whatever the cache says, and compare every file. */
  readonly full: boolean;
  readonly dryRun: boolean;
  /** Wait until all pages are on the disk before the build is marked as finished. */
  readonly sync: boolean;
}

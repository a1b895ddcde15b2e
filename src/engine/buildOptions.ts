/** Options of a build, and data that its steps share. */
import type { Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError } from '../errors.ts';
import type { BlockRange } from '../input/blocksRead.ts';
import type { Loaded } from '../input/loadInput.ts';
import type { Limits } from '../limits.ts';
import type { OutputState } from '../output/outputFolder.ts';
import type { SigningKey } from '../output/signingKeys.ts';
import type { Site } from '../pages/mirrorOptions.ts';
import type { StoredArchive } from './archive/storedArchive.ts';
import type { WriterPool } from './render/writerPool.ts';
import type { State } from './state/state.ts';

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

export interface OpenBuild {
  readonly options: FixedOptions;
  readonly output: OutputState;
  readonly store: Store;
  readonly state: State;
  /** The archive of the last build, from which an incremental build copies unchanged parts. */
  readonly old: StoredArchive | undefined;
  readonly pool: WriterPool;
  readonly progress: Progress;
  readonly scratch: string;
  readonly log: Log;
}

/** Throws a BuildError when an input file changed after it was checked. */
export function throwIfChanged(loaded: Loaded, { dryRun }: BuildOptions): void {
  const changed = loaded.changedFile();
  if (changed === undefined) return;
  throw new BuildError(
    `${changed} changed while the build was reading it; ${dryRun ? 'nothing was written' : 'the output is not finished'}`,
    ['Build again when nothing writes to the input.'],
  );
}

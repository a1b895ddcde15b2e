/** Data that the steps of a build share. */
import type { Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError } from '../errors.ts';
import type { Loaded } from '../input/loadInput.ts';
import type { OutputState } from '../output/outputFolder.ts';
import type { StoredArchive } from './archive/storedArchive.ts';
import type { FixedOptions } from './buildOptions.ts';
import type { WriterPool } from './render/writerPool.ts';
import type { State } from './state/state.ts';

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
export function throwIfChanged(loaded: Loaded): void {
  const changed = loaded.changedFile();
  if (changed === undefined) return;
  throw new BuildError(`${changed} changed while the build was reading it; the output is not finished`, [
    'Build again when nothing writes to the input.',
  ]);
}

/** A store in a temporary folder. The checks of a verification follow each other, so they share one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Store } from '../store/duckdb.ts';

/** A store, and a folder for temporary files, which DuckDB uses too. */
export interface ScratchStore {
  readonly store: Store;
  readonly folder: string;
}

/** Part of the store's usual memory. A verification has counts of all runes beside it. */
const PART = 0.83;

/** Calls `work` with a store that is empty, and removes it afterwards. `memoryLimit` is a size such as `1GB`. */
export async function withScratchStore<T>(memoryLimit: string, work: (scratch: ScratchStore) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rune-activity-mirror-'));
  let store: Store | undefined;
  try {
    store = await Store.open({ memoryLimit, part: PART, threads: availableParallelism(), scratch: folder });
    return await work({ store, folder });
  } finally {
    store?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

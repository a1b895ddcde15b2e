/** A store in a temporary folder. The checks of a verification follow each other, so they share one. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { bytesOf } from '../contract/memorySize.ts';
import { Store } from '../store/duckdb.ts';

/** A store, and a folder for temporary files, which DuckDB uses too. */
export interface ScratchStore {
  readonly store: Store;
  readonly folder: string;
}

/** Part of the memory for the store. A verification reads pages in Node.js, and keeps more there than a build does. */
const STORE_SHARE = 0.7;

/** Calls `work` with a store that is empty, and removes it afterwards. `memoryLimit` is a size such as `1GB`. */
export async function withScratchStore<T>(memoryLimit: string, work: (scratch: ScratchStore) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'rune-activity-mirror-'));
  let store: Store | undefined;
  try {
    const share = `${Math.floor((STORE_SHARE * (bytesOf(memoryLimit) ?? 0)) / 1000)}KB`;
    store = await Store.open({ memoryLimit: share, threads: availableParallelism(), scratch: folder });
    return await work({ store, folder });
  } finally {
    store?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

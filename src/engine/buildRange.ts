/** Finds the range of heights of a build (`--blocks`). */
import { MAX_INTEGER } from '../contract/fields.ts';
import { withScratch } from '../disk/scratchFolder.ts';
import { Store } from '../duckdb/store.ts';
import type { BlockRange } from '../input/blockRange.ts';
import { ReadProgress } from '../input/inputProgress.ts';
import { checkInput, readInput } from '../input/loadInput.ts';
import type { BuildOptions } from './buildOptions.ts';
import { State } from './state/state.ts';

/**
 * Returns the heights of a build; undefined for all. For the last N blocks, reads and checks the complete input,
 * because any file may have the highest block. Rejects when the input is invalid.
 */
export async function rangeOf(options: BuildOptions): Promise<BlockRange | undefined> {
  const { blocks } = options;
  if (blocks === undefined || 'from' in blocks) return blocks;
  return { from: Math.max(0, (await tipOf(options)) - blocks.last + 1), to: MAX_INTEGER };
}

/** Returns the height of the highest block that has records or that a source read without finding records. */
function tipOf({ inputs, out, cache, memoryLimit, threads, limits }: BuildOptions): Promise<number> {
  return withScratch(cache, async (scratch) => {
    const store = await Store.open({ memoryLimit, threads, scratch });
    let state: State | undefined;
    try {
      state = await State.attach(store, undefined, {}, undefined);
      const reading = { known: state.known, range: undefined, limits, scratch, store, keepsRows: false, progress: new ReadProgress() };
      const { sources, blocks } = await checkInput(await readInput(inputs, [out, cache], reading), []);
      const tip = await store.number(`SELECT coalesce(max(block_height), 0) AS number FROM ${blocks}`);
      const read = sources.flatMap(({ blocks }) => blocks.map(([, last]) => last));
      return read.reduce((most, last) => Math.max(most, last), tip);
    } finally {
      await state?.close();
      store.close();
    }
  });
}

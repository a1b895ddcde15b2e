/** Chooses the input and the heights of a build. Refuses to build other data or another dialect into a mirror. */
import { existsSync } from 'node:fs';
import type { Log } from '../cli/log.ts';
import { MAX_INTEGER } from '../contract/fields.ts';
import { withScratch } from '../disk/scratchFolder.ts';
import { Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import type { BlockRange } from '../input/blocksRead.ts';
import { hasDataFiles, noData } from '../input/discover.ts';
import { ReadProgress } from '../input/inputProgress.ts';
import { loadInput } from '../input/loadInput.ts';
import { IS_INVENTED } from '../input/sampleCommand.ts';
import type { OutputState } from '../output/outputFolder.ts';
import { DIALECTS, dialectName } from '../pages/mirrorOptions.ts';
import type { BuildOptions } from './buildOptions.ts';
import { State } from './state/state.ts';

const INPUT = 'input';
/** Folder that every pull creates, even a pull that fails. */
const PULLED = 'input/pulled';
const SAMPLE = 'sample';

/**
 * Returns the options with the default inputs filled in. Without `--input` and `--blocks`, a build reads the sample until `input` has data
 * files or a pull has run. A mirror of the sample gets all lists, so that it answers every request of the API.
 */
export function withInput<Options extends BuildOptions>(options: Options, log: Log): Options {
  const { inputs, blocks } = options;
  if (inputs.length > 0) return options;
  const usesSample = blocks === undefined && !existsSync(PULLED) && !hasDataFiles(INPUT) && hasDataFiles(SAMPLE);
  if (!usesSample && !existsSync(INPUT)) throw noData(`input not found: ${INPUT}`);
  if (!usesSample) return { ...options, inputs: [INPUT] };
  log.notice(
    `${INPUT} has no data files, so this build uses the sample in ${SAMPLE} (invented runes, for trying the program) and builds all lists`,
  );
  return { ...options, inputs: [SAMPLE], lists: true };
}

/**
 * Throws an InputError if a mirror of other data would get blocks of the sample, or if its clients expect the other dialect, which has
 * another form of hashes.
 */
export async function refuseOther(
  { out, site, changesDialect }: BuildOptions,
  { hasData, dialect }: OutputState,
  blocks: TableWith<'block_hash'>,
  store: Store,
): Promise<void> {
  if (!hasData) return;
  if ((await store.number(`SELECT count(*) AS number FROM ${blocks} WHERE ${IS_INVENTED}`)) > 0)
    throw new InputError(
      `the input has invented blocks of the sample, and the output ${out} is a mirror of other data; nothing was changed`,
      ['Give your data with --input, or build the sample into another folder with --out.'],
    );
  const before = DIALECTS.find((one) => one === dialect);
  if (changesDialect || before === undefined || before === site.dialect) return;
  const [is, isNot] = [dialectName(before), dialectName(site.dialect)];
  throw new InputError(`the output ${out} is a mirror in dialect ${is}, not ${isNot}; nothing was changed`, [
    `Build with --dialect ${is}, or with --change-dialect if all clients of this mirror expect the other one. An upload needs a new folder then.`,
  ]);
}

/**
 * Returns the heights of a build (`--blocks`); undefined for all. For the last N blocks, reads and checks the complete input, because any
 * file may have the highest block. Rejects when the input is invalid.
 */
export async function rangeOf(options: BuildOptions): Promise<BlockRange | undefined> {
  const { blocks, inputs, out, cache, memoryLimit, threads, limits } = options;
  if (blocks === undefined || 'from' in blocks) return blocks;
  return withScratch(cache, async (scratch) => {
    const store = await Store.open({ memoryLimit, threads, scratch });
    try {
      const state = await State.attach(store, undefined, {}, undefined);
      const reading = { known: state, range: undefined, limits, scratch, store, keepsRows: false, progress: new ReadProgress() };
      const loaded = await loadInput(inputs, [out, cache], reading, async () => []);
      const highest = await store.number(`SELECT coalesce(max(block_height), 0) AS number FROM ${loaded.blocks}`);
      // A source may have read higher blocks, which have no records.
      const tip = loaded.sources.flatMap((source) => source.blocks).reduce((most, [, last]) => Math.max(most, last), highest);
      return { from: Math.max(0, tip - blocks.last + 1), to: MAX_INTEGER };
    } finally {
      store.close();
    }
  });
}

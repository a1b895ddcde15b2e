/**
 * Loads the input into the store: finds files, selects the changed ones, recognises and reads them, checks every
 * record, converts records to canonical form, and compares records with each other. Writes only to the scratch folder.
 * Invalid input throws an InputError.
 *
 * Unchanged files are not read again, unless they share a block with a changed file. A block is always assembled and
 * compared from all files that have it.
 */
import { InputError } from '../errors.ts';
import { int, type Store } from '../store/duckdb.ts';
import { describeRange } from './blockRange.ts';
import { type BlocksRead, readBlocksFiles } from './blocksRead.ts';
import { type FileRow, type Selection, selectFiles } from './changedFiles.ts';
import { checkConsistency, type FindKnown, findKnownInState, type Holdings } from './consistency.ts';
import { discover, type InputFile } from './discover.ts';
import { InputReader } from './inputReader.ts';
import { makeActivity } from './makeActivity.ts';
import type { Reading } from './rawSource.ts';
import { checkRunesAreKnown, SHIFT_DECIMALS } from './runes.ts';

export interface Loaded extends Holdings, BlocksRead {
  readonly files: number;
  readonly filesRead: number;
  /** True when a block may have changed. */
  readonly hasChanges: boolean;
  /** True when the state's list of files must be updated, even if only names or times changed. */
  readonly isListStale: boolean;
  /** Numbers of the files whose rows in the state are outdated: removed, changed, or read by this build. */
  readonly outdated: readonly number[];
  /** True when the table `runes` exists, made from all runes files. */
  readonly hasRunes: boolean;
  fileRows(): Promise<readonly (FileRow & { readonly form: string })[]>;
  readonly notices: readonly string[];
  /** Returns the name of a Parquet file that changed after its records were checked. Rendering reads these files again. */
  changedFile(): string | undefined;
}

/**
 * Loads the input that changed since the last build, which the views `known_...` describe (state/state.ts). Loads all
 * input when they are empty. `own` are the build's own folders, which are never input.
 *
 * Creates the relations that store/tables.ts says this folder makes.
 */
export async function loadInput(
  inputs: readonly string[],
  own: readonly string[],
  reading: Reading,
  findKnown: FindKnown = findKnownInState,
): Promise<Loaded> {
  const files = await discover(inputs, own);
  const selection = await selectFiles(files, reading.store);
  const reader = new InputReader(selection.unchanged, reading);
  try {
    const loaded = await load(files, selection, reader, findKnown);
    throwIfChanged(selection, reader);
    await selection.checkDigests();
    return loaded;
  } catch (error) {
    // If a file changed while it was read, that is the likely cause of any other error.
    throwIfChanged(selection, reader);
    throw error;
  }
}

function throwIfChanged(selection: Selection, reader: InputReader): void {
  const changed = selection.changed(reader.read.values());
  if (changed === undefined) return;
  throw new InputError(`${changed.name} changed while it was read`, ['Build again when no other program writes to the input.']);
}

async function load(files: readonly InputFile[], selection: Selection, reader: InputReader, findKnown: FindKnown): Promise<Loaded> {
  const { range, store } = reader.reading;
  await store.run(SHIFT_DECIMALS);
  await reader.readTouched(selection.touched);
  const gone = selection.gone.length === 0 ? '(NULL)' : `(${selection.gone.join(', ')})`;
  await store.run(`CREATE TEMP TABLE affected AS
    SELECT block_height FROM holds UNION SELECT block_height FROM known_held WHERE source IN ${gone}`);
  await reader.readRelated();
  const notices = [...reader.notices, ...(await makeActivity(reader.sources, reader.reading))];
  const { views } = reader;
  const holdings = await checkConsistency(reader.names, findKnown, store);
  await checkRunesAreKnown(reader.ledgers, store);

  const blocksRead = readBlocksFiles(files, range);
  if (holdings.records === 0 && blocksRead.sources.length === 0 && !(await hasOtherBlocks(store))) {
    const shown = files.slice(0, 10).map((f) => f.name);
    throw new InputError(`the input has no activity records${describeRange(range)}`, [
      `Read: ${shown.join(', ')}.`,
      'An empty mirror would answer every request with an empty list, so it is not built.',
    ]);
  }
  if (holdings.copiedBlocks > 0) {
    notices.push(`${holdings.copiedBlocks} block(s) are in several files with the same records; one copy of each is used`);
  }
  const outdated = [...selection.gone, ...reader.read.keys()];
  return {
    ...holdings,
    ...blocksRead,
    files: files.length,
    filesRead: reader.read.size,
    hasChanges: outdated.length > 0,
    isListStale: selection.isListStale,
    outdated,
    hasRunes: reader.hasRunes,
    fileRows: async () => (await selection.rows).map((row) => ({ ...row, form: reader.formOf(row.id) })),
    notices,
    changedFile: () => selection.changed(views)?.name,
  };
}

/** True when the output has blocks that this build does not change. */
async function hasOtherBlocks(store: Store): Promise<boolean> {
  const { rest } = await store.row(
    'SELECT count(*) AS rest FROM known_blocks WHERE block_height NOT IN (SELECT block_height FROM affected)',
    { rest: int },
  );
  return rest > 0;
}

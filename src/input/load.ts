/**
 * The way of the input into the store: find, pick what is new, recognise, read, check every record, make canonical, check records against
 * each other. Nothing outside the scratch folder is touched; bad input ends here, with an InputError.
 *
 * What the last build read and has not changed is not read again, except where a block is in such a file and in a changed one: a block is
 * always put together, and compared, from all files that hold it.
 */
import { InputError } from '../errors.ts';
import { type Store, toNumber } from '../store/duckdb.ts';
import { type BlockRange, describeRange } from './blockRange.ts';
import { makeActivity } from './canonical.ts';
import { checkConsistency, type Holdings } from './consistency.ts';
import { discover, type InputFile } from './discover.ts';
import { Reading } from './reading.ts';
import type { ReadMeasure } from './readMeasure.ts';
import { checkRunesAreKnown } from './runes.ts';
import { type FileRow, type Selection, selectFiles } from './selection.ts';
import { SHIFT_DECIMALS } from './sources.ts';

export interface Loaded extends Holdings {
  /** All input files, and how many of them were read. */
  readonly files: number;
  readonly filesRead: number;
  /** Whether a block may have changed. */
  readonly hasChanges: boolean;
  /** Whether the state's list of files is out of date, be it only in times. */
  readonly isListStale: boolean;
  /** Numbers of files that the state is to forget. */
  readonly gone: readonly number[];
  /** Numbers of files that were read: the state is to learn what they hold. */
  readonly read: readonly number[];
  /** Whether the table `runes` was made from all runes files. */
  readonly hasRunes: boolean;
  /** All files as the state lists them. */
  fileRows(): Promise<readonly (FileRow & { readonly form: string })[]>;
  /** What the user should know though it is no error. */
  readonly notices: readonly string[];
  /** The name of a file that is read once more while records are rendered, and is not the one that was checked any more. */
  changedFile(): string | undefined;
}

/**
 * Loads what changed since the last build, of the blocks in `range` or of all, which the views `known_...` are about (state/state.ts): everything when there was none. `own`
 * are the build's own folders, which are no input; `measure` is kept up to date. Afterwards the store has, besides the relations of consistency.ts, the tables `affected`
 * (block_height), all blocks that a change is about, `holds`, which file that was read holds records of which block, and `left_out`, how many rows of which runes were left out of
 * its ledgers.
 */
export async function loadInput(
  inputs: readonly string[],
  range: BlockRange | undefined,
  own: readonly string[],
  scratch: string,
  store: Store,
  measure: ReadMeasure,
): Promise<Loaded> {
  const files = await discover(inputs, own);
  const selection = await selectFiles(files, store);
  const reading = new Reading(selection.unchanged, range, scratch, store, measure);
  try {
    const loaded = await load(files, selection, reading, range, store);
    throwIfChanged(selection, reading);
    await selection.checkDigests();
    return loaded;
  } catch (error) {
    // Whatever is wrong with a file that changes while it is read, that is why.
    throwIfChanged(selection, reading);
    throw error;
  }
}

function throwIfChanged({ pins }: Selection, reading: Reading): void {
  const changed = pins.changed(reading.files);
  if (changed === undefined) return;
  throw new InputError(`${changed.name} changed while it was read`, ['Build again when nothing writes to the input.']);
}

async function load(
  files: readonly InputFile[],
  selection: Selection,
  reading: Reading,
  range: BlockRange | undefined,
  store: Store,
): Promise<Loaded> {
  await store.run(SHIFT_DECIMALS);
  await reading.readTouched(selection.touched);
  const gone = selection.gone.length === 0 ? '(NULL)' : `(${selection.gone.join(', ')})`;
  await store.run(`CREATE TEMP TABLE affected AS
    SELECT block_height FROM holds UNION SELECT block_height FROM known_held WHERE source IN ${gone}`);
  await reading.readRelated();
  const notices = [...reading.notices, ...(await makeActivity(reading.sources, range, store))];
  const { views } = reading;
  const holdings = await checkConsistency(reading.names, store);
  await checkRunesAreKnown(reading.ledgers, store);

  const { rest } = await store.row(
    'SELECT count(*) AS rest FROM known_blocks WHERE block_height NOT IN (SELECT block_height FROM affected)',
  );
  if (holdings.records === 0 && toNumber(rest) === 0) {
    const shown = files.slice(0, 10).map((f) => f.name);
    throw new InputError(`the input holds no activity records${describeRange(range)}`, [
      `Read: ${shown.join(', ')}.`,
      'A mirror of nothing would answer every request with an empty list, so none is built.',
    ]);
  }
  if (holdings.copiedBlocks > 0) {
    notices.push(`${holdings.copiedBlocks} block(s) are in several files with the same records; one copy of each was taken`);
  }
  return {
    ...holdings,
    files: files.length,
    filesRead: reading.read.size,
    hasChanges: reading.read.size > 0 || selection.gone.length > 0,
    isListStale: selection.isListStale,
    gone: selection.gone,
    read: [...reading.read],
    hasRunes: reading.hasRunes,
    fileRows: async () => (await selection.rows).map((row) => ({ ...row, form: reading.formOf(row.id) })),
    notices,
    changedFile: () => selection.pins.changed(views)?.name,
  };
}

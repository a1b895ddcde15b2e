/**
 * Loads the input into the store: finds the input files, reads the changed ones, checks every record, converts records to canonical form,
 * and compares them with each other and with unchanged blocks. Unchanged files are read again only if they share a block with a changed
 * file, because all copies of a block are compared.
 */
import { basename, dirname } from 'node:path';
import { MAX_INTEGER } from '../contract/fields.ts';
import { type FolderIndex, isIndexName, namesOf } from '../contract/rowsSchemas.ts';
import { type Columns, columns, type Table, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { type BlocksRead, readIndex, readIndexes } from './blocksRead.ts';
import { type FileRow, selectFiles } from './changedFiles.ts';
import {
  checkTransactions,
  type InputTransactions,
  isOutdated,
  type KeptBlocks,
  type KnownTransaction,
  keepBlocks,
} from './checkConsistency.ts';
import { discover, type InputFile } from './discover.ts';
import { InputReader } from './inputReader.ts';
import { checkRunesAreKnown, SHIFT_DECIMALS } from './joinRunes.ts';
import { type Activity, makeActivity, readUnchanged } from './makeActivity.ts';
import type { Reading, Runes } from './rawSource.ts';

export interface Loaded
  extends Pick<KeptBlocks, 'kept' | 'blocks' | 'transactions' | 'counts'>,
    Pick<Activity, 'spent' | 'rows' | 'notices'>,
    Pick<InputReader, 'holds' | 'leftOut'>,
    BlocksRead {
  /** Blocks of changed, new and removed files. Only these blocks may change in the output. */
  readonly affected: Table<Columns<'block_height BIGINT'>>;
  readonly files: number;
  readonly filesRead: number;
  readonly hasChanges: boolean;
  /** True if the state's list of files is outdated: a file is new or gone, or has a new name, time or content. */
  readonly isListStale: boolean;
  /** Numbers of files with outdated rows in the state: files that were removed, changed, or read by this build. */
  readonly outdated: readonly number[];
  /** The runes. Undefined if the runes in the state have not changed. */
  readonly runes: InputReader['joined'];
  fileRows(): Promise<readonly (FileRow & { readonly form: string })[]>;
  /** Index of the folder of rows, and the folder, if the input is exactly the files of one index. */
  readonly folder: { readonly path: string; readonly index: FolderIndex } | undefined;
  /** Reads blocks that are not `affected`. `runes` has all runes. Call it after the state was updated. */
  readUnchanged(blocks: TableWith<'block_height'>, runes: Runes): Promise<Pick<Activity, 'records' | 'spent'>>;
  /** Returns the name of a Parquet file that changed after its check. Rendering reads these files again. */
  changedFile(): string | undefined;
}

/**
 * Reads the input that changed since the last build (`reading.known`): in a full build, all of it. Writes only to the scratch folder. `own`
 * has the build's own folders, which are never input. `findKnown` returns transactions that are also in an unchanged block. Throws an
 * InputError for invalid input.
 */
export async function loadInput(
  inputs: readonly string[],
  own: readonly string[],
  reading: Reading,
  findKnown: (read: InputTransactions) => Promise<readonly KnownTransaction[]>,
): Promise<Loaded> {
  const { range, known, store } = reading;
  const found = await discover(inputs, own);
  const selection = await selectFiles(found, known.files, store);
  const reader = await InputReader.begin(selection, reading);
  const { holds, leftOut } = reader;
  const throwIfChanged = () => {
    const changed = selection.changed(reader.read.values());
    if (changed === undefined) return;
    throw new InputError(`${changed.name} changed while it was read`, ['Build again when no other program writes to the input.']);
  };
  /** If a step fails and an input file has changed meanwhile, the change is the likely cause. */
  const orChanged = async <Result>(step: () => Promise<Result>): Promise<Result> => {
    try {
      return await step();
    } catch (error) {
      throwIfChanged();
      throw error;
    }
  };
  return orChanged(async () => {
    await store.run(SHIFT_DECIMALS);
    await reader.readTouched();
    const gone = selection.gone.map(({ id }) => id);
    const affected = await store.table(
      'affected',
      columns('block_height BIGINT'),
      `SELECT block_height FROM ${holds} UNION SELECT block_height FROM ${known.held} WHERE source IN (${gone.join(', ') || 'NULL'})`,
    );
    await reader.readRelated(affected);
    const activity = await makeActivity(reader, affected);
    const { allHolds, copiedBlocks, ...kept } = await keepBlocks(reader, activity);
    const notices = [...reader.notices, ...activity.notices];
    if (copiedBlocks > 0) notices.push(`${copiedBlocks} block(s) are in several files with the same records; one copy of each is used`);
    await checkTransactions(reader, { ...kept, allHolds }, await findKnown({ ...kept, affected }));
    await checkRunesAreKnown(reader.ledgers, { holds, leftOut, allHolds }, known, store);
    let blocksRead = readIndexes(found, range);
    if (blocksRead.tip !== undefined && (await isOutdated(blocksRead.tip, allHolds, store))) {
      const { height, hash } = blocksRead.tip;
      notices.push(`the index of rows is older than the records: its last block, ${height} (${hash}), was replaced; run the pull again`);
      blocksRead = { ...blocksRead, tip: undefined, ends: undefined };
    }
    const others = `FROM ${known.blocks} WHERE block_height NOT IN (SELECT block_height FROM ${affected})`;
    const isEmpty = kept.counts.records === 0 && blocksRead.sources.length === 0;
    if (isEmpty && (await store.number(`SELECT count(*) AS number ${others}`)) === 0) {
      const blocks = range && ` of the blocks from ${range.from} ${range.to === MAX_INTEGER ? 'on' : `to ${range.to}`}`;
      const shown = found.slice(0, 10).map((f) => f.name);
      throw new InputError(`the input has no activity records${blocks ?? ''}`, [
        `Read: ${shown.join(', ')}.`,
        'An empty mirror would answer every request with an empty list, so it is not built.',
      ]);
    }
    throwIfChanged();
    await selection.checkDigests();
    const { joined: runes, views } = reader;
    const outdated = [...gone, ...reader.read.keys()];
    return {
      ...blocksRead,
      ...kept,
      ...{ affected, spent: activity.spent, rows: activity.rows, notices, holds, leftOut, runes, outdated },
      folder: range === undefined ? onlyFolder(found) : undefined,
      readUnchanged: (blocks, all) => orChanged(() => readUnchanged(reader, blocks, all)),
      files: found.length,
      filesRead: reader.read.size,
      hasChanges: outdated.length > 0,
      isListStale: selection.isListStale,
      fileRows: async () => (await selection.rows).map((row) => ({ ...row, form: reader.formOf(row.id) })),
      changedFile: () => selection.changed(views)?.name,
    };
  });
}

/** Returns the folder of rows that has all input files, or undefined. */
function onlyFolder(found: readonly InputFile[]): Loaded['folder'] {
  const file = found.find(({ path }) => isIndexName(basename(path)));
  const index = file && readIndex(file);
  if (file === undefined || index === undefined || index.files.length === 0) return undefined;
  const path = dirname(file.path);
  const names = new Set([basename(file.path), ...namesOf(index)]);
  const isAll = found.length === names.size && found.every((one) => dirname(one.path) === path && names.has(basename(one.path)));
  return isAll ? { path, index } : undefined;
}

/**
 * Opens the files of a start. A start is the ledger after a block. A pull from a node can begin with a start instead of
 * reading older blocks (pull/node/startFrom.ts). `outputs` has the unspent outputs, and `runes` has the mints and burns
 * of each rune.
 */
import { START_OUTPUT_FIELDS, START_RUNE_FIELDS } from '../contract/fields.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { columnsOf, type Table } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import type { LedgerPoint } from '../format/listTables.ts';
import type { InputFile } from './discover.ts';
import type { StartForm } from './recognise.ts';

const OUTPUTS = columnsOf(START_OUTPUT_FIELDS);
const RUNES = columnsOf(START_RUNE_FIELDS);

/** A start: its block, the digest of the ledger after this block, and views of the rows. */
export interface StartRows extends LedgerPoint {
  readonly outputs: Table<typeof OUTPUTS>;
  readonly runes: Table<typeof RUNES>;
  /** False if the last build had the same files. */
  readonly isNew: boolean;
}

export interface StartFile {
  readonly file: InputFile;
  readonly form: StartForm;
}

/**
 * Opens the two files of a pull with --start-from. `isNew` is false if the last build had the same files. Returns
 * undefined if `files` is empty. Throws an InputError unless there is exactly one file of outputs and one of runes, with
 * the same start block.
 */
export async function readStart(files: readonly StartFile[], isNew: boolean, store: Store): Promise<StartRows | undefined> {
  if (files.length === 0) return undefined;
  const of = (form: StartForm) => files.flatMap((one) => (one.form === form ? [one.file] : []));
  const [[outputs, ...others], [runes, ...more]] = [of('start-outputs'), of('start-runes')];
  const scan = (file: InputFile) => `SELECT * FROM ${readFiles('parquet', [file.path])}`;
  if (outputs === undefined || runes === undefined || others.length + more.length > 0)
    throw new InputError(
      `the input has ${files.length} files of pulls with --start-from, but must have exactly one file of outputs and one of runes`,
      [`Read: ${files.map(({ file }) => file.name).join(', ')}.`, 'Give only one folder of a pull with --start-from as input.'],
    );
  const counts = await store.view('start_runes', RUNES, scan(runes));
  const points = await store.rows(
    `SELECT DISTINCT start_height AS height, start_hash AS hash, start_digest AS digest FROM ${counts} LIMIT 2`,
    { height: int, hash: text, digest: text },
  );
  const [point] = points;
  if (point === undefined || points.length > 1)
    throw new InputError(`${runes.name} is empty, or its rows name different start blocks`, ['Remove it and pull again.']);
  return { ...point, outputs: await store.view('start_outputs', OUTPUTS, scan(outputs)), runes: counts, isNew };
}

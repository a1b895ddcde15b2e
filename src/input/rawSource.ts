/**
 * A raw source is a group of input files of the same form and columns in one relation, whose cells are not checked yet: a view of Parquet
 * files, or a table with JSON or CSV, which is parsed only once.
 */
import { RUNE_DETAILS, RUNE_FIELDS } from '../contract/fields.ts';
import type { Store } from '../duckdb/store.ts';
import { columnsOf, type TableWith } from '../duckdb/table.ts';
import { messageOf } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import { countCrossing, type WorkLimits } from '../limits.ts';
import type { BlockRange } from './blocksRead.ts';
import type { RawColumn } from './cellSql.ts';
import type { FILES } from './changedFiles.ts';
import type { ReadProgress } from './inputProgress.ts';
import type { Form, Member, Recognised } from './recognise.ts';

/**
 * Columns of the joined runes table, which has one row per rune. `premine` and terms are integers of up to 128 bits as text: cast them to
 * UHUGEINT. A term that the rune does not have is NULL, and a missing symbol is `¤`. If `is_complete` is false, any column after
 * `divisibility` may be NULL because no input has its value. `source` is the number of the rune's file; NULL for several files.
 */
export const RUNES = { ...columnsOf([...RUNE_FIELDS, ...RUNE_DETAILS]), is_complete: 'BOOLEAN', source: 'INTEGER' } as const;
export type Runes = TableWith<keyof typeof RUNES>;

/** Tables of the last build, with which a build compares the input. They are empty in a full build. */
export interface KnownInput {
  readonly files: TableWith<keyof typeof FILES>;
  readonly held: TableWith<'source' | 'block_height' | 'block_hash' | 'records'>;
  readonly leftOut: TableWith<'source' | 'block_height' | 'rune_id'>;
  readonly runes: Runes;
  readonly blocks: TableWith<'block_height'>;
  readonly transactions: TableWith<'tx_id' | 'block_height'>;
}

/** Context of all steps that read input. */
export interface Reading {
  readonly known: KnownInput;
  /** Blocks of the build. Undefined for all blocks. */
  readonly range: BlockRange | undefined;
  readonly limits: Pick<WorkLimits, 'filesPerScan' | 'keptInput' | 'keptRecords' | 'listedAtOnce' | 'sortedAtOnce' | 'servedAtOnce'>;
  readonly scratch: string;
  readonly store: Store;
  readonly progress: ReadProgress;
  /** True if the build also publishes ledger rows. */
  readonly keepsRows: boolean;
}

export interface RawSource {
  readonly form: Form;
  readonly members: readonly Member[];
  /** Word for a record in reports. */
  readonly unit: 'line' | 'record' | 'row';
  /** It has the column `source` and one column per field. */
  readonly relation: string;
  /** SQL expression of a number that increases from record to record of a file. The numbers may have gaps. */
  readonly order: string;
  readonly columns: readonly RawColumn[];
  /** True for Parquet files, which are scanned in place. */
  readonly isView: boolean;
}

/** Groups files that one scan can read. */
export const groupAlike = (files: readonly Recognised[]): Iterable<Recognised[]> =>
  groupBy(files, ({ form, format, columns, lineEnd }) => JSON.stringify([form, format, columns, lineEnd])).values();

export const pathsOf = (members: readonly Member[]): string[] => members.map(({ path }) => path);

export const bytesOf = (members: readonly Member[]): number => members.reduce((sum, { bytes }) => sum + bytes, 0);

/** Returns the member that an error of DuckDB names, or the first. */
export const memberNamedIn = <One extends Member>(members: readonly One[], error: unknown): One | undefined =>
  members.find(({ path }) => messageOf(error).includes(path)) ?? members[0];

/** Returns the SQL of a record's `source`, from the position of its file in a scan. */
export const sourceNumber = (members: readonly Member[]): string =>
  `list_extract([${members.map(({ id }) => id).join(', ')}]::INTEGER[], file_index::BIGINT + 1)`;

/** Creates a table with the rows of all members, in their order: `source`, and the expressions `columns`. `scan` makes a scan's SQL. */
export async function fillTable(
  table: string,
  members: readonly Member[],
  columns: string,
  scan: (paths: readonly string[]) => string,
  { limits: { filesPerScan }, store, progress }: Reading,
): Promise<void> {
  if (members.length > filesPerScan) countCrossing('filesPerScan');
  for (let i = 0; i < members.length; i += filesPerScan) {
    const some = members.slice(i, i + filesPerScan);
    const rows = `SELECT ${sourceNumber(some)} AS source, ${columns} FROM ${scan(pathsOf(some))}`;
    await progress.scan(bytesOf(some), () => store.run(i === 0 ? `CREATE TEMP TABLE ${table} AS ${rows}` : `INSERT INTO ${table} ${rows}`));
  }
}

/**
 * A raw source is a group of input files of the same form and columns, read into one relation of the store. Its cells are not checked yet.
 * JSON and CSV are loaded into a table, so that they are parsed only once. For Parquet files, the relation is a view, which reads the files
 * in place.
 */
import type { Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { messageOf } from '../errors.ts';
import { groupBy } from '../groupBy.ts';
import type { WorkLimits } from '../limits.ts';
import type { BlockRange } from './blockRange.ts';
import type { RawColumn } from './cellSql.ts';
import type { FILES } from './changedFiles.ts';
import type { ReadProgress } from './inputProgress.ts';
import type { Form, Member, Recognised } from './recognise.ts';
import type { Runes } from './runesTable.ts';

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
  /** Table or view with the column `source` and one column per field. */
  readonly relation: string;
  /** SQL expression of a number that increases from record to record of a file. The numbers may have gaps. */
  readonly order: string;
  readonly columns: readonly RawColumn[];
  /** True for Parquet files, which are scanned in place instead of being copied into a table. */
  readonly isView: boolean;
}

/** Groups files that one scan can read. */
export const groupAlike = (files: readonly Recognised[]): Iterable<Recognised[]> =>
  groupBy(files, ({ form, format, columns, lineEnd }) => JSON.stringify([form, format, columns, lineEnd])).values();

export const pathsOf = (members: readonly Member[]): string[] => members.map(({ path }) => path);

export const bytesOf = (members: readonly Member[]): number => members.reduce((sum, { bytes }) => sum + bytes, 0);

/** Returns the member that an error message of DuckDB names. Returns the first member if the message names none. */
export const memberNamedIn = <One extends Member>(members: readonly One[], error: unknown): One | undefined =>
  members.find(({ path }) => messageOf(error).includes(path)) ?? members[0];

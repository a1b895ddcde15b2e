/**
 * Fills tables of the store from input files, and numbers each record's file.
 */

import { literal, type Store } from '../duckdb/store.ts';
import { countCrossing } from '../limits.ts';
import { bytesOf, type Member, pathsOf, type Reading } from './rawSource.ts';

/** The column in which DuckDB gives the path of a record's file. The name is unlikely to be a column of the input. */
export const SOURCE_FILE = '__mirror_source_file';

/** Returns SQL of a record's `source`: the number of its file. */
export async function sourceNumber(members: readonly Member[], store: Store): Promise<string> {
  const [first] = members;
  if (first === undefined) throw new Error('no files to read');
  if (members.length === 1) return `${first.id}`;
  // An enum of the paths finds each number by one hash look-up.
  const type = store.nameOf('files');
  await store.run(`CREATE TYPE ${type} AS ENUM (${members.map(({ path }) => literal(path)).join(', ')})`);
  return `list_extract([${members.map(({ id }) => id).join(', ')}]::INTEGER[], enum_code(${SOURCE_FILE}::${type}) + 1)`;
}

/**
 * Creates `table` from the rows of all members, in their order: `source` and the `columns`. `scan` returns SQL of the
 * rows of some files.
 */
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
    const rows = `SELECT ${await sourceNumber(some, store)} AS source, ${columns} FROM ${scan(pathsOf(some))}`;
    await progress.scan(bytesOf(some), () => store.run(i === 0 ? `CREATE TEMP TABLE ${table} AS ${rows}` : `INSERT INTO ${table} ${rows}`));
  }
}

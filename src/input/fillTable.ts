/** Fills tables of the store from input files. Each row gets the number of its file in the column `source`. */
import { literal, type Store } from '../duckdb/store.ts';
import { countCrossing } from '../limits.ts';
import { bytesOf, type Member, pathsOf, type Reading } from './rawSource.ts';

/** Column that DuckDB fills with the path of a record's file. The input is unlikely to have a column with this name. */
export const SOURCE_FILE = '__mirror_source_file';

/** Returns the SQL expression of a record's `source`, which is the number of its file. */
export async function sourceNumber(members: readonly Member[], store: Store): Promise<string> {
  const [first] = members;
  if (first === undefined) throw new Error('no files to read');
  if (members.length === 1) return `${first.id}`;
  // Makes an enum of the paths, so that one hash look-up per row finds the number of the row's file.
  const type = store.nameOf('files');
  await store.run(`CREATE TYPE ${type} AS ENUM (${members.map(({ path }) => literal(path)).join(', ')})`);
  return `list_extract([${members.map(({ id }) => id).join(', ')}]::INTEGER[], enum_code(${SOURCE_FILE}::${type}) + 1)`;
}

/**
 * Creates `table` with the rows of all members, in the order of the members. Its columns are `source` and the SQL
 * expressions `columns`. `scan` returns the SQL table function that reads files.
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

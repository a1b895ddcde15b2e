/** Fills tables of the store from input files. Each row gets the number of its file in the column `source`. */
import { countCrossing } from '../limits.ts';
import { bytesOf, pathsOf, type Reading } from './rawSource.ts';
import type { Member } from './recognise.ts';

/** Returns the SQL expression of a record's `source`. DuckDB gives each row the position of its file in a scan. */
export const sourceNumber = (members: readonly Member[]): string =>
  `list_extract([${members.map(({ id }) => id).join(', ')}]::INTEGER[], file_index::BIGINT + 1)`;

/**
 * Creates `table` with the rows of all members, in the order of the members. Its columns are `source` and the SQL expressions `columns`.
 * `scan` returns the SQL table function that reads files.
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
    const rows = `SELECT ${sourceNumber(some)} AS source, ${columns} FROM ${scan(pathsOf(some))}`;
    await progress.scan(bytesOf(some), () => store.run(i === 0 ? `CREATE TEMP TABLE ${table} AS ${rows}` : `INSERT INTO ${table} ${rows}`));
  }
}

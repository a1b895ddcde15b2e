/**
 * The rows of bulk data: the columns of the flat table form, so that the files are input of a build themselves. Hashes have no prefix in either
 * dialect, and events are counted within their transaction, so that files depend on nothing but the records: not on the form of the input.
 */
import { ACTIVITY_FIELDS, EVENT_INDEX, type Field } from '../contract/fields.ts';
import { identifier, int, literal, type Store } from '../store/duckdb.ts';
import { readFiles } from '../store/files.ts';

/** The columns in their order. An amount is text: no number type holds 128 bits and as many decimals as were written. */
export const COLUMNS: readonly (readonly [name: string, type: 'BIGINT' | 'VARCHAR'])[] = [...ACTIVITY_FIELDS, EVENT_INDEX].map(
  ({ column, kind }: Field) => [column, kind === 'integer' ? 'BIGINT' : 'VARCHAR'],
);

const NAMES = COLUMNS.map(([name]) => identifier(name)).join(', ');

/** Blocks ascending, so that a reader passes over those that it does not want; in a block as it is served, so that a build need not sort. */
const ORDER = 'block_height, tx_index DESC, event_index DESC';

/** Ids and addresses are as good as random: matches that a higher level finds in them cost twice the time and more bytes than they save. */
const COMPRESSION = 'COMPRESSION zstd, COMPRESSION_LEVEL 1';

/** A block is some thousand rows: a query for one reads one or two groups. Larger ones would save a hundredth of the bytes. */
const ROWS_PER_GROUP = 40_960;

/**
 * SQL of the rows of canonical records (input/recordSql.ts), of which there is all of a transaction or nothing. `where` may only name heights. To count
 * events takes as long as to write them, so it is left out where the input has counted them just so, as an indexer does.
 */
export async function rowsOfRecords(relation: string, where: string, store: Store): Promise<string> {
  const { others } = await store.row(
    `SELECT count(*) AS others FROM (SELECT 1 FROM ${relation} WHERE ${where}
      GROUP BY block_height, tx_index HAVING count(event_index) <> count(*) OR max(event_index) <> count(*) - 1)`,
    { others: int },
  );
  const counted = 'row_number() OVER (PARTITION BY block_height, tx_index ORDER BY ord) - 1';
  const cells = COLUMNS.map(([name, type]) => {
    const cell = name === EVENT_INDEX.column && others > 0 ? counted : identifier(name);
    return `(${cell})::${type} AS ${identifier(name)}`;
  });
  return `SELECT ${cells.join(', ')} FROM ${relation} WHERE ${where}`;
}

/** SQL of the rows that are in such files. */
export const rowsOfFiles = (paths: readonly string[], where = 'true'): string =>
  `SELECT ${NAMES} FROM ${readFiles('parquet', paths)} WHERE ${where}`;

/**
 * Writes rows to a Parquet file: the same rows make the same bytes, whatever their order and the number of threads. Throws when they are not as many
 * as they should be.
 */
export async function writeRows(rows: string, count: number, path: string, store: Store): Promise<void> {
  const options = `FORMAT parquet, ${COMPRESSION}, ROW_GROUP_SIZE ${ROWS_PER_GROUP}`;
  const written = await store.row(`COPY (SELECT ${NAMES} FROM (${rows}) ORDER BY ${ORDER}) TO ${literal(path)} (${options})`, {
    Count: int,
  });
  if (written.Count !== count) {
    throw new Error(`${written.Count} records were found for a file of bulk data, and not ${count}`);
  }
}

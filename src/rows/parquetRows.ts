/**
 * Writes rows to Parquet files. The files have the columns of the flat table form, so builds can read them as input.
 * They depend only on the records, not on the input format or the dialect: hashes have no prefix, and event indexes
 * count from 0 in each transaction.
 */
import { ACTIVITY_FIELDS, EVENT_INDEX } from '../contract/fields.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, int, literal, type Store } from '../duckdb/store.ts';
import { columnsOf, type TableWith } from '../duckdb/table.ts';

export const COLUMNS = Object.entries(columnsOf([...ACTIVITY_FIELDS, EVENT_INDEX]));

const NAMES = COLUMNS.map(([name]) => identifier(name)).join(', ');

/**
 * Order of the rows. Blocks ascend, so that readers can skip row groups. Within a block, rows are in the order in which
 * records are served, so that builds need not sort.
 */
const ORDER = 'block_height, tx_index DESC, event_index DESC';

/**
 * Level 1, because ids and addresses are nearly random. Higher levels take twice the time, and the matches that they
 * find cost more bytes than they save.
 */
const COMPRESSION = 'COMPRESSION zstd, COMPRESSION_LEVEL 1';

/**
 * Rows per row group. A block has a few thousand rows, so a query for one block reads one or two groups. Larger groups
 * save only 1 % of the size.
 */
const ROWS_PER_GROUP = 40_960;

/**
 * Returns SQL of the rows of canonical records (input/canonicalRecordSql.ts). `where` may only use heights, so that it
 * selects complete transactions. Computing event indexes takes as long as writing the rows. So this step is skipped if
 * the indexes of the input already count from 0 in each transaction, as an indexer's do.
 */
export async function rowsOfRecords(
  relation: TableWith<'block_height' | 'tx_index' | 'event_index' | 'ord'>,
  where: string,
  store: Store,
): Promise<string> {
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

/** Returns SQL of the rows in existing Parquet files of a mirror. */
export const rowsOfFiles = (paths: readonly string[], where = 'true'): string =>
  `SELECT ${NAMES} FROM ${readFiles('parquet', paths)} WHERE ${where}`;

/**
 * Writes rows to a Parquet file. Equal rows give equal bytes, for any order of the rows and any number of threads.
 * Throws if the number of rows is not `count`.
 */
export async function writeRows(rows: string, count: number, path: string, store: Store): Promise<void> {
  const options = `FORMAT parquet, ${COMPRESSION}, ROW_GROUP_SIZE ${ROWS_PER_GROUP}`;
  const written = await store.row(`COPY (SELECT ${NAMES} FROM (${rows}) ORDER BY ${ORDER}) TO ${literal(path)} (${options})`, {
    Count: int,
  });
  if (written.Count !== count) {
    throw new Error(`${path} has ${written.Count} records, expected ${count}`);
  }
}

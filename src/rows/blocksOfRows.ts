/** Computes the digests of blocks from files of ledger rows, as a build does. Checks that the rows conserve runes. */
import { createHash } from 'node:crypto';
import { readBlobs } from '../duckdb/columns.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { JSON_TEXT, recordJson } from '../engine/render/renderRecordSql.ts';
import { SERVED_ORDER } from '../input/canonicalRecordSql.ts';
import { SHIFT_DECIMALS } from '../input/joinRunes.ts';

/** Block of ledger rows that has records, with the digest of these records (contract/blockDigest.ts). */
export interface RowsBlock {
  readonly height: number;
  readonly hash: string;
  readonly records: number;
  readonly digest: string;
}

const RUNES_OF_ROWS = columns('id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, divisibility BIGINT, premine VARCHAR');
export type RunesOfRows = Table<typeof RUNES_OF_ROWS>;

/**
 * Creates a table of the runes that occur in a file of rows, from the file of all runes. Later queries join this small
 * table.
 */
export const runesOfRows = (path: string, runes: string, store: Store): Promise<RunesOfRows> =>
  store.table(
    'runes_of_rows',
    RUNES_OF_ROWS,
    `SELECT ${Object.keys(RUNES_OF_ROWS).join(', ')} FROM ${readFiles('parquet', [runes])}
     WHERE id IN (SELECT rune_id FROM ${readFiles('parquet', [path])})`,
  );

/**
 * Returns SQL that selects the canonical records (input/canonicalRecordSql.ts) of rows. Omits rows of unknown runes.
 */
const recordsOf = (path: string, runes: RunesOfRows): string => `SELECT rune_id, r.number AS rune_number, r.name AS rune_name,
    r.spaced_name AS rune_spaced_name, address, receiver_address, shift_decimals(amount, r.divisibility) AS amount, operation,
    l.block_hash, l.block_height, l.tx_id, l.tx_index, l."output" AS vout, CASE WHEN l."output" IS NOT NULL THEN l.tx_id END AS "output",
    l."timestamp", event_index AS ord
  FROM ${readFiles('parquet', [path])} l JOIN ${runes} r ON r.id = rune_id`;

/** Returns the blocks with records of a file of ledger rows, heights ascending. */
export async function blocksOfRows(path: string, runes: RunesOfRows, store: Store): Promise<RowsBlock[]> {
  await store.run(`${SHIFT_DECIMALS}; ${JSON_TEXT}`);
  const blocks = await store.rows(
    `SELECT block_height AS height, min(block_hash) AS hash, count(*) AS records FROM (${recordsOf(path, runes)}) GROUP BY ALL ORDER BY height`,
    { height: int, hash: text, records: int },
  );
  const digests: string[] = [];
  let [left, hash] = [blocks[0]?.records ?? 0, createHash('sha256')];
  // The digest covers the records in served order, joined by commas. The JSON of each record ends with a comma, so the
  // last comma of a block is cut off.
  const json = `SELECT encode(${recordJson('contract')}) FROM (${recordsOf(path, runes)} ORDER BY ${SERVED_ORDER})`;
  for await (const chunk of store.stream(json)) {
    const records = readBlobs(chunk, 0);
    for (let row = 0; row < chunk.rowCount; ) {
      const end = Math.min(row + left, chunk.rowCount);
      const bytes = Buffer.allocUnsafe((records.offsets[end] ?? 0) - (records.offsets[row] ?? 0));
      records.copyTo(bytes, 0, row, end);
      left -= end - row;
      row = end;
      hash.update(left > 0 ? bytes : bytes.subarray(0, -1));
      if (left > 0) continue;
      digests.push(hash.digest('hex'));
      [left, hash] = [blocks[digests.length]?.records ?? 0, createHash('sha256')];
    }
  }
  return blocks.map((block, i) => ({ ...block, digest: digests[i] ?? '' }));
}

/**
 * Describes the first transaction in rows from a node that creates or loses units of a rune. Returns undefined if there
 * is none. A valid transaction gives its outputs all units that it sends, mints or premines, except those that it burns
 * without an address.
 */
export async function firstUnbalanced(path: string, runes: RunesOfRows, store: Store): Promise<string | undefined> {
  const units = `coalesce(amount, '0')::BIGNUM`;
  const [row] = await store.rows(
    `SELECT block_height AS height, tx_index AS "index", rune_id AS rune FROM (
       SELECT block_height, tx_index, rune_id, bool_or(operation = 'etching' AND premine IS NULL) AS is_unknown,
         sum(CASE WHEN operation IN ('send', 'mint') THEN ${units} WHEN operation = 'etching' THEN premine::BIGNUM ELSE '0'::BIGNUM END) AS made,
         sum(CASE WHEN operation = 'receive' THEN ${units} ELSE '0'::BIGNUM END) AS received,
         sum(CASE WHEN operation = 'burn' AND address IS NULL THEN ${units} ELSE '0'::BIGNUM END) AS burned
       FROM ${readFiles('parquet', [path])} LEFT JOIN ${runes} ON id = rune_id
       GROUP BY ALL)
     WHERE NOT is_unknown AND (received > made OR made - received > burned) ORDER BY height, "index" LIMIT 1`,
    { height: int, index: int, rune: text },
  );
  return row && `block ${row.height} does not conserve rune ${row.rune} in its transaction ${row.index}`;
}

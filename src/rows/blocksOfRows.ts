/** Computes the digests of blocks from files of ledger rows, as a build does. */
import { createHash } from 'node:crypto';
import type { BlockDigest } from '../contract/schemas.ts';
import { joinedBlobs } from '../duckdb/columns.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { JSON_TEXT, RUNE_JSON, recordJsonAfterRune } from '../engine/render/renderRecordSql.ts';
import { SERVED_ORDER } from '../input/canonicalRecordSql.ts';
import { SHIFT_DECIMALS } from '../input/joinRunes.ts';

const RUNES_OF_ROWS = columns('id VARCHAR, divisibility BIGINT, premine VARCHAR, rune_json VARCHAR');
export type RunesOfRows = Table<typeof RUNES_OF_ROWS>;

/**
 * Creates a table of the runes that occur in files of rows, from the file of all runes. Later queries join this small
 * table. Its column `rune_json` has the part of a record's JSON that is the same for all records of a rune.
 */
export async function runesOfRows(paths: readonly string[], runes: readonly string[], store: Store): Promise<RunesOfRows> {
  await store.run(JSON_TEXT);
  const named = `SELECT DISTINCT ON (id) id AS rune_id, number AS rune_number, name AS rune_name, spaced_name AS rune_spaced_name, divisibility, premine
    FROM ${readFiles('parquet', runes)} WHERE id IN (SELECT rune_id FROM ${readFiles('parquet', paths)})`;
  return store.table(
    'runes_of_rows',
    RUNES_OF_ROWS,
    `SELECT rune_id AS id, divisibility, premine, ${RUNE_JSON} AS rune_json FROM (${named})`,
  );
}

/** Returns SQL of the canonical records (input/canonicalRecordSql.ts) of rows. Omits rows of unknown runes. */
const recordsOf = (paths: readonly string[], runes: RunesOfRows): string => `SELECT rune_json, address, receiver_address,
    shift_decimals(amount, r.divisibility) AS amount, operation, l.block_hash, l.block_height, l.tx_id, l.tx_index, l."output" AS vout, CASE WHEN l."output" IS NOT NULL THEN l.tx_id END AS "output",
    l."timestamp", event_index AS ord
  FROM ${readFiles('parquet', paths)} l JOIN ${runes} r ON r.id = rune_id`;

/** Returns the blocks that have records in files of ledger rows, in ascending order. */
export async function blocksOfRows(paths: readonly string[], runes: RunesOfRows, store: Store): Promise<BlockDigest[]> {
  await store.run(SHIFT_DECIMALS);
  const blocks = await store.rows(
    `SELECT block_height AS height, min(block_hash) AS hash, count(*) AS records FROM (${recordsOf(paths, runes)}) GROUP BY ALL ORDER BY height`,
    { height: int, hash: text, records: int },
  );
  const digests: string[] = [];
  let [left, hash] = [blocks[0]?.records ?? 0, createHash('sha256')];
  // The digest covers the records in served order, joined by commas. The JSON of each record ends with a comma, so the
  // last comma of a block is cut off.
  const json = `SELECT encode(${recordJsonAfterRune('contract')}) FROM (${recordsOf(paths, runes)} ORDER BY ${SERVED_ORDER})`;
  for await (const chunk of store.stream(json)) {
    const { offsets, bytes } = joinedBlobs(chunk, 0);
    for (let row = 0; row < chunk.rowCount; ) {
      const end = Math.min(row + left, chunk.rowCount);
      left -= end - row;
      hash.update(bytes.subarray(offsets[row], (offsets[end] ?? 0) - (left > 0 ? 0 : 1)));
      row = end;
      if (left > 0) continue;
      digests.push(hash.digest('hex'));
      [left, hash] = [blocks[digests.length]?.records ?? 0, createHash('sha256')];
    }
  }
  return blocks.map((block, i) => ({ ...block, digest: digests[i] ?? '' }));
}

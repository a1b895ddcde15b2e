/**
 * Verifies bulk data: reads every Parquet file, and computes the digests of its blocks from its rows. A digest covers
 * every value of a record, and the order of records. The order of columns and rows and the event indexes are checked
 * separately.
 */
import { join, resolve } from 'node:path';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { renderBatches } from '../engine/render/renderBatches.ts';
import { BuildError, messageOf } from '../errors.ts';
import type { BlockDigest } from '../output/digests.ts';
import { RANGES_PATH, rangePath } from '../pages/filePaths.ts';
import { byRange, type FileStamp, rangesFile, recordsOf, stampOf } from '../rows/parquetIndex.ts';
import { COLUMNS } from '../rows/parquetRows.ts';
import type { Verification } from './verification.ts';

/**
 * Compares the Parquet files and their list with the blocks, whose digests must already match their pages. Returns the
 * paths of all Parquet files that the output must have.
 */
export async function verifyRanges(verification: Verification): Promise<string[]> {
  const { root, blocks, findings, own, progress } = verification;
  const stamps = new Map<number, FileStamp>();
  const ranges = byRange(blocks);
  try {
    let done = 0;
    for (const [first, inRange] of ranges) {
      progress.show(done, ranges.size, 'Parquet files');
      done += 1;
      const path = rangePath(first);
      const stamp = await stampOf(join(root, path));
      if (stamp === undefined) findings.add(`${path} is missing`);
      else stamps.set(first, stamp);
      const wrong = stamp === undefined ? undefined : await misfit(resolve(root, path), inRange, verification);
      if (wrong !== undefined) findings.add(`${path}: ${wrong}`);
    }
  } finally {
    progress.end();
  }
  if (stamps.size === ranges.size) own.file(RANGES_PATH, rangesFile(blocks, stamps));
  return [...ranges.keys()].map(rangePath);
}

/** Describes what is wrong with a Parquet file that must have these blocks. Undefined if it is correct. */
async function misfit(path: string, blocks: readonly BlockDigest[], verification: Verification): Promise<string | undefined> {
  const { store } = verification;
  try {
    const columns = await store.rows(`DESCRIBE SELECT * FROM ${readFiles('parquet', [path])}`, {
      column_name: text,
      column_type: text,
    });
    const found = columns.map((row) => `${row.column_name} ${row.column_type}`).join(', ');
    if (found !== COLUMNS.map((column) => column.join(' ')).join(', ')) return `its columns are ${found}`;
    const heights = await store.rows(
      `SELECT coalesce(block_height, -1) AS height, coalesce(block_hash, '') AS hash, count(*) AS records
       FROM ${readFiles('parquet', [path])} GROUP BY ALL ORDER BY height`,
      { height: int, hash: text, records: int },
    );
    const expected = blocks.map(({ height, hash, records }) => ({ height, hash, records }));
    if (JSON.stringify(heights) !== JSON.stringify(expected)) {
      return `it has ${recordsOf(heights)} records of ${heights.length} blocks, expected ${recordsOf(expected)} of ${expected.length}, or the blocks differ`;
    }
    if (await isOutOfOrder(path, store)) return 'its rows are not in order, or its event indexes are wrong';
    return await otherBlock(path, blocks, verification);
  } catch (error) {
    // A lack of memory or disk space is not a fault of the file.
    if (error instanceof BuildError) throw error;
    return messageOf(error).split('\n')[0];
  }
}

/** Checks the order of rows: blocks ascend; in a block, transactions and events descend, and the last event is 0. */
async function isOutOfOrder(path: string, store: Store): Promise<boolean> {
  const next = (column: string) => `lead(${column}) OVER (ORDER BY file_row_number)`;
  const { odd } = await store.row(
    `SELECT count(*) AS odd FROM (
      SELECT block_height AS height, tx_index AS place, tx_id, event_index AS event, ${next('block_height')} AS next_height,
        ${next('tx_index')} AS next_place, ${next('tx_id')} AS next_id, ${next('event_index')} AS next_event
      FROM ${readFiles('parquet', [path], ['file_row_number = true'])})
    WHERE NOT coalesce(CASE WHEN next_height = height AND next_place = place THEN next_id = tx_id AND next_event = event - 1
      ELSE event = 0 AND (next_height IS NULL OR next_height > height OR (next_height = height AND next_place < place)) END, false)`,
    { odd: int },
  );
  return odd > 0;
}

/** Describes the first block whose rows have another digest than its pages. Undefined if all digests match. */
async function otherBlock(
  path: string,
  blocks: readonly BlockDigest[],
  { site, limits, store }: Verification,
): Promise<string | undefined> {
  const digests = new Map(blocks.map(({ height, digest }) => [height, digest]));
  const rows = `(SELECT *, event_index AS ord FROM ${readFiles('parquet', [path])})`;
  let found: string | undefined;
  for await (const batch of renderBatches(store, { ...site, layout: 'files', dialect: 'contract' }, blocks, limits, rows)) {
    for (const { height, digest } of batch.blocks) {
      if (digest !== digests.get(height))
        found ??= `its rows of block ${height} have the digest ${digest}, but the pages have ${digests.get(height)}`;
    }
  }
  return found;
}

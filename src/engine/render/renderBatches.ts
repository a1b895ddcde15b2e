/** Renders records to JSON in DuckDB, and yields batches of complete blocks. Memory depends only on the limits. */
import { isWithin, portionsOf } from '../../duckdb/blockRanges.ts';
import { readBlobs, readBytes, readDoubles } from '../../duckdb/columns.ts';
import type { Store } from '../../duckdb/store.ts';
import type { Table } from '../../duckdb/table.ts';
import { SERVED_ORDER } from '../../input/canonicalRecordSql.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { JSON_TEXT, operationCode, recordJson } from './renderRecordSql.ts';
import { type Batch, BlockCutter, type ExpectedBlock, type SpareBuffers } from './servedOrder.ts';

/**
 * Yields rendered records in batches. `blocks` ascend. `records` is a table or SQL that has the canonical records of exactly these blocks,
 * in any order. Each query sorts and renders a range of blocks. `spare` has buffers that batches reuse.
 */
export async function* renderBatches(
  store: Store,
  site: Pick<Site, 'dialect' | 'layout'>,
  blocks: readonly ExpectedBlock[],
  { batchRecords, servedAtOnce }: Pick<WorkLimits, 'batchRecords' | 'servedAtOnce'>,
  records: Table | string,
  spare: SpareBuffers,
): AsyncGenerator<Batch> {
  await store.run(JSON_TEXT);
  const blob = (text: string) => `encode(${text})`;
  // DOUBLE is exact up to 2^53 - 1. Only layout `files` needs tx ids, for the names of files.
  const columns = ['block_height::DOUBLE', 'tx_index::DOUBLE', operationCode, blob(recordJson(site.dialect))];
  const contractAt = site.dialect === 'contract' ? undefined : columns.push(blob(recordJson('contract'))) - 1;
  const txIdAt = site.layout === 'archive' ? undefined : columns.push(blob('tx_id')) - 1;
  const cutter = new BlockCutter(blocks, batchRecords, spare);
  let batches = 0;
  const portions = portionsOf(blocks, servedAtOnce);
  if (portions.length > 1) countCrossing('servedAtOnce');
  for (const portion of portions) {
    const range = { first: portion[0]?.height ?? 0, last: portion.at(-1)?.height ?? -1 };
    const rows = `FROM ${records} WHERE ${isWithin(range)} ORDER BY ${SERVED_ORDER}`;
    for await (const chunk of store.stream(`SELECT ${columns.join(', ')} FROM (${rows})`)) {
      const arrivals = {
        count: chunk.rowCount,
        heights: readDoubles(chunk, 0),
        txIndexes: readDoubles(chunk, 1),
        operations: readBytes(chunk, 2),
        json: readBlobs(chunk, 3),
        contractJson: contractAt === undefined ? undefined : readBlobs(chunk, contractAt),
        txIds: txIdAt === undefined ? undefined : readBlobs(chunk, txIdAt),
      };
      for (const batch of cutter.add(arrivals)) {
        batches += 1;
        if (batches > 1) countCrossing('batchRecords');
        yield batch;
      }
    }
  }
  cutter.finish();
}

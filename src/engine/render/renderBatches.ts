/** Renders records to JSON in DuckDB, and yields batches of complete blocks. Memory depends only on the batch size. */
import { readBlobs, readBytes, readDoubles } from '../../duckdb/columns.ts';
import type { Store } from '../../duckdb/store.ts';
import type { Table } from '../../duckdb/table.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import type { Site } from '../../pages/mirrorOptions.ts';
import { JSON_TEXT, operationCode, recordJson } from './renderRecordSql.ts';
import { type Arrivals, Assembler, type Batch, type ExpectedBlock, type SpareBuffers } from './servedOrder.ts';

/**
 * Yields rendered records in batches. `records` is a table or SQL that has the canonical records of exactly `blocks`.
 * One scan reads all records, and records of incomplete blocks stay in memory. To limit this memory, loading the input
 * sorts a large source whose blocks are scattered (input/clusteredRecords.ts). `spare` has buffers that batches reuse.
 */
export async function* renderBatches(
  store: Store,
  site: Site,
  blocks: readonly ExpectedBlock[],
  { batchRecords }: Pick<WorkLimits, 'batchRecords'>,
  records: Table | string,
  spare: SpareBuffers,
): AsyncGenerator<Batch> {
  await store.run(JSON_TEXT);
  const assembler = new Assembler(blocks, batchRecords, spare);
  const blob = (text: string) => `encode(${text})`;
  // DOUBLE is exact up to 2^53 - 1. Only layout `files` needs tx ids, for the names of files.
  const columns = ['block_height::DOUBLE', 'tx_index::DOUBLE', 'ord::DOUBLE', operationCode, blob(recordJson(site.dialect))];
  const contractAt = site.dialect === 'contract' ? undefined : columns.push(blob(recordJson('contract'))) - 1;
  const txIdAt = site.layout === 'archive' ? undefined : columns.push(blob('tx_id')) - 1;
  let batches = 0;
  const take = (): Batch => {
    batches += 1;
    if (batches > 1) countCrossing('batchRecords');
    return assembler.take();
  };
  for await (const chunk of store.stream(`SELECT ${columns.join(', ')} FROM ${records}`)) {
    const arrivals: Arrivals = {
      count: chunk.rowCount,
      heights: readDoubles(chunk, 0),
      txIndexes: readDoubles(chunk, 1),
      ords: readDoubles(chunk, 2),
      operations: readBytes(chunk, 3),
      json: readBlobs(chunk, 4),
      contractJson: contractAt === undefined ? undefined : readBlobs(chunk, contractAt),
      txIds: txIdAt === undefined ? undefined : readBlobs(chunk, txIdAt),
    };
    for (let row = 0; row < arrivals.count; ) {
      row = assembler.add(arrivals, row);
      if (assembler.isWhole) yield take();
    }
    if (assembler.isReady) yield take();
  }
  assembler.finish();
}

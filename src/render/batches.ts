/**
 * Renders records to JSON in the store and brings them out as batches of whole blocks, so that memory follows the batch and not the input.
 */
import type { DuckDBBlobVector, DuckDBDataChunk } from '@duckdb/node-api';
import type { Dialect } from '../pages/lists.ts';
import type { Store } from '../store/duckdb.ts';
import { Assembler, type Batch, type ExpectedBlock } from './assembler.ts';
import { JSON_TEXT, operationCode, recordJson } from './recordSql.ts';

/** Records a batch holds at least, unless the blocks end: some 30 MB of JSON. */
const BATCH_RECORDS = 8_192;

/**
 * Yields the records of the relation `kept` (see input/load.ts), which holds these blocks and no others, batch after batch. It is scanned
 * once; input that does not hold its blocks together was sorted before.
 */
export async function* renderBatches(store: Store, dialect: Dialect, blocks: readonly ExpectedBlock[]): AsyncGenerator<Batch> {
  await store.run(JSON_TEXT);
  const assembler = new Assembler(blocks, BATCH_RECORDS);
  const contract = dialect === 'contract' ? [] : [`encode(${recordJson('contract')})`];
  // Numbers up to 2^53 - 1 are exact as DOUBLE, and cheaper to take out than BIGINT.
  const columns = ['block_height::DOUBLE', 'tx_index::DOUBLE', 'ord::DOUBLE', operationCode, 'tx_id', `encode(${recordJson(dialect)})`];
  for await (const chunk of store.stream(`SELECT ${[...columns, ...contract].join(', ')} FROM kept`)) {
    const [heights, indexes, ords, codes, ids] = [0, 1, 2, 3, 4].map((column) => chunk.getColumnVector(column));
    const json = blobs(chunk, 5);
    const contractJson = contract.length === 0 ? undefined : blobs(chunk, 6);
    let [height, txIndex, txId] = [Number.NaN, Number.NaN, ''];
    for (let row = 0; row < chunk.rowCount; row += 1) {
      const [nextHeight, nextIndex] = [Number(heights?.getItem(row)), Number(indexes?.getItem(row))];
      if (nextHeight !== height || nextIndex !== txIndex) {
        [height, txIndex, txId] = [nextHeight, nextIndex, String(ids?.getItem(row))];
      }
      const canTake = assembler.add({
        height,
        txIndex,
        ord: Number(ords?.getItem(row)),
        operation: Number(codes?.getItem(row)),
        txId,
        json: bytesOf(json, row),
        contractJson: contractJson && bytesOf(contractJson, row),
      });
      if (canTake) yield assembler.take();
    }
    if (assembler.isReady) yield assembler.take();
  }
  assembler.finish();
}

function blobs(chunk: DuckDBDataChunk, column: number): DuckDBBlobVector {
  return chunk.getColumnVector(column) as DuckDBBlobVector;
}

function bytesOf(vector: DuckDBBlobVector, row: number): Uint8Array {
  const bytes = vector.getItemBytes(row);
  if (bytes === null) throw new Error('a record was rendered as NULL');
  return bytes;
}

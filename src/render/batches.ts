/**
 * Renders records to JSON in the store and brings them out as batches of whole blocks, so that memory follows the batch and not the input.
 */
import type { DuckDBBlobVector, DuckDBDataChunk } from '@duckdb/node-api';
import type { Dialect } from '../pages/lists.ts';
import type { Store } from '../store/duckdb.ts';
import { Assembler, type Batch, type ExpectedBlock, TX_ID_LENGTH } from './assembler.ts';
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
  // Numbers up to 2^53 - 1 are exact as DOUBLE, and cheaper to take out than BIGINT. The tx id stands before the JSON, so that both come
  // out at once.
  const record = `encode(${recordJson(dialect, 'tx_id')})`;
  const columns = ['block_height::DOUBLE', 'tx_index::DOUBLE', 'ord::DOUBLE', operationCode, record, ...contract];
  for await (const chunk of store.stream(`SELECT ${columns.join(', ')} FROM kept`)) {
    const [heights, indexes, ords, codes] = [0, 1, 2, 3].map((column) => chunk.getColumnVector(column));
    const records = blobs(chunk, 4);
    const contractJson = contract.length === 0 ? undefined : blobs(chunk, 5);
    const { rowCount } = chunk;
    for (let row = 0; row < rowCount; row += 1) {
      const bytes = bytesOf(records, row);
      const canTake = assembler.add({
        height: Number(heights?.getItem(row)),
        txIndex: Number(indexes?.getItem(row)),
        ord: Number(ords?.getItem(row)),
        operation: Number(codes?.getItem(row)),
        txId: bytes.subarray(0, TX_ID_LENGTH),
        json: bytes.subarray(TX_ID_LENGTH),
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

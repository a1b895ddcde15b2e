/**
 * Renders the records of some blocks at a time, so that memory follows the batch and not the input.
 */
import type { DuckDBBlobVector, DuckDBDataChunk } from '@duckdb/node-api';
import { SERVED_ORDER } from '../input/sources.ts';
import type { Dialect } from '../pages/lists.ts';
import { type Store, toNumber, toText } from '../store/duckdb.ts';
import { JSON_TEXT, operationCode, recordJson } from './recordSql.ts';

/** A block and where its records lie in the batch. */
export interface BatchBlock {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  /** Number of its first record in the batch. */
  readonly first: number;
  readonly records: number;
}

/** Rendered records of whole blocks, in served order. Plain data: it moves to a writer's thread. */
export interface Batch {
  readonly blocks: readonly BatchBlock[];
  /** Every record's JSON, each followed by a comma, so that any run of records is one slice. */
  readonly bytes: Uint8Array;
  /** Record i is bytes[offsets[i], offsets[i + 1] - 1). Has one entry more than there are records. */
  readonly offsets: Uint32Array;
  /** The operation of every record, as its place in OPERATIONS. */
  readonly operations: Uint8Array;
  /** The transactions in served order, with the number of records of each. */
  readonly txIds: readonly string[];
  readonly txRecords: Uint32Array;
}

/** Records a batch holds at least, unless the blocks end: enough for DuckDB to use all cores, some 30 MB of JSON. */
const BATCH_RECORDS = 65_536;

const COMMA = 0x2c;

/** Yields all kept records of the store (see input/load.ts), batch after batch, heights ascending. */
export async function* renderBatches(store: Store, dialect: Dialect): AsyncGenerator<Batch> {
  await store.run(JSON_TEXT);
  const rows = await store.rows('SELECT block_height, block_hash, records FROM blocks ORDER BY block_height');
  let blocks: BatchBlock[] = [];
  let records = 0;
  for (const [i, row] of rows.entries()) {
    const block = {
      height: toNumber(row['block_height']),
      hash: toText(row['block_hash']),
      first: records,
      records: toNumber(row['records']),
    };
    blocks.push(block);
    records += block.records;
    if (records < BATCH_RECORDS && i < rows.length - 1) continue;
    yield await renderBlocks(store, dialect, blocks, records);
    blocks = [];
    records = 0;
  }
}

async function renderBlocks(store: Store, dialect: Dialect, blocks: BatchBlock[], records: number): Promise<Batch> {
  const bytes = new GrowingBytes(records * 512);
  const offsets = new Uint32Array(records + 1);
  const operations = new Uint8Array(records);
  const txIds: string[] = [];
  const txRecords: number[] = [];
  let record = 0;
  let height = -1;
  let txIndex = -1;
  const sql = `SELECT block_height, tx_index, ${operationCode}, tx_id, encode(${recordJson(dialect)})
    FROM kept WHERE block_height BETWEEN ${blocks[0]?.height} AND ${blocks.at(-1)?.height} ORDER BY ${SERVED_ORDER}`;
  for await (const chunk of store.stream(sql)) {
    const [heights, indexes, codes, ids] = [0, 1, 2, 3].map((column) => chunk.getColumnVector(column));
    const json = blobs(chunk, 4);
    for (let row = 0; row < chunk.rowCount; row += 1) {
      const [nextHeight, nextIndex] = [Number(heights?.getItem(row)), Number(indexes?.getItem(row))];
      if (nextHeight !== height || nextIndex !== txIndex) {
        [height, txIndex] = [nextHeight, nextIndex];
        txIds.push(String(ids?.getItem(row)));
        txRecords.push(0);
      }
      txRecords[txRecords.length - 1] = (txRecords.at(-1) ?? 0) + 1;
      operations[record] = Number(codes?.getItem(row));
      const item = json.getItemBytes(row);
      if (item === null) throw new Error(`a record of block ${height} was rendered as NULL`);
      bytes.add(item);
      record += 1;
      offsets[record] = bytes.length;
    }
  }
  if (record !== records) throw new Error(`blocks ${blocks[0]?.height} to ${height}: ${record} records rendered, ${records} counted`);
  return { blocks, bytes: bytes.view(), offsets, operations, txIds, txRecords: Uint32Array.from(txRecords) };
}

function blobs(chunk: DuckDBDataChunk, column: number): DuckDBBlobVector {
  return chunk.getColumnVector(column) as DuckDBBlobVector;
}

/** Bytes that grow by doubling; each addition is followed by a comma. */
class GrowingBytes {
  #bytes: Uint8Array<ArrayBuffer>;
  length = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
  }

  add(item: Uint8Array): void {
    const end = this.length + item.length + 1;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(item, this.length);
    this.#bytes[end - 1] = COMMA;
    this.length = end;
  }

  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}

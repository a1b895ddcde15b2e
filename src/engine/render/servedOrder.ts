/** Cuts records in served order, in which the last record of a block comes first, into batches of complete blocks. */
import { blockDigest } from '../../contract/blockDigest.ts';
import type { Blobs } from '../../duckdb/columns.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { enlarged, RecordBytes, type RecordSlices, sliceRecords } from './recordBytes.ts';

/** A block to render. `records` is the number of its records that will arrive. */
export interface ExpectedBlock {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  readonly records: number;
}

/** A block, and the positions of its first record and its first transaction in the batch. */
export interface BatchBlock extends ExpectedBlock {
  readonly first: number;
  readonly firstTx: number;
  readonly transactions: number;
  /** Number of records of each operation, in the order of OPERATIONS. */
  readonly operations: readonly number[];
  /** Digest of the records (contract/blockDigest.ts): 64 hex digits. */
  readonly digest: string;
}

/** Rendered records of complete blocks, each in served order. Plain data, so that a writer thread can receive it. */
export interface Batch extends RecordSlices {
  readonly blocks: readonly BatchBlock[];
  /** Operation of each record, as its index in OPERATIONS. */
  readonly operations: Uint8Array;
  /** Transactions in served order: TX_ID_LENGTH hex digits (ASCII) each. Empty in layout `archive`. */
  readonly txIds: Uint8Array;
  /** Number of records of each transaction, in the same order. */
  readonly txRecords: Uint32Array;
}

export const TX_ID_LENGTH = 64;

/** Columns of arriving records: row i of each column belongs to one record. */
export interface Arrivals {
  readonly count: number;
  readonly heights: Float64Array;
  readonly txIndexes: Float64Array;
  readonly operations: Uint8Array;
  /** TX_ID_LENGTH hex digits without prefix; undefined in layout `archive`. */
  readonly txIds: Blobs | undefined;
  /** JSON of each record, followed by a comma. */
  readonly json: Blobs;
  /** JSON in the contract dialect, for digests; undefined when `json` is in that dialect. */
  readonly contractJson: Blobs | undefined;
}

/** Buffers of written batches. New batches reuse them, because new buffers are filled with zeros, and cause garbage collections. */
export type SpareBuffers = Uint8Array<ArrayBuffer>[];

/** Average size of a record's JSON in bytes, from which the first size of a buffer is computed. */
const USUAL_RECORD_BYTES = 560;

/** Cuts the records of `expected` blocks into batches. Both must be in the same order: heights ascending. */
export class BlockCutter {
  /** Maximum number of records in a batch. It may exceed `batchRecords`, because a batch has only complete blocks. */
  readonly #room: number;
  /** Index of the current block in `expected`. */
  #at = 0;
  #open: OpenBatch;

  /** `batchRecords` is the minimum number of records in a batch, except the last. Takes buffers from `spare`. */
  constructor(
    private readonly expected: readonly ExpectedBlock[],
    private readonly batchRecords: number,
    private readonly spare: SpareBuffers = [],
  ) {
    const all = expected.reduce((sum, block) => sum + block.records, 0);
    const largest = expected.reduce((most, block) => Math.max(most, block.records), 0);
    this.#room = Math.min(batchRecords + largest, all);
    this.#open = new OpenBatch(this.#room, spare.pop());
  }

  /** Adds records, and yields complete batches. Throws if a block has another number of records than expected. */
  *add(arrivals: Arrivals): Generator<Batch> {
    const { heights, count } = arrivals;
    for (let row = 0; row < count; ) {
      const block = this.expected[this.#at];
      if (block === undefined || heights[row] !== block.height) this.#fail(heights[row]);
      const most = Math.min(count, row + block.records - this.#open.arrived);
      let end = row + 1;
      while (end < most && heights[end] === block.height) end += 1;
      this.#open.add(arrivals, row, end);
      row = end;
      if (this.#open.arrived < block.records) continue;
      this.#open.end(block);
      this.#at += 1;
      if (this.#open.count >= this.batchRecords || this.#at === this.expected.length) {
        yield this.#open.batch();
        this.#open = new OpenBatch(this.#at < this.expected.length ? this.#room : 0, this.spare.pop());
      }
    }
  }

  /** Must be called after the last record. Throws if a block has fewer records than expected. */
  finish(): void {
    if (this.#at < this.expected.length) this.#fail(undefined);
  }

  /** Throws, because the block of a record is not the current one. The record is missing at the end. */
  #fail(height: number | undefined): never {
    const [block, before] = [this.expected[this.#at], this.expected[this.#at - 1]];
    if (height !== undefined && height === before?.height) throw new Error(`block ${height} has more records than were counted`);
    if (height !== undefined && !this.expected.some((one) => one.height === height))
      throw new Error(`unexpected records of block ${height}, which was not counted`);
    throw new Error(`block ${block?.height} has fewer records than were counted`);
  }
}

/** The batch to which records are added. */
class OpenBatch {
  readonly #json: RecordBytes;
  #contract: RecordBytes | undefined;
  readonly #operations: Uint8Array<ArrayBuffer>;
  #txIds = new Uint8Array(0);
  readonly #txRecords: number[] = [];
  readonly #blocks: BatchBlock[] = [];
  /** Index of the first record and of the first transaction of the block that is not complete. */
  #first = 0;
  #firstTx = 0;
  /** Index in its block of the last transaction of this block. */
  #lastTx = Number.NaN;

  constructor(
    private readonly room: number,
    bytes: Uint8Array<ArrayBuffer> | undefined,
  ) {
    this.#json = new RecordBytes(room, bytes ?? room * USUAL_RECORD_BYTES);
    this.#operations = new Uint8Array(room);
  }

  get count(): number {
    return this.#json.count;
  }

  /** Number of records of the block that is not complete. */
  get arrived(): number {
    return this.count - this.#first;
  }

  /** Begins a transaction, whose id is in row `row` of `txIds`. */
  #beginTransaction(txIds: Blobs | undefined, row: number): void {
    this.#txRecords.push(0);
    if (txIds === undefined) return;
    const end = this.#txRecords.length * TX_ID_LENGTH;
    const least = Math.max(end, this.room * (TX_ID_LENGTH / 2));
    if (end > this.#txIds.length) this.#txIds = enlarged(this.#txIds, least, (length) => new Uint8Array(length));
    txIds.copyTo(this.#txIds, end - TX_ID_LENGTH, row, row + 1);
  }

  /** Adds rows of the block that is not complete. */
  add({ txIndexes, txIds, operations, json, contractJson }: Arrivals, from: number, to: number): void {
    for (let row = from; row < to; row += 1) {
      const txIndex = txIndexes[row] ?? 0;
      if (txIndex !== this.#lastTx) this.#beginTransaction(txIds, row);
      this.#lastTx = txIndex;
      this.#txRecords[this.#txRecords.length - 1] = (this.#txRecords.at(-1) ?? 0) + 1;
    }
    this.#operations.set(operations.subarray(from, to), this.count);
    this.#json.add(json, from, to);
    if (contractJson === undefined) return;
    this.#contract ??= new RecordBytes(this.room, this.#json.bytes.length);
    this.#contract.add(contractJson, from, to);
  }

  end(block: ExpectedBlock): void {
    const [first, firstTx] = [this.#first, this.#firstTx];
    [this.#first, this.#firstTx, this.#lastTx] = [this.count, this.#txRecords.length, Number.NaN];
    const operations = OPERATIONS.map(() => 0);
    for (const code of this.#operations.subarray(first, this.count)) operations[code] = (operations[code] ?? 0) + 1;
    const digest = blockDigest(sliceRecords(this.#contract ?? this.#json, first, this.count));
    this.#blocks.push({ ...block, first, firstTx, transactions: this.#firstTx - firstTx, operations, digest });
  }

  batch(): Batch {
    const { bytes, offsets } = this.#json;
    const txRecords = Uint32Array.from(this.#txRecords);
    return { blocks: this.#blocks, bytes, offsets, operations: this.#operations, txIds: this.#txIds, txRecords };
  }
}

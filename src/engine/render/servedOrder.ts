/**
 * Assembles records that arrive in any order into complete blocks in served order: the last record of a block comes
 * first. In most input, the records of a block are adjacent, so only one batch is in memory. Records that arrive in
 * served order are not sorted or copied.
 */
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

/** A block, and the position of its records and transactions in the batch. */
export interface BatchBlock extends ExpectedBlock {
  /** Index of its first record in the batch. */
  readonly first: number;
  /** Index of its first transaction in the batch. */
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
  /** Position of the record in its transaction. Records are served by descending position. */
  readonly ords: Float64Array;
  readonly operations: Uint8Array;
  /** TX_ID_LENGTH hex digits without prefix; undefined in layout `archive`. */
  readonly txIds: Blobs | undefined;
  /** JSON of each record, followed by a comma. */
  readonly json: Blobs;
  /** JSON in the contract dialect, for digests; undefined when `json` is in that dialect. */
  readonly contractJson: Blobs | undefined;
}

/**
 * Buffers of batches that were written. New batches reuse them, because Node fills each new buffer with zeros, and many
 * new buffers cause many garbage collections.
 */
export type SpareBuffers = Uint8Array<ArrayBuffer>[];

/** Average size of a record's JSON in bytes, from which the first size of a buffer is computed. */
const USUAL_RECORD_BYTES = 560;

/** Collects arriving records until the caller can take complete blocks as a batch. */
export class Assembler {
  readonly #expected: ReadonlyMap<number, ExpectedBlock>;
  /** Maximum number of records in a batch. It may exceed `batchRecords`, because a batch has only complete blocks. */
  readonly #room: number;
  /**
   * Incomplete blocks by height. `missing` is the number of records that have not arrived. `rank` numbers blocks in the
   * order in which their first records arrive.
   */
  readonly #open = new Map<number, { rank: number; missing: number }>();
  #current = { height: Number.NaN, rank: 0, missing: 0 };
  #complete: { rank: number; block: ExpectedBlock }[] = [];
  /** True when a batch can be taken without copying, because no incomplete block has records. */
  isWhole = false;
  #completeRecords = 0;
  #nextRank = 0;
  #left: number;
  #records: RecordColumns;

  /** `batchRecords` is the minimum number of records in a batch, except the last. Takes buffers from `spare`. */
  constructor(
    expected: readonly ExpectedBlock[],
    private readonly batchRecords: number,
    private readonly spare: SpareBuffers = [],
  ) {
    this.#expected = new Map(expected.map((block) => [block.height, block]));
    this.#left = expected.length;
    const all = expected.reduce((sum, block) => sum + block.records, 0);
    const largest = expected.reduce((most, block) => Math.max(most, block.records), 0);
    this.#room = Math.min(batchRecords + largest, all);
    this.#records = new RecordColumns(this.#room, spare.pop());
  }

  /**
   * Adds records from row `from` on. Stops at the end, or as soon as a batch can be taken without copying (`isWhole`).
   * Returns the next row. Throws when a block is unknown or has more records than expected.
   */
  add(arrivals: Arrivals, from: number): number {
    const { heights, count } = arrivals;
    this.isWhole = false;
    for (let row = from; row < count && !this.isWhole; ) {
      const height = heights[row] ?? Number.NaN;
      if (height !== this.#current.height) this.#turnTo(height);
      const current = this.#current;
      if (current.missing === 0) throw new Error(`block ${height} has more records than were counted`);
      let end = row + 1;
      while (end < count && heights[end] === height && end - row < current.missing) end += 1;
      this.#records.add(arrivals, row, end, current.rank);
      current.missing -= end - row;
      from = end;
      row = end;
      if (current.missing === 0) this.#end(height, current.rank);
    }
    return from;
  }

  #end(height: number, rank: number): void {
    const block = this.#blockAt(height);
    this.#open.delete(height);
    this.#complete.push({ rank, block });
    this.#completeRecords += block.records;
    this.#left -= 1;
    this.isWhole = this.#completeRecords >= this.batchRecords && this.#completeRecords === this.#records.count;
  }

  /**
   * True when a batch can be taken. If other blocks are still incomplete, `take` copies their records to the next
   * batch.
   */
  get isReady(): boolean {
    return this.#completeRecords >= this.batchRecords || (this.#left === 0 && this.#complete.length > 0);
  }

  /** Returns the complete blocks as a batch. Records of incomplete blocks stay. */
  take(): Batch {
    const records = this.#records;
    const complete = this.#complete.sort((a, b) => a.rank - b.rank);
    this.#complete = [];
    this.#records = new RecordColumns(this.#room, this.spare.pop());
    let chosen: number[] | undefined;
    if (this.#completeRecords < records.count) {
      const ranks = new Set(complete.map(({ rank }) => rank));
      chosen = [];
      for (let i = 0; i < records.count; i += 1) {
        if (ranks.has(records.ranks[i] ?? 0)) chosen.push(i);
        else this.#records.copy(records, i);
      }
    }
    this.#completeRecords = 0;
    return batchOf(records, chosen, complete);
  }

  /** Throws when a block has fewer records than were counted, for example because its file changed meanwhile. */
  finish(): void {
    if (this.#left > 0) throw new Error(`${this.#left} block(s) have fewer records than were counted, first ${[...this.#open.keys()][0]}`);
  }

  #blockAt(height: number): ExpectedBlock {
    const block = this.#expected.get(height);
    if (block === undefined) throw new Error(`unexpected records of block ${height}, which was not counted`);
    return block;
  }

  #turnTo(height: number): void {
    let open = this.#open.get(height);
    if (open === undefined) {
      open = { rank: this.#nextRank, missing: this.#blockAt(height).records };
      this.#nextRank += 1;
      this.#open.set(height, open);
    }
    this.#current = Object.assign(open, { height });
  }
}

/** Records in order of arrival, column by column. */
class RecordColumns {
  readonly json: RecordBytes;
  contract: RecordBytes | undefined;
  ranks: Uint32Array<ArrayBuffer>;
  txIndexes: Float64Array<ArrayBuffer>;
  ords: Float64Array<ArrayBuffer>;
  operations: Uint8Array<ArrayBuffer>;
  /** Index of each record's tx id in `txIds`. Consecutive records of a transaction share it. */
  ids: Uint32Array<ArrayBuffer>;
  txIds: Uint8Array<ArrayBuffer>;
  #idCount = 0;

  constructor(room: number, bytes?: Uint8Array<ArrayBuffer>) {
    this.json = new RecordBytes(room, bytes ?? room * USUAL_RECORD_BYTES);
    this.ranks = new Uint32Array(room);
    this.txIndexes = new Float64Array(room);
    this.ords = new Float64Array(room);
    this.operations = new Uint8Array(room);
    this.ids = new Uint32Array(room);
    this.txIds = new Uint8Array(0);
  }

  get count(): number {
    return this.json.count;
  }

  /** Adds rows `from` to `to - 1`, which belong to the block of this rank. */
  add(arrivals: Arrivals, from: number, to: number, rank: number): void {
    const { txIndexes, ords, operations, txIds, json, contractJson } = arrivals;
    const start = this.count;
    this.#makeRoom(start + to - from);
    this.ranks.fill(rank, start, start + to - from);
    this.txIndexes.set(txIndexes.subarray(from, to), start);
    this.ords.set(ords.subarray(from, to), start);
    this.operations.set(operations.subarray(from, to), start);
    for (let row = from; row < to; row += 1) {
      const i = start + row - from;
      if (this.#beginsTx(i)) this.#addId(txIds && ((target, at) => txIds.copyTo(target, at, row, row + 1)));
      this.ids[i] = this.#idCount - 1;
    }
    this.json.addAll(json, from, to);
    if (contractJson === undefined) return;
    this.contract ??= new RecordBytes(this.ranks.length, this.json.bytes.length);
    this.contract.addAll(contractJson, from, to);
  }

  copy(from: RecordColumns, i: number): void {
    const at = this.count;
    this.#makeRoom(at + 1);
    this.ranks[at] = from.ranks[i] ?? 0;
    this.txIndexes[at] = from.txIndexes[i] ?? 0;
    this.ords[at] = from.ords[i] ?? 0;
    this.operations[at] = from.operations[i] ?? 0;
    if (this.#beginsTx(at)) this.#addId(from.txIds.length === 0 ? undefined : (target, to) => target.set(from.txId(i), to));
    this.ids[at] = this.#idCount - 1;
    this.json.add(sliceRecords(from.json, i, i + 1));
    if (from.contract === undefined) return;
    this.contract ??= new RecordBytes(this.ranks.length, this.json.bytes.length);
    this.contract.add(sliceRecords(from.contract, i, i + 1));
  }

  #beginsTx(i: number): boolean {
    return i === 0 || this.txIndexes[i] !== this.txIndexes[i - 1] || this.ranks[i] !== this.ranks[i - 1];
  }

  txId(i: number): Uint8Array {
    const at = (this.ids[i] ?? 0) * TX_ID_LENGTH;
    return this.txIds.subarray(at, at + TX_ID_LENGTH);
  }

  /** Counts a transaction. `write` stores its id, and is undefined if no file needs the id. */
  #addId(write: ((target: Uint8Array, at: number) => void) | undefined): void {
    this.#idCount += 1;
    if (write === undefined) return;
    const end = this.#idCount * TX_ID_LENGTH;
    if (end > this.txIds.length) {
      this.txIds = enlarged(this.txIds, Math.max(end, this.ranks.length * (TX_ID_LENGTH / 2)), (length) => new Uint8Array(length));
    }
    write(this.txIds, end - TX_ID_LENGTH);
  }

  #makeRoom(room: number): void {
    if (room <= this.ranks.length) return;
    this.ranks = enlarged(this.ranks, room, (length) => new Uint32Array(length));
    this.txIndexes = enlarged(this.txIndexes, room, (length) => new Float64Array(length));
    this.ords = enlarged(this.ords, room, (length) => new Float64Array(length));
    this.operations = enlarged(this.operations, room, (length) => new Uint8Array(length));
    this.ids = enlarged(this.ids, room, (length) => new Uint32Array(length));
  }

  /** Compares by rank of the block, and then by served order. Negative if record `a` comes before record `b`. */
  compare(a: number, b: number): number {
    return (
      (this.ranks[a] ?? 0) - (this.ranks[b] ?? 0) ||
      (this.txIndexes[b] ?? 0) - (this.txIndexes[a] ?? 0) ||
      (this.ords[b] ?? 0) - (this.ords[a] ?? 0)
    );
  }

  get isInServedOrder(): boolean {
    for (let i = 1; i < this.count; i += 1) if (this.compare(i - 1, i) >= 0) return false;
    return true;
  }
}

/** Makes the batch of complete blocks from the `chosen` records, or else from all records. Sorts them when needed. */
function batchOf(records: RecordColumns, chosen: number[] | undefined, complete: readonly { block: ExpectedBlock }[]): Batch {
  if (chosen === undefined && records.isInServedOrder) return assembleBatch(records, complete);
  const order = chosen ?? Array.from({ length: records.count }, (_, i) => i);
  order.sort((a, b) => records.compare(a, b));
  const sorted = new RecordColumns(order.length);
  for (const i of order) sorted.copy(records, i);
  return assembleBatch(sorted, complete);
}

/** Makes the batch from records in served order. The records of a transaction are adjacent, so each id occurs once. */
function assembleBatch(records: RecordColumns, complete: readonly { block: ExpectedBlock }[]): Batch {
  const txRecords: number[] = [];
  const blocks: BatchBlock[] = [];
  let first = 0;
  for (const { block } of complete) {
    const firstTx = txRecords.length;
    const operations = OPERATIONS.map(() => 0);
    for (let i = first; i < first + block.records; i += 1) {
      const code = records.operations[i] ?? 0;
      operations[code] = (operations[code] ?? 0) + 1;
      if (records.ids[i] === txRecords.length - 1) txRecords[txRecords.length - 1] = (txRecords.at(-1) ?? 0) + 1;
      else txRecords.push(1);
    }
    const digest = blockDigest(sliceRecords(records.contract ?? records.json, first, first + block.records));
    blocks.push({ ...block, first, firstTx, transactions: txRecords.length - firstTx, operations, digest });
    first += block.records;
  }
  const { bytes, offsets } = records.json;
  return { blocks, bytes, offsets, operations: records.operations, txIds: records.txIds, txRecords: Uint32Array.from(txRecords) };
}

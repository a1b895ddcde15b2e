/**
 * Puts records that arrive in any order together to whole blocks in served order. Input mostly arrives in an order that keeps blocks
 * together, and then what is held is a batch; where it arrives in served order, nothing is sorted or copied.
 */
import { blockDigest } from '../contract/blockDigest.ts';
import { OPERATIONS } from '../pages/lists.ts';
import type { Blobs } from '../store/columns.ts';
import { enlarged, RecordBytes, type RecordSlices, sliceRecords } from './recordBytes.ts';

/** A block that is to be rendered: how many records of it will arrive. */
export interface ExpectedBlock {
  readonly height: number;
  /** 64 hex digits, no prefix. */
  readonly hash: string;
  readonly records: number;
}

/** A block and where its records and transactions lie in the batch. */
export interface BatchBlock extends ExpectedBlock {
  /** Number of its first record in the batch. */
  readonly first: number;
  /** Number of its first transaction in the batch, and how many it has. */
  readonly firstTx: number;
  readonly transactions: number;
  /** Records of each operation, in the order of OPERATIONS. */
  readonly operations: readonly number[];
  /** See contract/blockDigest.ts; 64 hex digits. */
  readonly digest: string;
}

/** Rendered records of whole blocks, each block's in served order. Plain data: it moves to a writer's thread. */
export interface Batch extends RecordSlices {
  readonly blocks: readonly BatchBlock[];
  /** The operation of every record, as its place in OPERATIONS. */
  readonly operations: Uint8Array;
  /** The transactions in served order: TX_ID_LENGTH hex digits (ASCII) each, unless nobody needs them, and how many records. */
  readonly txIds: Uint8Array;
  readonly txRecords: Uint32Array;
}

/** Hex digits of a tx id. */
export const TX_ID_LENGTH = 64;

/** Records as they arrive: row i of every column is one record. */
export interface Arrivals {
  readonly count: number;
  readonly heights: Float64Array;
  readonly txIndexes: Float64Array;
  /** Descending is served order within a transaction. */
  readonly ords: Float64Array;
  readonly operations: Uint8Array;
  /** TX_ID_LENGTH hex digits, without prefix; left out when nobody needs them. */
  readonly txIds: Blobs | undefined;
  /** Each record's JSON and a comma. */
  readonly json: Blobs;
  /** The same in the contract dialect, when `json` is in another. */
  readonly contractJson: Blobs | undefined;
}

/** Bytes that a record has on average; only the first guess of a buffer's size. */
const USUAL_RECORD_BYTES = 560;

export class Assembler {
  readonly #expected: ReadonlyMap<number, ExpectedBlock>;
  readonly #batchRecords: number;
  /** Records that a batch may come to: it ends with a whole block. */
  readonly #room: number;
  /** By height, what the blocks still lack; a block gets its rank, the order of arrival, with its first record. */
  readonly #open = new Map<number, { rank: number; missing: number }>();
  #current = { height: Number.NaN, rank: 0, missing: 0 };
  #complete: { rank: number; block: ExpectedBlock }[] = [];
  /** Whether a batch can be taken without copying. */
  isWhole = false;
  #completeRecords = 0;
  #nextRank = 0;
  #left: number;
  #held: Held;

  /** `batchRecords` is how many records of whole blocks make a batch. */
  constructor(expected: readonly ExpectedBlock[], batchRecords: number) {
    this.#expected = new Map(expected.map((block) => [block.height, block]));
    this.#left = expected.length;
    this.#batchRecords = batchRecords;
    const all = expected.reduce((sum, block) => sum + block.records, 0);
    const largest = expected.reduce((most, block) => Math.max(most, block.records), 0);
    this.#room = Math.min(batchRecords + largest, all);
    this.#held = new Held(this.#room);
  }

  /**
   * Takes records from row `from` on, up to the end or to where a batch can be taken without copying (`isWhole`). Returns how far it came.
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
      this.#held.add(arrivals, row, end, current.rank);
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
    this.isWhole = this.#completeRecords >= this.#batchRecords && this.#completeRecords === this.#held.count;
  }

  /** Whether there is a batch to take, at the cost of copying it when it is mixed with others. */
  get isReady(): boolean {
    return this.#completeRecords >= this.#batchRecords || (this.#left === 0 && this.#complete.length > 0);
  }

  /** The complete blocks. What is left of others stays. */
  take(): Batch {
    const held = this.#held;
    const complete = this.#complete.sort((a, b) => a.rank - b.rank);
    this.#complete = [];
    this.#held = new Held(this.#room);
    if (this.#completeRecords < held.count) {
      const ranks = new Set(complete.map(({ rank }) => rank));
      const chosen: number[] = [];
      for (let i = 0; i < held.count; i += 1) {
        if (ranks.has(held.ranks[i] ?? 0)) chosen.push(i);
        else this.#held.copy(held, i);
      }
      this.#completeRecords = 0;
      return batchOf(held, chosen, complete);
    }
    this.#completeRecords = 0;
    return batchOf(held, undefined, complete);
  }

  /** Throws when a block lacks records: what was counted and what was read differ. */
  finish(): void {
    if (this.#left > 0) throw new Error(`${this.#left} block(s) have fewer records than were counted, first ${[...this.#open.keys()][0]}`);
  }

  #blockAt(height: number): ExpectedBlock {
    const block = this.#expected.get(height);
    if (block === undefined) throw new Error(`records of block ${height}, which was not counted`);
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

/** Records as they arrived. */
class Held {
  readonly json: RecordBytes;
  contract: RecordBytes | undefined;
  ranks: Uint32Array<ArrayBuffer>;
  txIndexes: Float64Array<ArrayBuffer>;
  ords: Float64Array<ArrayBuffer>;
  operations: Uint8Array<ArrayBuffer>;
  /** Where each record's tx id stands in `txIds`; records in a row share it. */
  ids: Uint32Array<ArrayBuffer>;
  txIds: Uint8Array<ArrayBuffer>;
  #idCount = 0;

  constructor(room: number) {
    this.json = new RecordBytes(room, room * USUAL_RECORD_BYTES);
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

  /** Adds rows `from` up to, not including, `to`, which are of the block of this rank. */
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

  /** Adds record `i` of another. */
  copy(from: Held, i: number): void {
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

  /** The tx id of record `i`. */
  txId(i: number): Uint8Array {
    const at = (this.ids[i] ?? 0) * TX_ID_LENGTH;
    return this.txIds.subarray(at, at + TX_ID_LENGTH);
  }

  /** Counts a transaction, and keeps its id if there is one. */
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

  /** Negative when record `a` is served before record `b`. */
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

/** The batch of these blocks: of the `chosen` records, or of all. */
function batchOf(held: Held, chosen: number[] | undefined, complete: readonly { block: ExpectedBlock }[]): Batch {
  if (chosen === undefined && held.isInServedOrder) return describe(held, complete);
  const order = chosen ?? Array.from({ length: held.count }, (_, i) => i);
  order.sort((a, b) => held.compare(a, b));
  const sorted = new Held(order.length);
  for (const i of order) sorted.copy(held, i);
  return describe(sorted, complete);
}

/** The batch of records in served order: in that order, one id was added for each transaction. */
function describe(held: Held, complete: readonly { block: ExpectedBlock }[]): Batch {
  const txRecords: number[] = [];
  const blocks: BatchBlock[] = [];
  let first = 0;
  for (const { block } of complete) {
    const firstTx = txRecords.length;
    const operations = OPERATIONS.map(() => 0);
    for (let i = first; i < first + block.records; i += 1) {
      const code = held.operations[i] ?? 0;
      operations[code] = (operations[code] ?? 0) + 1;
      if (held.ids[i] === txRecords.length - 1) txRecords[txRecords.length - 1] = (txRecords.at(-1) ?? 0) + 1;
      else txRecords.push(1);
    }
    const digest = blockDigest(sliceRecords(held.contract ?? held.json, first, first + block.records));
    blocks.push({ ...block, first, firstTx, transactions: txRecords.length - firstTx, operations, digest });
    first += block.records;
  }
  const { bytes, offsets } = held.json;
  return { blocks, bytes, offsets, operations: held.operations, txIds: held.txIds, txRecords: Uint32Array.from(txRecords) };
}

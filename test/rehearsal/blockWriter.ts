/** Serialises the blocks of an invented chain, and mines them at the target of regtest. */
import { hash } from 'node:crypto';

/** An output that a transaction spends. */
export interface Spend {
  /** Transaction id of 32 bytes, in the byte order of hashing. */
  readonly txid: Uint8Array;
  readonly vout: number;
  readonly witness?: readonly Uint8Array[];
}

const hash256 = (bytes: Uint8Array): Buffer => hash('sha256', hash('sha256', bytes, 'buffer'), 'buffer');

const HEADER_BYTES = 80;

/** Compact form of regtest's target, the easiest one. */
const REGTEST_BITS = 0x207fffff;

/** The highest byte of a mined hash is below this value, so mining takes about two attempts per block. */
const HIGHEST_BYTE = 0x7f;

const COINBASE: Spend = { txid: new Uint8Array(32), vout: 0xffffffff };

/** Writes one block. Callers `add` its transactions in order, then call `end`. */
export class BlockWriter {
  #bytes = Buffer.alloc(1 << 16);
  #at = 0;
  readonly #txids: Buffer[] = [];

  /** Begins a block with its coinbase transaction. The input contains the height, so that no two coinbase transactions have the same id. */
  constructor(
    readonly height: number,
    coinbase: readonly Uint8Array[],
  ) {
    this.#add([COINBASE], coinbase, Uint8Array.of(3, height & 255, (height >> 8) & 255, height >> 16));
  }

  /** Number of transactions so far, which is the index of the next one. */
  get transactions(): number {
    return this.#txids.length;
  }

  /** Number of bytes of the transactions so far. */
  get bytes(): number {
    return this.#at;
  }

  /** Adds a transaction. Returns its id in the byte order of hashing. */
  add(inputs: readonly Spend[], scripts: readonly Uint8Array[]): Buffer {
    return this.#add(inputs, scripts, new Uint8Array());
  }

  /** Returns the mined block. `previous` is the hash of the previous block, in the byte order of hashing. `time` is in seconds. */
  end(previous: Uint8Array, time: number): { readonly bytes: Buffer; readonly hash: Buffer } {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32LE(0x20000000, 0);
    header.set(previous, 4);
    header.set(merkleRoot(this.#txids), 36);
    header.writeUInt32LE(time, 68);
    header.writeUInt32LE(REGTEST_BITS, 72);
    for (let nonce = 0; ; nonce++) {
      header.writeUInt32LE(nonce, 76);
      const found = hash256(header);
      if ((found[31] ?? 0) >= HIGHEST_BYTE) continue;
      return { bytes: Buffer.concat([header, compact(this.transactions), this.#bytes.subarray(0, this.#at)]), hash: found };
    }
  }

  #add(inputs: readonly Spend[], scripts: readonly Uint8Array[], scriptSig: Uint8Array): Buffer {
    const segwit = inputs.some(({ witness }) => witness !== undefined);
    const start = this.#at;
    this.#uint32(2);
    const marker = this.#at;
    if (segwit) this.#put(Uint8Array.of(0, 1));
    const body = this.#at;
    this.#putCount(inputs.length);
    for (const { txid, vout } of inputs) {
      this.#put(txid);
      this.#uint32(vout);
      this.#prefixed(scriptSig);
      this.#uint32(0xffffffff);
    }
    this.#putCount(scripts.length);
    for (const script of scripts) {
      this.#uint32(546);
      this.#uint32(0);
      this.#prefixed(script);
    }
    const end = this.#at;
    if (segwit) {
      for (const { witness = [] } of inputs) {
        this.#putCount(witness.length);
        for (const element of witness) this.#prefixed(element);
      }
    }
    this.#uint32(0);
    const part = (from: number, to: number) => this.#bytes.subarray(from, to);
    const hashed = segwit ? Buffer.concat([part(start, marker), part(body, end), part(this.#at - 4, this.#at)]) : part(start, this.#at);
    const txid = hash256(hashed);
    this.#txids.push(txid);
    return txid;
  }

  #reserve(more: number): void {
    if (this.#at + more <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(2 * this.#bytes.length, this.#at + more));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
  }

  #put(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #uint32(value: number): void {
    this.#reserve(4);
    this.#at = this.#bytes.writeUInt32LE(value, this.#at);
  }

  #putCount(value: number): void {
    this.#put(compact(value));
  }

  #prefixed(bytes: Uint8Array): void {
    this.#putCount(bytes.length);
    this.#put(bytes);
  }
}

/** Encodes an integer in Bitcoin's shortest form. */
export function compact(value: number): Uint8Array {
  if (value < 0xfd) return Uint8Array.of(value);
  if (value < 2 ** 16) return Uint8Array.of(0xfd, value & 255, value >> 8);
  return Uint8Array.of(0xfe, value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24);
}

function merkleRoot(txids: readonly Buffer[]): Buffer {
  let row = txids;
  while (row.length > 1) {
    const above: Buffer[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const left = row[i] ?? Buffer.alloc(0);
      above.push(hash256(Buffer.concat([left, row[i + 1] ?? left])));
    }
    row = above;
  }
  return row[0] ?? Buffer.alloc(32);
}

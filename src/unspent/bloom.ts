/** Bloom filter that proves that a key is not in a file, so that most lookups need no read from disk. */
import { uint32At } from '../runes/bytes.ts';

/** Bits and probes per key. With these numbers, one of 1,400 keys that are not in the file passes the filter. */
const BITS = 16;
const PROBES = 7;

export class Bloom {
  readonly #bits: number;

  constructor(readonly bytes: Uint8Array) {
    this.#bits = bytes.length * 8;
  }

  static forKeys(keys: number): Bloom {
    return new Bloom(new Uint8Array(Math.ceil((keys * BITS) / 8) + 1));
  }

  add(key: Uint8Array, at: number): void {
    const [start, step] = [startOf(key, at), stepOf(key, at)];
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = ((start + Math.imul(probe, step)) >>> 0) % this.#bits;
      this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }

  /** Returns false only if the key was not added. */
  mayHave(key: Uint8Array, at: number): boolean {
    const [start, step] = [startOf(key, at), stepOf(key, at)];
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = ((start + Math.imul(probe, step)) >>> 0) % this.#bits;
      if (((this.bytes[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }
}

// Bytes of the transaction id serve as hash values, because the id is a hash itself. The first probe also depends on the vout (the last
// four bytes), in which the outpoints of one transaction differ.
const startOf = (key: Uint8Array, at: number): number => uint32At(key, at + 8) ^ Math.imul(uint32At(key, at + 32), 0x9e3779b1);
const stepOf = (key: Uint8Array, at: number): number => uint32At(key, at + 12) | 1;

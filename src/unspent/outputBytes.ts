/** Encodes and decodes an unspent output: its script and its balances. */
import { copyOf, type LentBytes, lend, peek } from '../runes/bytes.ts';
import type { RuneOutput } from '../runes/unspentLedger.ts';

/** Maximum length of an encoded integer, in bytes: 128 bits in groups of 7. */
const MOST_BYTES = 19;

/** Maximum number of bytes that `put` copies one by one. */
const SHORT = 40;

/** Appends integers and bytes to a growing buffer. */
export class ByteWriter {
  bytes = Buffer.allocUnsafe(4096);
  length = 0;

  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(2 * this.bytes.length, this.length + more));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  /** Appends a copy of the bytes from `from` to `to`. */
  put(bytes: Uint8Array | LentBytes, from = 0, to = bytes.length): void {
    this.reserve(to - from);
    const source = bytes as Uint8Array;
    // For up to SHORT bytes, such as a script or an outpoint, a loop is faster than subarray() and set().
    if (to - from > SHORT) this.bytes.set(source.subarray(from, to), this.length);
    else for (let i = from, at = this.length; i < to; i++) this.bytes[at++] = source[i] ?? 0;
    this.length += to - from;
  }

  /** Removes all bytes. Later writes may overwrite earlier views. */
  clear(): void {
    this.length = 0;
  }

  /** Appends 4 bytes, least significant first. */
  uint32(value: number): void {
    this.reserve(4);
    this.length = this.bytes.writeUInt32LE(value, this.length);
  }

  /** Appends 8 bytes, least significant first. */
  uint64(value: bigint): void {
    this.reserve(8);
    this.length = this.bytes.writeBigUInt64LE(value, this.length);
  }

  /** Appends an integer from 0 to 2^53 - 1 in groups of 7 bits, lowest first. */
  integer(value: number): void {
    this.reserve(MOST_BYTES);
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.bytes[this.length++] = (rest % 128) | 128;
    this.bytes[this.length++] = rest;
  }

  /** Appends an integer from 0 to 2^128 - 1 in the format of `integer`. */
  amount(value: bigint): void {
    let rest = value;
    this.reserve(MOST_BYTES);
    for (; rest > BigInt(Number.MAX_SAFE_INTEGER); rest >>= 7n) this.bytes[this.length++] = Number(rest & 127n) | 128;
    this.integer(Number(rest));
  }

  /** Returns a view of all bytes, not a copy. */
  view(): Buffer {
    return this.bytes.subarray(0, this.length);
  }
}

/** Decodes the bytes of a ByteWriter. If these bytes are LentBytes, `take` also returns LentBytes. */
export class ByteReader {
  readonly #bytes: Uint8Array;

  constructor(
    bytes: Uint8Array | LentBytes,
    public at = 0,
  ) {
    this.#bytes = peek(bytes as LentBytes);
  }

  integer(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#next();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  amount(): bigint {
    // Computes the first six groups of 7 bits as a number, because bigints are slow. Most amounts need no more than six.
    let [low, scale] = [0, 1];
    for (let group = 0; group < 6; group++, scale *= 128) {
      const byte = this.#next();
      low += (byte & 127) * scale;
      if (byte < 128) return BigInt(low);
    }
    let value = BigInt(low);
    for (let shift = 42n; ; shift += 7n) {
      const byte = this.#next();
      value += BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  get isAtEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  /** Returns the next bytes as a view. The owner of the buffer may overwrite them. */
  take(length: number): LentBytes {
    this.at += length;
    return lend(this.#bytes, this.at - length, this.at);
  }

  #next(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new Error('an integer is cut off');
    return byte;
  }
}

/** Appends an output without its outpoint. */
export function writeOutput(writer: ByteWriter, { script, balances }: RuneOutput): void {
  writer.integer(script.length);
  writer.put(script);
  writer.integer(balances.length);
  let before = 0;
  for (const { rune, amount } of balances) {
    writer.integer(rune - before);
    writer.amount(amount);
    before = rune;
  }
}

/** Decodes an output. Copies the script, so that the result may be kept. */
export function readOutput(reader: ByteReader): RuneOutput {
  const script = copyOf(reader.take(reader.integer()));
  const balances: { rune: number; amount: bigint }[] = [];
  let rune = 0;
  for (let left = reader.integer(); left > 0; left--) {
    rune += reader.integer();
    balances.push({ rune, amount: reader.amount() });
  }
  return { script, balances };
}

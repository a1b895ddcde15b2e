import { createHash } from 'node:crypto';

/** An input: the key of the spent output (see `outpointKey`), and its witness. The witness elements are views of the block's bytes. */
interface Input {
  readonly outpoint: string;
  readonly witness: readonly Buffer[];
}

/** A transaction. The id has one character for each byte. The scripts of the outputs are views of the block's bytes. */
export interface Transaction {
  readonly id: string;
  readonly inputs: readonly Input[];
  readonly scripts: readonly Buffer[];
}

/** A block: hashes as lower-case hex in the usual byte order, time in seconds since 1970. */
export interface Block {
  readonly hash: string;
  readonly previous: string;
  readonly time: number;
  readonly transactions: readonly Transaction[];
}

/** Returns the key of an output: the 32 bytes of the transaction id and 4 bytes of the index, one character for each byte. */
export function outpointKey(id: string, vout: number): string {
  return id + String.fromCharCode(vout & 255, (vout >> 8) & 255, (vout >> 16) & 255, vout >>> 24);
}

/** Converts an outpoint in the form `txid:vout` to a key. */
export function parseOutpoint(text: string): string {
  return outpointKey(Buffer.from(text.slice(0, 64), 'hex').reverse().toString('latin1'), Number(text.slice(65)));
}

/** Converts an output's key to the form `txid:vout`. */
export function outpointText(key: string): string {
  return `${hexOfId(key.slice(0, 32))}:${Buffer.from(key, 'latin1').readUInt32LE(32)}`;
}

/** Converts a transaction id to lower-case hex in the usual byte order. */
export function hexOfId(id: string): string {
  return Buffer.from(id, 'latin1').reverse().toString('hex');
}

/** Parses a serialised block, with or without witnesses. Throws a RangeError if the block is too short or too long. */
export function parseBlock(bytes: Uint8Array): Block {
  const reader = new Reader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const header = reader.take(80);
  const transactions: Transaction[] = [];
  for (let left = reader.size(); left > 0; left--) transactions.push(readTransaction(reader));
  if (!reader.ended) throw new RangeError('the block has bytes behind its last transaction');
  return {
    hash: hexOfId(sha256d(header)),
    previous: hexOfId(header.toString('latin1', 4, 36)),
    time: header.readUInt32LE(68),
    transactions,
  };
}

function readTransaction(reader: Reader): Transaction {
  const version = reader.take(4);
  const segwit = reader.peek() === 0;
  if (segwit && reader.take(2)[1] !== 1) throw new RangeError('a transaction without inputs has an unknown marker');
  const start = reader.position;
  const outpoints: string[] = [];
  for (let left = reader.size(); left > 0; left--) {
    outpoints.push(reader.take(36).toString('latin1'));
    reader.take(reader.size());
    reader.take(4);
  }
  const scripts: Buffer[] = [];
  for (let left = reader.size(); left > 0; left--) {
    reader.take(8);
    scripts.push(reader.take(reader.size()));
  }
  const body = reader.since(start);
  const inputs = outpoints.map((outpoint) => ({ outpoint, witness: segwit ? readWitness(reader) : [] }));
  return { id: sha256d(version, body, reader.take(4)), inputs, scripts };
}

function readWitness(reader: Reader): Buffer[] {
  const elements: Buffer[] = [];
  for (let left = reader.size(); left > 0; left--) elements.push(reader.take(reader.size()));
  return elements;
}

/** Returns the double SHA-256 of the joined parts, with one character for each byte. */
function sha256d(...parts: Buffer[]): string {
  const inner = createHash('sha256');
  for (const part of parts) inner.update(part);
  return createHash('sha256').update(inner.digest()).digest('binary');
}

class Reader {
  readonly #bytes: Buffer;
  position = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.position === this.#bytes.length;
  }

  peek(): number | undefined {
    return this.#bytes[this.position];
  }

  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.position);
  }

  /** Returns a view of the next bytes. */
  take(length: number): Buffer {
    const end = this.position + length;
    if (end > this.#bytes.length) throw new RangeError(`the block ends at byte ${this.#bytes.length}, in the middle of a field`);
    const view = this.#bytes.subarray(this.position, end);
    this.position = end;
    return view;
  }

  /** Reads an integer in Bitcoin's compact form. */
  size(): number {
    const first = this.take(1).readUInt8();
    if (first < 0xfd) return first;
    if (first === 0xfd) return this.take(2).readUInt16LE();
    if (first === 0xfe) return this.take(4).readUInt32LE();
    return Number(this.take(8).readBigUInt64LE());
  }
}

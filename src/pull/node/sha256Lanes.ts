/**
 * SHA-256 of four messages at once, as WebAssembly with 128-bit vectors. A block of a chain needs 15,000 hashes of short
 * messages, and a call of `node:crypto` for each takes twice the time, most of it around the hash function.
 *
 * This file makes the code of the module: the rounds of FIPS 180-4, in which each word is a vector of four words, one of
 * each message.
 */
import { ROUNDS, START } from '../../format/sha256.ts';
import { moveWords, type Parts } from '../../runes/bytes.ts';

/** Bytes of code. A nested list is one instruction after its operands. */
type Code = readonly (number | Code)[];

/** Encodes an integer from 0 on in groups of 7 bits (LEB128). */
const leb = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]);
/** Encodes the operand of `i32.const`, whose last group has a sign. */
const signed = (value: number): number[] => (value < 64 ? [value] : [(value & 127) | 128, ...signed(value >>> 7)]);
const bytesOf = (value: number): number[] => [0, 8, 16, 24].map((shift) => (value >>> shift) & 255);

const get = (local: number): Code => [0x20, leb(local)];
const set = (local: number, value: Code): Code => [value, 0x21, leb(local)];
const vector = (instruction: number, ...operands: Code[]): Code => [...operands, 0xfd, leb(instruction)];
const splat = (value: number): Code => [0xfd, 12, ...new Array(4).fill(bytesOf(value))];
const load = (address: Code, offset: number): Code => [address, 0xfd, 0, 0, leb(offset)];
const store = (address: Code, offset: number, value: Code): Code => [address, value, 0xfd, 11, 0, leb(offset)];
/** Picks bytes of two vectors: 0 to 15 are the bytes of the first, 16 to 31 of the second. */
const shuffle = (a: Code, b: Code, picked: readonly number[]): Code => [a, b, 0xfd, 13, picked];
const words = (...picked: readonly number[]): number[] => picked.flatMap((word) => [0, 1, 2, 3].map((byte) => 4 * word + byte));

const xor = (a: Code, b: Code): Code => vector(0x51, a, b);
const select = (mask: Code, ones: Code, zeros: Code): Code => vector(0x52, ones, zeros, mask);
const add = (...terms: Code[]): Code => terms.reduce((sum, one) => vector(0xae, sum, one));
const right = (value: Code, bits: number): Code => vector(0xad, value, [0x41, signed(bits)]);
const rotate = (value: Code, bits: number): Code => vector(0x50, right(value, bits), vector(0xab, value, [0x41, signed(32 - bits)]));
const mix = (value: Code, a: number, b: number, last: Code): Code => xor(xor(rotate(value, a), rotate(value, b)), last);

const SWAP = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];
const LANES = [0, 1, 2, 3];
/** Locals: the address of the state, the address of each message, then vectors. */
const [STATE, MESSAGES, WORDS, LETTERS, SPARE] = [0, 1, 5, 21, 31];

/** Returns the function that adds 64 bytes of each message to the state, which has 8 vectors. */
function compress(): Code {
  const code: Code[] = [];
  // Reads 16 bytes of each message at a time, and turns rows into columns.
  for (let quad = 0; quad < 4; quad++) {
    const rows = LANES.map((lane) => shuffle(load(get(MESSAGES + lane), 16 * quad), load(get(MESSAGES + lane), 16 * quad), SWAP));
    for (const lane of LANES) code.push(set(SPARE + lane, rows[lane] ?? []));
    for (const half of [0, 2]) {
      const pair = words(half, 4 + half, half + 1, 5 + half);
      code.push(set(LETTERS, shuffle(get(SPARE), get(SPARE + 1), pair)), set(LETTERS + 1, shuffle(get(SPARE + 2), get(SPARE + 3), pair)));
      const at = WORDS + 4 * quad + half;
      code.push(set(at, shuffle(get(LETTERS), get(LETTERS + 1), words(0, 1, 4, 5))));
      code.push(set(at + 1, shuffle(get(LETTERS), get(LETTERS + 1), words(2, 3, 6, 7))));
    }
  }
  for (let i = 0; i < 8; i++) code.push(set(LETTERS + i, load(get(STATE), 16 * i)));
  for (let round = 0; round < 64; round++) {
    // Each round of the standard moves the letters on by one. Instead, each round here gives them other names.
    const letter = (i: number) => LETTERS + ((i - round + 64) % 8);
    const value = (i: number) => get(letter(i));
    const [a, b, c, d] = [value(0), value(1), value(2), value(3)];
    const [e, f, g, h] = [value(4), value(5), value(6), value(7)];
    const word = (back: number) => WORDS + ((round - back + 16) % 16);
    const [near, far] = [get(word(2)), get(word(15))];
    if (round >= 16) {
      const [small, smaller] = [mix(far, 7, 18, right(far, 3)), mix(near, 17, 19, right(near, 10))];
      code.push(set(word(0), add(get(word(0)), get(word(7)), small, smaller)));
    }
    code.push(set(SPARE, add(h, get(word(0)), splat(ROUNDS[round] ?? 0), mix(e, 6, 11, rotate(e, 25)), select(e, f, g))));
    code.push(set(letter(3), add(d, get(SPARE))));
    code.push(set(letter(7), add(get(SPARE), mix(a, 2, 13, rotate(a, 22)), select(xor(a, b), c, a))));
  }
  for (let i = 0; i < 8; i++) code.push(store(get(STATE), 16 * i, add(load(get(STATE), 16 * i), get(LETTERS + i))));
  return code;
}

/** Appends the bytes of code to a list. Much faster than `flat(Infinity)`. */
function append(code: Code, list: number[]): number[] {
  for (const part of code) {
    if (typeof part === 'number') list.push(part);
    else append(part, list);
  }
  return list;
}

/** Returns the number of bytes of code, then these bytes. */
function sized(content: Code): Code {
  const bytes = append(content, []);
  return [leb(bytes.length), bytes];
}

/** Returns the module: type, import of the memory, export and code of its function. */
function moduleBytes(): Uint8Array {
  const text = (letters: string) => sized(Array.from(letters, (letter) => letter.charCodeAt(0)));
  const types = [1, 0x60, 5, new Array(5).fill(0x7f), 0];
  const vectors = SPARE + LANES.length - WORDS;
  const functions = [1, sized([1, leb(vectors), 0x7b, compress(), 0x0b])];
  const sections: Code = [
    [1, sized(types)],
    [2, sized([1, text('js'), text('memory'), 2, 0, 1])],
    [3, sized([1, 0])],
    [7, sized([1, text('compress'), 0, 0])],
    [10, sized(functions)],
  ];
  return Uint8Array.from(append(sections, [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
}

/** The part of WebAssembly that this file uses. The types of Node do not have it. */
interface Wasm {
  readonly Memory: new (size: { readonly initial: number }) => { readonly buffer: ArrayBuffer; grow(pages: number): void };
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { readonly exports: { readonly compress: (state: number, ...messages: readonly [number, number, number, number]) => void } };
}
const { Memory, Module, Instance } = (globalThis as unknown as { readonly WebAssembly: Wasm }).WebAssembly;

const memory = new Memory({ initial: 1 });
const { compress: step } = new Instance(new Module(moduleBytes()), { js: { memory } }).exports;

/** Bytes of a block of SHA-256. */
const BLOCK = 64;
/** The memory has the state, two blocks for each lane, which are the padded end of its message, then the messages. */
const ENDS_AT = 4 * 8 * 4;
const BYTES_AT = ENDS_AT + 4 * 2 * BLOCK;

/** Computes the double SHA-256 of each part. Returns the hashes one after another. */
export function hashParts(bytes: Uint8Array, parts: Parts): Uint8Array {
  const { starts, ends } = parts;
  const missing = BYTES_AT + bytes.length - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 2 ** 16));
  const all = new Uint8Array(memory.buffer);
  all.set(bytes, BYTES_AT);
  moveWords(all.subarray(BYTES_AT), parts);
  const lanes = LANES.map((lane) => new Lane(lane, all));
  const [a, b, c, d] = lanes as [Lane, Lane, Lane, Lane];
  const hashes = new Uint32Array(8 * starts.length);
  let next = 0;
  for (let open = starts.length; open > 0; ) {
    for (const lane of lanes) {
      if (lane.left > 0 || next === starts.length) continue;
      lane.take(next, starts[next] ?? 0, ends[next] ?? 0);
      next++;
    }
    step(0, a.at, b.at, c.at, d.at);
    for (const lane of lanes) if (lane.left > 0 && lane.advance(hashes)) open--;
  }
  return new Uint8Array(hashes.buffer);
}

/** One of the four messages that are being hashed. If it has no message, the bytes at 0 are hashed, and not used. */
class Lane {
  /** Address of the next block. */
  at = 0;
  /** Number of blocks that are left. */
  left = 0;
  #message = 0;
  /** True if the message is the hash of the message. */
  #isSecond = false;
  /** Number of blocks in the padded end. */
  #padded = 0;
  readonly #end: number;
  readonly #all: Uint8Array;
  /** The padded end, and the state from this lane's first word on. */
  readonly #words: Uint32Array;
  readonly #state: Uint32Array;

  constructor(lane: number, all: Uint8Array) {
    this.#end = ENDS_AT + 2 * BLOCK * lane;
    this.#all = all;
    this.#words = new Uint32Array(all.buffer, this.#end, (2 * BLOCK) / 4);
    this.#state = new Uint32Array(all.buffer, 4 * lane, 4 * 7 + 1);
  }

  /** Begins to hash a message. */
  take(message: number, start: number, end: number): void {
    const all = this.#all;
    const length = end - start;
    const over = length % BLOCK;
    this.#message = message;
    this.#isSecond = false;
    this.#pad(over, length);
    const [from, to] = [BYTES_AT + end - over, this.#end];
    for (let i = 0; i < over; i++) all[to + i] = all[from + i] ?? 0;
    this.left += (length - over) / BLOCK;
    if (length >= BLOCK) this.at = BYTES_AT + start;
  }

  /** Goes to the next block. After the last one, writes the hash to its place and returns true. */
  advance(hashes: Uint32Array): boolean {
    this.left--;
    this.at = this.left === this.#padded ? this.#end : this.at + BLOCK;
    if (this.left > 0) return false;
    const isSecond = this.#isSecond;
    const to = isSecond ? hashes : this.#words;
    const place = isSecond ? 8 * this.#message : 0;
    for (let i = 0; i < 8; i++) to[place + i] = swapped(this.#state[4 * i] ?? 0);
    if (isSecond) this.at = 0;
    else this.#pad(32, 32);
    this.#isSecond = !isSecond;
    return isSecond;
  }

  /** Sets the state to its first value, and pads an end of `over` bytes of a message of `length` bytes. */
  #pad(over: number, length: number): void {
    const [words, state] = [this.#words, this.#state];
    const padded = over + 9 > BLOCK ? 2 : 1;
    for (let i = over >> 2; i < 16 * padded; i++) words[i] = 0;
    this.#all[this.#end + over] = 0x80;
    // The last eight bytes are the length in bits. No message has 2^29 bytes.
    words[16 * padded - 1] = swapped(8 * length);
    for (let i = 0; i < 8; i++) state[4 * i] = START[i] ?? 0;
    this.#padded = padded;
    this.left = padded;
    this.at = this.#end;
  }
}

/** Reverses the bytes of a word. All platforms of DuckDB are little-endian, SHA-256 is big-endian. */
const swapped = (word: number): number => (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);

/**
 * SHA-256 of four messages in parallel, as WebAssembly with 128-bit vectors. A Bitcoin block needs 15,000 hashes of
 * short messages. A call of `node:crypto` for each takes twice the time, most of it outside of the hash function.
 *
 * This file generates the code of the module: the rounds of FIPS 180-4. Each word is a vector of four words, one of
 * each message.
 */
import { ROUNDS, START } from '../../format/sha256.ts';
import { copyOf, moveWords, type Parts } from '../../runes/bytes.ts';

/** Bytes of WebAssembly code. A nested list is an instruction, preceded by the code of its operands. */
type Code = readonly (number | Code)[];

/** Encodes an integer from 0 on in groups of 7 bits (LEB128). */
const leb = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)]);
/** Encodes the operand of `i32.const` (signed LEB128): a last group of 64 or more would mean a negative number. */
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
const EIGHT = [0, 1, 2, 3, 4, 5, 6, 7];
/** Indexes of locals: the address of the state, the address of each message, then vectors. */
const [STATE, MESSAGES, WORDS, LETTERS, SPARE] = [0, 1, 5, 21, 31];

/**
 * Transposes four vectors. The four locals from `SPARE` on are the source: each has four words of one message. The four
 * locals from `at` on are the result: each gets one word of all four messages. The same code reverses a transposition.
 */
function transpose(at: number): Code[] {
  return [0, 2].flatMap((half) => {
    const pair = words(half, 4 + half, half + 1, 5 + half);
    return [
      set(LETTERS, shuffle(get(SPARE), get(SPARE + 1), pair)),
      set(LETTERS + 1, shuffle(get(SPARE + 2), get(SPARE + 3), pair)),
      set(at + half, shuffle(get(LETTERS), get(LETTERS + 1), words(0, 1, 4, 5))),
      set(at + half + 1, shuffle(get(LETTERS), get(LETTERS + 1), words(2, 3, 6, 7))),
    ];
  });
}

/** Returns the code of the 64 rounds. `LETTERS` has the state, and `WORDS` the message. */
function rounds(): Code[] {
  const code: Code[] = [];
  for (let round = 0; round < 64; round++) {
    // In the standard, each round moves the values of the variables a to h on by one letter. Here the values stay in
    // their locals, and each round assigns other letters to these locals.
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
  return code;
}

const swappedBytes = (value: Code): Code => shuffle(value, value, SWAP);

/** Returns the code of the function that adds 64 bytes of each message to the state, which has 8 vectors. */
const compress = (): Code => [
  [0, 1, 2, 3].flatMap((quad) => [
    ...LANES.map((lane) => set(SPARE + lane, swappedBytes(load(get(MESSAGES + lane), 16 * quad)))),
    ...transpose(WORDS + 4 * quad),
  ]),
  EIGHT.map((i) => set(LETTERS + i, load(get(STATE), 16 * i))),
  rounds(),
  EIGHT.map((i) => store(get(STATE), 16 * i, add(load(get(STATE), 16 * i), get(LETTERS + i)))),
];

/**
 * Returns the code of the function that hashes four adjacent hashes again, in place. A hash has 8 words.
 */
const hashAgain = (): Code => [
  [0, 1].flatMap((quad) => [
    ...LANES.map((lane) => set(SPARE + lane, load(get(STATE), 32 * lane + 16 * quad))),
    ...transpose(WORDS + 4 * quad),
  ]),
  // The rest of the message is its padding: a bit, and the length in bits.
  EIGHT.map((i) => set(WORDS + 8 + i, splat([0x80000000, 0, 0, 0, 0, 0, 0, 256][i] ?? 0))),
  EIGHT.map((i) => set(LETTERS + i, splat(START[i] ?? 0))),
  rounds(),
  EIGHT.map((i) => set(WORDS + i, add(get(LETTERS + i), splat(START[i] ?? 0)))),
  [0, 1].flatMap((quad) => [
    ...LANES.map((i) => set(SPARE + i, get(WORDS + 4 * quad + i))),
    ...transpose(WORDS + 8),
    ...LANES.map((lane) => store(get(STATE), 32 * lane + 16 * quad, swappedBytes(get(WORDS + 8 + lane)))),
  ]),
];

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

/** Returns the bytes of the WebAssembly module: type, imported memory, functions, exports and code. */
function moduleBytes(): Uint8Array {
  const text = (letters: string) => sized(Array.from(letters, (letter) => letter.charCodeAt(0)));
  const types = [1, 0x60, 5, new Array(5).fill(0x7f), 0];
  const vectors = SPARE + LANES.length - WORDS;
  const codeOf = (code: Code) => sized([1, leb(vectors), 0x7b, code, 0x0b]);
  const sections: Code = [
    [1, sized(types)],
    [2, sized([1, text('js'), text('memory'), 2, 0, 1])],
    [3, sized([2, 0, 0])],
    [7, sized([2, text('compress'), 0, 0, text('hashAgain'), 0, 1])],
    [10, sized([2, codeOf(compress()), codeOf(hashAgain())])],
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
  ) => {
    readonly exports: Readonly<
      Record<'compress' | 'hashAgain', (state: number, ...messages: readonly [number, number, number, number]) => void>
    >;
  };
}
const { Memory, Module, Instance } = (globalThis as unknown as { readonly WebAssembly: Wasm }).WebAssembly;

const memory = new Memory({ initial: 1 });
const { compress: step, hashAgain: again } = new Instance(new Module(moduleBytes()), { js: { memory } }).exports;

/** Bytes of a block of SHA-256, and of a hash. */
const BLOCK = 64;
const HASH_BYTES = 32;
/** Layout of the memory: the state, then two blocks per lane for the padded end of its message, then the messages. */
const ENDS_AT = 4 * 8 * 4;
const BYTES_AT = ENDS_AT + 4 * 2 * BLOCK;

/** Computes the double SHA-256 of each part. Returns the hashes one after another. */
export function hashParts(bytes: Uint8Array, parts: Parts): Uint8Array {
  const { starts, ends } = parts;
  const count = starts.length;
  // The hashes follow the messages, in groups of four.
  const hashesAt = BYTES_AT + Math.ceil(bytes.length / 16) * 16;
  const missing = hashesAt + 4 * HASH_BYTES * Math.ceil(count / 4) - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 2 ** 16));
  const all = new Uint8Array(memory.buffer);
  all.set(bytes, BYTES_AT);
  moveWords(all.subarray(BYTES_AT), parts);
  const [a, b, c, d] = LANES.map((lane) => new Lane(lane, all, hashesAt)) as [Lane, Lane, Lane, Lane];
  const lanes = [a, b, c, d];
  let next = 0;
  for (let open = count; open > 0; ) {
    for (const lane of lanes) {
      if (lane.left > 0 || next === count) continue;
      lane.take(next, starts[next] ?? 0, ends[next] ?? 0);
      next++;
    }
    step(0, a.at, b.at, c.at, d.at);
    for (const lane of lanes) if (lane.left > 0 && lane.advance()) open--;
  }
  for (let i = 0; i < count; i += 4) again(hashesAt + HASH_BYTES * i, 0, 0, 0, 0);
  return copyOf(all, hashesAt, hashesAt + HASH_BYTES * count);
}

/**
 * One of the four messages that are being hashed. A lane without a message hashes the bytes at address 0, and the
 * result is not used.
 */
class Lane {
  /** Address of the next block. */
  at = 0;
  /** Number of blocks that are left. */
  left = 0;
  #message = 0;
  /** Number of blocks in the padded end. */
  #padded = 0;
  readonly #end: number;
  readonly #all: Uint8Array;
  /** The padded end of the message. */
  readonly #words: Uint32Array;
  /** The vectors of the state, beginning with the word of this lane: every fourth word belongs to this lane. */
  readonly #state: Uint32Array;
  /** The hash of each message, 8 words each. */
  readonly #hashes: Uint32Array;

  constructor(lane: number, all: Uint8Array, hashesAt: number) {
    this.#end = ENDS_AT + 2 * BLOCK * lane;
    this.#all = all;
    this.#words = new Uint32Array(all.buffer, this.#end, (2 * BLOCK) / 4);
    this.#state = new Uint32Array(all.buffer, 4 * lane, 4 * 7 + 1);
    this.#hashes = new Uint32Array(all.buffer, hashesAt);
  }

  /** Begins to hash a message. */
  take(message: number, start: number, end: number): void {
    const [all, words, state] = [this.#all, this.#words, this.#state];
    const length = end - start;
    const over = length % BLOCK;
    const padded = over + 9 > BLOCK ? 2 : 1;
    for (let i = over >> 2; i < 16 * padded; i++) words[i] = 0;
    const [from, to] = [BYTES_AT + end - over, this.#end];
    for (let i = 0; i < over; i++) all[to + i] = all[from + i] ?? 0;
    all[to + over] = 0x80;
    // The last eight bytes are the length in bits, big-endian. The upper four stay 0: no message has 2^29 bytes.
    const bits = 8 * length;
    words[16 * padded - 1] = (bits << 24) | ((bits & 0xff00) << 8) | ((bits >>> 8) & 0xff00) | (bits >>> 24);
    for (let i = 0; i < 8; i++) state[4 * i] = START[i] ?? 0;
    this.#message = message;
    this.#padded = padded;
    this.left = padded + (length - over) / BLOCK;
    this.at = length >= BLOCK ? BYTES_AT + start : to;
  }

  /** Goes to the message's next block. After the last one, stores the state as the message's hash and returns true. */
  advance(): boolean {
    this.left--;
    this.at = this.left === this.#padded ? this.#end : this.at + BLOCK;
    if (this.left > 0) return false;
    for (let i = 0; i < 8; i++) this.#hashes[8 * this.#message + i] = this.#state[4 * i] ?? 0;
    this.at = 0;
    return true;
  }
}

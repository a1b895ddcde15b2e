/**
 * Hash table of the outputs that were created or spent after the newest sorted file. Its entries are in one growing
 * buffer, because millions of JavaScript objects would need too much memory.
 */
import { randomInt } from 'node:crypto';
import { type LentBytes, lend, peek, sameBytes, uint32At } from '../runes/bytes.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import { ByteReader, ByteWriter } from './outputBytes.ts';

/** Stored instead of the length of the value. Marks a spent output that is in a sorted file. */
const SPENT = 0xffffffff;
/** Marks an output that was created and spent after the newest sorted file. Such entries are not written to files. */
const GONE = 0xfffffffe;

/** A created or spent output. `value` is undefined for a spent output. */
export interface Change {
  readonly bytes: LentBytes;
  /** Offset of the key in `bytes`. */
  readonly at: number;
  readonly value: LentBytes | undefined;
}

export class ChangeTable {
  readonly #data = new ByteWriter();
  /** Offsets of entries in `#data`, plus one. 0 marks a free slot. */
  #slots = new Uint32Array(1 << 12);
  /**
   * For a slot in use, `tagOf` of its key's hash, which is never 0. For a free slot, 0. Most look-ups are for outputs
   * that the table does not have. These look-ups read only this array, which is small enough for the CPU's caches.
   */
  #tags = new Uint8Array(1 << 12);
  #count = 0;
  // The seed is random: with a known seed, anyone could make transactions whose ids collide in the table.
  readonly #seed = randomInt(2 ** 32);

  /** Number of entries, including outputs created and spent after the newest sorted file, which `sorted` omits. */
  get count(): number {
    return this.#count;
  }

  /** Returns the value of an output, `'spent'`, or undefined if the table does not have the output. */
  find(bytes: Uint8Array, at: number): ByteReader | 'spent' | undefined {
    const index = this.#slotOf(bytes, at);
    if (this.#tags[index] === 0) return undefined;
    const end = (this.#slots[index] ?? 0) - 1 + OUTPOINT_BYTES;
    return this.#data.bytes.readUInt32LE(end) >= GONE ? 'spent' : new ByteReader(this.#data.bytes, end + 4);
  }

  /** Adds an output. `value` has the bytes that `writeOutput` writes. */
  create(key: Uint8Array, at: number, value: LentBytes): void {
    this.#add(key, at, value, value.length);
  }

  /** Marks an output as spent. The output may be in the table or in a file. */
  spend(key: Uint8Array, at: number): void {
    const slot = this.#slots[this.#slotOf(key, at)] ?? 0;
    if (slot === 0) this.#add(key, at, undefined, SPENT);
    else this.#data.bytes.writeUInt32LE(GONE, slot - 1 + OUTPOINT_BYTES);
  }

  /** Yields all changes, ascending by key. */
  *sorted(): Generator<Change> {
    const data = this.#data.bytes;
    for (const slot of sortByKey(this.#slots, this.#count, data)) {
      const at = slot - 1;
      const length = data.readUInt32LE(at + OUTPOINT_BYTES);
      if (length === GONE) continue;
      const from = at + OUTPOINT_BYTES + 4;
      yield { bytes: lend(data), at, value: length === SPENT ? undefined : lend(data, from, from + length) };
    }
  }

  #add(key: Uint8Array, at: number, value: LentBytes | undefined, length: number): void {
    if (2 * (this.#count + 1) > this.#slots.length) this.#grow();
    const index = this.#slotOf(key, at);
    if (this.#data.length >= 2 ** 32 - 1) throw new Error('the changes since the newest sorted file exceed 4 GiB');
    if (this.#slots[index] !== 0) throw new Error('an outpoint was created twice');
    this.#slots[index] = this.#data.length + 1;
    this.#tags[index] = tagOf(hash(key, at, this.#seed));
    this.#count++;
    const data = this.#data;
    data.put(key, at, at + OUTPOINT_BYTES);
    data.uint32(length);
    if (value) data.put(value);
  }

  /** Returns the index of the slot that has the key, or of the free slot for it. */
  #slotOf(bytes: Uint8Array, at: number): number {
    const tags = this.#tags;
    const hashed = hash(bytes, at, this.#seed);
    const wanted = tagOf(hashed);
    const mask = tags.length - 1;
    for (let index = hashed & mask; ; index = (index + 1) & mask) {
      const tag = tags[index];
      if (tag === 0 || (tag === wanted && sameBytes(this.#data.bytes, (this.#slots[index] ?? 0) - 1, bytes, at, OUTPOINT_BYTES)))
        return index;
    }
  }

  #grow(): void {
    const [slots, data] = [this.#slots, this.#data.bytes];
    this.#slots = new Uint32Array(2 * slots.length);
    this.#tags = new Uint8Array(2 * slots.length);
    for (const slot of slots) {
      if (slot === 0) continue;
      const index = this.#slotOf(data, slot - 1);
      this.#slots[index] = slot;
      this.#tags[index] = tagOf(hash(data, slot - 1, this.#seed));
    }
  }
}

/**
 * Returns the highest 8 bits of a hash, but 1 instead of 0. The slot depends on the lower bits (in a very large table,
 * on all bits), so keys near the same slot mostly have different tags.
 */
const tagOf = (hashed: number): number => hashed >>> 24 || 1;

const hash = (bytes: Uint8Array, at: number, seed: number): number =>
  mix(mix(mix(seed, uint32At(bytes, at)), uint32At(bytes, at + 4)), uint32At(bytes, at + 32)) >>> 0;

function mix(before: number, more: number): number {
  const mixed = Math.imul(before ^ more, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/**
 * Returns the `count` slots in use, sorted by key. Packs the first four bytes of each key and its slot into an integer:
 * sorting integers needs no comparison function, and is ten times faster.
 */
function sortByKey(slots: Uint32Array, count: number, data: Buffer): Uint32Array {
  const order = new BigUint64Array(count);
  // All platforms of DuckDB are little-endian, so the low half of each integer (the slot) comes first.
  const halves = new Uint32Array(order.buffer);
  let next = 0;
  for (const slot of slots) {
    if (slot === 0) continue;
    halves[next++] = slot;
    halves[next++] = data.readUInt32BE(slot - 1);
  }
  order.sort();
  const sorted = Uint32Array.from({ length: count }, (_, i) => halves[2 * i] ?? 0);
  // Keys with equal first bytes, such as the outputs of one transaction, are adjacent now. Sorts each such group by the
  // complete key.
  for (let from = 0, to = 1; to <= count; to++) {
    if (to < count && halves[2 * to + 1] === halves[2 * from + 1]) continue;
    if (to - from > 1) sorted.subarray(from, to).sort((x, y) => compareKeys(data, x - 1, data, y - 1));
    from = to;
  }
  return sorted;
}

/** Compares two keys. Returns a negative number, 0 or a positive number, as for sort(). */
export const compareKeys = (a: Buffer | LentBytes, from: number, b: Buffer | LentBytes, at: number): number =>
  (a as Buffer).compare(peek(b as LentBytes), at, at + OUTPOINT_BYTES, from, from + OUTPOINT_BYTES);

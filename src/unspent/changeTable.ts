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
/** Added to the length of the value: the output was created and spent after the newest sorted file. */
const GONE = 0x80000000;
/** Number of bytes of an entry before its value. */
const HEAD_BYTES = OUTPOINT_BYTES + 4;

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

  /** Size of all entries in bytes, which is the offset of the next one. */
  get size(): number {
    return this.#data.length;
  }

  /** Returns the value of an output, `'spent'`, or undefined if the table does not have the output. */
  find(bytes: Uint8Array, at: number): ByteReader | 'spent' | undefined {
    const index = this.#slotOf(bytes, at);
    if (this.#tags[index] === 0) return undefined;
    const entry = (this.#slots[index] ?? 0) - 1;
    return this.#data.bytes.readUInt32LE(entry + OUTPOINT_BYTES) >= GONE ? 'spent' : new ByteReader(this.#data.bytes, entry + HEAD_BYTES);
  }

  /** Adds an output. `value` has the bytes that `writeOutput` writes. */
  create(key: Uint8Array, at: number, value: LentBytes): void {
    this.#add(key, at, value, value.length);
  }

  /** Marks an output of a file as spent, or an output of the table. Of the latter, returns the offset. */
  spend(key: Uint8Array, at: number): number | undefined {
    const slot = this.#slots[this.#slotOf(key, at)] ?? 0;
    if (slot === 0) {
      this.#add(key, at, undefined, SPENT);
      return undefined;
    }
    this.#setLength(slot - 1, this.#lengthAt(slot - 1) + GONE);
    return slot - 1;
  }

  /** Undoes the newest changes: the entries from an offset on, and spending of the entries at `gone`. */
  rewind(size: number, gone: Iterable<number>): void {
    for (const entry of gone) this.#setLength(entry, this.#lengthAt(entry));
    this.#data.length = size;
    this.#place(this.#slots.length);
  }

  /**
   * Adds the changes of a block to a newer table: its entries from `from` to `to`, and the entries at `gone`, which it spent.
   * Returns the offsets of spent entries in that table.
   */
  copyTo(table: ChangeTable, from: number, to: number, gone: readonly number[]): number[] {
    const data = this.#data.bytes;
    for (let at = from; at < to; at = this.#after(at))
      if (data.readUInt32LE(at + OUTPOINT_BYTES) === SPENT) table.spend(data, at);
      else table.create(data, at, this.#valueAt(at));
    return gone.flatMap((at) => table.spend(data, at) ?? []);
  }

  /** Yields the changes of the entries below an offset, ascending by key, as if the entries at `unspent` were not spent. */
  *sorted(size = this.size, unspent: ReadonlySet<number> = new Set()): Generator<Change> {
    const data = this.#data.bytes;
    for (const slot of sortByKey(this.#slots, this.#count, data)) {
      const at = slot - 1;
      const length = data.readUInt32LE(at + OUTPOINT_BYTES);
      if (at >= size || (length >= GONE && length !== SPENT && !unspent.has(at))) continue;
      yield { bytes: lend(data), at, value: length === SPENT ? undefined : this.#valueAt(at) };
    }
  }

  #add(key: Uint8Array, at: number, value: LentBytes | undefined, length: number): void {
    if (2 * (this.#count + 1) > this.#slots.length) this.#place(2 * this.#slots.length);
    const data = this.#data;
    if (data.length >= 2 ** 32 - 1) throw new Error('the changes since the newest sorted file exceed 4 GiB');
    const index = this.#slotOf(key, at);
    if (this.#slots[index] !== 0) throw new Error('an outpoint was created twice');
    const entry = data.length;
    data.put(key, at, at + OUTPOINT_BYTES);
    data.uint32(length);
    if (value) data.put(value);
    this.#use(index, entry);
  }

  #use(index: number, entry: number): void {
    this.#slots[index] = entry + 1;
    this.#tags[index] = tagOf(hash(this.#data.bytes, entry, this.#seed));
    this.#count++;
  }

  /** Length of the value of a created output. */
  #lengthAt(entry: number): number {
    return this.#data.bytes.readUInt32LE(entry + OUTPOINT_BYTES) % GONE;
  }

  #setLength(entry: number, length: number): void {
    this.#data.bytes.writeUInt32LE(length, entry + OUTPOINT_BYTES);
  }

  #valueAt(entry: number): LentBytes {
    return lend(this.#data.bytes, entry + HEAD_BYTES, entry + HEAD_BYTES + this.#lengthAt(entry));
  }

  /** Offset of the entry after the one at an offset. */
  #after(entry: number): number {
    const isSpent = this.#data.bytes.readUInt32LE(entry + OUTPOINT_BYTES) === SPENT;
    return entry + HEAD_BYTES + (isSpent ? 0 : this.#lengthAt(entry));
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

  /** Gives each entry a slot, of `slots` in all. */
  #place(slots: number): void {
    this.#slots = new Uint32Array(slots);
    this.#tags = new Uint8Array(slots);
    this.#count = 0;
    for (let entry = 0; entry < this.size; entry = this.#after(entry)) this.#use(this.#slotOf(this.#data.bytes, entry), entry);
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

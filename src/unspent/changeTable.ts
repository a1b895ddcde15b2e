/**
 * Hash table of the outpoints that blocks in memory created or spent. Its entries are in one growing buffer, in the order of the blocks:
 * millions of JavaScript objects would need too much memory and keep the garbage collector busy.
 */
import { randomInt } from 'node:crypto';
import { sameBytes, uint32At } from '../runes/bytes.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import type { RuneOutput } from '../runes/unspentLedger.ts';
import { Bloom } from './bloom.ts';
import { endOf, GONE, HEAD_BYTES, outputAt } from './entries.ts';

export class ChangeTable {
  #data = Buffer.allocUnsafe(4096);
  /** Size of all entries in bytes. */
  size = 0;
  /** Offset of the last entry of each outpoint, plus one. 0 marks a free slot. */
  #slots = new Uint32Array(1 << 12);
  /** Most look-ups are for outpoints that the table does not have. They read only this filter, which fits into caches. */
  #filter = Bloom.forKeys(1 << 11);
  #count = 0;
  // The seed is random: with a known seed, anyone could make transactions whose ids collide in the table.
  readonly #seed = randomInt(2 ** 32);

  /** Returns an output, `'spent'`, or undefined if the table does not have the outpoint at `at`. */
  find(bytes: Uint8Array, at: number): RuneOutput | 'spent' | undefined {
    if (!this.#filter.mayHave(bytes, at)) return undefined;
    const slot = this.#slots[this.#slotOf(bytes, at)] ?? 0;
    return slot === 0 ? undefined : outputAt(this.#data, slot - 1);
  }

  /** Adds the entry between two offsets, as that of a later block than the others. */
  add(bytes: Buffer, from = 0, to = bytes.length): void {
    if (this.size >= 2 ** 32 - 1) throw new Error('the changes in memory exceed 4 GiB');
    if (2 * (this.#count + 1) > this.#slots.length) this.#grow();
    const slot = this.#slotOf(bytes, from);
    const [isKnown, isSpent, at] = [this.#slots[slot] !== 0, to === from + HEAD_BYTES, this.size];
    if (isKnown && !isSpent) throw new Error('an outpoint was created twice');
    this.size += to - from;
    if (this.size > this.#data.length) {
      const larger = Buffer.allocUnsafe(2 * this.size);
      this.#data.copy(larger, 0, 0, at);
      this.#data = larger;
    }
    bytes.copy(this.#data, at, from, to);
    if (isSpent) this.#data.writeUInt32LE(isKnown ? GONE : 0, at + OUTPOINT_BYTES);
    this.#use(slot, at);
  }

  part(from: number, to: number): ChangeTable {
    const part = new ChangeTable();
    for (let at = from, end = 0; at < to; at = end) {
      end = endOf(this.#data, at);
      part.add(this.#data, at, end);
    }
    return part;
  }

  /** Returns the entries, ascending by outpoint, without outputs that were created and spent. */
  sorted(): Buffer[] {
    const data = this.#data;
    const kept: Buffer[] = [];
    for (const slot of this.#slots)
      if (slot > 0 && data.readUInt32LE(slot - 1 + OUTPOINT_BYTES) !== GONE) kept.push(data.subarray(slot - 1, endOf(data, slot - 1)));
    // Sorts by the first bytes, because numbers need no comparison function. Then few comparisons are left.
    const order = Float64Array.from(kept, (entry, i) => entry.readUIntBE(0, 3) * 2 ** 29 + i).sort();
    return Array.from(order, (place) => kept[place % 2 ** 29] ?? data).sort(Buffer.compare);
  }

  #grow(): void {
    this.#slots = new Uint32Array(2 * this.#slots.length);
    this.#filter = Bloom.forKeys(this.#slots.length / 2);
    this.#count = 0;
    for (let at = 0; at < this.size; at = endOf(this.#data, at)) this.#use(this.#slotOf(this.#data, at), at);
  }

  #use(slot: number, at: number): void {
    if (this.#slots[slot] === 0) this.#count++;
    this.#slots[slot] = at + 1;
    this.#filter.add(this.#data, at);
  }

  /** Returns the index of the slot that has the outpoint, or of the free slot for it. */
  #slotOf(bytes: Uint8Array, at: number): number {
    let hash = this.#seed;
    for (const part of [0, 4, 32]) {
      hash = Math.imul(hash ^ uint32At(bytes, at + part), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const entry = (this.#slots[slot] ?? 0) - 1;
      if (entry < 0 || sameBytes(this.#data, entry, bytes, at, OUTPOINT_BYTES)) return slot;
    }
  }
}

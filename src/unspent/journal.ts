/**
 * Journal of the last blocks: a file with one entry per block, which has the changes of the block. The ledger computes
 * from the journal everything that is newer than the sorted files. So removing the entries of replaced blocks undoes
 * their changes.
 *
 * An entry in the file has a length (4 bytes), a checksum (8 bytes) and the bytes of blockRecord.ts.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { type IndexedBlock, readRecord } from './blockRecord.ts';
import { checksum, DamagedStateError, readFully } from './readChecked.ts';

const HEAD_BYTES = 12;

interface Place extends IndexedBlock {
  /** Offset of the entry's first byte in the file. `to` is the offset after its last byte. */
  readonly from: number;
  readonly to: number;
}

export class Journal {
  readonly #path: string;
  readonly #file: number;
  /** Blocks that have an entry in the journal, by ascending height. */
  readonly #places: Place[] = [];
  /** Entries that are not in the file yet. */
  #pending: Buffer[] = [];
  #isClosed = false;
  /** Size of the entries in the file, in bytes. */
  #written = 0;

  private constructor(path: string, file: number) {
    this.#path = path;
    this.#file = file;
  }

  static create(path: string): Journal {
    return new Journal(path, openSync(path, 'w+'));
  }

  /**
   * Opens a journal. Calls `onRecord` with each entry, from first to last. Removes the first invalid entry and all
   * later ones, because a killed pull may leave a part of an entry.
   */
  static open(path: string, onRecord: (bytes: Uint8Array) => void): Journal {
    const bytes = readFileSync(path);
    const journal = new Journal(path, openSync(path, 'r+'));
    try {
      let from = 0;
      for (let to = endOf(bytes, from); to !== undefined; from = to, to = endOf(bytes, from)) {
        const record = bytes.subarray(from + HEAD_BYTES, to);
        journal.#places.push({ ...readRecord(record), from, to });
        onRecord(record);
      }
      if (from < bytes.length) ftruncateSync(journal.#file, from);
      journal.#written = from;
      return journal;
    } catch (error) {
      journal.close();
      throw error;
    }
  }

  /** The blocks, ascending by height. */
  get blocks(): readonly IndexedBlock[] {
    return this.#places;
  }

  /** Size of all entries in bytes, including entries that are not in the file yet. */
  get size(): number {
    return this.#places.at(-1)?.to ?? 0;
  }

  /** Adds an entry in memory. `sync` writes it to disk. */
  append(block: IndexedBlock, record: Buffer): void {
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(record.length);
    head.writeBigUInt64LE(checksum(record), 4);
    const from = this.size;
    this.#places.push({ ...block, from, to: from + HEAD_BYTES + record.length });
    this.#pending.push(Buffer.concat([head, record]));
  }

  /** Size of the entries that are not on disk yet, in bytes. */
  get pendingBytes(): number {
    return this.size - this.#written;
  }

  sync(): void {
    if (this.#pending.length === 0) return;
    let at = this.#written;
    for (const bytes of this.#pending) {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#file, bytes, done, bytes.length - done, at + done);
      at += bytes.length;
    }
    fsyncSync(this.#file);
    this.#pending = [];
    this.#written = at;
  }

  /** Removes the entries of blocks above a height. */
  cut(height: number): void {
    for (; (this.#places.at(-1)?.height ?? -1) > height; this.#places.pop()) this.#pending.pop();
    // After a failed sync, the file may have more bytes than `#written`, because a part of an entry was written. These
    // bytes are cut off, too.
    this.#written = Math.min(this.#written, this.size);
    ftruncateSync(this.#file, this.#written);
    fsyncSync(this.#file);
  }

  *records(): Generator<{ readonly block: IndexedBlock; readonly record: Buffer }> {
    this.sync();
    for (const place of this.#places) {
      const bytes = readFully(this.#file, Buffer.allocUnsafe(place.to - place.from), place.from, this.#path);
      if (endOf(bytes, 0) !== bytes.length) throw new DamagedStateError(`${this.#path} is damaged`);
      yield { block: place, record: bytes.subarray(HEAD_BYTES) };
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#file);
  }
}

/** Returns the end of the entry at `from`. Undefined if the entry is incomplete or damaged. */
function endOf(bytes: Buffer, from: number): number | undefined {
  if (from + HEAD_BYTES > bytes.length) return undefined;
  const to = from + HEAD_BYTES + bytes.readUInt32LE(from);
  if (to > bytes.length) return undefined;
  return checksum(bytes.subarray(from + HEAD_BYTES, to)) === bytes.readBigUInt64LE(from + 4) ? to : undefined;
}

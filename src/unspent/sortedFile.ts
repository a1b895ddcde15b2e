/**
 * File of the outputs that a range of blocks created or spent, sorted by outpoint. Never changed after writing.
 *
 *     pages    entries, one after another; a page has one entry, or at most `sortedPageBytes` bytes
 *     index    for each page: first outpoint, offset, checksum
 *     filter   Bloom filter of all outpoints
 *     footer   offset of the index, counts, and a checksum of index and filter
 *
 * An entry has the outpoint, the length of the value plus one (0 for a spent output), and the value.
 */
import { closeSync, fstatSync, fsyncSync, openSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { countBefore } from '../format/binarySearch.ts';
import { exceeds, type WorkLimits } from '../limits.ts';
import { type LentBytes, lend, peek } from '../runes/bytes.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import { Bloom } from './bloom.ts';
import { type Change, compareKeys } from './changeTable.ts';
import { ByteReader, ByteWriter } from './outputBytes.ts';
import { checksum, DamagedStateError, readFully } from './readChecked.ts';

const INDEX_ENTRY = OUTPOINT_BYTES + 8 + 8;
const FOOTER_BYTES = 48;
const MAGIC = Buffer.from('RUNEOUT1');

/** Number of bytes that are collected in memory before they are written. */
const CHUNK_BYTES = 1 << 20;

/**
 * Writes changes, which come in parts and must ascend by key. `most` is an upper bound on the number of changes, and determines the size
 * of the Bloom filter. Yields to the event loop from time to time.
 */
export async function writeSortedFile(
  path: string,
  parts: Iterable<Iterable<Change>> | AsyncIterable<Iterable<Change>>,
  most: number,
  limits: Pick<WorkLimits, 'sortedPageBytes'>,
): Promise<void> {
  const file = openSync(path, 'w');
  try {
    const pending = new ByteWriter();
    let position = 0;
    const flush = () => {
      writeFileSync(file, pending.view());
      pending.clear();
    };
    const output = (bytes: Uint8Array) => {
      pending.put(bytes);
      position += bytes.length;
      if (pending.length >= CHUNK_BYTES) flush();
    };
    const filter = Bloom.forKeys(most);
    const index = new ByteWriter();
    const page = new ByteWriter();
    let entries = 0;
    const endPage = () => {
      if (page.length === 0) return;
      const bytes = page.view();
      index.put(bytes.subarray(0, OUTPOINT_BYTES));
      index.uint64(BigInt(position));
      index.uint64(checksum(bytes));
      output(bytes);
      page.clear();
    };
    for await (const changes of parts)
      for (const { bytes, at, value } of changes) {
        const grown = page.length + OUTPOINT_BYTES + (value?.length ?? 0);
        if (page.length > 0 && exceeds(limits, 'sortedPageBytes', grown)) endPage();
        page.put(bytes, at, at + OUTPOINT_BYTES);
        page.integer(value === undefined ? 0 : value.length + 1);
        if (value) page.put(value);
        filter.add(peek(bytes), at);
        entries++;
        if (entries % 50_000 === 0) await setImmediate();
      }
    endPage();
    const indexAt = position;
    output(index.view());
    output(filter.bytes);
    const footer = new ByteWriter();
    footer.put(MAGIC);
    footer.uint64(BigInt(indexAt));
    footer.uint64(BigInt(index.length / INDEX_ENTRY));
    footer.uint64(BigInt(entries));
    footer.uint64(checksum(index.view(), filter.bytes));
    footer.uint64(checksum(footer.view()));
    output(footer.view());
    flush();
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

export class SortedFile {
  readonly #path: string;
  readonly #file: number;
  readonly #index: Buffer;
  readonly #filter: Bloom;
  readonly #pages: number;
  /** Size of all pages together, in bytes. This is also the offset of the index. */
  readonly size: number;
  readonly entries: number;
  #page = Buffer.alloc(0);

  /** Opens a file. Throws a DamagedStateError if it is damaged. */
  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, 'r');
    try {
      const length = fstatSync(this.#file).size;
      if (length < FOOTER_BYTES) throw this.#damaged();
      const footer = this.#read(Buffer.alloc(FOOTER_BYTES), length - FOOTER_BYTES);
      const isFooter = footer.subarray(0, 8).equals(MAGIC) && checksum(footer.subarray(0, 40)) === footer.readBigUInt64LE(40);
      if (!isFooter) throw this.#damaged();
      this.size = Number(footer.readBigUInt64LE(8));
      this.#pages = Number(footer.readBigUInt64LE(16));
      this.entries = Number(footer.readBigUInt64LE(24));
      const filterAt = this.size + this.#pages * INDEX_ENTRY;
      if (filterAt > length - FOOTER_BYTES) throw this.#damaged();
      this.#index = this.#read(Buffer.allocUnsafe(filterAt - this.size), this.size);
      this.#filter = new Bloom(this.#read(Buffer.allocUnsafe(length - FOOTER_BYTES - filterAt), filterAt));
      if (checksum(this.#index, this.#filter.bytes) !== footer.readBigUInt64LE(32)) throw this.#damaged();
    } catch (error) {
      closeSync(this.#file);
      throw error;
    }
  }

  /**
   * Returns the value of an output, `'spent'`, or undefined if the file does not have the output. The next call
   * overwrites the value.
   */
  find(key: Uint8Array, at: number): ByteReader | 'spent' | undefined {
    if (this.#pages === 0 || !this.#filter.mayHave(key, at)) return undefined;
    const wanted = key instanceof Buffer ? key : Buffer.from(key.buffer, key.byteOffset, key.byteLength);
    // Finds the last page whose first key is not above the wanted key. No other page can have the wanted key.
    const last = countBefore(this.#pages, (i) => compareKeys(this.#index, i * INDEX_ENTRY, wanted, at) <= 0) - 1;
    const page = this.#readPage(Math.max(last, 0));
    const reader = new ByteReader(page);
    while (!reader.isAtEnd) {
      const order = compareKeys(page, reader.at, wanted, at);
      reader.at += OUTPOINT_BYTES;
      const length = reader.integer();
      if (order === 0) return length === 0 ? 'spent' : reader;
      if (order > 0) return undefined;
      reader.at += Math.max(length - 1, 0);
    }
    return undefined;
  }

  /** Yields all entries, ascending by key. The next step overwrites the bytes of an entry. */
  *changes(): Generator<Change> {
    for (let page = 0; page < this.#pages; page++) {
      const bytes = this.#readPage(page);
      const reader = new ByteReader(bytes);
      while (!reader.isAtEnd) {
        const at = reader.at;
        reader.at += OUTPOINT_BYTES;
        const length = reader.integer();
        const value = length === 0 ? undefined : reader.take(length - 1);
        yield { bytes, at, value };
      }
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Reads a page and verifies its checksum. All pages share one buffer, so the next call overwrites the page. */
  #readPage(page: number): LentBytes {
    const place = page * INDEX_ENTRY + OUTPOINT_BYTES;
    const from = Number(this.#index.readBigUInt64LE(place));
    const to = page + 1 === this.#pages ? this.size : Number(this.#index.readBigUInt64LE(place + INDEX_ENTRY));
    if (this.#page.length < to - from) this.#page = Buffer.allocUnsafe(to - from);
    const bytes = this.#read(this.#page.subarray(0, to - from), from);
    if (checksum(bytes) !== this.#index.readBigUInt64LE(place + 8)) throw this.#damaged();
    return lend(bytes);
  }

  #read(into: Buffer, from: number): Buffer {
    return readFully(this.#file, into, from, this.#path);
  }

  #damaged(): DamagedStateError {
    return new DamagedStateError(`${this.#path} is damaged`);
  }
}

/**
 * Yields the newest entry of each key. `files` are sorted from old to new. If `isOldest`, no other file is older. Then
 * entries of spent outputs are omitted, because they only hide entries of older files.
 */
export function* merged(files: readonly SortedFile[], isOldest: boolean): Generator<Change> {
  const heads = files.map((file) => {
    const changes = file.changes();
    return { changes, head: changes.next().value as Change | undefined };
  });
  for (;;) {
    let first: Change | undefined;
    // Of entries with equal keys, takes the entry of the last file, which is the newest.
    for (const { head } of heads) if (head && (!first || order(head, first) <= 0)) first = head;
    if (!first) return;
    if (first.value !== undefined || !isOldest) yield first;
    const taken = first;
    // Compares all entries before any file reads its next one, because that overwrites the bytes of the taken entry.
    const equal = heads.filter(({ head }) => head && order(head, taken) === 0);
    for (const source of equal) source.head = source.changes.next().value as Change | undefined;
  }
}

const order = (a: Change, b: Change): number => compareKeys(a.bytes, a.at, b.bytes, b.at);

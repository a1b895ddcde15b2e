/**
 * File of the outpoints that a range of blocks created or spent, sorted. Never changed after writing.
 *
 *     pages    entries (entries.ts), one after another; a page has one entry, or at most `sortedPageBytes` bytes
 *     index    for each page: first outpoint, offset, checksum
 *     filter   Bloom filter of all outpoints
 *
 * The ledger's state has the sizes of these parts, and a checksum of index and filter.
 */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { hex64 } from '../contract/schemas.ts';
import { codeOf, messageOf } from '../errors.ts';
import { countBefore } from '../format/binarySearch.ts';
import { exceeds, type WorkLimits } from '../limits.ts';
import { OUTPOINT_BYTES } from '../runes/parseBlock.ts';
import type { RuneOutput } from '../runes/unspentLedger.ts';
import { Bloom } from './bloom.ts';
import { compareAt, endOf, HEAD_BYTES, outputAt } from './entries.ts';

const INDEX_ENTRY = OUTPOINT_BYTES + 8 + 8;

export const sortedFacts = z.strictObject({
  name: z.string().regex(/^outputs-[0-9]+-[0-9]+\.sorted$/),
  entries: z.int().min(0),
  pages: z.int().min(0),
  /** Size of all pages together, which is also the offset of the index. */
  bytes: z.int().min(0),
  /** SHA-256 of index and filter. */
  sha256: hex64,
});
export type SortedFacts = z.infer<typeof sortedFacts>;

/** Thrown if a file of the ledger is missing or does not have the content that was written. */
export class DamagedStateError extends Error {}

const sha256Of = (...parts: readonly Uint8Array[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();

/**
 * Writes entries, which come in parts and must ascend by outpoint. `most` is an upper bound on their number, and determines the size of the
 * Bloom filter. Yields to the event loop from time to time.
 */
export async function writeSortedFile(
  folder: string,
  name: string,
  parts: Iterable<Iterable<Buffer>> | AsyncIterable<Iterable<Buffer>>,
  most: number,
  limits: Pick<WorkLimits, 'sortedPageBytes'>,
): Promise<SortedFacts> {
  const file = openSync(join(folder, name), 'w');
  try {
    const filter = Bloom.forKeys(most);
    const index: Buffer[] = [];
    let [page, size, bytes, entries]: [Buffer[], number, number, number] = [[], 0, 0, 0];
    const endPage = () => {
      if (page.length === 0) return;
      const content = Buffer.concat(page);
      // Not from the pool of small buffers: an entry of the index would keep a piece of the pool, 8 KB, in memory.
      const entry = Buffer.alloc(INDEX_ENTRY);
      content.copy(entry, 0, 0, OUTPOINT_BYTES);
      entry.writeDoubleLE(bytes, OUTPOINT_BYTES);
      sha256Of(content).copy(entry, OUTPOINT_BYTES + 8, 0, 8);
      index.push(entry);
      writeFileSync(file, content);
      [page, size, bytes] = [[], 0, bytes + size];
    };
    for await (const some of parts)
      for (const entry of some) {
        if (page.length > 0 && exceeds(limits, 'sortedPageBytes', size + entry.length)) endPage();
        page.push(entry);
        size += entry.length;
        filter.add(entry, 0);
        entries += 1;
        if (entries % 50_000 === 0) await setImmediate();
      }
    endPage();
    const places = Buffer.concat(index);
    for (const part of [places, filter.bytes]) writeFileSync(file, part);
    fsyncSync(file);
    return { name, entries, pages: index.length, bytes, sha256: sha256Of(places, filter.bytes).toString('hex') };
  } finally {
    closeSync(file);
  }
}

export class SortedFile {
  readonly #path: string;
  readonly #file: number;
  readonly #index: Buffer;
  readonly #filter: Bloom;

  /** Throws a DamagedStateError if the file is damaged or missing. */
  constructor(
    folder: string,
    readonly facts: SortedFacts,
  ) {
    this.#path = join(folder, facts.name);
    try {
      this.#file = openSync(this.#path, 'r');
    } catch (error) {
      throw codeOf(error) === 'ENOENT' ? new DamagedStateError(messageOf(error)) : error;
    }
    try {
      const filterAt = facts.bytes + facts.pages * INDEX_ENTRY;
      this.#index = this.#read(facts.bytes, filterAt);
      this.#filter = new Bloom(this.#read(filterAt, fstatSync(this.#file).size));
      if (sha256Of(this.#index, this.#filter.bytes).toString('hex') !== facts.sha256) throw this.#damaged();
    } catch (error) {
      closeSync(this.#file);
      throw error;
    }
  }

  /** Returns an output, `'spent'`, or undefined if the file does not have the outpoint at `at`. */
  find(bytes: Uint8Array, at: number): RuneOutput | 'spent' | undefined {
    const { pages } = this.facts;
    if (pages === 0 || !this.#filter.mayHave(bytes, at)) return undefined;
    const wanted = Buffer.from(bytes.buffer, bytes.byteOffset + at, OUTPOINT_BYTES);
    // Finds the last page whose first outpoint is not above the wanted one. No other page can have it.
    const last = countBefore(pages, (page) => compareAt(this.#index, page * INDEX_ENTRY, wanted, 0) <= 0) - 1;
    const page = this.#readPage(Math.max(last, 0));
    for (let entry = 0; entry < page.length; entry = endOf(page, entry))
      if (compareAt(page, entry, wanted, 0) === 0) return outputAt(page, entry);
    return undefined;
  }

  *entries(): Generator<Buffer> {
    for (let number = 0; number < this.facts.pages; number++) {
      const page = this.#readPage(number);
      for (let at = 0, end = 0; at < page.length; at = end) {
        end = endOf(page, at);
        yield page.subarray(at, end);
      }
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #readPage(page: number): Buffer {
    const at = page * INDEX_ENTRY + OUTPOINT_BYTES;
    const isLast = page + 1 === this.facts.pages;
    const bytes = this.#read(this.#index.readDoubleLE(at), isLast ? this.facts.bytes : this.#index.readDoubleLE(at + INDEX_ENTRY));
    if (sha256Of(bytes).compare(this.#index, at + 8, at + 16, 0, 8) !== 0) throw this.#damaged();
    return bytes;
  }

  #read(from: number, to: number): Buffer {
    const bytes = Buffer.allocUnsafe(to - from);
    for (let done = 0; done < bytes.length; ) {
      const count = readSync(this.#file, bytes, done, bytes.length - done, from + done);
      if (count === 0) throw this.#damaged();
      done += count;
    }
    return bytes;
  }

  #damaged(): DamagedStateError {
    return new DamagedStateError(`${this.#path} is damaged`);
  }
}

/**
 * Yields the newest entry of each outpoint. `files` are sorted from old to new. If `isOldest`, no other file is older. Then entries of
 * spent outputs are omitted, because they only hide entries of older files.
 */
export function* merged(files: readonly SortedFile[], isOldest: boolean): Generator<Buffer> {
  const next = (entries: Generator<Buffer>): Buffer | undefined => entries.next().value ?? undefined;
  const heads = files.map((file) => {
    const entries = file.entries();
    return { entries, head: next(entries) };
  });
  for (;;) {
    let first: Buffer | undefined;
    // Of entries with equal outpoints, takes the entry of the last file, which is the newest.
    for (const { head } of heads) if (head && (!first || compareAt(head, 0, first, 0) <= 0)) first = head;
    if (!first) return;
    if (first.length > HEAD_BYTES || !isOldest) yield first;
    for (const source of heads) if (source.head && compareAt(source.head, 0, first, 0) === 0) source.head = next(source.entries);
  }
}

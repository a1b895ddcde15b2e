/** Writes lists in documents (format/pagedList.ts) as a stream: a list may have any number of entries. */
import { pageKey } from '../../format/documents.ts';
import { headKey } from '../../format/pagedList.ts';
import type { DocumentWriter } from './documentWriter.ts';

const [TAB, LINE_FEED, POINT, ZERO, SMALL_A] = [9, 10, 46, 48, 97];

/** What follows the key of a list in the key of its head. */
const HEAD = Buffer.from(headKey(''));

/** Number of hex digits for each number of a key, and the end of these numbers. */
const HEX_DIGITS = 6;
export const HEX_END = 16 ** HEX_DIGITS;

/** Number of bytes after which complete lists go to the DocumentWriter, and of bytes of a number and its separator. */
const [ENOUGH, NUMBER] = [1 << 15, 17];

/** A number of 9 digits, below 2^31. */
const [SMALL, SMALL_DIGITS] = [1e9, 9];

/** Adds lists to a level, ascending by key. `page` is the maximum number of entries in a document. */
export class PagedLists {
  /** Complete lists without pages, and then the current document. */
  #bytes = Buffer.allocUnsafe(2 * ENOUGH);
  #end = 0;
  /** Where the entries of the current document begin, and their number. */
  #begin = 0;
  #count = 0;
  /** The current list: the length of its key, which is known when it has pages, and the number of pages and of entries in them. */
  #list: { readonly length: number; key: string; pages: number; entries: number } | undefined;

  constructor(
    private readonly to: Pick<DocumentWriter, 'addLines'>,
    private readonly page: number,
  ) {}

  /** Ends the current list, and begins a list. The key is ASCII. */
  list(key: string): void {
    this.#endList();
    this.#reserve(key.length);
    this.#end += this.#bytes.write(key, this.#end, 'latin1');
    this.#beginList(key.length);
  }

  /** Ends the current list, and begins a list whose key has six hex digits for each of these numbers, as `list` does but faster. */
  hexList(...numbers: readonly number[]): void {
    this.#endList();
    this.#reserve(HEX_DIGITS * numbers.length);
    for (const number of numbers)
      for (let shift = 4 * (HEX_DIGITS - 1); shift >= 0; shift -= 4) {
        const digit = (number >> shift) & 15;
        this.#bytes[this.#end] = digit < 10 ? ZERO + digit : SMALL_A - 10 + digit;
        this.#end += 1;
      }
    this.#beginList(HEX_DIGITS * numbers.length);
  }

  /** Begins a list after its key, of this length. */
  #beginList(length: number): void {
    this.#reserve(HEAD.length);
    for (const byte of HEAD) {
      this.#bytes[this.#end] = byte;
      this.#end += 1;
    }
    this.#list = { length, key: '', pages: 0, entries: 0 };
    this.#begin = this.#end;
  }

  /** Begins an entry of the current list. Returns true if it is the first entry of its document. */
  entry(): boolean {
    if (this.#count === this.page) this.#endPage();
    this.#reserve(1);
    this.#bytes[this.#end] = TAB;
    this.#end += 1;
    this.#count += 1;
    return this.#count === 1;
  }

  /** Adds a non-negative integer to the entry, and a point after it unless it is the `last` number of the entry. */
  number(value: number, isLast: boolean): void {
    this.#reserve(NUMBER);
    if (value < SMALL) this.#digits(value, 1);
    else {
      const upper = Math.floor(value / SMALL);
      this.#digits(upper, 1);
      this.#digits(value - SMALL * upper, SMALL_DIGITS);
    }
    if (isLast) return;
    this.#bytes[this.#end] = POINT;
    this.#end += 1;
  }

  /** Adds at least `least` digits of an integer below SMALL, for which integer arithmetic is enough. */
  #digits(value: number, least: number): void {
    let digits = least;
    for (let power = 10 ** least; power <= value; power *= 10) digits += 1;
    this.#end += digits;
    for (let [at, left] = [this.#end - 1, value | 0]; digits > 0; digits -= 1) {
      const rest = (left / 10) | 0;
      this.#bytes[at] = ZERO + left - 10 * rest;
      left = rest;
      at -= 1;
    }
  }

  /** Adds an ASCII text as an entry. */
  text(entry: string): void {
    this.entry();
    this.#reserve(entry.length);
    this.#end += this.#bytes.write(entry, this.#end, 'latin1');
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + length));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }

  #endPage(): void {
    if (this.#list === undefined) return;
    const { length, pages } = this.#list;
    if (pages === 0) {
      const start = this.#begin - length - HEAD.length;
      this.#list.key = this.#bytes.toString('latin1', start, start + length);
      this.#flush(start);
    }
    this.to.addLines(
      Buffer.concat([Buffer.from(pageKey(this.#list.key, pages)), this.#bytes.subarray(this.#begin, this.#end), Buffer.of(LINE_FEED)]),
    );
    this.#list.pages += 1;
    this.#list.entries += this.#count;
    [this.#begin, this.#end, this.#count] = [0, 0, 0];
  }

  /** Call it after the last list. */
  finish(): void {
    this.#endList();
    this.#flush(this.#end);
  }

  #endList(): void {
    const list = this.#list;
    if (list === undefined) return;
    if (list.pages > 0) {
      this.#endPage();
      this.#end += this.#bytes.write(`${headKey(list.key)}\t${list.entries}`, 'latin1');
    }
    this.#reserve(1);
    this.#bytes[this.#end] = LINE_FEED;
    this.#end += 1;
    [this.#list, this.#count] = [undefined, 0];
    if (this.#end > ENOUGH) {
      this.#flush(this.#end);
      this.#end = 0;
    }
  }

  /** Passes on the bytes before `end`, which are complete lists. */
  #flush(end: number): void {
    if (end > 0) this.to.addLines(Buffer.from(this.#bytes.subarray(0, end)));
  }
}

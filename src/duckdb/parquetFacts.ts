/**
 * Reads the footer and the page headers of a Parquet file, before DuckDB reads them. DuckDB believes the lengths there:
 * a footer of 26 bytes can announce a list of a billion entries, and DuckDB allocates them first. So this module checks
 * every length that DuckDB would allocate outside of its memory limit.
 *
 * Footer and page headers are structs of Thrift's compact protocol. A struct is a sequence of fields and ends with a
 * zero byte. A field begins with its type and the difference to the id of the field before.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Thrown for a file that is not Parquet, or that has impossible lengths. */
export class ParquetError extends Error {
  override readonly name = 'ParquetError';
}

export interface ParquetFacts {
  readonly rows: number;
  /** Size of all pages after unpacking, in bytes. */
  readonly unpacked: number;
  /**
   * True if all pages are as this program writes them. In other encodings, the compressed data has lengths that are not
   * checked here. And in other files, a dictionary may have more values than its row group has rows.
   */
  readonly isPlain: boolean;
}

/** Types of the compact protocol. The value of a Boolean field is its type, TRUE or FALSE. */
const [TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
const INTEGERS = [I16, I32, I64];

/** A list whose entries DuckDB keeps. `bytes` is the memory that it needs for an entry, apart from inner lists. */
interface List {
  readonly type: number;
  readonly bytes: number;
  readonly of?: Shape;
}

/**
 * The fields of a struct that are read, by their ids: all lists that DuckDB keeps, and the integers and structs that are
 * needed here. DuckDB skips other lists, without allocating them.
 */
interface Shape {
  readonly integers?: readonly number[];
  readonly lists?: Readonly<Record<number, List>>;
  readonly structs?: Readonly<Record<number, Shape>>;
}

const numbers: List = { type: I64, bytes: 8 };
const kinds: List = { type: I32, bytes: 4 };
const texts: List = { type: BINARY, bytes: 40 };
const pairs: List = { type: STRUCT, bytes: 90 };

/** Metadata of a column of a row group, which is field 3 of a chunk. Measured: DuckDB needs 760 bytes for a chunk. */
const COLUMN: Shape = {
  integers: [5, 9, 11],
  lists: { 2: kinds, 3: texts, 8: pairs, 13: { type: STRUCT, bytes: 30 } },
  structs: { 16: { lists: { 2: numbers, 3: numbers } }, 17: { lists: { 2: kinds } } },
};
const CHUNK: Shape = { structs: { 3: COLUMN, 8: { structs: { 2: { lists: { 1: texts } } } } } };
const GROUP: Shape = { integers: [3], lists: { 1: { type: STRUCT, bytes: 800, of: CHUNK }, 4: { type: STRUCT, bytes: 30 } } };
const FOOTER: Shape = {
  integers: [3],
  lists: {
    2: { type: STRUCT, bytes: 500, of: { integers: [5] } },
    4: { type: STRUCT, bytes: 100, of: GROUP },
    5: pairs,
    7: { type: STRUCT, bytes: 30 },
  },
};
const PAGE: Shape = {
  integers: [1, 2, 3],
  structs: { 5: { integers: [1, 2] }, 7: { integers: [1, 2] }, 8: { integers: [1, 4] } },
};

/** Maximum size of a footer, and of what DuckDB needs to hold its entries, in bytes. */
const [FOOTER_BYTES, MOST_MEMORY] = [32 * 1024 * 1024, 128 * 1024 * 1024];

/** Maximum number of structs or lists inside each other. Parquet has six. */
const MOST_DEPTH = 16;

/** Maximum depth of nested columns. DuckDB calls itself once for each level. */
const MOST_NESTED = 100;

/** The fields of a struct that its shape names, by their ids. Lists of structs only if the shape says what is in them. */
interface Struct {
  integers: Readonly<Record<number, number>>;
  structs: Readonly<Record<number, Struct>>;
  lists: Readonly<Record<number, readonly Struct[]>>;
}

/** Shared by all structs without such fields, because a footer may have many. */
const NONE: Readonly<Record<number, never>> = {};

/** Type by which an entry of a list is skipped. Unlike the value of a field, a Boolean entry has a byte. */
const entry = (type: number): number => (type === TRUE || type === FALSE ? BYTE : type);

/** Thrown when a struct goes on after the bytes that were read. */
class CutOff extends ParquetError {}

class Reader {
  at = 0;
  /** Memory that DuckDB needs for the entries of lists, in bytes. */
  #memory = 0;

  constructor(private readonly bytes: Uint8Array) {}

  struct({ integers = [], structs = {}, lists = {} }: Shape, depth = 0): Struct {
    const found: Struct = { integers: NONE, structs: NONE, lists: NONE };
    let seen = 0;
    this.#fields(depth, (id, type) => {
      const [list, inner] = [lists[id], structs[id]];
      if (list === undefined && inner === undefined && !integers.includes(id)) return this.#skip(type, depth);
      // DuckDB would mix both values.
      if ((seen & (1 << id)) !== 0) throw new ParquetError(`it has the field ${id} of a struct twice`);
      seen |= 1 << id;
      if (list !== undefined && type === LIST) found.lists = { ...found.lists, [id]: this.#list(list, depth) };
      else if (inner !== undefined && type === STRUCT) found.structs = { ...found.structs, [id]: this.struct(inner, depth + 1) };
      else if (integers.includes(id) && INTEGERS.includes(type)) found.integers = { ...found.integers, [id]: this.#integer() };
      else this.#skip(type, depth);
    });
    return found;
  }

  #fields(depth: number, read: (id: number, type: number) => void): void {
    if (depth > MOST_DEPTH) throw new ParquetError('it has too many structs inside each other');
    for (let id = 0; ; ) {
      const head = this.#byte();
      if (head === 0) return;
      id = head < 16 ? this.#integer() : id + Math.floor(head / 16);
      read(id, head % 16);
    }
  }

  #list({ type, bytes, of }: List, depth: number): Struct[] {
    const [found, length] = this.#listHead();
    // DuckDB ignores the type, so it would read other entries than were skipped here.
    if (length > 0 && found !== type) throw new ParquetError('it has a list of the wrong type');
    this.#memory += length * bytes;
    if (this.#memory > MOST_MEMORY)
      throw new ParquetError(`its metadata needs more than ${MOST_MEMORY} bytes of memory: it must have fewer and larger row groups`);
    const structs: Struct[] = [];
    for (let i = 0; i < length; i++) {
      if (of === undefined) this.#skip(type, depth + 1);
      else structs.push(this.struct(of, depth + 1));
    }
    return structs;
  }

  /** Reads type and number of the entries of a list. Each entry has at least one byte. */
  #listHead(): [type: number, length: number] {
    const head = this.#byte();
    const short = Math.floor(head / 16);
    return [head % 16, this.#within(short === 15 ? this.#varint() : short)];
  }

  #skip(type: number, depth: number): void {
    if (depth > MOST_DEPTH) throw new ParquetError('it has too many lists inside each other');
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.at += this.#within(1);
    else if (INTEGERS.includes(type)) this.#varint();
    else if (type === DOUBLE) this.at += this.#within(8);
    else if (type === UUID) this.at += this.#within(16);
    else if (type === BINARY) {
      const length = this.#within(this.#varint());
      this.at += length;
    } else if (type === LIST || type === SET) {
      const [of, length] = this.#listHead();
      for (let i = 0; i < length; i++) this.#skip(entry(of), depth + 1);
    } else if (type === MAP) {
      const length = this.#within(this.#varint());
      const both = length > 0 ? this.#byte() : 0;
      for (let i = 0; i < length; i++) for (const of of [Math.floor(both / 16), both % 16]) this.#skip(entry(of), depth + 1);
    } else if (type === STRUCT) this.#fields(depth + 1, (_, inner) => this.#skip(inner, depth + 1));
    else throw new ParquetError(`it has a field of the unknown type ${type}`);
  }

  #byte(): number {
    this.#within(1);
    return this.bytes[this.at++] ?? 0;
  }

  #within(length: number): number {
    const left = this.bytes.length - this.at;
    if (length > left) throw new CutOff(`it announces ${length} bytes or entries where only ${left} bytes follow`);
    return length;
  }

  #varint(): number {
    let value = 0;
    for (let i = 0; i < 10; i++) {
      const byte = this.#byte();
      value += (byte % 128) * 2 ** (7 * i);
      if (byte < 128) return value;
    }
    throw new ParquetError('it has a number of more than 64 bits');
  }

  #integer(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** Magic bytes at the start and at the end of a file. The length of the footer is before the last ones, in 4 bytes. */
const MAGIC = 'PAR1';
const END_BYTES = 4 + MAGIC.length;

/** Reads and checks a file. Throws a ParquetError, or a system error if the file cannot be read. */
export function parquetFacts(path: string): ParquetFacts {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const read = (offset: number, length: number): Buffer => {
      const bytes = Buffer.allocUnsafe(Math.min(length, size - offset));
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
    };
    const end = size < MAGIC.length + END_BYTES ? Buffer.alloc(END_BYTES) : read(size - END_BYTES, END_BYTES);
    if ([read(0, MAGIC.length), end.subarray(4)].some((magic) => magic.toString('latin1') !== MAGIC))
      throw new ParquetError(`it does not begin and end with ${MAGIC}`);
    const length = end.readUInt32LE();
    if (length > Math.min(size - END_BYTES - MAGIC.length, FOOTER_BYTES))
      throw new ParquetError(`its footer cannot have ${length} bytes: the file has ${size}, and a footer at most ${FOOTER_BYTES}`);
    const footer = new Reader(read(size - END_BYTES - length, length)).struct(FOOTER);
    checkNesting(footer.lists[2] ?? []);
    const groups = footer.lists[4] ?? [];
    let [unpacked, isPlain] = [0, true];
    for (const group of groups)
      for (const chunk of group.lists[1] ?? []) {
        const pages = readPages(chunk, rowsOf(group), size, read);
        unpacked += pages.unpacked;
        isPlain &&= pages.isPlain;
      }
    return { rows: rowsOf(footer), unpacked, isPlain };
  } finally {
    closeSync(file);
  }
}

/** The number of rows has the same id in a footer and in a row group. */
const rowsOf = ({ integers }: Struct): number => integers[3] ?? 0;

/** Throws a ParquetError if the columns are nested too deeply. A column is followed by its inner columns. */
function checkNesting(columns: readonly Struct[]): void {
  /** For each column around the next one, the number of inner columns that still follow. */
  const left: number[] = [];
  for (const { integers } of columns) {
    while (left.at(-1) === 0) left.pop();
    left.push((left.pop() ?? 1) - 1, Math.max(integers[5] ?? 0, 0));
    if (left.length > MOST_NESTED) throw new ParquetError(`it has more than ${MOST_NESTED} columns inside each other`);
  }
}

const [DATA, DICTIONARY, DATA_V2] = [0, 2, 3];

/** The encodings PLAIN, PLAIN_DICTIONARY, RLE and RLE_DICTIONARY. */
const PLAIN = [0, 2, 3, 8];

/** Numbers of bytes to read for a page header, which may have two long values. */
const HEADER_BYTES = [256, 64 * 1024, 16 * 1024 * 1024];

/** Reads the page headers that DuckDB reads for a column of a row group. */
function readPages(
  chunk: Struct,
  rows: number,
  size: number,
  read: (offset: number, length: number) => Buffer,
): Pick<ParquetFacts, 'unpacked' | 'isPlain'> {
  const column = chunk.structs[3]?.integers ?? NONE;
  const { 5: values = 0, 9: first = 0, 11: dictionary = 0 }: Readonly<Record<number, number>> = column;
  let [unpacked, isPlain] = [0, true];
  let left = Math.max(values, rows);
  for (let at = dictionary >= MAGIC.length ? dictionary : first; left > 0; ) {
    if (!(at >= 0 && at < size)) throw new ParquetError('it has pages outside of the file');
    const { header, length } = headerAt(at, size, read);
    const { 1: type, 2: after = -1, 3: before = -1 } = header.integers;
    const place = type === DATA ? 5 : type === DICTIONARY ? 7 : type === DATA_V2 ? 8 : 0;
    const facts = header.structs[place]?.integers ?? NONE;
    const { 1: count = -1, 2: encoding = -1, 4: encodingOfV2 = encoding }: Readonly<Record<number, number>> = facts;
    at += length + before;
    if (before < 0 || after < 0 || count < 0 || at > size) throw new ParquetError('it has a page with impossible sizes');
    if (type !== DICTIONARY) left -= count;
    // DuckDB allocates 16 bytes for each value.
    else if (count > after) throw new ParquetError(`it has a dictionary with ${count} values in ${after} bytes`);
    else isPlain &&= count <= rows;
    isPlain &&= PLAIN.includes(encodingOfV2);
    unpacked += after;
  }
  return { unpacked, isPlain };
}

function headerAt(at: number, size: number, read: (offset: number, length: number) => Buffer): { header: Struct; length: number } {
  for (const most of HEADER_BYTES) {
    const reader = new Reader(read(at, most));
    try {
      return { header: reader.struct(PAGE), length: reader.at };
    } catch (error) {
      if (!(error instanceof CutOff) || at + most >= size) throw error;
    }
  }
  throw new ParquetError('it has a page header that is too long');
}

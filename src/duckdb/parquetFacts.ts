/**
 * Checks every length in the footer and the page headers of a Parquet file that DuckDB would believe, and allocate outside of its memory
 * limit: a footer of 26 bytes can announce a list of a billion entries.
 *
 * Footer and page headers are structs of Thrift's compact protocol. A struct is a sequence of fields and ends with a zero byte. A field
 * begins with its type and the difference to the id of the field before.
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
   * True if all pages are as this program writes them. Data in other encodings has lengths that are not checked here, and other
   * dictionaries may have more values than their row group has rows.
   */
  readonly isPlain: boolean;
}

/** Types of the compact protocol, apart from those that Parquet does not use. The value of a Boolean field is its type, TRUE or FALSE. */
const [TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12];
const INTEGERS = [I16, I32, I64];
const SIZES: Readonly<Record<number, number>> = { [BYTE]: 1, [DOUBLE]: 8 };

/**
 * A field that is read: an integer; a struct, if there is `of`; or a list of the type `list`. DuckDB keeps the list, and needs `bytes` of
 * memory for an entry, apart from inner lists. Entries of a list without `of` are skipped.
 */
interface Kept {
  readonly list?: number;
  readonly bytes?: number;
  readonly of?: Shape;
}

/** The fields of a struct that are read, by their ids: lists that DuckDB keeps instead of skipping them, and what is needed here. */
type Shape = Readonly<Record<number, Kept>>;

const integer: Kept = {};
const numbers: Kept = { list: I64, bytes: 8 };
const kinds: Kept = { list: I32, bytes: 4 };
const texts: Kept = { list: BINARY, bytes: 40 };
const structs = (bytes: number, of?: Shape): Kept => ({ list: STRUCT, bytes, ...(of && { of }) });
const pairs = structs(90);

/** Metadata of a column of a row group, which is field 3 of a chunk. Measured: DuckDB needs 760 bytes for a chunk. */
const COLUMN: Shape = {
  ...{ 2: kinds, 3: texts, 5: integer, 8: pairs, 9: integer, 11: integer, 13: structs(30) },
  ...{ 16: { of: { 2: numbers, 3: numbers } }, 17: { of: { 2: kinds } } },
};
const CHUNK: Shape = { 3: { of: COLUMN }, 8: { of: { 2: { of: { 1: texts } } } } };
const GROUP: Shape = { 1: structs(800, CHUNK), 3: integer, 4: structs(30) };
const FOOTER: Shape = { 2: structs(500, { 5: integer }), 3: integer, 4: structs(100, GROUP), 5: pairs, 7: structs(30) };
const PAGE: Shape = {
  ...{ 1: integer, 2: integer, 3: integer },
  ...{ 5: { of: { 1: integer, 2: integer } }, 7: { of: { 1: integer, 2: integer } }, 8: { of: { 1: integer, 4: integer } } },
};

/** Maximum size of a footer, and of what DuckDB needs to hold its entries, in bytes. */
const [FOOTER_BYTES, MOST_MEMORY] = [32 * 1024 * 1024, 128 * 1024 * 1024];

/** Maximum number of structs or lists inside each other. Parquet has six. */
const MOST_DEPTH = 16;

/** Maximum depth of nested columns. DuckDB calls itself once for each level. */
const MOST_NESTED = 100;

/** The fields of a struct that its shape names, by their ids. A struct in it is a list of one. */
type Struct = Readonly<Record<number, number | readonly Struct[] | undefined>>;

const numberIn = (struct: Struct, id: number, byDefault = 0): number => {
  const value = struct[id];
  return typeof value === 'number' ? value : byDefault;
};
const structsIn = (struct: Struct, id: number): readonly Struct[] => {
  const value = struct[id];
  return typeof value === 'object' ? value : [];
};

/** Reads a part of the file; fewer bytes at its end. */
type ReadPart = (offset: number, length: number) => Uint8Array;

/** Number of bytes to read at once. Most page headers are shorter. */
const PART_BYTES = 4096;

class Reader {
  /** Memory that DuckDB needs for the entries of lists, in bytes. */
  #memory = 0;
  /** The last part that was read, and its offset. */
  #part: Uint8Array = new Uint8Array();
  #offset = 0;

  /** `at` is the offset in the file of what is read next. It must be below `end`. */
  constructor(
    private readonly read: ReadPart,
    public at: number,
    private readonly end: number,
  ) {}

  struct(shape: Shape, depth = 0): Struct {
    if (depth > MOST_DEPTH) throw new ParquetError('it has too many structs inside each other');
    const found: Record<number, Struct[number]> = {};
    for (let id = 0; ; ) {
      const head = this.#byte();
      if (head === 0) return found;
      id = head < 16 ? this.#integer() : id + Math.floor(head / 16);
      const kept = shape[id];
      // DuckDB would mix both values.
      if (id in found) throw new ParquetError(`it has the field ${id} of a struct twice`);
      if (kept === undefined) this.#skip(head % 16, depth);
      else found[id] = this.#value(head % 16, kept, depth);
    }
  }

  /** Reads a field. Skips one of another type than expected. */
  #value(type: number, { list, bytes = 0, of }: Kept, depth: number): Struct[number] {
    if (list !== undefined && type === LIST) return this.#list(list, bytes, of, depth);
    if (list === undefined && of !== undefined && type === STRUCT) return [this.struct(of, depth + 1)];
    if (list === undefined && of === undefined && INTEGERS.includes(type)) return this.#integer();
    this.#skip(type, depth);
    return undefined;
  }

  #list(type: number, bytes: number, of: Shape | undefined, depth: number): Struct[] {
    const [found, length] = this.#listHead();
    // DuckDB ignores the type, so it would read other entries than were skipped here.
    if (length > 0 && found !== type) throw new ParquetError('it has a list of the wrong type');
    this.#memory += length * bytes;
    if (this.#memory > MOST_MEMORY)
      throw new ParquetError(`its metadata needs more than ${MOST_MEMORY} bytes of memory: it must have fewer and larger row groups`);
    const entries: Struct[] = [];
    for (let i = 0; i < length; i++) {
      if (of === undefined) this.#skip(type, depth + 1);
      else entries.push(this.struct(of, depth + 1));
    }
    return entries;
  }

  /** Reads type and number of the entries of a list. Each entry has at least one byte. */
  #listHead(): [type: number, length: number] {
    const head = this.#byte();
    const short = Math.floor(head / 16);
    return [head % 16, this.#within(short === 15 ? this.#varint() : short)];
  }

  #skip(type: number, depth: number): void {
    if (depth > MOST_DEPTH) throw new ParquetError('it has too many lists inside each other');
    if (type === STRUCT) this.struct({}, depth + 1);
    else if (type === LIST) {
      const [of, length] = this.#listHead();
      // Unlike the value of a field, a Boolean entry has a byte.
      for (let i = 0; i < length; i++) this.#skip(of === TRUE || of === FALSE ? BYTE : of, depth + 1);
    } else if (INTEGERS.includes(type)) this.#varint();
    else if (type !== TRUE && type !== FALSE) {
      const length = type === BINARY ? this.#varint() : SIZES[type];
      if (length === undefined) throw new ParquetError(`it has a field of the unknown type ${type}`);
      this.at += this.#within(length);
    }
  }

  #byte(): number {
    this.#within(1);
    if (this.at >= this.#offset + this.#part.length) {
      this.#offset = this.at;
      this.#part = this.read(this.at, PART_BYTES);
    }
    return this.#part[this.at++ - this.#offset] ?? 0;
  }

  #within(length: number): number {
    const left = this.end - this.at;
    if (length > left) throw new ParquetError(`it announces ${length} bytes or entries where only ${left} bytes follow`);
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
    const read = (offset: number, length: number) => {
      const bytes = Buffer.allocUnsafe(Math.min(length, size - offset));
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset));
    };
    const end = size < MAGIC.length + END_BYTES ? Buffer.alloc(END_BYTES) : read(size - END_BYTES, END_BYTES);
    if ([read(0, MAGIC.length), end.subarray(4)].some((magic) => magic.toString('latin1') !== MAGIC))
      throw new ParquetError(`it does not begin and end with ${MAGIC}`);
    const length = end.readUInt32LE();
    if (length > Math.min(size - END_BYTES - MAGIC.length, FOOTER_BYTES))
      throw new ParquetError(`its footer cannot have ${length} bytes: the file has ${size}, and a footer at most ${FOOTER_BYTES}`);
    const footer = new Reader(read, size - END_BYTES - length, size - END_BYTES).struct(FOOTER);
    checkNesting(structsIn(footer, 2));
    const facts = { rows: rowsOf(footer), unpacked: 0, isPlain: true };
    for (const group of structsIn(footer, 4)) for (const chunk of structsIn(group, 1)) addPages(facts, chunk, rowsOf(group), size, read);
    return facts;
  } finally {
    closeSync(file);
  }
}

/** The number of rows has the same id in a footer and in a row group. */
const rowsOf = (struct: Struct): number => numberIn(struct, 3);

/** Throws a ParquetError if the columns are nested too deeply. A column is followed by its inner columns. */
function checkNesting(columns: readonly Struct[]): void {
  /** For each column around the next one, the number of inner columns that still follow. */
  const left: number[] = [];
  for (const column of columns) {
    while (left.at(-1) === 0) left.pop();
    left.push((left.pop() ?? 1) - 1, Math.max(numberIn(column, 5), 0));
    if (left.length > MOST_NESTED) throw new ParquetError(`it has more than ${MOST_NESTED} columns inside each other`);
  }
}

const [DATA, DICTIONARY, DATA_V2] = [0, 2, 3];

/** The encodings PLAIN, PLAIN_DICTIONARY, RLE and RLE_DICTIONARY. */
const PLAIN = [0, 2, 3, 8];

/** Reads the page headers that DuckDB reads for a column of a row group, and adds what they say to `facts`. */
function addPages(facts: { unpacked: number; isPlain: boolean }, chunk: Struct, rows: number, size: number, read: ReadPart): void {
  const [column = {}] = structsIn(chunk, 3);
  const dictionary = numberIn(column, 11);
  let left = Math.max(numberIn(column, 5), rows);
  for (let at = dictionary >= MAGIC.length ? dictionary : numberIn(column, 9); left > 0; ) {
    if (!(at >= 0 && at < size)) throw new ParquetError('it has pages outside of the file');
    const reader = new Reader(read, at, size);
    const header = reader.struct(PAGE);
    const [type, after, before] = [1, 2, 3].map((id) => numberIn(header, id, -1)) as [number, number, number];
    const place = type === DATA ? 5 : type === DICTIONARY ? 7 : type === DATA_V2 ? 8 : 0;
    const [page = {}] = structsIn(header, place);
    const [count, encoding] = [numberIn(page, 1, -1), numberIn(page, type === DATA_V2 ? 4 : 2, -1)];
    at = reader.at + before;
    if (before < 0 || after < 0 || count < 0 || at > size) throw new ParquetError('it has a page with impossible sizes');
    if (type !== DICTIONARY) left -= count;
    // DuckDB allocates 16 bytes for each value.
    else if (count > after) throw new ParquetError(`it has a dictionary with ${count} values in ${after} bytes`);
    else facts.isPlain &&= count <= rows;
    facts.isPlain &&= PLAIN.includes(encoding);
    facts.unpacked += after;
  }
}

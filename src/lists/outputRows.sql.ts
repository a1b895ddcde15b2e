/**
 * Rows from which a level's lists of unspent outputs by address are written (outputsOfAddress.sql.ts). Reads texts as
 * bytes, because making a JavaScript string of each text would take several times as long.
 */
import { type JoinedBlobs, joinedBlobs, readDoubles } from '../duckdb/columns.ts';
import type { Store } from '../duckdb/store.ts';
import { haveSameStart } from '../engine/archive/makeLevels.ts';

export const bytesOf = (text: string): Uint8Array => Buffer.from(text);
export const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();

/**
 * Kinds of the rows from which a list is written. Rows with the same key are sorted by these numbers. In a COUNT row,
 * `first` is the number of made outputs. Only a list with more than a page of rows has such a row. In a GROUP row, the
 * text is the number of outputs removed from one page. A row of another kind is about one output
 * (outputsOfAddress.sql.ts).
 */
export const [COUNT, GROUP, REMOVED, MADE, PLACED] = [0, 1, 2, 3, 4];

/** Rows of a level, sorted by key, then by kind, and then by their position in the list. */
export class ListRows {
  readonly #chunks: ReturnType<Store['stream']>;
  #chunk: ListChunk = NO_ROWS;
  #at = 0;
  /** Key of the current row; undefined after the last row. */
  key: string | undefined;

  /**
   * `rows` is SQL of rows with the columns `key`, `kind`, `first`, `page` and `text`. Its columns `sort`, `number` and `id`
   * are for sorting.
   */
  constructor(rows: string, store: Store) {
    // The SQL operator || copies the texts of a chunk to consecutive memory, from which joinedBlobs() copies them
    // faster.
    const select = `key || '', text || '', kind::DOUBLE, first::DOUBLE, page::DOUBLE`;
    this.#chunks = store.stream(`SELECT ${select} FROM (FROM (${rows}) ORDER BY key, kind, first, page, sort, number, id)`);
  }

  get first(): number {
    return this.#chunk.firsts[this.#at] ?? 0;
  }

  get page(): number {
    return this.#chunk.pages[this.#at] ?? 0;
  }

  /** Text of the row: a value of the list, an outpoint or a number. */
  get value(): Uint8Array {
    const { bytes, offsets } = this.#chunk.values;
    return bytes.subarray(offsets[this.#at], offsets[this.#at + 1]);
  }

  /** True if the current row has this key and kind. */
  isAt(key: string, kind: number): boolean {
    return this.key === key && this.#chunk.kinds[this.#at] === kind;
  }

  /** Moves to the next row. */
  async next(): Promise<void> {
    this.#at += 1;
    if (this.#at >= this.#chunk.kinds.length) {
      const { value, done } = await this.#chunks.next();
      this.#chunk = done === true ? NO_ROWS : chunkOf(value);
      this.#at = 0;
    }
    const { bytes, offsets } = this.#chunk.keys;
    this.key = this.#chunk.kinds.length === 0 ? undefined : bytes.toString('latin1', offsets[this.#at], offsets[this.#at + 1]);
  }

  /**
   * Joins the current row and the next rows of the same output, one for each rune, into a value. Moves past these rows.
   */
  async takeOutput(): Promise<Uint8Array> {
    const { key = '', value } = this;
    const others: Uint8Array[] = [];
    for (await this.next(); this.isAt(key, MADE) && haveSameStart(value, this.value, COMMA); await this.next()) others.push(this.value);
    return others.length === 0 ? value : bytesOf(joinValues([value, ...others].map(textOf)));
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

interface ListChunk extends Record<'kinds' | 'firsts' | 'pages', Float64Array> {
  readonly keys: JoinedBlobs;
  readonly values: JoinedBlobs;
}

const [NONE_JOINED, NO_NUMBERS] = [{ bytes: Buffer.alloc(0), offsets: new Float64Array(1) }, new Float64Array(0)];
const NO_ROWS: ListChunk = { keys: NONE_JOINED, values: NONE_JOINED, kinds: NO_NUMBERS, firsts: NO_NUMBERS, pages: NO_NUMBERS };

const chunkOf = (chunk: Parameters<typeof joinedBlobs>[0]): ListChunk => ({
  keys: joinedBlobs(chunk, 0),
  values: joinedBlobs(chunk, 1),
  kinds: readDoubles(chunk, 2),
  firsts: readDoubles(chunk, 3),
  pages: readDoubles(chunk, 4),
});

const COMMA = 44;

/** Joins values of one output that have one rune each. */
function joinValues(values: readonly string[]): string {
  const [first = ''] = values;
  // All values begin with the same outpoint and location. The first JSON list inside a value is its rune.
  const place = first.indexOf(',[');
  return `${[first.slice(0, place), ...joinRunes(values.map((value) => value.slice(place + 1, -1)))].join()}]`;
}

/** Joins the JSON of runes in an output, which are sorted by rune. Adds up the balances of the same rune. */
export function joinRunes(runes: readonly string[]): string[] {
  const joined: { readonly rune: string; units: bigint }[] = [];
  for (const json of runes) {
    const [end, last] = [json.lastIndexOf(',"'), joined.at(-1)];
    const [rune, units] = [json.slice(0, end), BigInt(json.slice(end + 2, -2))];
    if (last?.rune === rune) last.units += units;
    else joined.push({ rune, units });
  }
  return joined.map(({ rune, units }) => `${rune},"${units}"]`);
}

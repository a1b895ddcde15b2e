/**
 * The rows from which levels of lists of activity are made (archive/activityTables.ts): a pointer for each record and list
 * that has it.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { LISTED } from '../archive/activityTables.ts';
import type { LevelRange } from '../archive/levels.ts';
import { countCrossing, type WorkLimits } from '../limits.ts';
import { readDoubles } from '../store/columns.ts';
import { int, literal, type Store } from '../store/duckdb.ts';
import { readFiles, writePartitioned } from '../store/files.ts';
import type { TableWith } from '../store/table.ts';

/** Returns SQL of one of the texts. Names of columns have no colon, which separates the parts of texts. */
function textOf(text: string): string {
  const columns = ['rune_id', 'address'];
  return text
    .split(/(:)/)
    .map((part) => (columns.includes(part) ? part : literal(part)))
    .join(' || ');
}

/** Returns the size of the pages of all blocks below a height, in bytes. */
export async function bytesBelow(height: number, blocks: PackedBlocks, store: Store): Promise<number> {
  const { bytes } = await store.row(`SELECT coalesce(sum(packed), 0)::BIGINT AS bytes FROM ${blocks} WHERE block_height < ${height}`, {
    bytes: int,
  });
  return bytes;
}

/** All blocks, with the sizes of their pages in the archive. */
type PackedBlocks = TableWith<'block_height' | 'packed'>;

export interface RowsForm {
  readonly blocks: PackedBlocks;
  readonly records: TableWith<'block_height' | 'record' | 'rune_id' | 'address' | 'page_offset' | 'page_bytes' | 'in_page'>;
  readonly limits: Pick<WorkLimits, 'sortedAtOnce'>;
  /** Folder for temporary files. */
  readonly scratch: string;
}

/** Columns of a row. The first two are the key. */
export const [UPPER, LOWER, HEIGHT, POSITION, LENGTH, IN_PAGE] = [0, 1, 2, 3, 4, 5] as const;
const COLUMNS = ['upper', 'lower', 'height', '"position"', 'length', 'in_page'];

/**
 * The rows of a level, ascending by key. Those of a list are its listed records, newest first.
 */
export class ActivityRows {
  readonly #chunks: AsyncGenerator<readonly Float64Array[]>;
  #columns: readonly Float64Array[] = [];
  #row = 0;

  constructor(range: LevelRange, form: RowsForm, store: Store) {
    this.#chunks = chunksOf(range, form, store);
  }

  /** False after the last row. Valid after the first `next`. */
  get isAtRow(): boolean {
    return this.#row < (this.#columns[UPPER]?.length ?? 0);
  }

  /** Returns a column of the current row; -1 after the last. */
  at(column: number): number {
    return this.#columns[column]?.[this.#row] ?? -1;
  }

  /** Moves to the next row, which may have to be read first. */
  next(): Promise<void> | void {
    this.#row += 1;
    if (!this.isAtRow) return this.#nextChunk();
  }

  async #nextChunk(): Promise<void> {
    const { value, done } = await this.#chunks.next();
    this.#columns = done === true ? [] : value;
    this.#row = 0;
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

/** Bytes that DuckDB needs to sort a pointer: about twice its columns. */
const SORTED_BYTES = 128;

/** Yields the rows of a level. Sorts them in parts of the keys, because DuckDB needs a part of what it sorts in memory. */
async function* chunksOf(
  { first, last }: LevelRange,
  { blocks, records, limits, scratch }: RowsForm,
  store: Store,
): AsyncGenerator<readonly Float64Array[]> {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const hashOf = (text: string) => `sha256(${textOf(text)})`;
  // The hash of a text without an address is NULL. One pass over the records makes all pointers.
  const hashes = [LISTED.rune('rune_id'), LISTED.address('address'), LISTED.both('rune_id', 'address')].map(hashOf).join(', ');
  const keyed = `WITH starts AS (SELECT block_height, sum(packed) OVER (ORDER BY block_height) - packed AS start FROM ${blocks} WHERE ${isIn}),
      pointers AS NOT MATERIALIZED (SELECT unnest([${hashes}]) AS hash, block_height AS height, record::INTEGER AS record,
        (start + page_offset)::BIGINT AS "position", page_bytes::INTEGER AS length, in_page::INTEGER AS in_page
        FROM ${records} JOIN starts USING (block_height) WHERE ${isIn})
    SELECT ('0x' || left(hash, 12))::UBIGINT AS upper, ('0x' || substr(hash, 13, 6))::UINTEGER AS lower, * EXCLUDE (hash)
    FROM pointers WHERE hash IS NOT NULL`;
  const { count } = await store.row(`SELECT count(*) AS count FROM ${records} WHERE ${isIn}`, { count: int });
  const most = Math.min(limits.sortedAtOnce, Math.ceil(store.memory / SORTED_BYTES));
  if (3 * count <= most) {
    yield* sorted(keyed, store);
    return;
  }
  countCrossing('sortedAtOnce');
  const parts = Math.ceil((3 * count) / most);
  const folder = join(scratch, 'pointers');
  // Keys are evenly distributed, so each part has about as many pointers.
  await store.run(writePartitioned(`SELECT *, upper // ${Math.ceil(2 ** 48 / parts)} AS part FROM (${keyed})`, folder, 'part'));
  for (let part = 0; part < parts; part += 1) {
    const own = join(folder, `part=${part}`);
    if (existsSync(own))
      yield* sorted(
        `FROM ${readFiles(
          'parquet',
          readdirSync(own).map((name) => join(own, name)),
        )}`,
        store,
      );
  }
  rmSync(folder, { recursive: true });
}

/** Yields the rows of a query in the order of lists. */
async function* sorted(keyed: string, store: Store): AsyncGenerator<readonly Float64Array[]> {
  const columns = COLUMNS.map((name) => `${name}::DOUBLE`).join(', ');
  for await (const chunk of store.stream(`SELECT ${columns} FROM (FROM (${keyed}) ORDER BY upper, lower, height DESC, record)`))
    yield COLUMNS.map((_, column) => readDoubles(chunk, column));
}

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
import type { LevelPlan } from './listedRecords.ts';

/** Returns SQL of one of the texts. Names of columns have no colon, which separates the parts of texts. */
function textOf(text: string): string {
  const columns = ['rune_id', 'address'];
  return text
    .split(/(:)/)
    .map((part) => (columns.includes(part) ? part : literal(part)))
    .join(' || ');
}

/** Returns the size of the pages of all blocks below a height, in bytes. */
export async function bytesBelow(height: number, store: Store): Promise<number> {
  const { bytes } = await store.row(`SELECT coalesce(sum(packed), 0)::BIGINT AS bytes FROM state.blocks WHERE block_height < ${height}`, {
    bytes: int,
  });
  return bytes;
}

/** How rows are sorted. */
export interface RowsForm {
  readonly limits: Pick<WorkLimits, 'sortedAtOnce'>;
  /** Folder for temporary files. */
  readonly scratch: string;
}

/** Columns of a row, in the order of the SQL. */
interface Columns {
  readonly upper: Float64Array;
  readonly lower: Float64Array;
  readonly height: Float64Array;
  readonly position: Float64Array;
  readonly length: Float64Array;
  readonly inPage: Float64Array;
}

/**
 * The rows of a level, ascending by key. Those of a list are its records in `listed_records`, newest first.
 */
export class ActivityRows {
  readonly #chunks: AsyncGenerator<Columns>;
  readonly #reused: readonly LevelRange[];
  #columns: Columns | undefined;
  #row = 0;

  constructor(plan: LevelPlan, form: RowsForm, store: Store) {
    this.#reused = plan.reused;
    this.#chunks = chunksOf(plan, form, store);
  }

  /** False after the last row. Valid after the first `next`. */
  get isAtRow(): boolean {
    return this.#columns !== undefined;
  }

  /** True if the key of the row is this one. */
  isOf(upper: number, lower: number): boolean {
    return this.upper === upper && this.lower === lower;
  }

  get upper(): number {
    return this.#columns?.upper[this.#row] ?? -1;
  }

  get lower(): number {
    return this.#columns?.lower[this.#row] ?? -1;
  }

  /** The number of reused levels below the record's block. */
  get levelsBelow(): number {
    const height = this.#columns?.height[this.#row] ?? 0;
    let below = 0;
    for (const { last } of this.#reused) if (last < height) below += 1;
    return below;
  }

  /** Position in the level, length of the page, number in the page. */
  get position(): number {
    return this.#columns?.position[this.#row] ?? 0;
  }

  get length(): number {
    return this.#columns?.length[this.#row] ?? 0;
  }

  get inPage(): number {
    return this.#columns?.inPage[this.#row] ?? 0;
  }

  /** Moves to the next row, which may have to be read first. */
  next(): Promise<void> | void {
    this.#row += 1;
    if (this.#row >= (this.#columns?.upper.length ?? 0)) return this.#nextChunk();
  }

  async #nextChunk(): Promise<void> {
    const { value, done } = await this.#chunks.next();
    this.#columns = done === true ? undefined : value;
    this.#row = 0;
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

/** Bytes that DuckDB needs to sort a pointer: about twice its columns. */
const SORTED_BYTES = 128;

/** Yields the rows of a level. Sorts them in parts of the keys, because DuckDB needs a part of what it sorts in memory. */
async function* chunksOf({ first, last }: LevelRange, { limits, scratch }: RowsForm, store: Store): AsyncGenerator<Columns> {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const hashOf = (text: string) => `sha256(${textOf(text)})`;
  // The hash of a text without an address is NULL. One pass over the records makes all pointers.
  const hashes = [LISTED.rune('rune_id'), LISTED.address('address'), LISTED.both('rune_id', 'address')].map(hashOf).join(', ');
  const keyed = `WITH starts AS (SELECT block_height, sum(packed) OVER (ORDER BY block_height) - packed AS start FROM state.blocks WHERE ${isIn}),
      pointers AS NOT MATERIALIZED (SELECT unnest([${hashes}]) AS hash, block_height AS height, record::INTEGER AS record,
        (start + page_offset)::BIGINT AS "position", page_bytes::INTEGER AS length, in_page::INTEGER AS in_page
        FROM listed_records JOIN starts USING (block_height) WHERE ${isIn})
    SELECT ('0x' || left(hash, 12))::UBIGINT AS upper, ('0x' || substr(hash, 13, 6))::UINTEGER AS lower, * EXCLUDE (hash)
    FROM pointers WHERE hash IS NOT NULL`;
  const { records } = await store.row(`SELECT count(*) AS records FROM listed_records WHERE ${isIn}`, { records: int });
  const most = Math.min(limits.sortedAtOnce, Math.ceil(store.memory / SORTED_BYTES));
  if (3 * records <= most) {
    yield* sorted(keyed, store);
    return;
  }
  countCrossing('sortedAtOnce');
  const parts = Math.ceil((3 * records) / most);
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
async function* sorted(keyed: string, store: Store): AsyncGenerator<Columns> {
  const columns = ['upper', 'lower', 'height', '"position"', 'length', 'in_page'].map((name) => `${name}::DOUBLE`).join(', ');
  for await (const chunk of store.stream(`SELECT ${columns} FROM (FROM (${keyed}) ORDER BY upper, lower, height DESC, record)`)) {
    const column = (i: number) => readDoubles(chunk, i);
    yield { upper: column(0), lower: column(1), height: column(2), position: column(3), length: column(4), inPage: column(5) };
  }
}

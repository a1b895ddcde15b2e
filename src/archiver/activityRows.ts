/**
 * The rows from which levels of lists of activity are made (archive/activityTables.ts): a pointer for each record and list
 * that has it, and the names of runes. Keys are hashed once for each distinct text.
 */
import { LISTED } from '../archive/activityTables.ts';
import type { LevelRange } from '../archive/levels.ts';
import { InputError } from '../errors.ts';
import type { Layout } from '../pages/site.ts';
import { readDoubles } from '../store/columns.ts';
import { int, literal, type Store, text } from '../store/duckdb.ts';
import type { LevelPlan } from './listedRecords.ts';

/** SQL of the parts of a key, from its text in SQL. */
const keyOf = (text: string): string =>
  `('0x' || left(sha256(${text}), 12))::UBIGINT::DOUBLE AS upper, ('0x' || substr(sha256(${text}), 13, 6))::UBIGINT::DOUBLE AS lower`;

/** Returns SQL of one of the texts. Names of columns have no colon, which separates the parts of texts. */
function textOf(text: string): string {
  const columns = ['rune_id', 'address', 'name'];
  return text
    .split(/(:)/)
    .map((part) => (columns.includes(part) ? part : literal(part)))
    .join(' || ');
}

/** Throws an InputError when the tables of names cannot have a rune of the input. */
export async function checkListsFit(layout: Layout, store: Store): Promise<void> {
  const below = (part: number, limit: number) => `try_cast(split_part(rune_id, ':', ${part}) AS BIGINT) < ${limit}`;
  const fits = `regexp_full_match(rune_id, '(0|[1-9][0-9]*):(0|[1-9][0-9]*)') AND ${below(1, 2 ** 24)} AND ${below(2, 2 ** 32)}`;
  const [wrong] = await store.rows(
    `SELECT rune_id FROM (SELECT DISTINCT rune_id FROM kept) WHERE NOT coalesce(${fits}, false) ORDER BY rune_id LIMIT 1`,
    { rune_id: text },
  );
  if (wrong === undefined) return;
  throw new InputError(
    `the rune id ${JSON.stringify(wrong.rune_id.slice(0, 64))} is not height:index, as in 840000:3, which lists by rune need`,
    [`Correct the input, or build ${layout === 'archive' ? 'with --no-lists' : 'without --lists'}.`],
  );
}

/** Makes the keys of the lists that `listed_records` belong to. */
export async function makeKeys(store: Store): Promise<void> {
  await store.run(`CREATE OR REPLACE TEMP TABLE rune_keys AS SELECT rune_id, ${keyOf(textOf(LISTED.rune('rune_id')))}
      FROM (SELECT DISTINCT rune_id FROM listed_records);
    CREATE OR REPLACE TEMP TABLE address_keys AS SELECT address, ${keyOf(textOf(LISTED.address('address')))}
      FROM (SELECT DISTINCT address FROM listed_records WHERE address IS NOT NULL);
    CREATE OR REPLACE TEMP TABLE pair_keys AS SELECT rune_id, address, ${keyOf(textOf(LISTED.both('rune_id', 'address')))}
      FROM (SELECT DISTINCT rune_id, address FROM listed_records WHERE address IS NOT NULL)`);
}

/** Frees the memory of the keys. */
export const dropKeys = (store: Store): Promise<void> => store.run('DROP TABLE rune_keys; DROP TABLE address_keys; DROP TABLE pair_keys');

/** Returns the size of the pages of all blocks below a height, in bytes. */
export async function bytesBelow(height: number, store: Store): Promise<number> {
  const { bytes } = await store.row(`SELECT coalesce(sum(packed), 0)::BIGINT AS bytes FROM state.blocks WHERE block_height < ${height}`, {
    bytes: int,
  });
  return bytes;
}

/** Rune heights are lower. It moves those of names below zero, so that the rows of names differ from pointers. */
const NAME = 2 ** 25;

/** Columns of a row, in the order of the SQL. */
interface Columns {
  readonly upper: Float64Array;
  readonly lower: Float64Array;
  readonly height: Float64Array;
  readonly record: Float64Array;
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

  /** `sortedAtOnce` is the number of records whose pointers are sorted at once, because that takes memory. */
  constructor({ first, last, reused }: LevelPlan, sortedAtOnce: number, store: Store) {
    this.#reused = reused;
    this.#chunks = chunksOf(first, last, sortedAtOnce, store);
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

  /** The rune's id if the row is a name; undefined for a pointer. */
  get named(): { readonly height: number; readonly index: number } | undefined {
    const record = this.#columns?.record[this.#row] ?? 0;
    return record < 0 ? { height: record + NAME, index: -(this.#columns?.height[this.#row] ?? 0) } : undefined;
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

/** The lowest key of a part of all keys, which have 48 bits here. */
const boundary = (part: number, parts: number): number => Math.floor((2 ** 48 / parts) * part);

async function* chunksOf(first: number, last: number, sortedAtOnce: number, store: Store): AsyncGenerator<Columns> {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const index = "split_part(rune_id, ':', 2)::BIGINT";
  const height = "split_part(rune_id, ':', 1)::BIGINT";
  const names = `SELECT ${keyOf(textOf(LISTED.name('name')))}, -${index}::DOUBLE, (${height} - ${NAME})::DOUBLE, 0::DOUBLE, 0::DOUBLE, 0::DOUBLE
    FROM (SELECT DISTINCT rune_id, unnest([number::VARCHAR, name]) AS name FROM state.block_runes WHERE ${isIn})
    WHERE regexp_full_match(name, '[0-9]+|[A-Z]+')`;
  const { records } = await store.row(`SELECT count(*) AS records FROM listed_records WHERE ${isIn}`, { records: int });
  const parts = Math.max(Math.ceil(records / sortedAtOnce), 1);
  for (let part = 0; part < parts; part += 1) {
    // Keys are evenly distributed, so each part has about as many lists.
    const isInPart = parts === 1 ? 'true' : `upper >= ${boundary(part, parts)} AND upper < ${boundary(part + 1, parts)}`;
    const pointers = (keys: string, columns: string) =>
      `SELECT upper, lower, height, record, "position", length, in_page FROM placed JOIN (SELECT * FROM ${keys} WHERE ${isInPart}) USING (${columns})`;
    const sql = `WITH starts AS (SELECT block_height, sum(packed) OVER (ORDER BY block_height) - packed AS start FROM state.blocks WHERE ${isIn}),
        placed AS (SELECT rune_id, address, block_height::DOUBLE AS height, record::DOUBLE AS record, (start + page_offset)::DOUBLE AS "position",
          page_bytes::DOUBLE AS length, in_page::DOUBLE AS in_page FROM listed_records JOIN starts USING (block_height) WHERE ${isIn})
      ${pointers('rune_keys', 'rune_id')} UNION ALL ${pointers('address_keys', 'address')}
      UNION ALL ${pointers('pair_keys', 'rune_id, address')}
      UNION ALL SELECT * FROM (${names}) WHERE ${isInPart}
      ORDER BY upper, lower, height DESC, record`;
    for await (const chunk of store.stream(sql)) {
      const column = (i: number) => readDoubles(chunk, i);
      yield {
        upper: column(0),
        lower: column(1),
        height: column(2),
        record: column(3),
        position: column(4),
        length: column(5),
        inPage: column(6),
      };
    }
  }
}

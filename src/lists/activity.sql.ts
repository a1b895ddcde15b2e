/**
 * Writes the lists of activity of an archive (activity.ts). A listed record (engine/archive/listedRecords.ts) has a row
 * for each list that it belongs to.
 */
import { readDoubles } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { literal, type Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import type { PutFile } from '../engine/archive/segmentWriter.ts';
import { PointerWriter, TableWriter } from '../engine/archive/tableWriter.ts';
import type { LevelRange } from '../format/levels.ts';
import type { ActivityLevel } from '../format/listTables.ts';
import type { Limits, WorkLimits } from '../limits.ts';
import { yieldNow } from '../yieldNow.ts';
import { headEntries, LISTED, POINTERS_PER_BLOCK } from './activity.ts';

interface ActivityForm extends RowsForm {
  readonly blocks: PackedBlocks;
  readonly limits: Pick<Limits, 'entriesPerCount' | 'keptRecords' | 'sortedAtOnce'>;
  /** Maximum size of a file, in bytes. */
  readonly objectSize: number;
}

/** Writes the levels that changed since the last build, which had the levels `before`. Returns all levels. */
export async function writeActivity(
  plans: readonly LevelPlan[],
  before: readonly ActivityLevel[],
  form: ActivityForm,
  put: PutFile,
  store: Store,
): Promise<ActivityLevel[]> {
  const { objectSize } = form;
  const levels: ActivityLevel[] = [];
  for (const plan of plans) {
    const begin = await bytesBelow(plan.first, form.blocks, store);
    if (plan.isKept) {
      for (const level of before) if (level.heads.first === plan.first) levels.push({ ...level, begin });
      continue;
    }
    const rows = new ActivityRows(plan, begin, form, store);
    const heads = new TableWriter(objectSize, form.limits, put);
    const pointers = new PointerWriter(objectSize, put);
    try {
      await writeRows(rows, heads, pointers);
    } finally {
      await rows.close();
    }
    const table = heads.finish(plan);
    if (table !== undefined) levels.push({ begin, heads: table, pointers: pointers.finish(plan) });
  }
  return levels;
}

/** Writes the lists of a level. */
async function writeRows(rows: ActivityRows, heads: TableWriter, pointers: PointerWriter): Promise<void> {
  await rows.start();
  for (let lists = 0; rows.upper !== Number.POSITIVE_INFINITY; lists += 1) {
    if (lists % POINTERS_PER_BLOCK === 0) await yieldNow();
    const { upper, lower } = rows;
    const position = pointers.total;
    const waiting = rows.copy(upper, lower, pointers);
    if (waiting !== undefined) await waiting;
    for (const entry of headEntries({ upper, lower }, { position, count: pointers.total - position })) heads.add(entry);
  }
}

/**
 * Returns the SQL expression of the text that identifies a list. `text` is a text of LISTED (activity.ts) that has the
 * names of columns in place of the rune id and the address.
 */
function textOf(text: string): string {
  const columns = ['rune_id', 'address'];
  return text
    .split(/(:)/)
    .map((part) => (columns.includes(part) ? part : literal(part)))
    .join(' || ');
}

/** Returns the size of the pages of all blocks below a height, in bytes. */
async function bytesBelow(height: number, blocks: PackedBlocks, store: Store): Promise<number> {
  const bytes = await store.number(`SELECT coalesce(sum(packed), 0)::BIGINT AS number FROM ${blocks} WHERE block_height < ${height}`);
  return bytes;
}

/** All blocks, with the sizes of their pages in the archive. */
type PackedBlocks = TableWith<'block_height' | 'packed'>;

interface RowsForm {
  readonly records: TableWith<'block_height' | 'rune_id' | 'address' | 'page_position' | 'page_bytes' | 'in_page'>;
  readonly limits: Pick<WorkLimits, 'keptRecords' | 'sortedAtOnce'>;
}

/** Columns of a row. The first two are the key. */
const COLUMNS = ['upper', 'lower', '"position"', 'length', 'in_page'];

/** The values of each of COLUMNS in some rows. */
type Chunk = readonly [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];

const none = new Float64Array();
const NO_ROWS: Chunk = [none, none, none, none, none];

/** Rows of a level, ascending by key of the list. A list has a row for each of its listed records, newest first. */
class ActivityRows {
  readonly #chunks: AsyncGenerator<Chunk>;
  #chunk = NO_ROWS;
  #row = 0;

  /** `begin` is the size of all pages below the level, in bytes. */
  constructor(range: LevelRange, begin: number, form: RowsForm, store: Store) {
    this.#chunks = chunksOf(range, begin, form, store);
  }

  /** Moves to the first row. */
  start(): Promise<void> {
    return this.#nextChunk();
  }

  /** The first part of the current row's key; infinite after the last row. */
  get upper(): number {
    return this.#chunk[0][this.#row] ?? Number.POSITIVE_INFINITY;
  }

  get lower(): number {
    return this.#chunk[1][this.#row] ?? 0;
  }

  /**
   * Adds the rows of a list to `pointers`, beginning with the current row. Returns a promise if more rows must first be
   * read from DuckDB.
   */
  copy(upper: number, lower: number, pointers: PointerWriter): Promise<void> | void {
    const [uppers, lowers, positions, lengths, inPages] = this.#chunk;
    let row = this.#row;
    for (; uppers[row] === upper && lowers[row] === lower; row += 1)
      pointers.add(positions[row] ?? 0, lengths[row] ?? 0, inPages[row] ?? 0);
    this.#row = row;
    if (row > 0 && row === uppers.length) return this.#nextChunk().then(() => this.copy(upper, lower, pointers));
  }

  async #nextChunk(): Promise<void> {
    const { value, done } = await this.#chunks.next();
    this.#chunk = done === true ? NO_ROWS : value;
    this.#row = 0;
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }
}

/** Memory that DuckDB needs to sort the row of a pointer, in bytes: about twice the size of the row's columns. */
const SORTED_BYTES = 128;

/** Yields the rows of a level by ascending key, in chunks. The rows of a list begin with the newest record. */
async function* chunksOf({ first, last }: LevelRange, begin: number, { records, limits }: RowsForm, store: Store): AsyncGenerator<Chunk> {
  const isIn = `block_height BETWEEN ${first} AND ${last}`;
  const page = `block_height AS height, page_position - ${begin} AS "position", page_bytes::INTEGER AS length, in_page::INTEGER AS in_page`;
  const listed = (text: string) =>
    `SELECT sha256(${textOf(text)}) AS hash, ${page} FROM ${records} WHERE ${isIn} AND ${text.includes('address') ? 'address IS NOT NULL' : 'true'}`;
  const lists = [LISTED.rune('rune_id'), LISTED.address('address'), LISTED.both('rune_id', 'address')];
  // A list's key (ListKey) is the beginning of the hash of its text.
  const rows = `SELECT ('0x' || left(hash, 12))::UBIGINT AS upper, ('0x' || substr(hash, 13, 6))::UINTEGER AS lower, * EXCLUDE (hash)
    FROM (${lists.map(listed).join(' UNION ALL ')})`;
  const count = await store.number(`SELECT count(*) AS number FROM ${records} WHERE ${isIn}`);
  const sorted = {
    ...{ rows, most: `${lists.length * count}`, key: 'upper', within: 'lower, height DESC, "position", in_page', rowBytes: SORTED_BYTES },
    select: COLUMNS.map((name) => `${name}::DOUBLE`).join(', '),
  };
  for await (const chunk of sortedRows(sorted, limits, store)) {
    const values = (column: number) => readDoubles(chunk, column);
    yield [values(0), values(1), values(2), values(3), values(4)];
  }
}

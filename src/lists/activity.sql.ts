/**
 * Writes the lists of activity of an archive (activity.ts). A record has a row for each list that it belongs to. The
 * rows of the listed records (engine/archive/listedRecords.ts) are merged with the lists of the levels that a build
 * reuses (format/levels.ts).
 */
import { readDoubles } from '../duckdb/columns.ts';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { literal, type Store } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { Cursor } from '../engine/archive/cursor.ts';
import type { LevelPlan } from '../engine/archive/listedRecords.ts';
import { reusedLevels } from '../engine/archive/makeLevels.ts';
import type { PutFile } from '../engine/archive/segmentWriter.ts';
import { ChangedArchiveError, type StoredArchive } from '../engine/archive/storedArchive.ts';
import { entriesOf, PointerWriter, pointersOf, TableWriter } from '../engine/archive/tableWriter.ts';
import type { LevelRange } from '../format/levels.ts';
import type { ActivityLevel } from '../format/listTables.ts';
import type { TableEntry } from '../format/sortedTable.ts';
import type { Limits, WorkLimits } from '../limits.ts';
import { yieldNow } from '../yieldNow.ts';
import { headEntries, LISTED, POINTERS_PER_BLOCK, type Pointer } from './activity.ts';

interface ActivityForm extends RowsForm {
  readonly blocks: PackedBlocks;
  readonly limits: Pick<Limits, 'entriesPerCount' | 'keptRecords' | 'sortedAtOnce'>;
  /** Maximum size of a file, in bytes. */
  readonly objectSize: number;
}

/** Writes the levels that changed since the last build. Returns all levels. */
export async function writeActivity(
  plans: readonly LevelPlan[],
  old: StoredArchive | undefined,
  form: ActivityForm,
  put: PutFile,
  store: Store,
): Promise<ActivityLevel[]> {
  const { objectSize } = form;
  const levels: ActivityLevel[] = [];
  for (const plan of plans) {
    const begin = await bytesBelow(plan.first, form.blocks, store);
    const reused = (old?.root.lists?.activity ?? []).filter(({ heads }) => reusedLevels(plan, [heads]).length > 0);
    if (plan.isSame) {
      for (const level of reused) levels.push({ ...level, begin });
      continue;
    }
    const parts: OldLists[] = [];
    const rows = new ActivityRows(plan, begin, form, store);
    const heads = new TableWriter(objectSize, form.limits, put);
    const pointers = new PointerWriter(objectSize, put);
    try {
      for (const level of reused) {
        if (old !== undefined) parts.push(new OldLists(old, level, (await bytesBelow(level.heads.first, form.blocks, store)) - begin));
      }
      await merge(rows, parts, heads, pointers);
    } finally {
      await rows.close();
      for (const part of parts) part.close();
    }
    const table = heads.finish(plan);
    if (table !== undefined) levels.push({ begin, heads: table, pointers: pointers.finish(plan) });
  }
  return levels;
}

/** Writes the lists of a level, each from new rows and from its lists in the reused levels (`parts`, lowest first). */
async function merge(rows: ActivityRows, parts: readonly OldLists[], heads: TableWriter, pointers: PointerWriter): Promise<void> {
  await rows.start();
  for (let lists = 0; ; lists += 1) {
    if (lists % POINTERS_PER_BLOCK === 0) await yieldNow();
    let { upper, lower } = rows;
    for (const { entry } of parts) {
      if (entry !== undefined && (entry.key < upper || (entry.key === upper && entry.height < lower)))
        [upper, lower] = [entry.key, entry.height];
    }
    if (upper === Number.POSITIVE_INFINITY) return;
    const position = pointers.total;
    for (let below = parts.length; below >= 0; below -= 1) {
      const last = parts[below - 1]?.last ?? -1;
      // A list begins with its newest record. So for each reused level, from the highest down, first adds the rows of
      // blocks above this level, and then the pointers that this level has for the list.
      const waiting = rows.copy(upper, lower, last, pointers);
      if (waiting !== undefined) await waiting;
      if (below > 0) await parts[below - 1]?.copy(upper, lower, pointers);
    }
    for (const entry of headEntries({ upper, lower }, { position, count: pointers.total - position })) heads.add(entry);
  }
}

/** The lists of a level of the last build, ascending by key. */
class OldLists {
  readonly #entries: Cursor<TableEntry>;
  readonly #pointers: Cursor<Pointer>;
  /** The highest block of the level. */
  readonly last: number;
  #position = 0;

  constructor(
    old: StoredArchive,
    { heads, pointers }: ActivityLevel,
    /**
     * Size in bytes of the pages in the new level whose blocks are below the reused level. The positions in the reused
     * level's pointers grow by this size, because positions count bytes from the first page of a level.
     */
    private readonly shift: number,
  ) {
    this.#entries = new Cursor(entriesOf(old, heads));
    this.#pointers = new Cursor(pointersOf(old, pointers));
    this.last = heads.last;
    this.#entries.next();
  }

  /** Current entry of the level's table of heads. Undefined after the last entry. */
  get entry(): TableEntry | undefined {
    return this.#entries.current;
  }

  /** Copies the pointers of the list with this key, if the level has the list. */
  async copy(upper: number, lower: number, to: PointerWriter): Promise<void> {
    for (; this.entry?.key === upper && this.entry.height === lower; this.#entries.next()) {
      const { first, count } = this.entry;
      if (first !== this.#position) throw new ChangedArchiveError('a list of the archive was changed since the last build');
      for (let i = 0; i < count; i += 1) {
        if (i % POINTERS_PER_BLOCK === 0) await yieldNow();
        this.#pointers.next();
        const pointer = this.#pointers.current;
        if (pointer === undefined) throw new ChangedArchiveError('a list of the archive was changed since the last build');
        to.add(pointer.position + this.shift, pointer.length, pointer.record);
      }
      this.#position += count;
    }
  }

  close(): void {
    this.#entries.close();
    this.#pointers.close();
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
const COLUMNS = ['upper', 'lower', 'height', '"position"', 'length', 'in_page'];

/** The values of each of COLUMNS in some rows. */
type Chunk = readonly [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];

const none = new Float64Array();
const NO_ROWS: Chunk = [none, none, none, none, none, none];

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
   * Adds the rows of a list in blocks above the height `above` to `pointers`, beginning with the current row. Returns a
   * promise if more rows must first be read from DuckDB.
   */
  copy(upper: number, lower: number, above: number, pointers: PointerWriter): Promise<void> | void {
    const [uppers, lowers, heights, positions, lengths, inPages] = this.#chunk;
    let row = this.#row;
    for (; uppers[row] === upper && lowers[row] === lower && (heights[row] ?? 0) > above; row += 1)
      pointers.add(positions[row] ?? 0, lengths[row] ?? 0, inPages[row] ?? 0);
    this.#row = row;
    if (row > 0 && row === uppers.length) return this.#nextChunk().then(() => this.copy(upper, lower, above, pointers));
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
    yield [values(0), values(1), values(2), values(3), values(4), values(5)];
  }
}

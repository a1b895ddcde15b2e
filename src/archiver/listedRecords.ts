/**
 * The records from which the levels of lists are made (archive/listTables.ts).
 *
 * A level is a function of the records of its blocks. A build takes over old levels whose blocks did not change, and
 * joins them to longer ones; only the records of other blocks are listed: those that were rendered, and few that
 * are read back from the pages of the last build, because their level was divided or one of its blocks replaced.
 */
import { closeSync, existsSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { renderEntry } from '../archive/directory.ts';
import { type LevelRange, LIST_STEPS, levelRanges } from '../archive/levels.ts';
import type { ListTables } from '../archive/listTables.ts';
import { MOST_INFLATED } from '../archive/root.ts';
import { int, type Store } from '../store/duckdb.ts';
import { readLines } from '../store/files.ts';
import type { OldArchive } from './oldArchive.ts';
import type { ArchivedBlocks } from './segments.ts';

/** How a level is made. */
export interface LevelPlan extends LevelRange {
  /** Levels of the last build whose entries belong to this level; the other blocks of its range are in `listed_records`. */
  readonly reused: readonly LevelRange[];
  /** True when the level equals the only one in `reused`. */
  readonly isSame: boolean;
}

/**
 * Plans the levels of a build, the lowest first. `old` are the lists of the last build, undefined if it has none. No old
 * level with a block at or above `changed` is reused.
 */
export function planLevels(
  { tip, lowest, replaced }: ArchivedBlocks,
  old: Pick<ListTables, 'tip' | 'lowest'> | undefined,
  changed = Number.POSITIVE_INFINITY,
): LevelPlan[] {
  const before = old === undefined ? [] : levelRanges(old.tip, LIST_STEPS, old.lowest);
  const kept = before.filter((range) => range.last < changed && !hasAny(replaced, range));
  return levelRanges(tip, LIST_STEPS, lowest).map(({ first, last }) => {
    const reused = kept.filter((range) => range.first >= first && range.last <= last);
    return { first, last, reused, isSame: reused.some((range) => range.first === first && range.last === last) };
  });
}

function hasAny(heights: ReadonlySet<number>, { first, last }: LevelRange): boolean {
  for (const height of heights) if (height >= first && height <= last) return true;
  return false;
}

/** Records that are numbered and joined at once, so that the memory for it has a limit. */
const RECORDS_AT_ONCE = 1_000_000;

/**
 * Makes the table `listed_records`: the records of all blocks that are in a plan but in none of its reused levels. Needs
 * the tables `written` and `kept`. `pageSize` is the number of records in a page.
 */
export async function listRecords(
  plans: readonly LevelPlan[],
  blocks: ArchivedBlocks,
  old: OldArchive | undefined,
  pageSize: number,
  scratch: string,
  store: Store,
): Promise<void> {
  await makeListedRecords(store);
  await store.run('CREATE OR REPLACE TEMP TABLE listed_pages (block_height BIGINT, page BIGINT, page_offset BIGINT, page_bytes BIGINT)');
  const places = new Lines(join(scratch, 'listed-pages.ndjson'));
  const pages = new Lines(recalledFile(scratch));
  try {
    for (const line of entriesOf(blocks)) places.add(line);
    if (old !== undefined) {
      for (const height of await recalledHeights(plans, blocks, store)) recall(height, old, places, pages);
    }
  } finally {
    for (const lines of [places, pages]) lines.close();
  }
  if (places.count > 0) await placePages(places.file, store);
  if (pages.count > 0) await insertRecalled(scratch, pageSize, store);
  else rmSync(pages.file);
  await insertWritten(pageSize, store);
}

/** Makes the table `listed_records` without rows. */
export const makeListedRecords = (store: Store): Promise<void> =>
  store.run(`CREATE OR REPLACE TEMP TABLE listed_records (block_height BIGINT, record BIGINT, rune_id VARCHAR, address VARCHAR,
    operation VARCHAR, amount VARCHAR, page_offset BIGINT, page_bytes BIGINT, in_page BIGINT)`);

const recalledFile = (scratch: string): string => join(scratch, 'recalled-pages.ndjson');

/** Whether the listed records have some of pages of the last build. `scratch` is the folder for temporary files. */
export const hasRecalledPages = (scratch: string): boolean => existsSync(recalledFile(scratch));

/** Returns SQL that reads these pages. `columns` has the wanted keys of a page, and their types. */
export const recalledPages = (scratch: string, columns: string): string => readLines(recalledFile(scratch), columns);

/** Blocks that are as the last build left them, in levels that are made anew. */
async function recalledHeights(plans: readonly LevelPlan[], { replaced }: ArchivedBlocks, store: Store): Promise<number[]> {
  const within = (ranges: readonly LevelRange[]) =>
    ranges.map(({ first, last }) => `block_height BETWEEN ${first} AND ${last}`).join(' OR ') || 'false';
  const rows = await store.rows(
    `SELECT block_height FROM state.blocks WHERE (${within(plans.filter(({ isSame }) => !isSame))})
       AND NOT (${within(plans.flatMap(({ reused }) => reused))}) ORDER BY block_height`,
    { block_height: int },
  );
  return rows.map((row) => row.block_height).filter((height) => !replaced.has(height));
}

/** Adds the pages of a block of the last build, and their lengths. */
function recall(height: number, old: OldArchive, places: Lines, pages: Lines): void {
  const segments = old.root.segments.filter(({ first, last }) => first <= height && height <= last);
  for (const segment of segments) {
    const { pages: content, blocks } = old.segment(segment);
    const block = blocks.get(height);
    if (block === undefined) continue;
    places.add(renderEntry(block));
    for (const [i, length] of block.pages.entries()) {
      const offset = block.offsets[i] ?? 0;
      pages.add(gunzipSync(content.subarray(offset, offset + length), { maxOutputLength: MOST_INFLATED }));
    }
  }
}

/** Yields the lines of the directory of the blocks that this build rendered. */
function* entriesOf({ spooled }: ArchivedBlocks): Generator<Uint8Array> {
  const handles = new Map<string, number>();
  try {
    for (const { file, offset, bytes, entry } of spooled.values()) {
      const handle = handles.get(file) ?? openSync(file, 'r');
      handles.set(file, handle);
      const line = Buffer.allocUnsafe(entry);
      if (readSync(handle, line, 0, entry, offset + bytes) !== entry) throw new Error(`${file} is too short`);
      yield line;
    }
  } finally {
    for (const handle of handles.values()) closeSync(handle);
  }
}

/** Makes `listed_pages` of lines of directories. A block in several segments has a line for each. */
async function placePages(file: string, store: Store): Promise<void> {
  await store.run(`INSERT INTO listed_pages
    SELECT height, page, (sum(bytes) OVER (PARTITION BY height ORDER BY page) - bytes)::BIGINT, bytes
    FROM (SELECT height, coalesce(page, 0) + unnest(range(len(pages))) AS page, unnest(pages) AS bytes
      FROM ${readLines(file, `height: 'BIGINT', page: 'BIGINT', pages: 'BIGINT[]'`)})`);
}

async function insertRecalled(scratch: string, pageSize: number, store: Store): Promise<void> {
  const record =
    'STRUCT(rune STRUCT(id VARCHAR), address VARCHAR, operation VARCHAR, amount VARCHAR, location STRUCT(block_height BIGINT))';
  await store.run(
    insert(
      `SELECT record.location.block_height AS block_height, "offset" + i AS record, record.rune.id AS rune_id, record.address AS address,
         record.operation AS operation, record.amount AS amount
       FROM (SELECT "offset", unnest(range(len(results))) AS i, unnest(results) AS record
         FROM ${recalledPages(scratch, `"offset": 'BIGINT', results: '${record}[]'`)})`,
      pageSize,
    ),
  );
}

/** Inserts the records of written blocks. Their numbers are positions in served order (render/servedOrder.ts). */
async function insertWritten(pageSize: number, store: Store): Promise<void> {
  const chunks = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last FROM
       (SELECT block_height, sum(records) OVER (ORDER BY block_height) // ${RECORDS_AT_ONCE} AS chunk FROM written) GROUP BY chunk ORDER BY first`,
    { first: int, last: int },
  );
  for (const { first, last } of chunks) {
    await store.run(
      insert(
        `SELECT block_height, row_number() OVER (PARTITION BY block_height ORDER BY tx_index DESC, ord DESC) - 1 AS record,
           rune_id, address, operation, amount
         FROM kept SEMI JOIN written USING (block_height) WHERE block_height BETWEEN ${first} AND ${last}`,
        pageSize,
      ),
    );
  }
}

/** Returns SQL that inserts rows with the places of their pages. */
const insert = (rows: string, pageSize: number): string =>
  `INSERT INTO listed_records SELECT r.*, page_offset, page_bytes, record % ${pageSize}
   FROM (${rows}) AS r JOIN listed_pages AS p ON p.block_height = r.block_height AND p.page = record // ${pageSize}`;

/** A file of lines. */
class Lines {
  readonly file: string;
  readonly #handle: number;
  count = 0;

  constructor(file: string) {
    this.file = file;
    this.#handle = openSync(file, 'w');
  }

  add(line: Uint8Array | string): void {
    writeSync(
      this.#handle,
      `${typeof line === 'string' ? line : Buffer.from(line.buffer, line.byteOffset, line.length).toString().trimEnd()}\n`,
    );
    this.count += 1;
  }

  close(): void {
    closeSync(this.#handle);
  }
}

/**
 * Lists the records from which a build makes levels of lists (format/listTables.ts).
 *
 * A level (format/levels.ts) depends only on the records of its blocks. So a build reuses each level of the last build
 * whose blocks did not change, either unchanged or as part of a longer level. It lists only the records of blocks
 * outside the reused levels. The build has rendered most of these blocks. The rest are unchanged blocks whose old level
 * cannot be reused, because another block of the level was replaced, or because the old level is now divided. Their
 * records are read from the pages of the last build.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { LineFile } from '../../disk/lineFile.ts';
import { blockRanges, isWithin } from '../../duckdb/blockRanges.ts';
import { readLines } from '../../duckdb/readFilesSql.ts';
import { int, type Store } from '../../duckdb/store.ts';
import { columns, type Table } from '../../duckdb/table.ts';
import { type LevelRange, levelRanges } from '../../format/levels.ts';
import type { LedgerPoint, ListTables } from '../../format/listTables.ts';
import type { Loaded } from '../../input/loadInput.ts';
import { countCrossing, type WorkLimits } from '../../limits.ts';
import { SpoolReader } from '../render/blockSpool.ts';
import { inflate } from '../render/compress.ts';
import type { StateTables } from '../state/state.ts';
import type { BlockChanges } from '../state/updateState.ts';
import type { ArchivedBlocks } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Tables from which a build makes its archive: the state, the loaded input, and the changes of blocks. */
export interface ArchiveSources {
  readonly state: StateTables;
  readonly input: Pick<Loaded, 'kept' | 'spent' | 'sources' | 'network' | 'ends'>;
  readonly changes: Pick<BlockChanges, 'written' | 'replaced' | 'transactions'>;
}

/**
 * Columns of listed records. `in_page` is the index in the page. `page_bytes` is the size of the page, and `page_position`
 * the size of all pages of the archive before it.
 */
const LISTED = {
  ...columns('block_height BIGINT, rune_id VARCHAR, address VARCHAR'),
  ...columns('operation VARCHAR, amount VARCHAR, page_position BIGINT, page_bytes BIGINT, in_page BIGINT'),
} as const;

const PAGES = columns('block_height BIGINT, page BIGINT, page_position BIGINT, page_bytes BIGINT');

/** Pages with their offsets among the pages of their blocks. */
const PAGES_OF_BLOCKS = columns('block_height BIGINT, page BIGINT, page_offset BIGINT, page_bytes BIGINT');

/** Listed records: the records of all blocks that are in a planned level, but not in a reused level. */
export interface ListedRecords {
  readonly records: Table<typeof LISTED>;
  readonly pages: Table<typeof PAGES>;
  /** File with the pages that were read from the last build's archive; undefined without such pages. */
  readonly recalled: LineFile | undefined;
}

export interface LevelPlan extends LevelRange {
  /** Levels of the last build that become part of this level. Only the records of the other blocks are listed. */
  readonly reused: readonly LevelRange[];
  /** True when this level is the same as the only level in `reused`. */
  readonly isSame: boolean;
}

/**
 * Plans the levels of a build, the lowest first. `old` has the lists of the last build; undefined if that build had no
 * lists. Old levels with a block at height `changed` or above are not reused. `start` is the start of the input
 * (ListTables); undefined for input without a start.
 */
export function planLevels(
  { tip, lowest, replaced, limits }: ArchivedBlocks,
  old: Pick<ListTables, 'tip' | 'lowest' | 'start'> | undefined,
  start: LedgerPoint | undefined,
  changed = Number.POSITIVE_INFINITY,
): LevelPlan[] {
  const before = old === undefined ? [] : levelRanges(old.tip, limits.listLevels, old.lowest, old.start?.height);
  const kept = before.filter((range) => range.last < changed && !hasAny(replaced, range));
  const ranges = levelRanges(tip, limits.listLevels, lowest, start?.height);
  if (ranges.length > limits.listLevels.steps.length) countCrossing('listLevels');
  return ranges.map(({ first, last }) => {
    const reused = kept.filter((range) => range.first >= first && range.last <= last);
    return { first, last, reused, isSame: reused.some((range) => range.first === first && range.last === last) };
  });
}

export function hasAny(heights: ReadonlySet<number>, { first, last }: LevelRange): boolean {
  for (const height of heights) if (height >= first && height <= last) return true;
  return false;
}

/**
 * Fills the tables of listed records. `pageSize` is the maximum number of records in a page. `scratch` is a folder for
 * temporary files.
 */
export async function listRecords(
  plans: readonly LevelPlan[],
  blocks: ArchivedBlocks,
  old: StoredArchive | undefined,
  pageSize: number,
  scratch: string,
  { state, input, changes }: ArchiveSources,
  store: Store,
): Promise<ListedRecords> {
  const records = await store.table('listed_records', LISTED);
  const recalled = old === undefined ? [] : await recalledHeights(plans, blocks, state, store);
  const lines = new LineFile(join(scratch, 'recalled-pages.ndjson'));
  // Appends rows to the table instead of loading a JSON file, because DuckDB would need a buffer for the longest line
  // in each thread.
  const ofBlocks = await store
    .append('pages_of_blocks', PAGES_OF_BLOCKS, placesOf(blocks, recalled, old, lines))
    .finally(() => lines.end());
  const pages = await store.table(
    'listed_pages',
    PAGES,
    `SELECT block_height, page, (start + page_offset)::BIGINT AS page_position, page_bytes FROM ${ofBlocks} JOIN
       (SELECT block_height, sum(packed) OVER (ORDER BY block_height) - packed AS start FROM ${state.blocks}) USING (block_height)`,
  );
  await store.run(`DROP TABLE ${ofBlocks}`);
  const listed = { records, pages, recalled: lines.count > 0 ? lines : undefined };
  if (listed.recalled !== undefined) await insertRecalled(listed.recalled, listed, pageSize, store);
  else rmSync(lines.file);
  await insertWritten(listed, input.kept, changes.written, pageSize, blocks.limits, store);
  return listed;
}

/** Returns the heights of unchanged blocks that are in no reused level. Their records are read from the old archive. */
async function recalledHeights(
  plans: readonly LevelPlan[],
  { replaced }: ArchivedBlocks,
  { blocks }: StateTables,
  store: Store,
): Promise<number[]> {
  const within = (ranges: readonly LevelRange[]) =>
    ranges.map(({ first, last }) => `block_height BETWEEN ${first} AND ${last}`).join(' OR ') || 'false';
  const rows = await store.rows(
    `SELECT block_height FROM ${blocks} WHERE (${within(plans.filter(({ isSame }) => !isSame))})
       AND NOT (${within(plans.flatMap(({ reused }) => reused))}) ORDER BY block_height`,
    { block_height: int },
  );
  return rows.map((row) => row.block_height).filter((height) => !replaced.has(height));
}

/** Yields the rows of PAGES_OF_BLOCKS. Also writes the pages of `recalled` blocks to the file `pages`. */
function* placesOf(
  { spooled }: ArchivedBlocks,
  recalled: readonly number[],
  old: StoredArchive | undefined,
  pages: LineFile,
): Generator<readonly [height: number, page: number, offset: number, bytes: number]> {
  for (const { height, pages: lengths } of entriesOf(spooled)) yield* placed(height, 0, 0, lengths);
  for (const height of old === undefined ? [] : recalled) {
    let below = 0;
    for (const segment of old?.root.segments.filter(({ first, last }) => first <= height && height <= last) ?? []) {
      const { pages: content, blocks } = old?.segment(segment) ?? {};
      const block = blocks?.get(height);
      if (block === undefined || content === undefined) continue;
      yield* placed(height, block.page ?? 0, below, block.pages);
      for (const [i, length] of block.pages.entries()) {
        const offset = block.offsets[i] ?? 0;
        pages.add(inflate(content.subarray(offset, offset + length)).trimEnd());
        below += length;
      }
    }
  }
}

/** Yields the rows of consecutive pages. The first page has the index `first` and begins at `begin` in the block. */
function* placed(height: number, first: number, begin: number, lengths: readonly number[]) {
  let offset = begin;
  for (const [i, bytes] of lengths.entries()) {
    yield [height, first + i, offset, bytes] as const;
    offset += bytes;
  }
}

/** Yields the height and the page sizes of each block that this build rendered, from the block's directory line. */
function* entriesOf(spooled: ArchivedBlocks['spooled']): Generator<{ readonly height: number; readonly pages: readonly number[] }> {
  const spools = new SpoolReader();
  try {
    for (const { file, offset, bytes, entry } of spooled.values())
      yield JSON.parse(spools.read(file, offset + bytes, entry).toString()) as { height: number; pages: number[] };
  } finally {
    spools.close();
  }
}

async function insertRecalled(lines: LineFile, listed: ListedRecords, pageSize: number, store: Store): Promise<void> {
  const record =
    'STRUCT(rune STRUCT(id VARCHAR), address VARCHAR, operation VARCHAR, amount VARCHAR, location STRUCT(block_height BIGINT))';
  await store.run(
    insert(
      `SELECT record.location.block_height AS block_height, "offset" + i AS record, record.rune.id AS rune_id, record.address AS address,
         record.operation AS operation, record.amount AS amount
       FROM (SELECT "offset", unnest(range(len(results))) AS i, unnest(results) AS record
         FROM ${readLines(lines, `"offset": 'BIGINT', results: '${record}[]'`)})`,
      listed.records,
      `FROM ${listed.pages}`,
      pageSize,
    ),
  );
}

/** Inserts the records of written blocks, numbered in served order (engine/render/servedOrder.ts). */
async function insertWritten(
  listed: ListedRecords,
  kept: Loaded['kept'],
  written: BlockChanges['written'],
  pageSize: number,
  limits: Pick<WorkLimits, 'listedAtOnce'>,
  store: Store,
): Promise<void> {
  for (const range of await blockRanges(written, limits, store)) {
    const isIn = isWithin(range);
    await store.runJoinsAsWritten(
      insert(
        `SELECT block_height, row_number() OVER (PARTITION BY block_height ORDER BY tx_index DESC, ord DESC) - 1 AS record,
           rune_id, address, operation, amount
         FROM ${kept} SEMI JOIN ${written} USING (block_height) WHERE ${isIn}`,
        listed.records,
        `FROM ${listed.pages} WHERE ${isIn}`,
        pageSize,
      ),
    );
  }
}

/**
 * Returns SQL that inserts records with their places in pages. `rows` is SQL of records, with their index in the block, in
 * served order, as `record`. `pages` is SQL of rows with the columns of PAGES.
 */
const insert = (rows: string, records: ListedRecords['records'], pages: string, pageSize: number): string =>
  `INSERT INTO ${records} SELECT r.* EXCLUDE (record), page_position, page_bytes, record % ${pageSize}
   FROM (${rows}) AS r JOIN (${pages}) AS p ON p.block_height = r.block_height AND p.page = record // ${pageSize}`;

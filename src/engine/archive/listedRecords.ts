/**
 * Finds the records from which a build makes levels of lists (format/listTables.ts). A level (format/levels.ts) depends only on the records
 * of its blocks. So a build keeps each level of the last build whose blocks did not change, and makes all other levels from the input. The
 * build has read most of their blocks. It reads the others again: unchanged blocks below a new block of their level.
 */
import { isWithin } from '../../duckdb/blockRanges.ts';
import { flag, int, type Store } from '../../duckdb/store.ts';
import { type ColumnTypes, columns, type Table, type TableWith } from '../../duckdb/table.ts';
import { ArchiveError } from '../../format/archiveError.ts';
import { hasAny, type LevelRange, lastRanked, levelRanges } from '../../format/levels.ts';
import type { ListTables } from '../../format/listTables.ts';
import type { Loaded } from '../../input/loadInput.ts';
import { countCrossing } from '../../limits.ts';
import type { StateTables } from '../state/state.ts';
import type { BlockChanges } from '../state/updateState.ts';
import type { ArchivedBlocks } from './segmentWriter.ts';
import type { StoredArchive } from './storedArchive.ts';

/** Tables from which a build makes its archive: the state, the loaded input, and the changes of blocks. */
export interface ArchiveSources {
  readonly state: StateTables;
  readonly input: Pick<Loaded, 'kept' | 'blocks' | 'spent' | 'sources' | 'network' | 'ends'> & Partial<Pick<Loaded, 'readUnchanged'>>;
  readonly changes: Pick<BlockChanges, 'written' | 'transactions'>;
}

const PAGES_OF_BLOCKS = columns('block_height BIGINT, page BIGINT, page_bytes BIGINT');

/** Pages of blocks. `page_position` is the size of all pages of the archive before a page. */
const PAGES = columns('block_height BIGINT, page BIGINT, page_position BIGINT, page_bytes BIGINT');
export type PlacedPages = Table<typeof PAGES>;

export interface LevelPlan extends LevelRange {
  /** True when the last build has this level, and the level did not change. */
  readonly isKept: boolean;
}

/** Plans the levels, the lowest first. `old` has the lists of the last build, if any. Levels that reach height `changed` are not kept. */
export function planLevels(
  { tip, lowest, replaced, limits: { listLevels } }: ArchivedBlocks,
  old: Pick<ListTables, 'tip' | 'lowest'> | undefined,
  changed = Number.POSITIVE_INFINITY,
): LevelPlan[] {
  const before = old === undefined ? [] : levelRanges(old.tip, listLevels, old.lowest);
  const ranges = levelRanges(tip, listLevels, lowest);
  if (ranges.length > listLevels.steps.length) countCrossing('listLevels');
  // Levels up to height `lastRanked` have complete lists of holders. Higher levels may have marks instead ("Holders" in lists/balances.ts).
  // So a level changes if this height moves past its last block.
  const [ranked, wasRanked] = [lastRanked(tip, listLevels), lastRanked(old?.tip ?? -1, listLevels)];
  let isLowest = true;
  return ranges.map(({ first, last }) => {
    const isSame = before.some((range) => range.first === first && range.last === last) && last <= ranked === last <= wasRanked;
    const isKept = isSame && last < changed && !hasAny(replaced, { first, last }) && (isLowest || changed === Number.POSITIVE_INFINITY);
    isLowest &&= isKept;
    return { first, last, isKept };
  });
}

/** Leaves out levels in which no block has records and no rune was etched: they have no documents in any list. */
export async function filledLevels<Level extends LevelRange>(
  levels: readonly Level[],
  { blocks, runes }: Pick<StateTables, 'blocks' | 'runes'>,
  store: Store,
): Promise<Level[]> {
  if (levels.length === 0) return [];
  const nameOf = ({ first }: LevelRange) => `from_${first}`;
  const isFilled = await store.row(
    `SELECT ${levels.map((level) => `coalesce(bool_or(${isWithin(level)}), false) AS ${nameOf(level)}`).join(', ')}
     FROM (SELECT block_height FROM ${blocks} UNION ALL SELECT block_height FROM ${runes})`,
    Object.fromEntries(levels.map((level) => [nameOf(level), flag])),
  );
  return levels.filter((level) => isFilled[nameOf(level)]);
}

/** Returns the level of a list in the last build (`before`) that a plan keeps or replaces. No two levels begin at the same height. */
export const lastLevel = <Level extends LevelRange>({ first }: LevelRange, before: readonly Level[] = []): Level | undefined =>
  before.find((level) => level.first === first);

/** Records of some blocks, and the outputs that these blocks spend. */
export interface BlockInput extends Pick<Loaded, 'kept' | 'spent'> {
  readonly records: number;
}

const LEVEL_BLOCKS = columns('block_height BIGINT, records BIGINT');
export type LevelBlocks = Table<typeof LEVEL_BLOCKS>;

/** Returns the blocks of all levels that are not kept. */
export function blocksOfLevels(plans: readonly LevelPlan[], { blocks }: StateTables, store: Store): Promise<LevelBlocks> {
  const ranges = plans.filter(({ isKept }) => !isKept).map(isWithin);
  const rows = `SELECT block_height, records FROM ${blocks} WHERE ${ranges.join(' OR ') || 'false'}`;
  return store.table('level_blocks', LEVEL_BLOCKS, rows);
}

/** Reads blocks of the state: from the input that the build has read, or else from unchanged files. */
export async function readBlocks(
  blocks: TableWith<'block_height' | 'records'>,
  { state, input }: Pick<ArchiveSources, 'state' | 'input'>,
  store: Store,
): Promise<BlockInput> {
  const unread = await store.table(
    'unread_blocks',
    columns('block_height BIGINT'),
    `SELECT block_height FROM ${blocks} ANTI JOIN ${input.blocks} USING (block_height)`,
  );
  const { others, records, ...range } = await store.row(
    `SELECT (SELECT count(*) FROM ${unread}) AS others, coalesce(sum(records), 0)::BIGINT AS records,
       coalesce(min(block_height), 0) AS first, coalesce(max(block_height), -1) AS last FROM ${blocks}`,
    { others: int, records: int, first: int, last: int },
  );
  const unchanged = others === 0 ? undefined : await input.readUnchanged?.(unread, state.runes);
  // The range lets DuckDB skip most of a Parquet file.
  const both = <Names extends ColumnTypes>(label: string, read: Table<Names>, more: Table<Names> | undefined) =>
    store.view(
      label,
      read.columns,
      `SELECT * FROM (FROM ${read} WHERE ${isWithin(range)}) SEMI JOIN ${blocks} USING (block_height)
       ${more === undefined ? '' : `UNION ALL BY NAME SELECT * FROM ${more} WHERE ${isWithin(range)}`}`,
    );
  return {
    kept: await both('level_records', input.kept, unchanged?.records),
    spent: await both('level_spent', input.spent, unchanged?.spent),
    records,
  };
}

/** Lists the pages of blocks. Rejects with an ArchiveError if the archive `old` lacks the pages of a block that was not rendered. */
export async function placePages(
  blocks: LevelBlocks,
  archived: ArchivedBlocks,
  old: StoredArchive | undefined,
  state: StateTables,
  store: Store,
): Promise<PlacedPages> {
  const heights = await store.rows(`SELECT block_height FROM ${blocks}`, { block_height: int });
  const placed = placesOf(new Set(heights.map((row) => row.block_height)), archived, old);
  // Appends rows to the table instead of loading a JSON file, because DuckDB would need a buffer for the longest line in each thread.
  const ofBlocks = await store.append('pages_of_blocks', PAGES_OF_BLOCKS, placed);
  const pages = await store.table(
    'placed_pages',
    PAGES,
    `SELECT block_height, page, (start + sum(page_bytes) OVER (PARTITION BY block_height ORDER BY page) - page_bytes)::BIGINT AS page_position,
       page_bytes FROM ${ofBlocks} JOIN (SELECT block_height, sum(packed) OVER (ORDER BY block_height) - packed AS start FROM ${state.blocks}) USING (block_height)`,
  );
  await store.run(`DROP TABLE ${ofBlocks}`);
  return pages;
}

/** Yields rows of PAGES_OF_BLOCKS: for rendered blocks from their pages, for others from the last build's directories. */
async function* placesOf(
  heights: ReadonlySet<number>,
  { spooled }: ArchivedBlocks,
  old: StoredArchive | undefined,
): AsyncGenerator<readonly [height: number, page: number, bytes: number]> {
  for (const [height, { pages }] of spooled) if (heights.has(height)) for (const [i, bytes] of pages.entries()) yield [height, i, bytes];
  const others = new Set([...heights].filter((height) => !spooled.has(height)));
  const found = new Set<number>();
  const archive = others.size === 0 ? undefined : await old?.parts();
  for (const segment of archive?.root.segments ?? []) {
    if (!hasAny(others, segment)) continue;
    for (const { height, page = 0, pages } of (await archive?.directory(segment))?.values() ?? []) {
      if (!others.has(height)) continue;
      for (const [i, bytes] of pages.entries()) yield [height, page + i, bytes];
      found.add(height);
    }
  }
  if (found.size < others.size) throw new ArchiveError('the archive lacks blocks of the last build');
}

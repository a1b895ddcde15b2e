/**
 * Writes the archive of a build: segments, tables and root. In layout `files`, an archive has only etchings and names. With `--lists`, it
 * also has the other lists, and the segments that these lists need. Files are named by a hash of their content, so a build changes no file
 * that a reader of the last build needs. A new manifest names the new root. Outdated files are removed only after readers can see this
 * manifest.
 */
import { bothOf } from '../atOnce.ts';
import { sealFile } from '../contract/archiveFile.ts';
import { int, type Store, text } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import type { RootName } from '../format/archiveReader.ts';
import type { ListTables } from '../format/listTables.ts';
import { HIGHEST_HEIGHT, type Root, renderRoot } from '../format/root.ts';
import { sizeOf } from '../format/tails.ts';
import type { Loaded } from '../input/loadInput.ts';
import { writeActivity } from '../lists/activity.sql.ts';
import { writeBalances } from '../lists/balances.sql.ts';
import { type EtchingChange, isRuneId, lowestChange, writeEtchings, writeNames } from '../lists/etchings.sql.ts';
import { knowsSpent, writeOutputs } from '../lists/unspentOutputs.sql.ts';
import type { ArchiveFacts } from '../output/manifest.ts';
import { archivePath } from '../pages/filePaths.ts';
import { type Layout, maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import { writeIds } from './archive/idLists.ts';
import {
  type ArchiveSources,
  blocksOfLevels,
  filledLevels,
  type LevelPlan,
  placePages,
  planLevels,
  readBlocks,
} from './archive/listedRecords.ts';
import { levelWriters, type OpenLevel } from './archive/makeLevels.ts';
import { type ArchivedBlocks, writeSegments } from './archive/segmentWriter.ts';
import type { StoredArchive } from './archive/storedArchive.ts';
import { gzipMember } from './render/compress.ts';
import type { FileSink } from './render/pageFiles.ts';

export interface WrittenArchive extends ArchiveFacts {
  readonly paths: ReadonlySet<string>;
}

/** Throws an InputError when a block, a transaction or a rune id exceeds the limits of an archive. */
export async function checkFits(
  { blocks, transactions, kept }: Pick<Loaded, 'blocks' | 'transactions' | 'kept'>,
  layout: Layout,
  hasActivity: boolean,
  store: Store,
): Promise<void> {
  const { tip, records } = await store.row(
    `SELECT coalesce((SELECT max(block_height) FROM ${blocks}), 0) AS tip, coalesce((SELECT max(records) FROM ${transactions}), 0) AS records`,
    { tip: int, records: int },
  );
  const [what, other] = layout === 'archive' ? ['layout archive', 'with --layout files'] : ['--lists', 'without --lists'];
  const advice = [`Build ${other}, or leave the block out with --blocks.`];
  if (tip > HIGHEST_HEIGHT) throw new InputError(`block ${tip} is too high for ${what}, whose highest block is ${HIGHEST_HEIGHT}`, advice);
  if (layout === 'archive' && records > MOST_RECORDS) {
    throw new InputError(`a transaction has ${records} records, more than the ${MOST_RECORDS} that layout archive allows`, advice);
  }
  if (!hasActivity) return;
  const [wrong] = await store.rows(
    `SELECT rune_id FROM (SELECT DISTINCT rune_id FROM ${kept}) WHERE NOT ${isRuneId('rune_id')} ORDER BY rune_id LIMIT 1`,
    { rune_id: text },
  );
  if (wrong === undefined) return;
  throw new InputError(
    `the rune id ${JSON.stringify(wrong.rune_id.slice(0, 64))} is not height:index, such as 840000:3; lists by rune need this form`,
    [`Correct the input, or build ${layout === 'archive' ? 'with --no-lists' : 'without --lists'}.`],
  );
}

/** Maximum number of records of a transaction. */
const MOST_RECORDS = 2 ** 24 - 1;

/** Writes the files that the last build does not have. Undefined without an archive: in layout `files`, without etchings and lists. */
export async function writeArchive(
  form: ListForm,
  blocks: ArchivedBlocks,
  sources: ArchiveSources,
  etchings: EtchingChange,
  old: StoredArchive | undefined,
  sink: Pick<FileSink, 'file'>,
  store: Store,
): Promise<WrittenArchive | undefined> {
  const put = (parts: readonly Uint8Array[]): string => {
    const { name, file } = sealFile(parts);
    sink.file(archivePath(name), file);
    return name;
  };
  const { site } = form;
  const open = levelWriters(blocks, put);
  // At the same time, because DuckDB sorts the ids while this process writes segments.
  const [segments, ids] = await bothOf(
    writeSegments(blocks, old, put),
    site.layout === 'archive' ? writeIds(blocks, sources, old, open, store) : Promise.resolve([]),
  );
  const lists = await writeLists(form, blocks, sources, etchings, old, open, store);
  if (site.layout === 'files' && lists === undefined) return undefined;
  const { objectSize, limits } = blocks;
  const { segmentBlocks, tableLevels } = limits;
  const root: Root = { pageSize: maximumLimit(site), objectSize, segmentBlocks, ...tableLevels, segments, ids, lists };
  const content = gzipMember(Buffer.from(renderRoot(root)));
  return describe({ root: put([content]), bytes: content.length }, root);
}

export interface ListForm {
  readonly site: Site;
  /** False for an archive with etchings and names only. */
  readonly hasActivity: boolean;
  readonly scratch: string;
  /** Archive with the pages of blocks that were not rendered. */
  readonly pages: StoredArchive | undefined;
}

/** Writes the levels (format/levels.ts) of all lists that changed since the last build. Undefined for an archive without lists. */
export async function writeLists(
  { site, hasActivity, scratch, pages }: ListForm,
  blocks: ArchivedBlocks,
  sources: ArchiveSources,
  etchingChange: EtchingChange,
  old: StoredArchive | undefined,
  open: OpenLevel,
  store: Store,
): Promise<ListTables | undefined> {
  const { before: etchingsBefore, now } = etchingChange;
  if (!hasActivity && now === undefined) return undefined;
  const { tip, lowest, limits } = blocks;
  const { state } = sources;
  const hasBalances = hasActivity && now?.hasCounts === true;
  const hasOutputs = hasBalances && (await knowsSpent(state, store));
  const tables = old?.root.lists;
  // A level of activity depends only on its own blocks. A level of balances, or of etchings with counts, depends on all blocks up to its
  // end, and on the runes table. So such a level is written again if it ends at or above the lowest change.
  let changed = await lowestChange(etchingChange, store);
  if (now?.hasCounts === true) for (const height of blocks.replaced) changed = Math.min(changed, height);

  const hadEtchings = tables?.etchings !== undefined && etchingsBefore?.hasCounts === now?.hasCounts;
  const filled = (levels: readonly LevelPlan[]) => filledLevels(levels, state, store);
  // The levels of etchings begin at height 0, even if the build has only the last N blocks.
  const etchingPlans = await filled(planLevels({ ...blocks, lowest: undefined }, hadEtchings ? { tip: tables.tip } : undefined, changed));
  // Activity, balances and outputs have the same plans. So if balances or outputs are new, no level is reused.
  const isNew = (hasBalances && tables?.balances === undefined) || (hasOutputs && tables?.outputs === undefined);
  const plans = await filled(planLevels(blocks, isNew ? undefined : tables, hasBalances ? changed : undefined));

  const form = { old, open, state, limits, scratch };
  const etchings = now && { total: now.total, ...(await writeEtchings(etchingPlans, { ...form, etchings: now }, store)) };
  // Without etchings, names come from the records. So if those of the last build came from etchings, none of their levels is reused.
  const namePlans = now !== undefined ? etchingPlans : tables?.etchings === undefined ? plans : await filled(planLevels(blocks, undefined));
  const names = await writeNames(namePlans, { ...form, etchings: now }, store);
  const common = { ...limits.listLevels, tip, lowest, page: limits.listPage, etchings, names };
  if (!hasActivity) return common;

  const levelBlocks = await blocksOfLevels(plans, state, store);
  const read = await readBlocks(levelBlocks, sources, store);
  const placed = { levelBlocks, pages: await placePages(levelBlocks, blocks, pages, state, store), pageSize: maximumLimit(site) };
  const activity = await writeActivity(plans, { ...form, ...placed, records: read.kept }, store);
  const outputs = hasOutputs ? await writeOutputs(plans, { ...form, read }, store) : undefined;
  const balances = hasBalances ? await writeBalances(plans, { ...form, tip, read, etchings: now.table }, store) : undefined;
  return { ...common, activity, outputs, balances };
}

/** Returns the facts and the paths of an archive: its root, and all files that the root names. */
export function describe(name: RootName, root: Root): WrittenArchive {
  const { segments, ids, lists } = root;
  // By name, because a level of two lists may be the same file.
  const sizes = new Map([[name.root, name.bytes], ...filesIn([segments, ids, lists])]);
  return {
    name,
    files: sizes.size,
    bytes: [...sizes.values()].reduce((sum, bytes) => sum + sizeOf(bytes), 0),
    paths: new Set([...sizes.keys()].map(archivePath)),
    lists,
  };
}

/** Searches a part of a root recursively for files of segments and documents. Returns their names and sizes in bytes. */
function filesIn(part: unknown): (readonly [file: string, bytes: number])[] {
  if (typeof part !== 'object' || part === null) return [];
  if ('file' in part && 'bytes' in part) return [[String(part.file), Number(part.bytes)]];
  return Object.values(part).flatMap((value) => filesIn(value));
}

/** Writes the lists of an archive. Omits lists for which the data is incomplete. */
import type { Store } from '../duckdb/store.ts';
import type { ListTables } from '../format/listTables.ts';
import { writeActivity } from '../lists/activity.sql.ts';
import { writeBalances } from '../lists/balances.sql.ts';
import { type EtchingChange, lowestChange, writeEtchings } from '../lists/etchings.sql.ts';
import { writeNames } from '../lists/names.sql.ts';
import { knowsSpent, writeOutputs } from '../lists/unspentOutputs.sql.ts';
import { maximumLimit, type Site } from '../pages/mirrorOptions.ts';
import {
  type ArchiveSources,
  blocksOfLevels,
  filledLevels,
  type LevelPlan,
  placePages,
  planLevels,
  readBlocks,
} from './archive/listedRecords.ts';
import type { OpenLevel } from './archive/makeLevels.ts';
import type { ArchivedBlocks } from './archive/segmentWriter.ts';
import type { StoredArchive } from './archive/storedArchive.ts';

export interface ListForm {
  readonly site: Site;
  /** False for an archive with etchings and names only. */
  readonly hasActivity: boolean;
  readonly scratch: string;
  /** Archive with the pages of blocks that were not rendered. */
  readonly pages: StoredArchive | undefined;
}

/**
 * Writes the levels (format/levels.ts) of all lists that changed since the last build. Returns undefined for an archive without any list.
 */
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
  // Activity, balances and outputs have the same plans. So if the last build had no balances or no outputs, but this build has them, no
  // level is reused.
  const isNew = (hasBalances && tables?.balances === undefined) || (hasOutputs && tables?.outputs === undefined);
  const plans = await filled(planLevels(blocks, isNew ? undefined : tables, hasBalances ? changed : undefined));

  const form = { old, open, state, limits, scratch };
  const etchings = now && { total: now.total, ...(await writeEtchings(etchingPlans, { ...form, etchings: now }, store)) };
  // Without etchings, names come from the records. So if the names of the last build came from etchings, none of the levels of these names
  // is reused.
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

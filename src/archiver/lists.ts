/**
 * Writes the lists of an archive: activity by rune and by address, balances and holders.
 */
import type { ListTables } from '../archive/listTables.ts';
import { lowestChange } from '../etchings/changes.ts';
import type { Store } from '../store/duckdb.ts';
import { writeActivity } from './activityLists.ts';
import { writeBalances } from './balances.ts';
import { DocumentWriter } from './documents.ts';
import type { EtchingChange } from './etchings.ts';
import { listRecords, planLevels } from './listedRecords.ts';
import { forgetSpent, knowsSpent, writeOutputs } from './outputs.ts';
import type { ArchivedBlocks, PutFile } from './segments.ts';
import type { StoredArchive } from './storedArchive.ts';

/** How lists are written. */
export interface ListForm {
  /** Folder for temporary files. */
  readonly scratch: string;
}

/**
 * Writes the levels that the last build does not have. Needs the tables of etchings
 * (etchings/facts.ts), and those of `listRecords`.
 */
export async function writeLists(
  pageSize: number,
  blocks: ArchivedBlocks,
  { before, now }: EtchingChange,
  old: StoredArchive | undefined,
  { scratch }: ListForm,
  put: PutFile,
  store: Store,
): Promise<ListTables> {
  const { tip, lowest, objectSize, limits } = blocks;
  const { listPage: page } = limits;
  const common = { ...limits.listLevels, tip, lowest, page };
  const hasBalances = now?.hasCounts === true;
  const hasOutputs = hasBalances && (await knowsSpent(store));
  const tables = old?.root.lists;
  // A build that could not tell balances or outputs has no level of them to continue.
  const isNew = (hasBalances && tables?.balances === undefined) || (hasOutputs && tables?.outputs === undefined);
  // Rankings depend on all blocks below, and documents on the rows of their runes. Activity depends on its own blocks.
  let changed = hasBalances && before !== undefined ? await lowestChange(store) : Number.POSITIVE_INFINITY;
  if (hasBalances) for (const height of blocks.replaced) changed = Math.min(changed, height);
  const plans = planLevels(blocks, isNew ? undefined : tables, changed);
  await listRecords(plans, blocks, old, pageSize, scratch, store);
  const activity = await writeActivity(plans, old, { objectSize, limits, scratch }, put, store);
  if (!hasBalances) {
    await forgetSpent(store);
    return { ...common, activity };
  }
  const writer = () => new DocumentWriter(objectSize, limits, put);
  const balances = await writeBalances(plans, { tip, limits, old, writer, scratch }, store);
  if (!hasOutputs) {
    await forgetSpent(store);
    return { ...common, activity, balances };
  }
  return { ...common, activity, balances, outputs: await writeOutputs(plans, { tip, limits, old, writer, scratch }, store) };
}

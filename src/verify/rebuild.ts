/**
 * Makes all files that follow from the records of the pages again, with the code of builds, and compares them with the output: stats, files
 * of changes, search files, and the lists of the archive.
 */
import type { Manifest } from '../contract/schemas.ts';
import type { Table } from '../duckdb/table.ts';
import { writeIds } from '../engine/archive/idLists.ts';
import type { ArchiveSources } from '../engine/archive/listedRecords.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { listEtchings } from '../engine/state/knownEtchings.ts';
import { State } from '../engine/state/state.ts';
import { type NewBlock, updateBlocks, updateRead, updateRunes } from '../engine/state/updateState.ts';
import { describe, writeLists } from '../engine/writeArchive.ts';
import type { Root } from '../format/root.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { listTransactions } from '../input/checkConsistency.ts';
import { writeChanges } from '../lists/changes.sql.ts';
import type { EtchingChange } from '../lists/etchings.sql.ts';
import { writeSearchFiles } from '../lists/searchFiles.sql.ts';
import { filesOfStatistics, manifestOf } from '../output/manifest.ts';
import { statsDocuments } from '../output/stats/statsDocuments.ts';
import { writeStats } from '../output/stats/statsFiles.ts';
import { archivePath, MANIFEST_PATH } from '../pages/filePaths.ts';
import { verifyRows } from './checkRows.ts';
import { checkBalances, checkTransactions } from './checkSums.ts';
import { comparedLevels } from './compareLevels.ts';
import { claimsOf, compareUnits, readChanges } from './publishedChanges.ts';
import { checkEtchings, publishedRunes } from './publishedEtchings.ts';
import { findSpent } from './spentOutputs.ts';
import { differingLists, type HEIGHTS, isFromNode, type Verification } from './verification.ts';

/**
 * Adds a finding for each difference. Throws all findings if they make other checks useless, because what these check follows from wrong
 * data. `blocks` and `heights` are the blocks of the output, ascending by height, and `records` their records. Returns the manifest that a
 * build makes, without what only the input knows. Throws an ArchiveError for a damaged file of the archive.
 */
export async function rebuild(
  check: Verification,
  blocks: readonly NewBlock[],
  heights: Table<typeof HEIGHTS>,
  records: Records,
): Promise<Manifest> {
  const { root, archive, manifest, site, findings, own, limits, store } = check;
  const lists = archive?.root.lists;
  if (archive !== undefined)
    for (const part of differingLists(manifest, lists))
      findings.add(`${MANIFEST_PATH} and ${archivePath(archive.name.root)} differ in whether there are ${part}`);
  findings.throwIfAny();
  const { transactions, ranges } = await listTransactions(records, heights, limits, store);
  const state = await State.attach(store, undefined, {}, undefined);
  const input = { affected: heights, blocks: heights, transactions, kept: records };
  const changes = await updateBlocks(blocks, input, 'archive', limits, state, store);
  const { sources = [], tip } = manifest;
  await updateRead({ sources, tip }, state, store);
  const files = await readChanges(check);
  const hasSpent = files.hasSpent || lists?.outputs !== undefined;
  await store.run(`INSERT INTO ${state.files} BY NAME SELECT '${hasSpent ? 'node-ledger' : 'ledger'}' AS form`);
  const runes = archive && lists?.etchings && (await publishedRunes(archive, store));
  const changed = await updateRunes({ runes: runes && { read: runes, all: runes, isKept: 'false' } }, state, store);
  const etchings = await listEtchings(state, store);
  if (runes !== undefined) await checkEtchings(records, state, check);
  const ofRows = site.parquet ? await verifyRows(check, state.runes) : [];
  findings.throwIfAny();

  await writeStats(site.dialect, state, changes.replaced, own, limits, store);
  const statistics = new Map(await statsDocuments(site.dialect, manifest.site_url, state, store));
  const pages = filesOfStatistics(manifest, (path) => statistics.get(path) ?? Buffer.alloc(0));
  for (const [path, content] of [...statistics, ...pages]) own.file(path, content);
  const changeOfEtchings = { before: undefined, now: etchings, changed };
  await writeSearchFiles(root, changeOfEtchings, state.runeCounts, own, store);
  const read = { kept: records, blocks: heights, sources, ends: files.blocks };
  const bounds = { ...limits, changesBlocks: files.bounds.most_blocks, changesEntries: files.bounds.most_entries };
  const changesForm = { out: root, sink: own, dialect: site.dialect, limits: bounds };
  await writeChanges(changesForm, { ...read, spent: files.spent }, state, store);
  findings.throwIfAny();

  const received = `SELECT block_height, tx_id || ':' || vout AS "output", address, rune_id, amount FROM ${records} WHERE operation = 'receive' AND vout IS NOT NULL`;
  const claims = [...claimsOf(files), ...ofRows];
  const outputs = archive && lists?.outputs && (await findSpent(received, claims, archive, lists, check));
  const isComplete = etchings?.hasCounts === true;
  if (isFromNode(manifest)) {
    await checkTransactions(records, ranges, { runes: state.runes, outputs, isComplete }, check);
    if (isComplete && findings.count === 0) await checkBalances(records, outputs, check);
  }
  findings.throwIfAny();
  for (const wrong of outputs?.wrong ?? []) findings.add(wrong);
  if (outputs !== undefined && files.hasSpent) await compareUnits(files, records, received, heights, check);
  else if (outputs !== undefined && files.lowest !== undefined) findings.add('the files of changes lack spent outputs, which the data has');
  findings.throwIfAny();

  const sourcesOf = { state, changes, input: { ...read, spent: outputs?.spent ?? files.spent } };
  const made = archive && (await compareArchive(archive, sourcesOf, changeOfEtchings, blocks[0]?.height ?? 0, check));
  const facts = archive && { ...describe(archive.name, archive.root), lists: made };
  return manifestOf(site, manifest.site_url, { sources }, facts, etchings, state, store);
}

/** Makes the lists of an archive again, and compares them with its lists. Returns the lists. */
async function compareArchive(
  archive: StoredArchive,
  sources: ArchiveSources,
  etchings: EtchingChange,
  lowest: number,
  { site, scratch, findings, limits, store }: Verification,
): Promise<Root['lists']> {
  const { root, name } = archive;
  const { page: listPage, steps, unsettled } = root.lists ?? { page: limits.listPage, ...limits.listLevels };
  const hasActivity = root.lists?.activity !== undefined;
  const archived = {
    ...{ spooled: new Map(), replaced: new Set<number>(), objectSize: root.objectSize, tip: site.tip },
    lowest: site.layout === 'files' && hasActivity ? lowest : undefined,
    limits: { ...limits, tableLevels: root, listPage, listLevels: { steps, unsettled } },
  };
  const open = comparedLevels(archive, findings);
  const before = findings.count;
  const ids = site.layout === 'archive' ? await writeIds(archived, sources, undefined, open, store) : [];
  const form = { site, hasActivity, scratch, pages: archive };
  const lists = root.lists && (await writeLists(form, archived, sources, etchings, undefined, open, store));
  if (findings.count > before) return lists;
  const found = { ids: root.ids, ...root.lists };
  const expected: typeof found = { ids, ...lists };
  for (const part of new Set([...Object.keys(found), ...Object.keys(expected)]) as Set<keyof typeof found>)
    if (JSON.stringify(found[part]) !== JSON.stringify(expected[part]))
      findings.add(`${archivePath(name.root)} has other ${part} than a build makes`);
  return lists;
}

/**
 * Makes all files that follow from the records of the pages again, with the code of builds, and compares them with the
 * output: stats, files of changes, search files, and the lists of the archive.
 */
import type { Manifest } from '../contract/schemas.ts';
import { isWithin } from '../duckdb/blockRanges.ts';
import { int } from '../duckdb/store.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { writeIds } from '../engine/archive/idLists.ts';
import type { ArchiveSources } from '../engine/archive/listedRecords.ts';
import { listEtchings } from '../engine/state/knownEtchings.ts';
import { State } from '../engine/state/state.ts';
import { type NewBlock, updateBlocks, updateRead, updateRunes } from '../engine/state/updateState.ts';
import { describe } from '../engine/writeArchive.ts';
import { writeLists } from '../engine/writeLists.ts';
import type { Root } from '../format/root.ts';
import type { Records } from '../input/canonicalRecordSql.ts';
import { type KeptBlocks, listTransactions } from '../input/checkConsistency.ts';
import { writeChanges } from '../lists/changes.sql.ts';
import type { EtchingChange } from '../lists/etchings.sql.ts';
import { writeSearchFiles } from '../lists/searchFiles.sql.ts';
import { filesOfStatistics } from '../output/filesOfManifest.ts';
import { manifestOf } from '../output/manifest.ts';
import { statsDocuments } from '../output/stats/statsDocuments.ts';
import { writeStats } from '../output/stats/statsFiles.ts';
import { changesPath, MANIFEST_PATH } from '../pages/filePaths.ts';
import { verifyRows } from './checkRows.ts';
import { checkBalances, checkTransactions } from './checkSums.ts';
import { comparedLevels } from './compareLevels.ts';
import { IS_NAMED, type PublishedChanges, readChanges } from './publishedChanges.ts';
import { checkEtchings, publishedRunes } from './publishedEtchings.ts';
import { compareSpent, differingBlocks, findSpent, type Outputs } from './spentOutputs.ts';
import { type ArchiveCheck, isFromNode, type ListsCheck, type Verification } from './verification.ts';

/** Columns of the blocks of an output. */
export const HEIGHTS = columns('block_height BIGINT, block_hash VARCHAR, records BIGINT');

export interface Rebuilt {
  /** The manifest that a build makes, without what only the input knows. */
  readonly manifest: Manifest;
  /** Paths of the files of rows. */
  readonly rows: readonly string[];
}

/**
 * Adds a finding for each difference. Returns undefined after findings that make other checks useless, because what they
 * check follows from wrong data. `blocks` and `heights` are the blocks of the output, ascending by height, and `records` their records.
 * Throws an ArchiveError or a ChangedArchiveError for a damaged file of the archive.
 */
export async function rebuild(
  check: Verification,
  archive: ArchiveCheck | undefined,
  blocks: readonly NewBlock[],
  heights: Table<typeof HEIGHTS>,
  records: Records,
): Promise<Rebuilt | undefined> {
  const { root, manifest, site, findings, own, limits, store } = check;
  const lists: ListsCheck | undefined = archive?.archive.root.lists && { ...archive, lists: archive.archive.root.lists };
  compareParts(manifest, lists, archive);
  if (findings.count > 0) return undefined;
  const { transactions, ranges } = await listTransactions(records, heights, limits, store);
  const state = await State.attach(store, undefined, {}, undefined);
  await state.begin();
  const input = { affected: heights, blocks: heights, transactions, kept: records };
  const changes = await updateBlocks(blocks, input, 'archive', limits, state, store);
  const { sources = [], tip } = manifest;
  await updateRead({ sources, tip }, state, store);
  const files = await readChanges(check);
  const hasSpent = files.hasSpent || lists?.lists.outputs !== undefined;
  await store.run(`INSERT INTO ${state.files} BY NAME SELECT '${hasSpent ? 'node-ledger' : 'ledger'}' AS form`);
  const runes = lists?.lists.etchings && (await publishedRunes(lists));
  const changed = await updateRunes({ runes: runes && { read: runes, all: runes, isKept: 'false' } }, state, store);
  const etchings = await listEtchings(state, store);
  if (runes !== undefined) await checkEtchings(records, state, check);
  const rows = site.parquet ? await verifyRows(check, state.runes) : undefined;
  if (findings.count > 0) return undefined;

  await writeStats(site.dialect, state, changes.replaced, own, store);
  const statistics = new Map(await statsDocuments(site.dialect, manifest.site_url, state, store));
  const pages = filesOfStatistics(manifest, (path) => statistics.get(path) ?? Buffer.alloc(0));
  for (const [path, content] of [...statistics, ...pages]) own.file(path, content);
  await writeSearchFiles(root, { before: undefined, now: etchings, changed }, state.runeCounts, own, store);
  const read = { kept: records, blocks: heights, sources, ends: files.blocks };
  const bounds = { ...limits, changesBlocks: files.bounds.most_blocks, changesEntries: files.bounds.most_entries };
  const changesForm = { out: root, sink: own, dialect: site.dialect, limits: bounds };
  await writeChanges(changesForm, { ...read, spent: files.spent }, state, store);
  if (findings.count > 0) return undefined;

  const received = `SELECT block_height, tx_id || ':' || vout AS "output", address, rune_id, amount FROM ${records} WHERE operation = 'receive' AND vout IS NOT NULL`;
  const outputs = lists?.lists.outputs && (await findSpent(received, lists));
  const isComplete = etchings?.hasCounts === true;
  if (isFromNode(manifest)) {
    await checkTransactions(records, ranges, { runes: state.runes, outputs, isComplete }, check);
    if (isComplete && findings.count === 0) await checkBalances(records, outputs, check);
  }
  if (findings.count > 0) return undefined;
  if (outputs !== undefined && lists !== undefined) {
    await checkClaims(files, { records: `${records}`, received, outputs, ranges }, lists);
    const wrong = 'the files of rows are wrong about whether, when or by whom the output';
    if (rows?.spent !== undefined)
      await compareSpent({ rows: `FROM ${rows.spent}`, hasAddresses: true, isDue: 'true', wrong }, outputs, lists);
  }
  if (findings.count > 0) return undefined;

  const changeOfEtchings = { before: undefined, now: etchings, changed };
  const sourcesOf = { state, changes, input: { ...read, spent: outputs?.spent ?? files.spent } };
  const made = archive && (await compareArchive(archive, lists, sourcesOf, changeOfEtchings, blocks[0]?.height ?? 0));
  const facts = archive && { ...describe(archive.archive.name, archive.archive.root), lists: made };
  const ofState = await manifestOf(site, manifest.site_url, { sources }, facts, etchings, state, store);
  return { manifest: ofState, rows: rows?.paths ?? [] };
}

/** Makes the lists of an archive again, and compares them with its lists. Returns the lists. */
async function compareArchive(
  check: ArchiveCheck,
  listed: ListsCheck | undefined,
  sources: ArchiveSources,
  etchings: EtchingChange,
  lowest: number,
): Promise<Root['lists']> {
  const { archive, site, scratch, findings, store } = check;
  const { root } = archive;
  const { page: listPage, ...listLevels } = listed?.lists ?? { page: check.limits.listPage, ...check.limits.listLevels };
  const hasActivity = listed?.lists.activity !== undefined;
  const archived = {
    ...{ spooled: new Map(), replaced: new Set<number>(), objectSize: root.objectSize, tip: site.tip },
    lowest: site.layout === 'files' && hasActivity ? lowest : undefined,
    limits: { ...check.limits, tableLevels: root, listPage, listLevels: { steps: listLevels.steps, unsettled: listLevels.unsettled } },
  };
  const open = comparedLevels(check);
  const before = findings.count;
  const ids = site.layout === 'archive' ? await writeIds(archived, sources, undefined, open, store) : [];
  const form = { site, hasActivity, scratch, pages: archive };
  const lists = listed && (await writeLists(form, archived, sources, etchings, undefined, open, store));
  if (findings.count === before) compareRoot({ ids, lists }, check);
  return lists;
}

/** Compares the spent outputs of the files of changes with the mirror's outputs, and with the records of their blocks. */
async function checkClaims(
  { heights: [lowest], spent, hasSpent, isCut }: PublishedChanges,
  { records, received, outputs, ranges }: Claimed,
  lists: ListsCheck,
): Promise<void> {
  const { findings, store } = lists;
  if (lowest === undefined) return;
  if (!hasSpent) return findings.add('the files of changes lack spent outputs, which the data has');
  const claims = { rows: `FROM ${spent} WHERE ${IS_NAMED}`, hasAddresses: false, isDue: isCut ? 'false' : `made >= ${lowest}` };
  await compareSpent({ ...claims, wrong: 'the files of changes are wrong about whether the output' }, outputs, lists);
  const isComplete = `block_height NOT IN (SELECT block_height FROM ${spent} WHERE NOT ${IS_NAMED})`;
  for (const [i, { last }] of ranges.entries()) {
    const range = {
      first: Math.max(lowest, (ranges[i - 1]?.last ?? -1) + 1),
      last: i < ranges.length - 1 ? last : Number.MAX_SAFE_INTEGER,
    };
    if (range.last < range.first) continue;
    const isIn = isWithin(range);
    const of = (table: string) => `FROM ${table} WHERE ${isIn} AND ${isComplete}`;
    const wrong = await store.rows(differingBlocks(of(records), received, of(`${spent}`)), { height: int });
    for (const { height } of wrong)
      findings.add(`${changesPath(height)}: the file of changes of block ${height} has other spent outputs than its records`);
  }
}

interface Claimed {
  /** SQL or names of tables. */
  readonly records: string;
  readonly received: string;
  readonly outputs: Outputs;
  readonly ranges: KeptBlocks['ranges'];
}

/** Checks that manifest and root have the same lists. */
function compareParts({ lists: named = {} }: Manifest, lists: ListsCheck | undefined, archive: ArchiveCheck | undefined): void {
  const { etchings, activity, balances, outputs } = lists?.lists ?? {};
  const parts = { etchings, rune_activity: activity, address_activity: activity, balances, holders: balances, outputs };
  for (const [part, found] of Object.entries(parts))
    if ((named[part as keyof typeof parts] === undefined) !== (found === undefined))
      archive?.findings.add(`${MANIFEST_PATH} and ${archive.rootPath} differ in whether there are ${part}`);
}

/** Compares the parts of a root that name lists. */
function compareRoot(made: Pick<Root, 'ids' | 'lists'>, { archive, rootPath, findings }: ArchiveCheck): void {
  const { ids, lists } = archive.root;
  const [found, expected] = [
    { ids, ...lists },
    { ids: made.ids, ...made.lists },
  ] as const;
  for (const part of new Set([...Object.keys(found), ...Object.keys(expected)]) as Set<keyof typeof found>)
    if (JSON.stringify(found[part]) !== JSON.stringify(expected[part])) findings.add(`${rootPath} has other ${part} than a build makes`);
}

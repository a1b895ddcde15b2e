/**
 * Verifies the output of a build. Reads every block's records from its pages of the largest size, and makes all files
 * of the build again from these records. The output must have exactly these files, with the same bytes.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import { DEFAULT_MEMORY } from '../contract/memorySize.ts';
import { type BlockDigest, envelope, type Manifest, manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { StoredArchive } from '../engine/archive/storedArchive.ts';
import { emitFiles } from '../engine/render/pageFiles.ts';
import { describe } from '../engine/writeArchive.ts';
import { InputError, messageOf } from '../errors.ts';
import type { ListTables } from '../format/listTables.ts';
import type { NoteKey } from '../format/signedNote.ts';
import { exceeds, LIMITS } from '../limits.ts';
import { searchFiles } from '../lists/searchFiles.ts';
import { digestOfBlocks, digestsFiles, readDigests, runsOf } from '../output/digests.ts';
import { ownFiles } from '../output/filesOfManifest.ts';
import { listsOf } from '../output/manifest.ts';
import { inspectOutput, MARKER } from '../output/outputFolder.ts';
import { archivePath, DIGESTS_FOLDER, digestsPath, MANIFEST_PATH } from '../pages/filePaths.ts';
import { siteOf } from '../pages/mirrorOptions.ts';
import { siteAssets } from '../site/assets.ts';
import { yieldNow } from '../yieldNow.ts';
import { ActivityVerification } from './checkActivityLists.ts';
import { ArchiveVerification } from './checkArchive.ts';
import { verifyBalances } from './checkBalances.ts';
import { readBlock } from './checkBlock.ts';
import { ChangesVerification } from './checkChanges.ts';
import { TransactionsVerification, type Unbalanced, verifySums } from './checkConservation.ts';
import { EtchingsVerification } from './checkEtchings.ts';
import { checkNote } from './checkNote.ts';
import { verifyRows } from './checkRows.ts';
import { Recount } from './checkStats.ts';
import { verifySpentInRows } from './checkUnspentOutputs.ts';
import { ComparingSink } from './comparingSink.ts';
import { Findings, orFinding, orLaterFinding } from './findings.ts';
import { RecordTables } from './recordTables.ts';
import { reportStrangers } from './unexpectedFiles.ts';
import { isFromNode, type Verification, withScratchStore } from './verification.ts';

export interface Verified {
  readonly manifest: Manifest;
  /** Number of files with pages, and of files of the archive. */
  readonly files: number;
  /** Heights ascending. */
  readonly blocks: readonly BlockDigest[];
  /** Runes with balances below zero, each with one address. Empty for records from a node. */
  readonly unbalanced: readonly Unbalanced[];
}

/**
 * Verifies an output folder. If `keys` are given, one of them must have signed the output. Throws a VerificationError
 * with the findings, or an InputError if the folder is not an output.
 */
export async function verify(
  root: string,
  progress: Progress,
  memoryLimit = DEFAULT_MEMORY,
  limits = LIMITS,
  keys: readonly NoteKey[] = [],
): Promise<Verified> {
  const findings = new Findings();
  const manifest = readManifest(root, findings);
  await checkNote(manifest, keys, findings);
  const site = siteOf(manifest);
  const own = new ComparingSink(root, findings);
  for (const [path, content] of ownFiles(manifest, siteAssets())) own.file(path, content);
  const blocks = readBlocks(root, manifest, own, findings);
  const archive = orFinding(findings, () => StoredArchive.find(root));
  if (site.listRoot !== undefined && archive === undefined) findings.throwIfAny(root);
  const schema = envelope(site.dialect);
  const verified = await withScratchStore(
    memoryLimit,
    (scratch) => verifyBlocks({ root, manifest, site, schema, blocks, findings, own, limits, progress, ...scratch }, archive),
    !exceeds(limits, 'keptRecords', manifest.records),
  );
  findings.throwIfAny(root);
  return verified;
}

/** Checks the pages of all blocks, and all files that follow from the blocks. */
async function verifyBlocks(verification: Verification, archive: StoredArchive | undefined): Promise<Verified> {
  const { root, manifest, site, blocks, findings, own, progress } = verification;
  const sink = new ComparingSink(root, findings);
  const lists = archive?.root.lists;
  const archiveCheck = archive && { ...verification, archive, rootPath: archivePath(archive.name.root) };
  const listsCheck = archiveCheck && lists && { ...archiveCheck, lists };
  const isComplete = manifest.lists?.etchings?.counts === true;
  const hasBalances = isComplete && lists?.activity !== undefined;
  if (listsCheck !== undefined) findings.compare(listsCheck.rootPath, 'balances', lists?.balances !== undefined, hasBalances);

  const recount = new Recount(own);
  const changes = new ChangesVerification(verification);
  const etchings = EtchingsVerification.of(verification, listsCheck);
  const tables = isComplete ? await RecordTables.begin(verification, lists?.outputs !== undefined) : undefined;
  const transactions = isFromNode(manifest) ? await TransactionsVerification.begin(verification, etchings) : undefined;
  const pages = archiveCheck && new ArchiveVerification(archiveCheck);
  const activity = ActivityVerification.of(listsCheck);
  const hasPages = site.layout === 'archive' || lists?.activity !== undefined;
  const totals = { blocks: blocks.length, transactions: 0, records: 0 };
  for (const [i, block] of blocks.entries()) {
    progress.show(i, blocks.length, 'blocks');
    await yieldNow();
    totals.records += block.records;
    const isPossible = block.records <= manifest.records;
    if (!isPossible)
      findings.add(`${digestsPath(block.height)} lists ${block.records} records for block ${block.height}, more than the whole build has`);
    const read = isPossible ? readBlock(verification, pages, block) : undefined;
    recount.add(block.height, read?.records ?? []);
    changes.add(block.height, read?.records ?? []);
    if (read === undefined) continue;
    const { batch, found, records } = read;
    for (const check of [etchings, tables, transactions]) await check?.add(block.height, records);
    totals.transactions += found.transactions;
    if (found.digest !== block.digest)
      findings.add(`block ${block.height}: its records have the digest ${found.digest}, expected ${block.digest}`);
    if (site.layout === 'files') emitFiles(batch, found, site, sink);
    if (!hasPages) continue;
    orFinding(findings, () => {
      const lengths = pages?.add(batch, found);
      if (lengths !== undefined) activity?.add(block.height, records, lengths);
    });
  }
  progress.end();
  if (findings.count === 0) pages?.finish();
  if (findings.count === 0) activity?.finish();
  const archived = archive === undefined ? [] : [...describe(archive.name, archive.root).paths];
  // The other checks have read every file of the archive, so only the sizes of the files are needed here.
  const files = sink.files + archived.length;
  const bytes = archived.reduce((sum, path) => sum + (statSync(join(root, path), { throwIfNoEntry: false })?.size ?? 0), sink.bytes);
  const rows = site.parquet && findings.count === 0 ? await verifyRows(verification) : undefined;
  let unbalanced: Verified['unbalanced'] = [];
  if (findings.count === 0) {
    checkTip(manifest, blocks.at(-1), lists, findings);
    const facts = manifest.lists?.etchings;
    const parts = listsOf(facts && { total: facts.total, hasCounts: facts.counts === true }, lists);
    compare({ ...totals, files, bytes, digest: digestOfBlocks(blocks), heights: runsOf(blocks), ...parts }, manifest, findings);
    recount.finish(manifest.site_url);
    changes.finish();
    const before = findings.count;
    await orLaterFinding(findings, async () => etchings?.finish());
    await tables?.load();
    if (findings.count === before && tables !== undefined) {
      unbalanced = await verifySums(verification, tables.records);
      if (isComplete) transactions?.finish();
    }
    // Skips the lists if records are wrong, because lists that follow from wrong records are wrong, too.
    const { balances } = lists ?? {};
    if (findings.count === before && listsCheck !== undefined && balances !== undefined && tables !== undefined && etchings !== undefined)
      await orLaterFinding(findings, () => verifyBalances(listsCheck, balances, etchings, tables));
    if (findings.count === before && tables?.received !== undefined) {
      await changes.checkSpent(tables.received);
      if (rows?.spent !== undefined) await verifySpentInRows(`${rows.spent}`, tables.received, verification);
    }
    const runes = etchings === undefined ? recount.runes : await etchings.named();
    for (const [path, text] of searchFiles(runes ?? [])) own.file(path, Buffer.from(text));
    // Without the names of runes, the expected search files are unknown, so files that do not belong to the build
    // cannot be found.
    if (runes !== undefined) reportStrangers(verification, sink, [MARKER, ...archived, ...(rows?.paths ?? [])]);
  }
  return { manifest, files, blocks, unbalanced };
}

function readManifest(root: string, findings: Findings): Manifest {
  const path = join(root, MANIFEST_PATH);
  if (!existsSync(path)) {
    if (existsSync(join(root, MARKER))) findings.add(`${MANIFEST_PATH} is missing`);
    findings.throwIfAny(root);
    throw new InputError(`${root} is not the output of a build: ${MANIFEST_PATH} not found`, [
      'Build first, or give another folder with --dir.',
    ]);
  }
  if (inspectOutput(root).manifest === undefined) findings.add(`${MARKER} says that the last build did not finish`);
  try {
    return manifestSchema.parse(JSON.parse(readRegularFile(path).toString('utf8')));
  } catch (error) {
    findings.add(`${MANIFEST_PATH} cannot be read: ${misfitOf(error)}`);
    findings.throwIfAny(root);
    throw error;
  }
}

function entriesOf(folder: string, findings: Findings): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    findings.add(`${DIGESTS_FOLDER} cannot be read: ${messageOf(error)}`);
    return [];
  }
}

/** Reads the blocks in the digest files, sorted by height. Adds a finding for each damaged file. */
function readBlocks(root: string, manifest: Manifest, sink: ComparingSink, findings: Findings): BlockDigest[] {
  const all: BlockDigest[] = [];
  // A build without records has no digests.
  const names = manifest.blocks === 0 ? [] : entriesOf(join(root, DIGESTS_FOLDER), findings);
  for (const name of names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))) {
    const path = `${DIGESTS_FOLDER}/${name}`;
    try {
      const blocks = readDigests(readRegularFile(join(root, path)).toString('utf8'), path);
      for (const [, content] of digestsFiles(blocks)) sink.file(path, content);
      for (const block of blocks) all.push(block);
    } catch (error) {
      findings.add(`${path}: ${misfitOf(error)}`);
    }
  }
  return all;
}

/** Checks the tip in the manifest. `last` is the highest block with records. `lists` are the lists of the archive. */
function checkTip({ tip }: Manifest, last: BlockDigest | undefined, lists: ListTables | undefined, findings: Findings): void {
  if (last !== undefined && (tip === undefined || (tip.height === last.height && tip.hash !== last.hash)))
    findings.add(`${MANIFEST_PATH} has the tip ${JSON.stringify(tip) ?? 'none'}, but block ${last.height} has the hash ${last.hash}`);
  const listed = lists?.outputs?.tipHash;
  if (listed !== undefined && listed !== tip?.hash)
    findings.add(
      `${MANIFEST_PATH} has the tip ${JSON.stringify(tip) ?? 'none'}, but the outputs are those after a block with the hash ${listed}`,
    );
}

function compare(found: Partial<Manifest>, manifest: Manifest, findings: Findings): void {
  for (const key of ['blocks', 'transactions', 'records', 'files', 'bytes', 'digest', 'heights', 'lists'] as const) {
    const [actual, listed] = [JSON.stringify(found[key]) ?? 'none', JSON.stringify(manifest[key]) ?? 'none'];
    if (actual !== listed) findings.add(`${MANIFEST_PATH} has ${key} ${shorten(listed)}, but the output has ${shorten(actual)}`);
  }
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

/**
 * Verifies an output: reads every block's records from its largest pages, and makes all files of the build from them
 * again. Each file must exist with the same bytes, and there must be no other file.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ListTables } from '../archive/listTables.ts';
import type { Progress } from '../cli/progress.ts';
import { DEFAULT_MEMORY } from '../contract/memorySize.ts';
import { envelope, type Manifest, manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { InputError, messageOf } from '../errors.ts';
import { LIMITS, type Limits } from '../limits.ts';
import { type BlockDigest, digestOfBlocks, digestsFiles, readDigests, runsOf } from '../output/digests.ts';
import { inspectOutput, LOCK, MARKER } from '../output/folder.ts';
import { listsOf } from '../output/manifest.ts';
import { ownFiles } from '../output/ownFiles.ts';
import {
  DIGESTS_FOLDER,
  digestsPath,
  isArchivePath,
  isRangeFile,
  LIST_FOLDERS,
  MANIFEST_PATH,
  STATS_PATHS,
  sidecarPath,
  statsFilePath,
} from '../pages/paths.ts';
import { searchFiles } from '../pages/search.ts';
import { type Encoding, type Site, siteOf } from '../pages/site.ts';
import { siteAssets } from '../site/assets.ts';
import { emitFiles, type FileSink } from '../write/pageFiles.ts';
import { readRegularFile } from '../write/regularFile.ts';
import { yieldNow } from '../yieldNow.ts';
import { ActivityVerification } from './activityLists.ts';
import { ArchiveVerification } from './archive.ts';
import { BalancesVerification } from './balances.ts';
import { readBlock } from './blocks.ts';
import { ComparingSink } from './comparingSink.ts';
import { EtchingsVerification } from './etchings.ts';
import { Findings, orFinding } from './findings.ts';
import { LedgerVerification } from './ledger.ts';
import { verifyRanges } from './ranges.ts';
import { type ScratchStore, withScratchStore } from './scratchStore.ts';
import { Recount } from './stats.ts';

export interface Verified {
  readonly manifest: Manifest;
  /** Number of files with pages, and of those of the archive. */
  readonly files: number;
  /** Heights ascending. */
  readonly blocks: readonly BlockDigest[];
  /** Runes with balances below zero, and one address of each. Only of records that are not from a node. */
  readonly unbalanced: readonly { readonly rune: string; readonly address: string }[];
}

/** Verifies an output folder. Throws a VerificationError with the findings, or an InputError if it is not an output. */
export async function verify(root: string, progress: Progress, memoryLimit = DEFAULT_MEMORY, limits = LIMITS): Promise<Verified> {
  const findings = new Findings();
  const manifest = readManifest(root, findings);
  const site = siteOf(manifest);
  const own = new ComparingSink(root, findings);
  for (const [path, content] of ownFiles(manifest, siteAssets())) own.file(path, content);

  const blocks = readBlocks(root, manifest, own, findings);
  const sink = new ComparingSink(root, findings);
  const archive = site.listRoot === undefined ? undefined : ArchiveVerification.open(root, site, blocks, findings);
  if (site.listRoot !== undefined && archive === undefined) findings.throwIfAny(root);
  return withScratchStore(memoryLimit, async (scratch) => {
    const balances = await BalancesVerification.of(archive, manifest, scratch, limits, findings);
    const etchings = EtchingsVerification.of(site, manifest, archive, findings);
    const ledger = await LedgerVerification.of(manifest, etchings, scratch, limits, findings);
    return verifyBlocks(root, manifest, blocks, { own, sink, archive, etchings, balances, ledger, scratch, limits }, findings, progress);
  });
}

/** What the files of an output are compared with. */
interface Checks {
  readonly own: ComparingSink;
  readonly sink: ComparingSink;
  readonly archive: ArchiveVerification | undefined;
  readonly etchings: EtchingsVerification | undefined;
  readonly balances: BalancesVerification | undefined;
  readonly scratch: ScratchStore;
  readonly limits: Limits;
  readonly ledger: LedgerVerification | undefined;
}

/** Checks the pages of all blocks, and everything that follows from them. */
async function verifyBlocks(
  root: string,
  manifest: Manifest,
  blocks: readonly BlockDigest[],
  { own, sink, archive, etchings, balances, ledger, scratch, limits }: Checks,
  findings: Findings,
  progress: Progress,
): Promise<Verified> {
  const site = siteOf(manifest);
  const ownPaths = ownFiles(manifest, siteAssets());
  const recount = new Recount(own);
  const whole = site.layout === 'archive' ? archive : undefined;
  const activity = ActivityVerification.of(archive, manifest, findings);
  const totals = { blocks: blocks.length, transactions: 0, records: 0 };
  const schema = envelope(site.dialect);
  for (const [i, block] of blocks.entries()) {
    progress.show(i, blocks.length, 'blocks');
    await yieldNow();
    totals.records += block.records;
    if (block.records > manifest.records) {
      findings.add(`${digestsPath(block.height)} lists ${block.records} records for block ${block.height}, more than the whole build has`);
      recount.skip(block.height);
      continue;
    }
    const read = readBlock(root, site, whole, schema, block, findings);
    const [found] = read?.batch.blocks ?? [];
    if (read === undefined || found === undefined) {
      recount.skip(block.height);
      continue;
    }
    const { batch, records } = read;
    recount.add(records);
    etchings?.add(block.height, records);
    await balances?.add(block.height, records);
    await ledger?.add(records);
    totals.transactions += found.transactions;
    if (found.digest !== block.digest)
      findings.add(`block ${block.height}: its records have the digest ${found.digest}, expected ${block.digest}`);
    if (site.layout === 'files') emitFiles(batch, found, site, sink);
    if (archive?.hasPages !== true) continue;
    orFinding(findings, () => {
      archive.checkBlock(batch, found);
      activity?.add(block.height, records, archive.pageLengths(block.height));
    });
  }
  progress.end();
  if (findings.count === 0) archive?.finish();
  if (findings.count === 0) activity?.finish();
  const archived = archive?.paths ?? [];
  let unbalanced: Verified['unbalanced'] = [];
  // The other checks have read every file, so this only counts them.
  const files = sink.files + archived.length;
  const bytes = archived.reduce((sum, path) => sum + (statSync(join(root, path), { throwIfNoEntry: false })?.size ?? 0), sink.bytes);
  const bulk =
    site.parquet && findings.count === 0 ? await verifyRanges(root, site, blocks, scratch.store, limits, own, findings, progress) : [];
  if (findings.count === 0) {
    const facts = manifest.lists?.etchings;
    const { lists } = listsOf(facts && { total: facts.total, hasCounts: facts.counts === true }, archive?.archive.root.lists);
    checkTip(manifest, blocks.at(-1), archive?.archive.root.lists, findings);
    compare({ ...totals, files, bytes, digest: digestOfBlocks(blocks), heights: runsOf(blocks), lists }, manifest, findings);
    recount.finish(manifest.site_url);
    const before = findings.count;
    await etchings?.finish(blocks);
    if (findings.count === before) unbalanced = (await ledger?.finish()) ?? [];
    // Lists of wrong records are wrong too, so they say nothing more.
    if (findings.count === before) await balances?.finish(etchings);
    const search: string[] = [];
    const runes = etchings === undefined ? recount.runes : await etchings.named();
    for (const [path, text] of searchFiles(runes ?? [])) {
      own.file(path, Buffer.from(text));
      search.push(path);
    }
    const byHeight = new Set(blocks.flatMap(({ height }) => [digestsPath(height), statsFilePath(height)]));
    const others = [...ownPaths.map(([path]) => path), ...STATS_PATHS, MARKER, ...byHeight, ...search, ...archived, ...bulk];
    // Without the names of runes, nobody can tell which files of the search are of this build.
    if (runes !== undefined)
      reportStrangers(root, sink.files + sink.sidecars + others.length, () => expectedPaths(root, site, schema, blocks, others), findings);
  }
  findings.throwIfAny(root);
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

/** Reads the blocks listed in the digest files, heights ascending. Adds a finding for each file that is damaged. */
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

/** Checks the last block of a manifest. `last` is the highest block with records, and `lists` are those of the archive. */
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

/** Lists every path of the output. Slow, so it is called only if the number of files is wrong. */
function expectedPaths(
  root: string,
  site: Site,
  schema: ReturnType<typeof envelope>,
  blocks: readonly BlockDigest[],
  others: readonly string[],
) {
  const paths = new Set(others);
  const add = (path: string, encodings: readonly Encoding[] = []) => {
    paths.add(path);
    for (const encoding of encodings) paths.add(sidecarPath(path, encoding));
    return paths.size;
  };
  const sink: FileSink = {
    page: (path, _head, _records, encodings) => add(path, encodings),
    file: (path) => add(path),
    link: (path, _target, _length, encodings) => add(path, encodings),
  };
  for (const block of site.layout === 'archive' ? [] : blocks) {
    const batch = readBlock(root, site, undefined, schema, block, new Findings())?.batch;
    const [whole] = batch?.blocks ?? [];
    if (batch !== undefined && whole !== undefined) emitFiles(batch, whole, site, sink);
  }
  return paths;
}

/**
 * Adds a finding for each file that is not part of the build. All expected files were found before, so the paths are
 * compared only if there are more files than expected.
 */
function reportStrangers(root: string, expected: number, paths: () => ReadonlySet<string>, findings: Findings): void {
  let count = 0;
  // walk() does not follow links, so a link in place of a folder makes the count wrong.
  for (const { isFile } of walk(root)) if (isFile) count += 1;
  if (count === expected) return;
  const known = paths();
  for (const { path } of walk(root)) {
    if (known.has(path)) continue;
    const isSwept = isRangeFile(path) || isArchivePath(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    findings.add(`${path} is not part of this build${isSwept ? '' : '; builds do not remove it, so remove it yourself'}`);
  }
}

/** Lists everything below the folder except folders and the lock. Does not follow links. */
function* walk(root: string, folder = ''): Generator<{ readonly path: string; readonly isFile: boolean }> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (path === LOCK) continue;
    if (entry.isDirectory()) yield* walk(root, path);
    else yield { path, isFile: entry.isFile() };
  }
}

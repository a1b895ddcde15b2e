/**
 * Verification: reads a whole output again. Every block's records are taken from its largest pages, and from these all other files of the
 * block and its transactions follow, as they did when they were written; each must be there, byte for byte, and nothing else.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../cli/progress.ts';
import { envelope, type Manifest, manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { InputError, messageOf } from '../errors.ts';
import { type BlockDigest, digestOfBlocks, digestsFiles, readDigests, runsOf } from '../output/digests.ts';
import { inspectOutput, LOCK, MARKER } from '../output/folder.ts';
import { ownFiles } from '../output/ownFiles.ts';
import { type Encoding, type Site, siteOf } from '../pages/lists.ts';
import { prefixes } from '../pages/packed.ts';
import {
  DIGESTS_FOLDER,
  digestsPath,
  editionName,
  isRangeFile,
  LIST_FOLDERS,
  MANIFEST_PATH,
  STATS_PATHS,
  shardPath,
  sidecarPath,
  statsFilePath,
} from '../pages/paths.ts';
import { siteAssets } from '../site/assets.ts';
import { emitFiles, type FileSink } from '../write/pageFiles.ts';
import { readRegularFile } from '../write/regularFile.ts';
import { readBlock } from './blocks.ts';
import { ComparingSink } from './comparingSink.ts';
import { Findings } from './findings.ts';
import { verifyRanges } from './ranges.ts';
import { ShardSums } from './shards.ts';
import { Recount } from './stats.ts';

export interface Verified {
  readonly manifest: Manifest;
  /** Files of pages and pointers, all of which were read. */
  readonly files: number;
}

/** Throws a VerificationError that lists what does not hold, and an InputError when the folder is no output at all. */
export async function verify(root: string, progress: Progress): Promise<Verified> {
  const findings = new Findings();
  const manifest = readManifest(root, findings);
  const site = siteOf(manifest);
  const own = new ComparingSink(root, findings);
  const ownPaths = ownFiles(manifest, siteAssets());
  for (const [path, content] of ownPaths) own.file(path, content);

  const blocks = readBlocks(root, own, findings);
  const sink = new ComparingSink(root, findings);
  const shards = site.layout === 'packed' ? new ShardSums(site.prefixDigits, site.dialect) : undefined;
  const figures = new Recount(own);
  const totals = { blocks: blocks.length, transactions: 0, records: 0 };
  const schema = envelope(site.dialect);
  for (const [i, block] of blocks.entries()) {
    progress.show(i, blocks.length, 'blocks');
    totals.records += block.records;
    if (block.records > manifest.records) {
      findings.add(`${digestsPath(block.height)} gives block ${block.height} ${block.records} records, more than there are in all`);
      figures.skip(block.height);
      continue;
    }
    const read = readBlock(root, site, schema, block, findings);
    const [whole] = read?.batch.blocks ?? [];
    if (read === undefined || whole === undefined) {
      figures.skip(block.height);
      continue;
    }
    const { batch, records } = read;
    figures.add(records);
    totals.transactions += whole.transactions;
    if (whole.digest !== block.digest)
      findings.add(`block ${block.height}: its records have the digest ${whole.digest}, not ${block.digest}`);
    emitFiles(batch, whole, site, sink);
    shards?.add(batch, whole, editionName(block.height, block.digest, site.dialect));
  }
  progress.end();
  if (findings.count === 0) shards?.check(root, findings);
  const bulk = site.parquet && findings.count === 0 ? await verifyRanges(root, site, blocks, own, findings, progress) : [];
  if (findings.count === 0) {
    compare(
      { ...totals, files: sink.files, bytes: sink.bytes, digest: digestOfBlocks(blocks), heights: runsOf(blocks) },
      manifest,
      findings,
    );
    figures.finish(manifest.site_url);
    const index = shards === undefined ? [] : [...prefixes(site.prefixDigits)].map(shardPath);
    const byHeight = new Set(blocks.flatMap(({ height }) => [digestsPath(height), statsFilePath(height)]));
    const others = [...ownPaths.map(([path]) => path), ...STATS_PATHS, MARKER, ...byHeight, ...index, ...bulk];
    reportStrangers(root, sink.files + sink.sidecars + others.length, () => expectedPaths(root, site, schema, blocks, others), findings);
  }
  findings.throwIfAny(root);
  return { manifest, files: sink.files };
}

function readManifest(root: string, findings: Findings): Manifest {
  const path = join(root, MANIFEST_PATH);
  if (!existsSync(path)) {
    if (existsSync(join(root, MARKER))) findings.add(`${MANIFEST_PATH} is missing`);
    findings.throwIfAny(root);
    throw new InputError(`${root} is no output of a build: ${MANIFEST_PATH} is not there`, [
      'Build first, or name another folder with --dir.',
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

/** The blocks that the files of digests name, heights ascending. */
function readBlocks(root: string, sink: ComparingSink, findings: Findings): BlockDigest[] {
  const all: BlockDigest[] = [];
  const names = entriesOf(join(root, DIGESTS_FOLDER), findings);
  for (const name of names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))) {
    const path = `${DIGESTS_FOLDER}/${name}`;
    try {
      const blocks = readDigests(readRegularFile(join(root, path)).toString('utf8'), path);
      for (const [, content] of digestsFiles(blocks)) sink.file(path, content);
      for (const block of blocks) all.push(block);
    } catch (error) {
      findings.add(`${path}: ${messageOf(error).split('\n')[0]}`);
    }
  }
  return all;
}

function compare(found: Partial<Manifest>, manifest: Manifest, findings: Findings): void {
  for (const key of ['blocks', 'transactions', 'records', 'files', 'bytes', 'digest', 'heights'] as const) {
    const [there, said] = [JSON.stringify(found[key]), JSON.stringify(manifest[key])];
    if (there !== said) findings.add(`${MANIFEST_PATH} says ${key} ${shorten(said)}, and there are ${shorten(there)}`);
  }
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** Every path that belongs into the output; only made when there is one too many. */
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
  for (const block of blocks) {
    const batch = readBlock(root, site, schema, block, new Findings())?.batch;
    const [whole] = batch?.blocks ?? [];
    if (batch !== undefined && whole !== undefined) emitFiles(batch, whole, site, sink);
  }
  return paths;
}

/** Adds the files that no block accounts for. All that should be there was seen, so mostly it is enough to count. */
function reportStrangers(root: string, expected: number, paths: () => ReadonlySet<string>, findings: Findings): void {
  let count = 0;
  // Files behind a link are not counted, so a link in the place of a folder is told by their number.
  for (const { isFile } of walk(root)) if (isFile) count += 1;
  if (count === expected) return;
  const known = paths();
  for (const { path } of walk(root)) {
    if (known.has(path)) continue;
    const isSwept = isRangeFile(path) || LIST_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    findings.add(`${path} belongs to nothing${isSwept ? '' : ', and no build removes it: do it yourself'}`);
  }
}

/** All that is below the folder, but folders. Follows no links. */
function* walk(root: string, folder = ''): Generator<{ readonly path: string; readonly isFile: boolean }> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (path === LOCK) continue;
    if (entry.isDirectory()) yield* walk(root, path);
    else yield { path, isFile: entry.isFile() };
  }
}

/**
 * The merge, top to bottom: check that the parts fit together, bring their pages into the output, put the index and the files of digests
 * together, write status and manifest, and remove what is in no part. Nothing is rendered, and pages are not read.
 *
 * The order is that of a build: a page is there before what names it, the manifest after that, and what is gone goes last. So a server may read
 * the output meanwhile, and a merge that dies leaves an output that is marked as unfinished and that the next merge makes whole.
 */
import { join } from 'node:path';
import { digestOfBlocks, digestsFiles, runsOf } from '../build/digests.ts';
import { ownFiles } from '../build/ownFiles.ts';
import { withScratch } from '../build/scratch.ts';
import { costRows, peakMegabytes, Stopwatch } from '../build/stopwatch.ts';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import type { Manifest } from '../contract/schemas.ts';
import { BuildError, CliError, codeOf, InputError, LockedError, messageOf } from '../errors.ts';
import { BLOCKS_FOLDER, DIGESTS_FOLDER, POINTERS_FOLDER, TRANSACTIONS_FOLDER, withSidecars } from '../pages/paths.ts';
import { fallbackPage } from '../pages/window.ts';
import { type OwnFile, siteAssets } from '../site/assets.ts';
import { statsDocuments } from '../stats/documents.ts';
import { withLock } from '../store/attach.ts';
import { Store } from '../store/duckdb.ts';
import { Changes, PathList } from '../write/changes.ts';
import { claimOutput, finishOutput, type OutputState, releaseOutput } from '../write/outputFolder.ts';
import { DiskSink } from '../write/sinks.ts';
import { Remover, removeOtherRanges } from '../write/stale.ts';
import { changedError, Linker } from './linker.ts';
import { checkPlaces, inspectOut, inspectPart, joinParts, type Part, readPart } from './parts.ts';
import { bringRanges, type MergedRanges, mergeRanges } from './ranges.ts';
import { checkShards, digitsOf, writeShards } from './shards.ts';
import { bringStats, readFigures } from './stats.ts';
import { namesOf, removeStrangers, type Whole } from './strangers.ts';
import { checkTransactions, transactionsOf } from './transactions.ts';

export interface MergeOptions {
  readonly out: string;
  readonly parts: readonly string[];
  /** Folder of the lists of changes. */
  readonly cache: string;
}

/** Says how far one stage is. */
type BeginProgress = (stage: string) => Progress;

export interface MergeResult {
  readonly manifest: Manifest;
  /** Files that were made or replaced, compressed ones included. */
  readonly written: number;
  /** Files that were there already, as the same file or with the same bytes. */
  readonly kept: number;
  /** Files of pages that could not be hard-linked. */
  readonly copied: number;
  /** Files that were in the output and are in no part. */
  readonly removed: number;
}

/**
 * Merges once. Throws an InputError before anything is written when the parts or the output are not fit, and a BuildError when writing fails;
 * then what was written stays, and the next merge makes the output whole.
 */
export async function merge(options: MergeOptions, log: Log, begin: BeginProgress): Promise<MergeResult> {
  const { out, cache } = options;
  const clock = new Stopwatch();
  checkPlaces(out, options.parts, cache);
  const output = inspectOut(out);
  const whole = checkParts(options.parts, begin);
  clock.lap('check');
  const assets = siteAssets();
  const result = await withScratch(cache, async (scratch) => {
    const ranges = whole.site.parquet ? await mergeRanges(whole.parts, whole.placed, scratch) : undefined;
    return withOutput(options, output, scratch, () => write(options, output, whole, ranges, assets, begin));
  });
  clock.lap('write');
  report(options, result, clock, log);
  return result;
}

/** All that can be wrong with the parts. */
function checkParts(dirs: readonly string[], begin: BeginProgress): Whole {
  try {
    const parts = dirs.map(readPart);
    const [first] = parts;
    if (first === undefined) throw new InputError('there is no part to merge');
    const placed = joinParts(parts);
    if (first.site.layout === 'packed') checkShards(parts, placed, begin('check'));
    else checkTransactions(parts);
    return { site: first.site, parts, placed, figures: readFigures(placed, begin('check')) };
  } catch (error) {
    if (error instanceof CliError || codeOf(error) === undefined) throw error;
    throw new InputError(`a part cannot be read: ${messageOf(error)}`, ['Make it readable, then merge again.', 'Nothing was written.']);
  }
}

/** Runs `work` while the output and the cache are locked: two merges into two outputs must not write the same lists. */
async function withOutput<T>({ out, cache }: MergeOptions, output: OutputState, scratch: string, work: () => T): Promise<T> {
  const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch });
  const lock = { path: join(cache, 'merge.lock'), name: 'cache_lock', what: `the cache folder ${cache}`, flag: '--cache' };
  try {
    return await withLock(store, lock, async () => {
      await claimOutput(out, output, store);
      try {
        return work();
      } finally {
        await releaseOutput(out, store);
      }
    });
  } catch (error) {
    throw explain(error);
  } finally {
    store.close();
  }
}

/** What other parts of the program say of builds, for people who merge. */
function explain(error: unknown): unknown {
  if (error instanceof LockedError) return new LockedError(error.message, ['Wait until it is done, then merge again.']);
  if (error instanceof BuildError) {
    return new BuildError(
      error.message,
      error.details.map((line) => line.replace('with --out', 'as OUT')),
    );
  }
  if (error instanceof CliError || codeOf(error) === undefined) return error;
  return new BuildError(`writing the output failed: ${messageOf(error)}`, [
    'What was written stays, marked as unfinished. Make room, or change the rights, and merge again.',
  ]);
}

function write(
  { out, cache }: MergeOptions,
  output: OutputState,
  whole: Whole,
  ranges: MergedRanges | undefined,
  assets: readonly OwnFile[],
  begin: BeginProgress,
): MergeResult {
  const changes = new Changes(cache);
  const wasUnfinished = output.kind === 'ours' && output.manifest === undefined;
  changes.begin(wasUnfinished);
  const [removedList, pages, others] = [
    changes.removedList(),
    new PathList(changes.addedPart(0)),
    new PathList(changes.addedPart(Number.MAX_SAFE_INTEGER)),
  ];
  const lists = [removedList, pages, others];
  try {
    const linker = new Linker(out, output.kind !== 'ours', pages, wasUnfinished);
    const transactions = bring(whole, linker, begin('write'));
    const sink = new DiskSink(out, others, wasUnfinished);
    if (whole.site.layout === 'packed') writeShards(whole.parts, sink, begin('index'));
    for (const [path, content] of digestsFiles(whole.placed.map(({ block }) => block))) sink.file(path, content);
    bringStats(whole.placed, linker, sink);
    if (ranges !== undefined) bringRanges(ranges, linker, sink);
    checkUnchanged(whole.parts);
    const manifest = describe(whole);
    for (const [path, content] of statsDocuments(whole.figures, manifest.site_url)) sink.file(path, content);
    for (const [path, content] of ownFiles(manifest, assets)) sink.file(path, content);
    const remover = new Remover(out, removedList);
    if (output.kind === 'ours') {
      removeStrangers(out, whole, { crowded: linker.crowded, transactions }, remover);
      removeOtherRanges(
        out,
        ranges?.files.map(({ first }) => first),
        remover,
      );
    }
    // All files are there afterwards, if only empty.
    for (const list of lists) list.flush();
    changes.finish(out);
    finishOutput(out);
    const written = linker.written + sink.totals.files - sink.totals.kept;
    return { manifest, written, kept: linker.kept + sink.totals.kept, copied: linker.copied, removed: remover.count };
  } finally {
    for (const list of lists) list.close();
  }
}

/** Brings the pages and pointers of all parts. Returns how many entries the folder of transactions was given. */
function bring({ site, parts, placed }: Whole, linker: Linker, progress: Progress): number {
  const all = parts.reduce((sum, part) => sum + part.manifest.files, 0);
  const found = new Map<Part, number>();
  const take = (part: Part, work: (root: string) => void) => {
    const before = linker.files;
    work(part.dir);
    found.set(part, (found.get(part) ?? 0) + linker.files - before);
    progress.show(linker.files, all, 'files');
  };
  for (const folder of [TRANSACTIONS_FOLDER, BLOCKS_FOLDER, POINTERS_FOLDER, DIGESTS_FOLDER]) {
    if (folder !== POINTERS_FOLDER || site.layout === 'packed') linker.makeFolder(folder);
  }
  let transactions = 0;
  if (site.layout === 'files') {
    for (const part of parts) {
      for (const entry of transactionsOf(part)) {
        const path = `${TRANSACTIONS_FOLDER}/${entry.name}`;
        take(part, (root) => (entry.isDirectory() ? linker.folder(root, path) : linker.file(root, path)));
        transactions += 1;
      }
    }
  }
  for (const { block, part } of placed) {
    const [height = '', hash] = namesOf(block, site)[BLOCKS_FOLDER] ?? [];
    const firstPage = (name: string) => withSidecars(`${BLOCKS_FOLDER}/${name}.json`, fallbackPage(site), block.records, site);
    take(part, (root) => {
      if (site.layout === 'files') for (const path of firstPage(height)) linker.file(root, path);
      linker.folder(root, `${BLOCKS_FOLDER}/${height}`);
      if (hash === undefined) return;
      for (const [i, path] of firstPage(hash).entries()) linker.file(root, path, firstPage(height)[i]);
      linker.folder(root, `${BLOCKS_FOLDER}/${hash}`, `${BLOCKS_FOLDER}/${height}`);
    });
  }
  for (const { block, part } of placed) {
    const [height, hash] = namesOf(block, site)[POINTERS_FOLDER] ?? [];
    if (height === undefined || hash === undefined) continue;
    take(part, (root) => {
      linker.file(root, `${POINTERS_FOLDER}/${height}.json`);
      linker.file(root, `${POINTERS_FOLDER}/${hash}.json`, `${POINTERS_FOLDER}/${height}.json`);
    });
  }
  progress.end();
  for (const part of parts) {
    const [there, said] = [found.get(part) ?? 0, part.manifest.files];
    if (there !== said) throw changedError(part.dir, `it has ${there} files of pages, and its manifest says ${said}`);
  }
  return transactions;
}

/** A build may have worked on a part since it was checked. */
function checkUnchanged(parts: readonly Part[]): void {
  for (const { dir, seen } of parts) {
    let now: string | undefined;
    try {
      now = inspectPart(dir);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
    }
    if (now !== seen) throw changedError(dir, 'its manifest or its marker is another than before');
  }
}

/** The manifest of a build of all blocks. Its other keys are those of the parts, which are alike in them. */
function describe({ site, parts, placed }: Whole): Manifest {
  const [first] = parts;
  if (first === undefined) throw new Error('a merge of nothing');
  const blocks = placed.map(({ block }) => block);
  const sum = (key: 'blocks' | 'transactions' | 'records' | 'files' | 'bytes') =>
    parts.reduce((total, { manifest }) => total + manifest[key], 0);
  return {
    ...first.manifest,
    ...(site.layout === 'packed' ? { transaction_prefix: digitsOf(parts) } : {}),
    heights: runsOf(blocks),
    blocks: sum('blocks'),
    transactions: sum('transactions'),
    records: sum('records'),
    files: sum('files'),
    bytes: sum('bytes'),
    digest: digestOfBlocks(blocks),
  };
}

function report({ out, parts }: MergeOptions, { manifest, written, kept, copied, removed }: MergeResult, clock: Stopwatch, log: Log): void {
  const more = [
    copied === 0 ? '' : ` ${count(copied, 'file')} had to be copied.`,
    kept === 0 ? '' : ` ${count(kept, 'file')} were as they should be.`,
    removed === 0 ? '' : ` ${count(removed, 'old file')} removed.`,
  ];
  const what = `${count(manifest.files, 'file')} of ${count(manifest.transactions, 'transaction')} and ${count(manifest.blocks, 'block')}`;
  log.info('merged', `Merged ${count(parts.length, 'part')} into ${out}: ${what}, in ${clock.total} s.${more.join('')}`, {
    ...manifest,
    parts: parts.length,
    written,
    kept,
    copied,
    removed,
    seconds: clock.seconds,
    cpu_seconds: clock.cpuSeconds,
    total_seconds: clock.total,
    peak_rss_mb: peakMegabytes(),
  });
  const number = (n: number) => n.toLocaleString('en-US');
  log.summary([
    ['records', number(manifest.records)],
    ['transactions', number(manifest.transactions)],
    ['blocks', number(manifest.blocks)],
    ['pages', number(manifest.files)],
    ['bytes', number(manifest.bytes)],
    [
      'files',
      `${number(written)} written${copied === 0 ? '' : ` (${number(copied)} as copies)`}, ${number(kept)} kept, ${number(removed)} removed`,
    ],
    ...costRows(clock),
  ]);
}

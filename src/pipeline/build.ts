/**
 * The build, top to bottom: load and check what changed in the input, render its blocks in batches, write the files of those that are not as
 * they were, remove what is no more, and then the manifest and the state for the next build.
 */
import { dirname, join } from 'node:path';
import { ChangedRangeError, checkRanges, writeRanges } from '../bulk/build.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { Stopwatch } from '../cli/stopwatch.ts';
import type { Manifest } from '../contract/schemas.ts';
import { BuildError, CliError, messageOf } from '../errors.ts';
import { type Loaded, loadInput } from '../input/load.ts';
import { ReadMeasure } from '../input/readMeasure.ts';
import { Changes } from '../output/changes.ts';
import { writeDigests } from '../output/digests.ts';
import { claimOutput, digestOf, finishOutput, inspectOutput, type OutputState, releaseOutput } from '../output/folder.ts';
import { manifestFile, manifestOf } from '../output/manifest.ts';
import { ownFiles } from '../output/ownFiles.ts';
import { MANIFEST_PATH } from '../pages/paths.ts';
import { renderBatches } from '../render/batches.ts';
import type { BatchBlock } from '../render/servedOrder.ts';
import { siteAssets } from '../site/assets.ts';
import { hasState, removeState, State } from '../state/state.ts';
import { type BlockChanges, type NewBlock, updateBlocks, updateInputs } from '../state/update.ts';
import { statsDocuments } from '../stats/documents.ts';
import { figuresOf, writeStats } from '../stats/files.ts';
import { DUCKDB_VERSION, Store, toNumber, toText } from '../store/duckdb.ts';
import { withScratch } from '../store/scratch.ts';
import { explainFiles } from '../write/failure.ts';
import { PathList } from '../write/pathList.ts';
import { WriterPool } from '../write/pool.ts';
import { holds } from '../write/replace.ts';
import { DiskSink } from '../write/sinks.ts';
import { syncFile, syncFileSystem, syncFolder } from '../write/sync.ts';
import type { BuildOptions } from './options.ts';
import { type BuildResult, reportBuilt, reportLoaded, reportUnchanged } from './report.ts';
import { writeAllShards, writeChangedShards } from './shards.ts';
import { outdatedShards, removeOutdated, sweep } from './stale.ts';

/**
 * Builds once. Throws an InputError before anything is written when the input or the output folder is not fit, and a BuildError when
 * writing fails; then what was written stays, and the next build makes the output whole.
 */
export async function build(options: BuildOptions, log: Log, progress = new Progress(log, false)): Promise<BuildResult> {
  const output = inspectOutput(options.out);
  const attempt: Attempt = { options, output, log, progress, usesState: !options.dryRun && hasState(options.cache) };
  try {
    return await buildOnce(attempt);
  } catch (error) {
    if (error instanceof ChangedRangeError) {
      log.notice(`${error.message}, so everything is built`);
      return await buildOnce({ ...attempt, whyFull: error.message });
    }
    // What fails beyond the known ways while there was a state is laid to the state, which may be damaged.
    if (error instanceof CliError || !attempt.usesState) throw error;
    log.notice(`the cache cannot be used (${messageOf(error).split('\n')[0]}), so everything is built`);
    removeState(options.cache);
    return await buildOnce({ ...attempt, output: inspectOutput(options.out) });
  } finally {
    progress.end();
  }
}

interface Attempt {
  readonly options: BuildOptions;
  readonly output: OutputState;
  readonly log: Log;
  readonly progress: Progress;
  /** Whether there is a state of an earlier build. */
  readonly usesState: boolean;
  /** Why everything is built, when an earlier try found that out. */
  readonly whyFull?: string;
}

/** What the stages share. */
interface Context {
  readonly options: BuildOptions;
  readonly output: OutputState;
  readonly store: Store;
  readonly state: State;
  readonly pool: WriterPool;
  readonly changes: Changes;
  readonly progress: Progress;
  readonly scratch: string;
  readonly log: Log;
}

function buildOnce(attempt: Attempt): Promise<BuildResult> {
  const { options, output, log, progress } = attempt;
  const { out, cache, site, threads, memoryLimit, dryRun } = options;
  return withScratch(cache, async (scratch) => {
    const clock = new Stopwatch();
    const store = await Store.open({ memoryLimit, threads, scratch });
    const changes = new Changes(cache);
    let isClaimed = false;
    let state: State | undefined;
    const writer = (i: number) => ({ root: out, added: changes.addedPart(i), listKept: wasUnfinished(output) });
    const pool = new WriterPool(site, dryRun ? [undefined] : Array.from({ length: writers(threads) }, (_, i) => writer(i)));
    try {
      state = await State.attach(
        store,
        dryRun ? undefined : cache,
        { site, blocks: options.blocks, ...(site.parquet ? { duckdb: DUCKDB_VERSION } : {}) },
        output.manifest,
        options.full ? '--full was given' : attempt.whyFull,
      );
      const measure = new ReadMeasure();
      progress.watch('load', () => measure.at(store.share));
      const loaded = await loadInput(options.inputs, options.blocks, [out, cache], scratch, store, measure);
      progress.end();
      reportLoaded(loaded, state.whyFull, clock.lap('load'), log);
      const context: Context = { options, output, store, state, pool, changes, progress, scratch, log };
      if (!dryRun && state.whyFull === undefined && !loaded.hasChanges && (await isDescribed(context)))
        return await reportUnchanged(options, await keepAll(context, loaded), clock, log);
      if (!dryRun && site.parquet) await checkRanges(out, store);

      if (!dryRun) {
        await claimOutput(out, output, store);
        isClaimed = true;
        await explainFiles(async () => changes.begin(wasUnfinished(output)));
      }
      const rendered = await renderAndWrite(context, loaded).catch(explainChange(loaded));
      clock.lap('write');
      const result = await finish(context, loaded, rendered).catch(explainChange(loaded));
      clock.lap('finish');
      progress.end();
      reportBuilt(options, result, clock, log);
      return result;
    } finally {
      await pool.close();
      if (isClaimed) await releaseOutput(out, store);
      if (state?.isBlank === true) removeState(cache);
      store.close();
    }
  });
}

/** A build died here: what it wrote is as it should be by now, and has to be in the lists of changes all the same. */
const wasUnfinished = (output: OutputState): boolean => output.kind === 'ours' && output.manifest === undefined;

/** The kernel makes files on as many cores as ask it, though not quite in proportion: a folder has one lock. */
const writers = (threads: number): number => Math.min(4, threads);

/**
 * Whether the files beside the pages are what this build would write: they show choices that pages do not follow from, and scripts that another commit of
 * this program has changed.
 */
async function isDescribed({ options, store, output }: Context): Promise<boolean> {
  const manifest = await manifestOf(options.site, options.siteUrl, store);
  if (digestOf(manifestFile(manifest)[1]) !== output.manifest) return false;
  return ownFiles(manifest, siteAssets()).every(([path, content]) => holds(join(options.out, path), content));
}

/** The input is what it was: at most its files' times are new. */
async function keepAll({ store, state, output, options }: Context, loaded: Loaded): Promise<Manifest> {
  if (loaded.isListStale) {
    await state.commit(async () => {
      await updateInputs(loaded, store);
      return output.manifest ?? '';
    });
  }
  return manifestOf(options.site, options.siteUrl, store);
}

/** Throws a BuildError when a file that is read again is not the one that was checked. */
function throwIfChanged(loaded: Loaded): void {
  const changed = loaded.changedFile();
  if (changed === undefined) return;
  throw new BuildError(`${changed} changed while it was read, so the output is not finished`, [
    'Build again when nothing writes to the input.',
  ]);
}

/** A file that changes while it is read may make anything fail. */
const explainChange =
  (loaded: Loaded) =>
  (error: unknown): never => {
    throwIfChanged(loaded);
    throw error;
  };

interface Rendered {
  readonly blocks: readonly NewBlock[];
  readonly kept: number;
}

/** Renders all blocks that were read, and writes the pages of those that the state does not know as they are now. */
async function renderAndWrite({ options, store, pool, progress }: Context, loaded: Loaded): Promise<Rendered> {
  const rows = await store.rows('SELECT b.*, k.digest FROM blocks b LEFT JOIN known_blocks k USING (block_height) ORDER BY b.block_height');
  const known = new Map(rows.map((row) => [toNumber(row['block_height']), toText(row['digest'])]));
  const expected = rows.map((row) => ({
    height: toNumber(row['block_height']),
    hash: toText(row['block_hash']),
    records: toNumber(row['records']),
  }));
  const changed = new Map<number, BatchBlock>();
  const all = expected.reduce((sum, { records }) => sum + records, 0);
  let unchanged = 0;
  progress.watch('write', () => ({ done: unchanged + pool.records, all, what: 'records' }));
  if (expected.length > 0) {
    for await (const batch of renderBatches(store, options.site, expected)) {
      throwIfChanged(loaded);
      const blocks = batch.blocks.filter((block) => known.get(block.height) !== block.digest);
      for (const block of blocks) changed.set(block.height, block);
      for (const block of batch.blocks) if (!changed.has(block.height)) unchanged += block.records;
      if (blocks.length > 0) await pool.submit({ ...batch, blocks });
    }
  }
  const written = await pool.finish();
  const blocks = [...changed.values()].map((block) => {
    const pages = written.blocks.get(block.height);
    if (pages === undefined) throw new Error(`block ${block.height} was rendered and not written`);
    return { ...block, ...pages };
  });
  return { blocks, kept: written.kept };
}

/** Waits until all files of the output are on the disk, unless the options say not to. Says in the log when that is not possible. */
async function syncPages({ out, sync }: BuildOptions, log: Log | undefined): Promise<void> {
  const problem = sync ? await syncFileSystem(out) : undefined;
  if (problem !== undefined)
    log?.notice(`the pages cannot be synced to the disk (${problem}): after a power cut within the next minute, build with --full`);
}

/** Writes the index as far as it changed. Returns the paths of files that it has no more, but after a full build, which sweeps. */
async function updateShards({ options, store, state }: Context, sink: DiskSink): Promise<string[]> {
  if (state.whyFull !== undefined) {
    await writeAllShards(options.site, sink, store);
    return [];
  }
  const digits = await writeChangedShards(options.site, sink, store);
  return digits === undefined ? [] : outdatedShards(options.out, digits);
}

/**
 * All that comes after the pages. The order is what a build that dies relies on, and who reads meanwhile: pages, index, manifest, removals, state,
 * marker. Each is on the disk before the next is begun, so that a power cut is no worse than the death of the build; DuckDB syncs the state. Whoever finds that a file is gone finds a manifest that is not about it.
 */
async function finish(context: Context, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, output, store, state, changes, progress } = context;
  const removedList = changes.removedList();
  const addedList = new PathList(changes.addedPart(Number.MAX_SAFE_INTEGER));
  const sink = new DiskSink(options.out, addedList, wasUnfinished(output));
  let blocks: BlockChanges = { heights: [], written: 0, gone: 0 };
  progress.watch('finish', () =>
    sink.totals.files === 0 ? 'taking stock' : { done: sink.totals.files, what: 'files of the index and others' },
  );
  let removed = 0;
  let manifest: Manifest | undefined;
  const commit = async () => {
    blocks = await updateBlocks(rendered.blocks, store);
    await updateInputs(loaded, store);
    manifest = await manifestOf(options.site, options.siteUrl, store);
    if (options.dryRun) return '';
    const goneDigests = await writeDigests(blocks.heights, sink, store);
    const goneShards = options.site.layout === 'packed' ? await updateShards(context, sink) : [];
    const goneStats = await writeStats(options.site.dialect, sink, store);
    for (const [path, content] of statsDocuments(await figuresOf(options.site.dialect, store), options.siteUrl)) sink.file(path, content);
    const goneRanges = options.site.parquet ? await writeRanges(options.out, context.scratch, sink, store) : [];
    const gone = [...goneDigests, ...goneShards, ...goneStats, ...goneRanges];
    throwIfChanged(loaded);
    const own = ownFiles(manifest, siteAssets());
    for (const [path, content] of own) {
      // The manifest is the last: it reaches the disk when all that it is about is there.
      if (path === MANIFEST_PATH) await syncPages(options, context.log);
      sink.file(path, content);
    }
    syncFile(join(options.out, MANIFEST_PATH));
    syncFolder(dirname(join(options.out, MANIFEST_PATH)));
    if (state.whyFull === undefined) removed = await removeOutdated(options.out, options.site, gone, removedList, store);
    else if (output.kind === 'ours') removed = await sweep(options.out, options.site, removedList, store);
    if (removed > 0) await syncPages(options, undefined);
    return digestOf(own.at(-1)?.[1] ?? Buffer.alloc(0));
  };
  try {
    await explainFiles(() => state.commit(commit));
    // Both files are there afterwards, if only empty.
    if (!options.dryRun) for (const list of [removedList, addedList]) await explainFiles(async () => list.flush());
  } finally {
    for (const list of [removedList, addedList]) list.close();
  }
  if (manifest === undefined) throw new Error('a build without a manifest');
  if (!options.dryRun) {
    await explainFiles(async () => changes.finish(options.out));
    finishOutput(options.out);
  }
  const written = rendered.blocks.reduce((sum, { files }) => sum + files, 0) - rendered.kept;
  const othersWritten = sink.totals.files - sink.totals.kept;
  return {
    manifest,
    kept: manifest.files - written,
    othersWritten,
    removed,
    blocks,
    wasFull: state.whyFull !== undefined || options.dryRun,
  };
}

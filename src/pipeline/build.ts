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
import { BuildError } from '../errors.ts';
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
import { damageOf, State, setAside } from '../state/state.ts';
import { type NewBlock, updateBlocks, updateInputs } from '../state/update.ts';
import { statsDocuments } from '../stats/documents.ts';
import { readStats, writeStats } from '../stats/files.ts';
import { DUCKDB_VERSION, int, nullable, Store, text } from '../store/duckdb.ts';
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
  try {
    return await buildOnce(options, log, progress);
  } catch (error) {
    const whyFull = whyAnew(error, options);
    if (whyFull === undefined) throw error;
    log.notice(`${whyFull}, so everything is built`);
    return await buildOnce({ ...options, full: true }, log, progress, whyFull);
  } finally {
    progress.end();
  }
}

/** Why a build that failed is to be tried again without the last one's state or files; undefined when that would not help. */
function whyAnew(error: unknown, { cache }: BuildOptions): string | undefined {
  if (error instanceof ChangedRangeError) return error.message;
  const damage = damageOf(error, cache);
  return damage === undefined ? undefined : `the cache is damaged (${damage}) and was moved to ${setAside(cache)}`;
}

/** What the steps share. */
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

function buildOnce(options: BuildOptions, log: Log, progress: Progress, whyFull = '--full was given'): Promise<BuildResult> {
  const { inputs, out, cache, site, blocks, threads, memoryLimit, full, dryRun } = options;
  const output = inspectOutput(out);
  return withScratch(cache, async (scratch) => {
    const clock = new Stopwatch();
    const store = await Store.open({ memoryLimit, threads, scratch });
    const changes = new Changes(cache);
    const target = (i: number) => ({ root: out, added: changes.addedPart(i), listKept: wasUnfinished(output) });
    const pool = new WriterPool(site, dryRun ? [undefined] : Array.from({ length: writers(threads) }, (_, i) => target(i)));
    let state: State | undefined;
    let isClaimed = false;
    try {
      const settings = { site, blocks, ...(site.parquet ? { duckdb: DUCKDB_VERSION } : {}) };
      state = await State.attach(store, dryRun ? undefined : cache, settings, output.manifest, full ? whyFull : undefined);
      const context: Context = { options, output, store, state, pool, changes, progress, scratch, log };

      const measure = new ReadMeasure();
      progress.watch('load', () => measure.at(store.share));
      const loaded = await loadInput(inputs, blocks, [out, cache], scratch, store, measure);
      progress.end();
      reportLoaded(loaded, state.whyFull, clock.lap('load'), log);

      if (state.whyFull === undefined && !loaded.hasChanges && (await isDescribed(context))) {
        return reportUnchanged(options, await keepAll(context, loaded), clock, log);
      }

      if (!dryRun) {
        if (site.parquet) await checkRanges(out, store);
        await claimOutput(out, output, store);
        isClaimed = true;
        await explainFiles(async () => changes.begin(wasUnfinished(output)));
      }
      const rendered = await renderAndWrite(context, loaded).catch(explainChange(loaded));
      clock.lap('write');

      const result = dryRun ? await count(context, loaded, rendered) : await finish(context, loaded, rendered).catch(explainChange(loaded));
      clock.lap('finish');
      progress.end();
      reportBuilt(options, result, clock, log);
      return result;
    } finally {
      await pool.close();
      await state?.close();
      if (isClaimed) await releaseOutput(out, store);
      store.close();
    }
  });
}

/** The last build did not finish. Its files are correct but were never listed as changed, so this one lists them. */
const wasUnfinished = (output: OutputState): boolean => output.kind === 'ours' && output.manifest === undefined;

/** More writer threads help less than linearly: the kernel locks each folder. */
const writers = (threads: number): number => Math.min(4, threads);

/** True when the manifest and all other files beside the pages are what this build's options and this version's source make. */
async function isDescribed({ options, store, output }: Context): Promise<boolean> {
  const manifest = await manifestOf(options.site, options.siteUrl, store);
  if (digestOf(manifestFile(manifest)[1]) !== output.manifest) return false;
  return ownFiles(manifest, siteAssets()).every(([path, content]) => holds(join(options.out, path), content));
}

/** The content of the input is unchanged: at most the times of its files are new. */
async function keepAll({ store, state, output, options }: Context, loaded: Loaded): Promise<Manifest> {
  if (loaded.isListStale) {
    await state.begin();
    await updateInputs(loaded, store);
    await state.commit(output.manifest ?? '');
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
  /** Blocks that the state does not have as they are now. */
  readonly blocks: readonly NewBlock[];
  /** Files of their pages that had the same bytes already. */
  readonly kept: number;
}

/** Renders all blocks that were read, and writes the pages of those that the state does not have as they are now. */
async function renderAndWrite({ options, store, pool, progress }: Context, loaded: Loaded): Promise<Rendered> {
  const rows = await store.rows(
    'SELECT b.*, k.digest FROM blocks b LEFT JOIN known_blocks k USING (block_height) ORDER BY b.block_height',
    {
      block_height: int,
      block_hash: text,
      records: int,
      digest: nullable(text),
    },
  );
  const known = new Map(rows.map((row) => [row.block_height, row.digest]));
  const expected = rows.map((row) => ({ height: row.block_height, hash: row.block_hash, records: row.records }));
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

/** Waits until all files of the output are on the disk, unless the options say not to. Notes in the log when that is not possible. */
async function syncPages({ out, sync }: BuildOptions, log: Log | undefined): Promise<void> {
  const problem = sync ? await syncFileSystem(out) : undefined;
  if (problem !== undefined)
    log?.notice(`the pages cannot be synced to the disk (${problem}): after a power cut within the next minute, build with --full`);
}

/** Ends a dry run: counts in a state that nobody keeps. */
async function count({ options, state, store }: Context, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  await state.begin();
  const blocks = await updateBlocks(rendered.blocks, store);
  await updateInputs(loaded, store);
  const manifest = await manifestOf(options.site, options.siteUrl, store);
  return { manifest, kept: 0, othersWritten: 0, removed: 0, blocks, wasFull: true };
}

/**
 * Does everything that comes after the pages, in an order that readers and the build after a killed one rely on: other files, manifest, removals, state,
 * lists of changes, marker. A reader that misses a file already sees the new manifest. Each step is on the disk before the next begins, so a power cut
 * is no worse than a kill; DuckDB syncs the state.
 */
async function finish(context: Context, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, output, store, state, changes, progress, log } = context;
  const { out, site, siteUrl } = options;
  const removedList = changes.removedList();
  const addedList = new PathList(changes.addedPart(Number.MAX_SAFE_INTEGER));
  const sink = new DiskSink(out, addedList, wasUnfinished(output));
  const { totals } = sink;
  progress.watch('finish', () => (totals.files === 0 ? 'taking stock' : { done: totals.files, what: 'files of the index and others' }));
  try {
    return await explainFiles(async () => {
      await state.begin();
      const blocks = await updateBlocks(rendered.blocks, store);
      await updateInputs(loaded, store);
      const manifest = await manifestOf(site, siteUrl, store);

      const outdated = await writeDataFiles(context, blocks.heights, sink);
      throwIfChanged(loaded);
      for (const [path, content] of ownFiles(manifest, siteAssets())) {
        // The manifest comes last: it reaches the disk after everything that it describes.
        if (path === MANIFEST_PATH) await syncPages(options, log);
        sink.file(path, content);
      }
      syncFile(join(out, MANIFEST_PATH));
      syncFolder(dirname(join(out, MANIFEST_PATH)));

      let removed = 0;
      if (state.whyFull === undefined) removed = await removeOutdated(out, site, outdated, removedList, store);
      else if (output.kind === 'ours') removed = await sweep(out, site, removedList, store);
      if (removed > 0) await syncPages(options, undefined);

      await state.commit(digestOf(manifestFile(manifest)[1]));

      // Both lists exist after every build, even when empty.
      for (const list of [removedList, addedList]) list.flush();
      changes.finish(out);
      finishOutput(out);

      const written = rendered.blocks.reduce((sum, { files }) => sum + files, 0) - rendered.kept;
      const wasFull = state.whyFull !== undefined;
      return { manifest, kept: manifest.files - written, othersWritten: totals.files - totals.kept, removed, blocks, wasFull };
    });
  } finally {
    for (const list of [removedList, addedList]) list.close();
  }
}

/**
 * Writes the files that follow from the state's blocks and are not pages, as far as these heights changed. Returns the paths of those that the output has no
 * more; a full build sweeps instead.
 */
async function writeDataFiles(context: Context, heights: readonly number[], sink: DiskSink): Promise<string[]> {
  const { options, store, scratch } = context;
  const { out, site, siteUrl } = options;
  const digests = await writeDigests(heights, sink, store);
  const shards = site.layout === 'packed' ? await updateShards(context, sink) : [];
  const stats = await writeStats(site.dialect, sink, store);
  for (const [path, content] of statsDocuments(await readStats(site.dialect, store), siteUrl)) sink.file(path, content);
  const ranges = site.parquet ? await writeRanges(out, scratch, sink, store) : [];
  return [digests, shards, stats, ranges].flat();
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

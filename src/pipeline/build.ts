/**
 * The build, in the order of its steps:
 *
 * 1. Attach the state of the last build, and load and check the input that has changed since.
 * 2. Stop here when the output already matches.
 * 3. Lock the output and mark it as unfinished.
 * 4. Render the loaded blocks, and write the pages of those that differ from the state.
 * 5. Write the other files and the manifest, remove outdated files, commit the state, and mark the output as finished.
 */
import { dirname, join } from 'node:path';
import { type ArchiveSink, checkFits, describe, outdatedFiles, type WrittenArchive, writeArchive } from '../archiver/archive.ts';
import type { EtchingChange } from '../archiver/etchings.ts';
import { findKnown } from '../archiver/knownTransactions.ts';
import { ChangedArchiveError, StoredArchive } from '../archiver/storedArchive.ts';
import { ChangedRangeError, checkRanges, writeRanges } from '../bulk/build.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { Stopwatch } from '../cli/stopwatch.ts';
import type { Manifest } from '../contract/schemas.ts';
import { BuildError } from '../errors.ts';
import { listEtchings } from '../etchings/facts.ts';
import { writeSearchFiles } from '../etchings/search.ts';
import { type Loaded, loadInput } from '../input/load.ts';
import { ReadProgress } from '../input/readProgress.ts';
import { publishedLimits } from '../limits.ts';
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
import { DUCKDB_VERSION, int, joinedText, nullable, Store, text } from '../store/duckdb.ts';
import { withScratch } from '../store/scratch.ts';
import type { WrittenBlock } from '../write/batchWriter.ts';
import { explainFiles } from '../write/failure.ts';
import { PathList } from '../write/pathList.ts';
import { WriterPool } from '../write/pool.ts';
import { hasBytes } from '../write/replace.ts';
import { DiskSink } from '../write/sinks.ts';
import { syncFile, syncFileSystem, syncFolder } from '../write/sync.ts';
import { inputsOf, refuseSample } from './inputs.ts';
import { archivesPages, type BuildOptions, type FixedOptions } from './options.ts';
import { type BuildResult, reportBuilt, reportLoaded, reportUnchanged } from './report.ts';
import { removeOutdated, sweep } from './stale.ts';
import { rangeOf } from './window.ts';

/**
 * Runs a build. Repeats it as a full build when the cache is damaged, or when a Parquet file or the
 * archive was changed.
 *
 * Rejects with an InputError, before anything is written, when the input or the output folder is not valid. Rejects
 * with a BuildError when writing fails. Files written by then stay, and the next build completes the output.
 */
export async function build(given: BuildOptions, log: Log, progress = new Progress(log, false)): Promise<BuildResult> {
  const chosen = { ...given, inputs: inputsOf(given, log) };
  const options = { ...chosen, blocks: await rangeOf(chosen) };
  try {
    return await buildOnce(options, log, progress);
  } catch (error) {
    const whyFull = reasonToRebuild(error, options);
    if (whyFull === undefined) throw error;
    log.notice(`${whyFull}; everything is built again`);
    return await buildOnce({ ...options, full: true }, log, progress, whyFull);
  } finally {
    progress.end();
  }
}

/** Returns the reason to repeat a failed build in full, if that may help. Moves a damaged cache aside. */
function reasonToRebuild(error: unknown, { cache }: BuildOptions): string | undefined {
  if (error instanceof ChangedRangeError || error instanceof ChangedArchiveError) return error.message;
  const damage = damageOf(error, cache);
  return damage === undefined ? undefined : `the cache is damaged (${damage}) and was moved to ${setAside(cache)}`;
}

/** Shared by the steps of a build. */
interface Context {
  readonly options: BuildOptions;
  readonly output: OutputState;
  readonly store: Store;
  readonly state: State;
  /** The archive of the last build, which an incremental build continues. */
  readonly old: StoredArchive | undefined;
  readonly pool: WriterPool;
  readonly changes: Changes;
  readonly progress: Progress;
  readonly scratch: string;
  readonly log: Log;
}

/** Runs the steps of a build once, and closes everything it opened. */
function buildOnce(options: FixedOptions, log: Log, progress: Progress, whyFull = '--full was given'): Promise<BuildResult> {
  const { inputs, out, cache, site, blocks, objectSize, threads, memoryLimit, full, dryRun, lists, limits } = options;
  const output = inspectOutput(out);
  return withScratch(cache, async (scratch) => {
    const clock = new Stopwatch();
    const store = await Store.open({ memoryLimit, threads, scratch });
    const changes = new Changes(cache);
    const target = (i: number) => ({
      root: dryRun ? undefined : out,
      added: changes.addedPart(i),
      listKept: wasUnfinished(output),
      spool: archivesPages(options) ? join(scratch, `blocks-${i}`) : undefined,
    });
    const others = Array.from({ length: writerThreads(threads) - 1 }, (_, i) => target(i + 1));
    const pool = new WriterPool(site, [target(0), ...(dryRun ? [] : others)], limits);
    let state: State | undefined;
    let isClaimed = false;
    try {
      // Step 1: attach the state and load the input.
      const compressor = { objectSize, lists, limits: publishedLimits(limits), zlib: process.versions.zlib, processor: process.arch };
      const settings = { site, blocks, ...(site.parquet ? { duckdb: DUCKDB_VERSION } : {}), ...compressor };
      state = await State.attach(store, dryRun ? undefined : cache, settings, output.manifest, full ? whyFull : undefined);
      const open = archivesPages(options) ? StoredArchive.in : StoredArchive.find;
      const old = state.whyFull === undefined ? open(out, limits) : undefined;
      const context: Context = { options, output, store, state, old, pool, changes, progress, scratch, log };

      const measure = new ReadProgress();
      progress.watch('load', () => measure.at(store.share));
      const ids = site.layout === 'archive' ? old : undefined;
      const reading = { range: blocks, limits, scratch, store, progress: measure };
      const loaded = await loadInput(inputs, [out, cache], reading, ids && (() => findKnown(ids, limits, store)));
      progress.end();
      if (archivesPages(options)) await checkFits(site.layout, options.lists, store);
      reportLoaded(loaded, state.whyFull, clock.lap('load'), log);
      if (output.hasData) await refuseSample(out, store);

      // Step 2: stop when nothing changed.
      if (state.whyFull === undefined && !loaded.hasChanges && (await isUpToDate(context, loaded))) {
        return reportUnchanged(options, await keepOutput(context, loaded), clock, log);
      }

      // Step 3: lock the output.
      if (!dryRun) {
        if (site.parquet) await checkRanges(out, store);
        await claimOutput(out, output, store);
        isClaimed = true;
        await explainFiles(async () => changes.begin(wasUnfinished(output)));
      }

      // Step 4: write the pages.
      const rendered = await renderAndWritePages(context, loaded).catch(blameChangedInput(loaded));
      clock.lap('write');

      // Step 5: write everything else.
      const result = dryRun
        ? await finishDryRun(context, loaded, rendered)
        : await finishBuild(context, loaded, rendered).catch(blameChangedInput(loaded));
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

/**
 * True when the last build did not finish. Its files are correct but were never listed as changed, so this build lists
 * them.
 */
const wasUnfinished = (output: OutputState): boolean => output.kind === 'ours' && output.manifest === undefined;

/** Number of writer threads. More than four hardly help, because the kernel locks each folder. */
const writerThreads = (threads: number): number => Math.min(4, threads);

/** True when the manifest and the files that follow from it already match this build's options and this version. */
async function isUpToDate({ options, store, output, old }: Context, { sources }: Loaded): Promise<boolean> {
  const manifest = await manifestOf(
    options.site,
    options.siteUrl,
    sources,
    old && describe(old.name, old.root),
    await listEtchings('etchings', store),
    store,
  );
  if (digestOf(manifestFile(manifest)[1]) !== output.manifest) return false;
  return ownFiles(manifest, siteAssets()).every(([path, content]) => hasBytes(join(options.out, path), content));
}

/** Keeps the output. Updates the list of inputs when only the times of files changed. Returns the manifest. */
async function keepOutput({ store, state, output, options, old }: Context, loaded: Loaded): Promise<Manifest> {
  if (loaded.isListStale) {
    await state.begin();
    await updateInputs(loaded, store);
    await state.commit(output.manifest ?? '');
  }
  const etchings = await listEtchings('etchings', store);
  return manifestOf(options.site, options.siteUrl, loaded.sources, old && describe(old.name, old.root), etchings, store);
}

/** Throws a BuildError when an input file changed after it was checked. */
function throwIfChanged(loaded: Loaded): void {
  const changed = loaded.changedFile();
  if (changed === undefined) return;
  throw new BuildError(`${changed} changed while the build was reading it; the output is not finished`, [
    'Build again when nothing writes to the input.',
  ]);
}

/** Handles any error of a step: reports a changed input file instead, because that may have caused the error. */
const blameChangedInput =
  (loaded: Loaded) =>
  (error: unknown): never => {
    throwIfChanged(loaded);
    throw error;
  };

/** Result of step 4. */
interface Rendered {
  /** Blocks that are new or differ from the state. */
  readonly blocks: readonly (NewBlock & WrittenBlock)[];
  /** Number of their page files that already had the same bytes. */
  readonly kept: number;
}

/**
 * Digests of the outputs that each loaded block spends, in any order. Records do not have these outputs, so a block may
 * change without its published digest.
 */
const SPENT_DIGESTS = `SELECT block_height, bit_xor(md5_number(${joinedText(['"output"', 'address'])}))::VARCHAR AS spent_digest
  FROM spent_outputs GROUP BY block_height`;

/** Renders all loaded blocks, and writes the pages of those that differ from the state. */
async function renderAndWritePages({ options, store, pool, progress }: Context, loaded: Loaded): Promise<Rendered> {
  const rows = await store.rows(
    `SELECT b.*, k.digest, coalesce(s.spent_digest, '') AS spent_digest, k.spent_digest AS known_spent
     FROM blocks b LEFT JOIN known_blocks k USING (block_height) LEFT JOIN (${SPENT_DIGESTS}) s USING (block_height) ORDER BY b.block_height`,
    {
      block_height: int,
      block_hash: text,
      records: int,
      digest: nullable(text),
      spent_digest: text,
      known_spent: nullable(text),
    },
  );
  const known = new Map(rows.map((row) => [row.block_height, row]));
  const expected = rows.map((row) => ({ height: row.block_height, hash: row.block_hash, records: row.records }));
  const changed = new Map<number, BatchBlock>();
  const all = expected.reduce((sum, { records }) => sum + records, 0);
  let unchanged = 0;
  progress.watch('write', () => ({ done: unchanged + pool.records, all, what: 'records' }));
  if (expected.length > 0) {
    for await (const batch of renderBatches(store, options.site, expected, options.limits)) {
      throwIfChanged(loaded);
      const blocks = batch.blocks.filter(({ height, digest }) => {
        const row = known.get(height);
        return row?.digest !== digest || row.known_spent !== row.spent_digest;
      });
      for (const block of blocks) changed.set(block.height, block);
      for (const block of batch.blocks) if (!changed.has(block.height)) unchanged += block.records;
      if (blocks.length > 0) await pool.submit({ ...batch, blocks });
    }
  }
  const written = await pool.finish();
  const blocks = [...changed.values()].map((block) => {
    const pages = written.blocks.get(block.height);
    if (pages === undefined) throw new Error(`block ${block.height} was rendered but not written`);
    return { ...block, ...pages, spentDigest: known.get(block.height)?.spent_digest ?? '' };
  });
  return { blocks, kept: written.kept };
}

/** Ends a dry run: updates a state in memory, only to count. */
async function finishDryRun(context: Context, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, state, store } = context;
  await state.begin();
  const before = await listEtchings('old_etchings', store);
  const blocks = await updateBlocks(rendered.blocks, options.site.layout, store);
  await updateInputs(loaded, store);
  const now = await listEtchings('etchings', store);
  const archive = await archiveOf(context, rendered, blocks.heights, { before, now }, () => undefined);
  const manifest = await manifestOf(options.site, options.siteUrl, loaded.sources, archive, now, store);
  return { manifest, kept: 0, othersWritten: 0, removed: 0, blocks, wasFull: true };
}

/**
 * Does everything after the pages. The order matters to readers and to the build after a killed one: other files,
 * manifest, removals, state, lists of changes, marker. A reader that misses a removed file already sees the new
 * manifest.
 *
 * Each part is on the disk before the next begins, so a power cut is no worse than a kill. DuckDB syncs the state.
 */
async function finishBuild(context: Context, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, output, store, state, changes, progress, log } = context;
  const { out, site, siteUrl } = options;
  const removedList = changes.removedList();
  const addedList = new PathList(changes.addedPart(Number.MAX_SAFE_INTEGER));
  const sink = new DiskSink(out, addedList, wasUnfinished(output));
  const { totals } = sink;
  progress.watch('finish', () => (totals.files === 0 ? 'updating the state' : { done: totals.files, what: 'other files' }));
  try {
    return await explainFiles(async () => {
      await state.begin();
      const before = await listEtchings('old_etchings', store);
      const blocks = await updateBlocks(rendered.blocks, site.layout, store);
      await updateInputs(loaded, store);
      const etchings = { before, now: await listEtchings('etchings', store) };
      const outdated = await writeDataFiles(context, blocks.heights, sink);
      const outdatedSearch = await writeSearchFiles(out, etchings.before, etchings.now, sink, store);
      // The manifest counts the archive's files.
      const othersBefore = totals.files - totals.kept;
      const archive = await archiveOf(context, rendered, blocks.heights, etchings, (path, content) => sink.file(path, content));
      const archiveWritten = totals.files - totals.kept - othersBefore;
      const manifest = await manifestOf(site, siteUrl, loaded.sources, archive, etchings.now, store);
      const outdatedArchive = outdatedFiles(out, archive);
      throwIfChanged(loaded);
      for (const [path, content] of ownFiles(manifest, siteAssets())) {
        // The manifest is the last file. Sync first, so that it never describes pages that a power cut can lose.
        if (path === MANIFEST_PATH) await syncPages(options, log);
        sink.file(path, content);
      }
      syncFile(join(out, MANIFEST_PATH));
      syncFolder(dirname(join(out, MANIFEST_PATH)));

      let removed = 0;
      if (state.whyFull === undefined)
        removed = await removeOutdated(out, site, [...outdated, ...outdatedSearch, ...outdatedArchive], options.limits, removedList, store);
      else if (output.kind === 'ours')
        removed = await sweep(out, site, [...outdatedSearch, ...outdatedArchive], options.limits, removedList, store);
      if (removed > 0) await syncPages(options, undefined);

      await state.commit(digestOf(manifestFile(manifest)[1]));

      // Both lists exist after every build, even when empty.
      for (const list of [removedList, addedList]) list.flush();
      await changes.finish(out);
      finishOutput(out);

      const pages = rendered.blocks.reduce((sum, { files }) => sum + files, 0) - rendered.kept;
      const written = pages + archiveWritten;
      const wasFull = state.whyFull !== undefined;
      return {
        manifest,
        kept: manifest.files - written,
        othersWritten: totals.files - totals.kept - archiveWritten,
        removed,
        blocks,
        wasFull,
      };
    });
  } finally {
    for (const list of [removedList, addedList]) list.close();
  }
}

/** Syncs the file system of the output, unless `--no-sync` is given. Logs a notice when it cannot be synced. */
async function syncPages({ out, sync }: BuildOptions, log: Log | undefined): Promise<void> {
  const problem = sync ? await syncFileSystem(out) : undefined;
  if (problem !== undefined)
    log?.notice(`the pages cannot be synced to the disk (${problem}); after a power cut within the next minute, build with --full`);
}

/**
 * Writes digests, index, stats and Parquet files of the blocks at these heights. Returns the paths of files that are no
 * longer needed. A full build ignores them, because it sweeps the folders.
 */
async function writeDataFiles(context: Context, heights: readonly number[], sink: DiskSink): Promise<string[]> {
  const { options, store, scratch } = context;
  const { out, site, siteUrl } = options;
  const digests = await writeDigests(heights, sink, store);
  const stats = await writeStats(site.dialect, sink, store);
  for (const [path, content] of statsDocuments(await readStats(site.dialect, store), siteUrl)) sink.file(path, content);
  const ranges = site.parquet ? await writeRanges(out, scratch, sink, options.limits, store) : [];
  return [digests, stats, ranges].flat();
}

/** Makes the archive of all blocks, and passes its new files to `sink`. `heights` are those of replaced blocks. */
async function archiveOf(
  { options, store, old, scratch }: Context,
  { blocks }: Rendered,
  heights: readonly number[],
  etchings: EtchingChange,
  sink: ArchiveSink,
): Promise<WrittenArchive | undefined> {
  const { tip, first } = await store.row(
    'SELECT coalesce((SELECT block_height FROM state.tip), -1) AS tip, coalesce(min(block_height), 0) AS first FROM state.blocks',
    { tip: int, first: int },
  );
  const spooled = new Map(blocks.flatMap((block) => (block.spooled === undefined ? [] : [[block.height, block.spooled] as const])));
  const replaced = new Set(heights);
  // A window of layout `files` may lose its lowest block with every new one.
  const { site, lists: hasActivity, objectSize, limits } = options;
  const lowest = site.layout === 'files' && hasActivity ? first : undefined;
  const form = { site, hasActivity, scratch };
  return writeArchive(form, { spooled, replaced, tip, lowest, objectSize, limits }, etchings, old, sink, store);
}

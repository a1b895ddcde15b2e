/**
 * The build, in the order of its steps:
 *
 * 1. Attach the state of the last build, and load and check the input that has changed since.
 * 2. Stop here when the output already matches.
 * 3. Lock the output and mark it as unfinished.
 * 4. Render the loaded blocks, and write the pages of those that differ from the state (writeChangedPages.ts).
 * 5. Write the other files and the manifest, remove outdated files, commit the state, and mark the output as finished (finishBuild.ts).
 */
import { join } from 'node:path';
import { attempt } from '../attempt.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { Stopwatch } from '../cli/stopwatch.ts';
import type { Manifest } from '../contract/schemas.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { hasBytes } from '../disk/replaceFile.ts';
import { withScratch } from '../disk/scratchFolder.ts';
import { DUCKDB_VERSION, Store } from '../duckdb/store.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { findKnownInState } from '../input/checkConsistency.ts';
import { ReadProgress } from '../input/inputProgress.ts';
import { type Loaded, loadInput } from '../input/loadInput.ts';
import { publishedLimits } from '../limits.ts';
import { filesOfStatistics, manifestFile, manifestOf, ownFiles } from '../output/manifest.ts';
import { claimOutput, digestOf, inspectOutput, releaseOutput } from '../output/outputFolder.ts';
import { ChangedRowsError } from '../rows/publishRows.ts';
import { siteAssets } from '../site/assets.ts';
import { StoredArchive } from './archive/storedArchive.ts';
import { archivesPages, type BuildOptions, type FixedOptions, type OpenBuild, throwIfChanged } from './buildOptions.ts';
import { type BuildResult, reportBuilt, reportLoaded, reportUnchanged } from './buildReport.ts';
import { rangeOf, refuseOther, withInput } from './chooseInput.ts';
import { finishBuild, finishDryRun } from './finishBuild.ts';
import { findKnown } from './knownTransactions.ts';
import { listEtchings } from './state/knownEtchings.ts';
import { damageOf, State, setAside } from './state/state.ts';
import { updateInputs } from './state/updateState.ts';
import { checkFits, describe } from './writeArchive.ts';
import { openWriters, writePages } from './writeChangedPages.ts';

/**
 * Runs a build. Repeats it in full if it fails because the cache is damaged, or because the archive or a published file of rows was changed
 * since the last build. Rejects with an InputError, before anything is written, when the input or the output folder is not valid, and with
 * a BuildError when writing fails. Files that were already written stay, and the next build completes the output.
 */
export async function build(given: BuildOptions, log: Log, progress = new Progress(log, false)): Promise<BuildResult> {
  const chosen = withInput(given, log);
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

/** Returns the reason to repeat a failed build in full, or undefined if a full build would fail too. Renames a damaged cache. */
function reasonToRebuild(error: unknown, { cache }: BuildOptions): string | undefined {
  if (error instanceof ChangedRowsError || error instanceof ArchiveError) return error.message;
  const damage = damageOf(error, cache);
  return damage === undefined ? undefined : `the cache is damaged (${damage}) and was moved to ${setAside(cache)}`;
}

/** Runs the steps of a build once, and closes everything it opened. */
function buildOnce(options: FixedOptions, log: Log, progress: Progress, whyFull = '--full was given'): Promise<BuildResult> {
  const { out, cache, threads, memoryLimit, full, dryRun } = options;
  const output = inspectOutput(out);
  return withScratch(cache, async (scratch) => {
    const clock = new Stopwatch();
    const store = await Store.open({ memoryLimit, threads, scratch });
    const pool = openWriters(options, scratch);
    let state: State | undefined;
    let isClaimed = false;
    try {
      state = await State.attach(store, dryRun ? undefined : cache, settingsOf(options), output.manifest, full ? whyFull : undefined);
      const findArchive = archivesPages(options) ? StoredArchive.in : StoredArchive.find;
      const old = state.whyFull === undefined ? findArchive(out) : undefined;
      const build: OpenBuild = { options, output, store, state, old, pool, progress, scratch, log };
      const loaded = await load(build, clock);

      const unchanged = await findUnchanged(build, loaded);
      if (unchanged !== undefined) return reportUnchanged(options, unchanged, clock, log);

      if (!dryRun) {
        await claimOutput(out, output, store);
        isClaimed = true;
      }

      // If an input file has changed since it was read, this is the likely cause of an error.
      const blameChangedInput = (error: unknown): never => {
        throwIfChanged(loaded, options);
        throw error;
      };
      const rendered = await writePages(build, loaded).catch(blameChangedInput);
      clock.lap('write');

      const result = await (dryRun ? finishDryRun : finishBuild)(build, loaded, rendered).catch(blameChangedInput);
      clock.lap('finish');
      progress.end();
      reportBuilt(options, result, clock, log);
      return result;
    } finally {
      await pool.close();
      state?.close();
      if (isClaimed) await releaseOutput(out, store);
      store.close();
    }
  });
}

/**
 * Returns the settings that affect output files. They include the processor and the versions of zlib and DuckDB, because the bytes of
 * compressed files depend on them. A build is full if its settings differ from the settings in the state.
 */
function settingsOf({ site, blocks, objectSize, lists, limits }: FixedOptions): object {
  const compressor = { objectSize, lists, limits: publishedLimits(limits), zlib: process.versions.zlib, processor: process.arch };
  return { site, blocks, ...(site.parquet ? { duckdb: DUCKDB_VERSION } : {}), ...compressor };
}

/** Reads, checks and reports the input. Rejects with an InputError for invalid input. */
async function load({ options, output, store, state, old, progress, scratch, log }: OpenBuild, clock: Stopwatch): Promise<Loaded> {
  const { inputs, out, cache, site, blocks, lists, limits } = options;
  const measure = new ReadProgress();
  progress.watch('load', () => measure.at(store.share));
  const reading = { known: state, range: blocks, limits, scratch, store, progress: measure, keepsRows: site.parquet };
  await store.measureShare(true);
  const loaded = await loadInput(inputs, [out, cache], reading, async (read) => {
    await store.measureShare(false);
    const hasIds = site.layout === 'archive' && old !== undefined;
    return hasIds ? findKnown(old, read, limits, store) : findKnownInState(read, state, store);
  });
  progress.end();
  if (archivesPages(options)) await checkFits(loaded, site.layout, lists, store);
  reportLoaded(loaded, state.whyFull, clock.lap('load'), log);
  await refuseOther(options, output, loaded.blocks, store);
  return loaded;
}

/** Returns the manifest of the output if neither input, options nor program have changed. Updates the times of input files. */
async function findUnchanged({ options, output, store, state, old }: OpenBuild, loaded: Loaded): Promise<Manifest | undefined> {
  // With signing keys, every build writes a new manifest, because the signed note in it has the time of signing.
  if (state.whyFull !== undefined || loaded.hasChanges || options.keys.length > 0) return undefined;
  const archive = old && describe(old.name, old.root);
  const etchings = await listEtchings(state, store);
  const manifest = await manifestOf(options.site, options.siteUrl, loaded, archive, etchings, state, store);
  const digest = digestOf(manifestFile(manifest)[1]);
  if (digest !== output.manifest) return undefined;
  // The statistics in the output, from which these pages are made, may be damaged or lacking.
  const pages = attempt(() => filesOfStatistics(manifest, (path) => readRegularFile(join(options.out, path))));
  const files = pages && [...siteAssets(), ...pages, ...ownFiles(manifest)];
  if (files?.every(([path, content]) => hasBytes(join(options.out, path), content)) !== true) return undefined;
  if (loaded.isListStale) {
    await updateInputs(loaded, state, store);
    await state.commit(digest);
  }
  return manifest;
}

/** Ends a build: updates the state, writes all files except pages, removes outdated files, and completes the output. */
import { dirname, join } from 'node:path';
import type { Log } from '../cli/log.ts';
import type { Manifest } from '../contract/schemas.ts';
import { explainFiles } from '../disk/fileErrors.ts';
import { readRegularFile } from '../disk/regularFile.ts';
import { syncFile, syncFileSystem, syncFolder } from '../disk/sync.ts';
import { int } from '../duckdb/store.ts';
import type { Loaded } from '../input/loadInput.ts';
import { writeChanges } from '../lists/changes.sql.ts';
import { writeSearchFiles } from '../lists/searchFiles.sql.ts';
import { writeDigests } from '../output/digests.ts';
import { filesOfStatistics, manifestFile, manifestOf, ownFiles } from '../output/manifest.ts';
import { digestOf, finishOutput } from '../output/outputFolder.ts';
import { lastNoteTime, noteTime, withNote } from '../output/signingKeys.ts';
import { statsDocuments } from '../output/stats/statsDocuments.ts';
import { writeStats } from '../output/stats/statsFiles.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { type PublishedRows, publishRows } from '../rows/publishRows.ts';
import { siteAssets } from '../site/assets.ts';
import { type BuildOptions, type OpenBuild, throwIfChanged } from './buildOptions.ts';
import type { BuildResult } from './buildReport.ts';
import { outdatedFiles, removeOutdated } from './removeOutdated.ts';
import { DiskSink } from './render/diskSink.ts';
import type { FileSink } from './render/pageFiles.ts';
import { listEtchings } from './state/knownEtchings.ts';
import { type BlockChanges, updateBlocks, updateInputs, updateRunes } from './state/updateState.ts';
import { type WrittenArchive, writeArchive } from './writeArchive.ts';
import type { Rendered } from './writeChangedPages.ts';

/** Updates the tables of the state. They change only in memory until `commit`. Returns the changes since the last build. */
async function updateState({ options, state, store }: OpenBuild, loaded: Loaded, rendered: Rendered) {
  const before = state.whyFull === undefined ? await listEtchings(state, store) : undefined;
  const blocks = await updateBlocks(rendered.blocks, loaded, options.site.layout, options.limits, state, store);
  await updateInputs(loaded, state, store);
  const changed = await updateRunes(loaded, state, store);
  return { blocks, etchings: { before, now: await listEtchings(state, store), changed } };
}

type Updated = Awaited<ReturnType<typeof updateState>>;

/** Ends a dry run. Updates a state in memory and makes all files, only to count them. */
export async function finishDryRun(build: OpenBuild, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, state, store } = build;
  const updated = await updateState(build, loaded, rendered);
  const sink = { file: () => undefined };
  const archive = await archiveOf(build, loaded, rendered, updated, sink);
  await changesOf(build, loaded, sink);
  const manifest = await manifestOf(options.site, options.siteUrl, loaded, archive, updated.etchings.now, state, store);
  return { manifest, kept: 0, othersWritten: 0, removed: 0, blocks: updated.blocks.counts, wasFull: true };
}

/**
 * Does everything after the pages, in this order: other files, manifest, removals, state, and the marker that the output is finished. The
 * manifest precedes the removals, so that a reader that misses a removed file finds the new manifest. Each part is on the disk before the
 * next part begins, so a power cut does no more harm than a kill: the next build completes the output. DuckDB syncs the state.
 */
export async function finishBuild(build: OpenBuild, loaded: Loaded, rendered: Rendered): Promise<BuildResult> {
  const { options, output, store, state, progress, log } = build;
  const { out, site, siteUrl } = options;
  // The manifest counts the files of the archive. `othersWritten` does not.
  const [sink, archived] = [new DiskSink(out), new DiskSink(out)];
  progress.watch('finish', () => (sink.files === 0 ? 'updating the state' : { done: sink.files + archived.files, what: 'other files' }));
  return explainFiles(async () => {
    const updated = await updateState(build, loaded, rendered);
    const { blocks, etchings } = updated;
    const { outdated, why: whyNoRows } = await writeDataFiles(build, loaded, blocks, sink);
    const outdatedChanges = await changesOf(build, loaded, sink);
    const outdatedSearch = await writeSearchFiles(out, etchings, state.runeCounts, sink, store);
    const archive = await archiveOf(build, loaded, rendered, updated, archived);
    const unsigned = await manifestOf(site, siteUrl, loaded, archive, etchings.now, state, store);
    const manifest = options.keys.length === 0 ? unsigned : signed(unsigned, loaded, options, log);
    const others = [...outdatedSearch, ...outdatedChanges, ...outdatedFiles(out, archive)];
    throwIfChanged(loaded, options);
    const ofStatistics = filesOfStatistics(manifest, (path) => readRegularFile(join(out, path)));
    // Pages come after the scripts and styles that they need.
    for (const [path, content] of [...siteAssets(), ...ofStatistics, ...ownFiles(manifest)]) {
      // The manifest is the last file. Syncs all others before it, so that after a power cut, a new manifest never describes lost pages.
      if (path === MANIFEST_PATH) await syncPages(options, log);
      sink.file(path, content);
    }
    syncFile(join(out, MANIFEST_PATH));
    syncFolder(dirname(join(out, MANIFEST_PATH)));

    const isFull = state.whyFull !== undefined;
    const changed = isFull ? undefined : { old: blocks.old, transactions: loaded.transactions };
    const removed = output.isOurs
      ? await removeOutdated({ root: out, site, state, store }, isFull ? others : [...outdated, ...others], changed)
      : 0;
    if (removed > 0) await syncPages(options, undefined);

    await state.commit(digestOf(manifestFile(manifest)[1]));

    finishOutput(out);

    const pages = rendered.blocks.reduce((sum, { files }) => sum + files, 0) - rendered.kept;
    return {
      manifest,
      kept: manifest.files - pages - (archived.files - archived.kept),
      othersWritten: sink.files - sink.kept,
      removed,
      blocks: blocks.counts,
      whyNoRows,
      wasFull: isFull,
    };
  });
}

function signed(manifest: Manifest, { network = '-' }: Loaded, { out, clock, keys }: BuildOptions, log: Log): Manifest {
  const [now, last] = [clock(), lastNoteTime(out)];
  const time = noteTime(now, last);
  if (last !== undefined && noteTime(now, undefined) < last)
    log.notice(
      `the clock is behind the last signature (${last}): signing as of ${time}, because clients refuse older times. Check the clock`,
    );
  return withNote(manifest, { network, time }, keys);
}

async function syncPages({ out, sync }: BuildOptions, log: Log | undefined): Promise<void> {
  const problem = sync ? await syncFileSystem(out) : undefined;
  if (problem !== undefined)
    log?.notice(`the pages cannot be synced to the disk (${problem}); after a power cut within the next minute, build with --full`);
}

/** Writes digests, stats and rows of changed blocks. Returns the paths of files that an incremental build no longer needs. */
async function writeDataFiles(build: OpenBuild, loaded: Loaded, blocks: BlockChanges, sink: DiskSink): Promise<PublishedRows> {
  const { options, state, store, scratch } = build;
  const { out, site, siteUrl } = options;
  const digests = await writeDigests(blocks.heights, state, sink, store);
  const stats = await writeStats(site.dialect, state, blocks.replaced, sink, options.limits, store);
  for (const [path, content] of await statsDocuments(site.dialect, siteUrl, state, store)) sink.file(path, content);
  const rows = await publishRows({ out, scratch, sink, limits: options.limits }, loaded, state, store);
  return { ...rows, outdated: [digests, stats, rows.outdated].flat() };
}

const changesOf = ({ options, state, store }: OpenBuild, loaded: Loaded, sink: Pick<FileSink, 'file'>): Promise<string[]> => {
  const { out, site, limits } = options;
  return writeChanges({ out, sink, dialect: site.dialect, limits }, loaded, state, store);
};

/** Makes the archive of all blocks, and passes its new files to `sink`. Returns undefined if the build has no archive. */
async function archiveOf(
  { options, state, store, old, scratch }: OpenBuild,
  input: Loaded,
  { blocks }: Rendered,
  { blocks: changes, etchings }: Updated,
  sink: Pick<FileSink, 'file'>,
): Promise<WrittenArchive | undefined> {
  const { tip, first } = await store.row(
    `SELECT coalesce((SELECT block_height FROM ${state.tip}), -1) AS tip, coalesce(min(block_height), 0) AS first FROM ${state.blocks}`,
    { tip: int, first: int },
  );
  const spooled = new Map(blocks.flatMap((block) => (block.spooled === undefined ? [] : [[block.height, block.spooled] as const])));
  const replaced = new Set(changes.heights);
  // In layout `files`, the levels of lists depend on the lowest block (levelRanges in format/levels.ts).
  const { site, lists: hasActivity, objectSize, limits } = options;
  const lowest = site.layout === 'files' && hasActivity ? first : undefined;
  const form = { site, hasActivity, scratch, pages: old };
  const archived = { spooled, replaced, tip, lowest, objectSize, limits };
  return writeArchive(form, archived, { state, input, changes }, etchings, old, sink, store);
}

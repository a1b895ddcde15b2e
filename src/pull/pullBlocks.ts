/**
 * Pulls rows of another mirror into the input folder. Compares the pulled files with the mirror and fetches the
 * differences, in rounds, until a round finds none.
 */
import { join } from 'node:path';
import { inParallel } from '../atOnce.ts';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import { joinRuns, type LastRead } from '../contract/sources.ts';
import type { Store } from '../duckdb/store.ts';
import { BuildError } from '../errors.ts';
import type { Extent } from './blockSource.ts';
import { updateBlocksFile } from './blocksFile.ts';
import type { Heights } from './heightRange.ts';
import type { RowsSource } from './mirror/rows/rowsSource.ts';
import { isStale, plan, type WantedBlocks } from './planBlocks.ts';
import { listPulledFiles, PULLED_FOLDER, type PulledFile } from './pulledFiles.ts';
import { findStale } from './replacedBlocks.ts';
import { removeFiles } from './writePulled.ts';

export interface PullOptions {
  /** The input folder. Files are written to its subfolder `pulled`. */
  readonly to: string;
  readonly wanted: WantedBlocks;
  /**
   * Number of last blocks that each pull compares with the source, and replaces if they changed. Older blocks are
   * settled.
   */
  readonly confirmations: number;
  /** Maximum number of parallel requests. A pull from a node also reads this many blocks ahead. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

export interface PullResult {
  /** Number of fetched blocks, including blocks without records. */
  readonly blocks: number;
  readonly records: number;
  /** Total size of the files that were written, in bytes. */
  readonly bytes: number;
  /** Number of pulled blocks that changed at the source. */
  readonly replaced: number;
  /** Ranges of heights that the pulled files cover, ascending. */
  readonly heights: readonly Heights[];
}

/** Maximum number of rounds. Ends a pull whose source gets new blocks faster than they are fetched. */
const MOST_ROUNDS = 5;

/**
 * Pulls once. Throws an InputError if a settled block differs, and a BuildError if the source or the disk fails.
 * Fetched files stay, so that the next pull continues from there.
 */
export async function pull(options: PullOptions, source: RowsSource, store: Store, log: Log, progress: Progress): Promise<PullResult> {
  const folder = join(options.to, PULLED_FOLDER);
  const totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };
  const fetched: Heights[] = [];
  let empty: Heights[] = [];
  let tip: LastRead | undefined;
  for (let round = 0; ; round += 1) {
    options.signal.throwIfAborted();
    const has = await source.look();
    const files = listPulledFiles(folder);
    const stale = await findStale(options.confirmations, source, has, files, folder, store);
    const { range, units, outgrown } = plan({ ...options, source: has, files, stale: stale.heights });
    if (round === 0) announce(source, has, range, units, stale.replaced, log);
    if (round === MOST_ROUNDS && units.length > 0)
      throw new BuildError(`${source.name} changed during each of ${MOST_ROUNDS} rounds`, [
        'Run the same command again: it continues from here.',
      ]);
    removeFiles(folder, stale.orphans);
    totals.replaced += stale.replaced;
    if (round === 0 || units.length > 0) {
      await source.prepare(highest(files) > has.last);
    }
    const written = new Set<string>();
    const all = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
    let done = 0;
    progress.begin('fetch');
    const fetchUnit = async (unit: Heights) => {
      options.signal.throwIfAborted();
      const { path, records, bytes } = await source.fetch(unit);
      written.add(path);
      fetched.push(unit);
      const within = files.filter((file) => file.path !== path && unit.first <= file.first && file.last <= unit.last);
      removeFiles(folder, within);
      done += unit.last - unit.first + 1;
      totals.records += records;
      totals.bytes += bytes;
      progress.show(done, all, 'blocks');
    };
    // The order lets a later pull continue if this pull is killed:
    // 1. Replace changed blocks, ascending, before any higher block is fetched. findStale() compares only the last
    //    blocks up to the highest pulled block, so a higher block could hide a changed one from the next pull.
    // 2. Fetch the lowest missing block alone, because the next pull begins at the lowest pulled block.
    // 3. Fetch all others in parallel.
    const repairs = units.filter((unit) => isStale(unit, stale.heights));
    await inParallel(repairs, 1, fetchUnit);
    const replaced = files.filter((file) => !written.has(file.path) && isStale(file, stale.heights));
    removeFiles(folder, replaced);
    const others = units.filter((unit) => !repairs.includes(unit));
    await inParallel(others.slice(0, 1), 1, fetchUnit);
    await inParallel(others.slice(1), options.concurrency, fetchUnit);
    removeFiles(folder, outgrown);
    totals.blocks += all;
    empty = readWithin(source, range);
    tip = source.tip?.height === range.last ? source.tip : undefined;
    if (units.length === 0) break;
  }
  const heights = rangesOf(listPulledFiles(folder));
  if (heights.length > 0) {
    const facts = tip === undefined ? {} : source.facts;
    updateBlocksFile(folder, source.origin, fetched, [...heights, ...empty], { tip, ...facts });
  }
  return { ...totals, heights };
}

/** Returns the parts of a range that the source has read. Heights of these parts without a file have no records. */
const readWithin = (source: RowsSource, { first, last }: Heights): Heights[] =>
  source.heightsRead.flatMap((run) => {
    const part = { first: Math.max(run.first, first), last: Math.min(run.last, last) };
    return part.first <= part.last ? [part] : [];
  });

const highest = (files: readonly PulledFile[]): number => files.reduce((top, file) => Math.max(top, file.last), -1);

function announce(source: RowsSource, has: Extent, range: Heights, units: readonly Heights[], replaced: number, log: Log): void {
  const blocks = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
  const todo = blocks === 0 ? 'nothing to fetch' : `${count(blocks, 'block')} to fetch`;
  const changed = replaced === 0 ? '' : `, ${replaced} pulled blocks changed`;
  log.info('looked', `${source.name} has blocks up to ${has.last}: ${todo}${changed}.`, {
    source: source.name,
    tip: has.last,
    first: range.first,
    last: range.last,
    blocks,
    replaced,
  });
  if (range.first > range.last) log.notice(`the source has none of the wanted blocks: its blocks are ${has.first}..${has.last}`);
}

const rangesOf = (files: readonly PulledFile[]): Heights[] =>
  joinRuns(files.map(({ first, last }) => [first, last])).map(([first, last]) => ({ first, last }));

/**
 * Brings blocks from a source into the input folder: look what the source has and what is held, fetch what differs, and look again until nothing does.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import { InputError } from '../errors.ts';
import type { Store } from '../store/duckdb.ts';
import { type BlockIdentity, isSameBlock } from './block.ts';
import { type HeldFile, listHeld, PULLED_FOLDER, readIdentities } from './held.ts';
import { type Heights, heightsOf, plan, type WantedBlocks } from './plan.ts';
import type { Extent, Source } from './source.ts';
import { writeError } from './write.ts';

export interface PullOptions {
  /** The input folder; files go into its folder `pulled`. */
  readonly to: string;
  readonly wanted: WantedBlocks;
  /** This many of the last blocks are compared at every pull, and replaced when they changed. */
  readonly confirmations: number;
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

export interface PullResult {
  /** Blocks fetched, those without records included. */
  readonly blocks: number;
  readonly records: number;
  /** Of the files that were written. */
  readonly bytes: number;
  /** Blocks that took the place of others. */
  readonly replaced: number;
  /** Runs of heights that are held now. */
  readonly held: readonly Heights[];
}

/** A tip that moves faster than blocks are fetched is left to the next pull. */
const MOST_ROUNDS = 5;

/**
 * Pulls once. Throws an InputError when the source disagrees on a settled block, and a BuildError when the source or the disk fails; what was fetched
 * stays, and the next pull goes on from there.
 */
export async function pull(options: PullOptions, source: Source, store: Store, log: Log, progress: Progress): Promise<PullResult> {
  const folder = join(options.to, PULLED_FOLDER);
  const totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };
  for (let round = 0; ; round += 1) {
    options.signal.throwIfAborted();
    const has = await source.look();
    const held = listHeld(folder);
    const stale = await findStale(options, source, has, held, folder, store);
    const { range, units, outgrown } = plan({ ...options, source: has, perFile: source.perFile, held, stale: stale.heights });
    if (round === 0) announce(source, has, range, units, stale.heights, log);
    remove(folder, [...outgrown, ...stale.orphans]);
    totals.replaced += stale.heights.size;
    if (units.length === 0) break;
    if (round === MOST_ROUNDS) {
      log.notice(`the source changed during each of ${MOST_ROUNDS} rounds, so some of its last blocks are left to the next pull`);
      break;
    }
    const all = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
    let done = 0;
    const fetchUnit = async (unit: Heights) => {
      options.signal.throwIfAborted();
      const { path, records, bytes } = await source.fetch(unit);
      const replaced = held.filter((file) => file.path !== path && unit.first <= file.first && file.last <= unit.last);
      remove(folder, replaced);
      done += unit.last - unit.first + 1;
      totals.records += records;
      totals.bytes += bytes;
      progress.show(done, all, 'blocks');
    };
    // Where the held blocks begin is where the next pull begins, so the lowest is there before any other, whenever this one is killed.
    await inParallel(units.slice(0, 1), 1, fetchUnit);
    await inParallel(units.slice(1), options.concurrency, fetchUnit);
    totals.blocks += all;
    // What remains of a stale file of many blocks that was fetched block by block.
    remove(
      folder,
      held.filter((file) => heightsOf(file).some((height) => stale.heights.has(height)) && !isFetched(file, units)),
    );
  }
  return { ...totals, held: runsOf(listHeld(folder)) };
}

const isFetched = (file: HeldFile, units: readonly Heights[]): boolean =>
  units.some((unit) => unit.first === file.first && unit.last === file.last);

interface Stale {
  /** Held blocks that the source has otherwise now. */
  readonly heights: ReadonlySet<number>;
  /** Files of blocks that the source has no more, on a branch of the chain that it left: above its tip, or without records now. */
  readonly orphans: readonly HeldFile[];
}

/** Compares what is held with the source: its last blocks, or all where the source tells digests. */
async function findStale(
  { confirmations }: PullOptions,
  source: Source,
  has: Extent,
  held: readonly HeldFile[],
  folder: string,
  store: Store,
): Promise<Stale> {
  const common = held.filter((file) => file.first <= has.last && file.last >= has.first);
  const top = Math.min(has.last, Math.max(...common.map((file) => file.last), -1));
  // One block more than may change: it tells whether the chains part further down.
  const lowest = top - confirmations;
  const different: number[] = [];
  for (const file of common) {
    const heights = heightsOf(file).filter(
      (h) => h >= has.first && h <= top && (h >= lowest || (source.knowsDigests && file.digest !== undefined)),
    );
    if (heights.length === 0) continue;
    const theirs = await source.identities(heights);
    const ours = heldIdentities(file, theirs) ?? (await readIdentities(folder, file, heights, store));
    for (const height of heights) {
      const [a, b] = [ours.get(height), theirs.get(height)];
      if (a === undefined || b === undefined || !isSameBlock(a, b)) different.push(height);
    }
  }
  const deepest = Math.min(...different);
  if (deepest <= lowest) {
    throw new InputError(
      `block ${deepest} is held, and ${source.name} has another one at this height, though ${confirmations} blocks came after it`,
      [
        'Either the source or what is held is wrong, or the chain was reorganised deeper than usual.',
        `To take the source's blocks, pull with --confirmations ${top - deepest + 1} or more, or remove files from ${folder}.`,
      ],
    );
  }
  const gone = new Set(different.filter((height) => !has.has(height)));
  const orphans = held.filter((file) => (different.length > 0 && file.first > has.last) || gone.has(file.first));
  return { heights: new Set(different), orphans };
}

/** What the name of the file tells, when that is enough for the comparison. */
function heldIdentities(file: HeldFile, theirs: ReadonlyMap<number, BlockIdentity>): Map<number, BlockIdentity> | undefined {
  if (file.digest === undefined || theirs.get(file.first)?.digest === undefined) return undefined;
  return new Map([[file.first, { hash: '', records: 0, digest: file.digest }]]);
}

function announce(source: Source, has: Extent, range: Heights, units: readonly Heights[], stale: ReadonlySet<number>, log: Log): void {
  const blocks = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
  const todo = blocks === 0 ? 'nothing to fetch' : `${count(blocks, 'block')} to fetch`;
  const changed = stale.size === 0 ? '' : `, ${stale.size} of them replaced by the chain`;
  log.info('looked', `${source.name} has blocks up to ${has.last}: ${todo}${changed}.`, {
    source: source.name,
    tip: has.last,
    first: range.first,
    last: range.last,
    blocks,
    replaced: stale.size,
  });
  if (range.first > range.last) log.notice(`the source has none of the wanted blocks: its blocks are ${has.first}..${has.last}`);
}

/** Runs `work` on all items, so many at once. After the first failure none is begun any more; it is thrown when all have ended. */
async function inParallel<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  let failure: { readonly error: unknown } | undefined;
  const worker = async () => {
    for (const item of waiting) {
      if (failure !== undefined) return;
      try {
        await work(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (failure !== undefined) throw failure.error;
}

function remove(folder: string, files: readonly HeldFile[]): void {
  try {
    for (const { path } of files) rmSync(join(folder, path), { force: true });
  } catch (error) {
    throw writeError(folder, error);
  }
}

/** Consecutive heights of files, ascending. */
function runsOf(files: readonly HeldFile[]): Heights[] {
  const runs: { first: number; last: number }[] = [];
  for (const { first, last } of files) {
    const run = runs.at(-1);
    if (run !== undefined && first <= run.last + 1) run.last = Math.max(run.last, last);
    else runs.push({ first, last });
  }
  return runs;
}

/**
 * Brings blocks from a source into the input folder: look what the source has and what is held, fetch what differs, and look again until nothing does.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import { BuildError, InputError } from '../errors.ts';
import { CHECKSUM_ENDING } from '../input/checksums.ts';
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
    if (round === 0) announce(source, has, range, units, stale.replaced, log);
    if (round === MOST_ROUNDS && units.length > 0) {
      throw new BuildError(`${source.name} changed during each of ${MOST_ROUNDS} rounds`, ['The same command goes on from here.']);
    }
    remove(folder, stale.orphans);
    totals.replaced += stale.replaced;
    if (round === 0 || units.length > 0) await source.prepare(highest(held) > has.last);
    const written = new Set<string>();
    const all = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
    let done = 0;
    progress.begin('fetch');
    const fetchUnit = async (unit: Heights) => {
      options.signal.throwIfAborted();
      const { path, records, bytes } = await source.fetch(unit);
      written.add(path);
      const within = held.filter((file) => file.path !== path && unit.first <= file.first && file.last <= unit.last);
      remove(folder, within);
      done += unit.last - unit.first + 1;
      totals.records += records;
      totals.bytes += bytes;
      progress.show(done, all, 'blocks');
    };
    // First what takes the place of other blocks, ascending: which these are is told by the highest block held, so none may be fetched above it before all of
    // them are right. Then the lowest alone: where the held blocks begin is where the next pull begins. So a pull may be killed at any moment.
    const repairs = units.filter((unit) => heightsOf(unit).some((height) => stale.heights.has(height)));
    await inParallel(repairs, 1, fetchUnit);
    remove(
      folder,
      held.filter((file) => !written.has(file.path) && heightsOf(file).some((height) => stale.heights.has(height))),
    );
    const others = units.filter((unit) => !repairs.includes(unit));
    await inParallel(others.slice(0, 1), 1, fetchUnit);
    await inParallel(others.slice(1), options.concurrency, fetchUnit);
    remove(folder, outgrown);
    totals.blocks += all;
    if (units.length === 0) break;
  }
  return { ...totals, held: runsOf(listHeld(folder)) };
}

const highest = (held: readonly HeldFile[]): number => held.reduce((top, file) => Math.max(top, file.last), -1);

interface Stale {
  /** Held blocks that the source has otherwise now, and those that two files hold. */
  readonly heights: ReadonlySet<number>;
  /** How many of them the chain replaced. */
  readonly replaced: number;
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
  const heights = held.flatMap((file) => heightsOf(file)).filter((height) => height >= has.first && height <= has.last);
  const top = heights.reduce((most, height) => Math.max(most, height), -1);
  // Besides those that may change, the highest one that may not: it tells whether the chains part further down.
  const settled = heights.filter((height) => height <= top - confirmations).reduce((most, height) => Math.max(most, height), -1);
  const compared = (height: number) => height >= has.first && height <= top && (height >= settled || source.knowsDigests);
  const compare = async (file: HeldFile, asked: readonly number[]): Promise<Map<number, Comparison>> => {
    const theirs = await source.identities(asked);
    const withRows = [...theirs.values()].some(({ rows }) => rows !== undefined);
    const ours = heldIdentities(file, theirs) ?? (await readIdentities(folder, file, asked, withRows, store));
    return new Map(asked.map((height) => [height, comparisonOf(ours.get(height), theirs.get(height))]));
  };
  const different: number[] = [];
  for (const file of held) {
    const asked = heightsOf(file).filter(compared);
    if (asked.length === 0) continue;
    for (const [height, comparison] of await compare(file, asked)) if (comparison === 'other') different.push(height);
  }
  const deepest = different.reduce((least, height) => Math.min(least, height), Number.POSITIVE_INFINITY);
  if (deepest <= settled) {
    const fileAt = new Map(held.flatMap((file) => heightsOf(file).map((height) => [height, file])));
    const below = [...new Set(heights)].filter((height) => height <= deepest).sort((a, b) => a - b);
    const fork = source.knowsDigests
      ? deepest
      : await findFork(below, async (height) => {
          const file = fileAt.get(height);
          return file === undefined ? 'empty' : ((await compare(file, [height])).get(height) ?? 'empty');
        });
    throw new InputError(
      `block ${fork} differs between ${folder} and ${source.name}; it is ${count(top - fork + 1, 'block')} deep, and this pull replaces only the last ${confirmations}`,
      [
        `If the chain was reorganised, pull with --confirmations ${top - fork + 1} or more.`,
        `If it was not, check --from; or remove the files of block ${fork} and above from ${folder}, and pull again.`,
      ],
    );
  }
  const gone = new Set(different.filter((height) => !has.has(height)));
  const stale = new Set([...different, ...heldTwice(heights)]);
  const cut = held.find((file) => file.first < has.first && heightsOf(file).some((height) => stale.has(height)));
  if (cut !== undefined) {
    throw new InputError(`${join(folder, cut.path)} must be fetched again, and ${source.name} begins only with block ${has.first}`, [
      'Pull from where it came from, or remove it.',
    ]);
  }
  const orphans = held.filter(
    (file) => (different.length > 0 && file.first > has.last) || heightsOf(file).every((height) => gone.has(height)),
  );
  return { heights: stale, replaced: different.length, orphans };
}

/** What a held block is to the source's at its height. Two blocks without records are alike on every chain, which tells nothing. */
type Comparison = 'same' | 'other' | 'empty';

function comparisonOf(ours: BlockIdentity | undefined, theirs: BlockIdentity | undefined): Comparison {
  if (ours === undefined || theirs === undefined || !isSameBlock(ours, theirs)) return 'other';
  return ours.hash === '' && theirs.records === 0 ? 'empty' : 'same';
}

/**
 * The lowest of these ascending heights from which the source's chain is another one, when the block at the last of them is. It compares few
 * blocks: first close ones, because most reorganisations are shallow, and then by halves.
 */
async function findFork(heights: readonly number[], compare: (height: number) => Promise<Comparison>): Promise<number> {
  let [same, other] = [-1, heights.length - 1];
  for (let step = 1; other - same > 1; step *= 2) {
    const probe = Math.max(other - step, Math.floor((same + other) / 2));
    let at = probe;
    let comparison: Comparison = 'empty';
    for (; at > same; at -= 1) {
      comparison = await compare(heights[at] ?? 0);
      if (comparison !== 'empty') break;
    }
    if (comparison === 'other') other = at;
    else same = probe;
  }
  return heights[other] ?? 0;
}

/** Heights that are there twice: of a file and what was to take its place, when a pull was killed between them. */
function heldTwice(heights: readonly number[]): number[] {
  const seen = new Set<number>();
  return heights.filter((height) => seen.size === seen.add(height).size);
}

/** What the name of the file tells, when that is enough for the comparison. */
function heldIdentities(file: HeldFile, theirs: ReadonlyMap<number, BlockIdentity>): Map<number, BlockIdentity> | undefined {
  if (file.digest === undefined || theirs.get(file.first)?.digest === undefined) return undefined;
  return new Map([[file.first, { hash: '', records: 0, digest: file.digest }]]);
}

function announce(source: Source, has: Extent, range: Heights, units: readonly Heights[], replaced: number, log: Log): void {
  const blocks = units.reduce((sum, unit) => sum + unit.last - unit.first + 1, 0);
  const todo = blocks === 0 ? 'nothing to fetch' : `${count(blocks, 'block')} to fetch`;
  const changed = replaced === 0 ? '' : `, ${replaced} held ones are others now`;
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
    for (const { path } of files) {
      for (const ending of ['', CHECKSUM_ENDING]) rmSync(join(folder, `${path}${ending}`), { force: true });
    }
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

/**
 * Pulls blocks from a source into the input folder. Compares the pulled files with the source and fetches the
 * differences, until there are none.
 */

import { join } from 'node:path';
import { count, type Log } from '../cli/log.ts';
import type { Progress } from '../cli/progress.ts';
import { joinRuns, type LastRead } from '../contract/sources.ts';
import { BuildError, InputError } from '../errors.ts';
import type { Store } from '../store/duckdb.ts';
import { type BlockIdentity, isSameBlock } from './block.ts';
import { updateBlocksFile } from './blocksFile.ts';
import { pullEtchings } from './etchings.ts';
import { type Heights, heightsOf } from './heights.ts';
import { finishJoins, joinSettled, splitFile } from './joined.ts';
import { isStale, plan, type WantedBlocks } from './plan.ts';
import { EMPTY, isJoined, joinedDigest, listPulledFiles, PULLED_FOLDER, type PulledFile, readIdentities } from './pulledFiles.ts';
import type { Extent, Source } from './source.ts';
import { hasChecksum, removeFiles } from './write.ts';

export interface PullOptions {
  /** The input folder. Files are written to its subfolder `pulled`. */
  readonly to: string;
  readonly wanted: WantedBlocks;
  /** Number of the last blocks that each pull compares, and replaces if they changed. Older blocks are settled. */
  readonly confirmations: number;
  /** Most parallel requests. A pull from a node also reads as many blocks ahead. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

export interface PullResult {
  /** Number of fetched blocks, including blocks without records. */
  readonly blocks: number;
  readonly records: number;
  /** Total size of the files that were written. */
  readonly bytes: number;
  /** Number of pulled blocks that changed at the source. */
  readonly replaced: number;
  /** Ranges of heights that the pulled files cover, ascending. */
  readonly heights: readonly Heights[];
}

/** Most rounds per pull. Ends a pull whose source gets new blocks faster than they are fetched. */
const MOST_ROUNDS = 5;

/**
 * Pulls once. Throws an InputError if a settled block differs, and a BuildError if the source or the disk fails.
 * Fetched files stay, so that the next pull continues from there.
 */
export async function pull(options: PullOptions, source: Source, store: Store, log: Log, progress: Progress): Promise<PullResult> {
  const folder = join(options.to, PULLED_FOLDER);
  const totals = { blocks: 0, records: 0, bytes: 0, replaced: 0 };
  const fetched: Heights[] = [];
  let empty: Heights[] = [];
  let tip: LastRead | undefined;
  finishJoins(folder);
  for (let round = 0; ; round += 1) {
    options.signal.throwIfAborted();
    const has = await source.look();
    let files = listPulledFiles(folder);
    let stale = await findStale(options, source, has, files, folder, store);
    // Splits joined files, so that their unchanged blocks need not be fetched again.
    const cut = files.filter((file) => isJoined(file) && isCut(file, stale, has));
    if (cut.length > 0) {
      for (const file of cut) await splitFile(folder, file);
      files = listPulledFiles(folder);
      stale = await findStale(options, source, has, files, folder, store);
    }
    const { range, units, outgrown } = plan({ ...options, source: has, perFile: source.perFile, files, stale: stale.heights });
    if (round === 0) announce(source, has, range, units, stale.replaced, log);
    if (round === MOST_ROUNDS && units.length > 0) {
      throw new BuildError(`${source.name} changed during each of ${MOST_ROUNDS} rounds`, [
        'Run the same command again: it continues from here.',
      ]);
    }
    removeFiles(folder, stale.orphans);
    totals.replaced += stale.replaced;
    if (round === 0 || units.length > 0) {
      const isBehind = highest(files) > has.last;
      await source.prepare?.(isBehind);
      await updateRunes(source, has, files, { isBehind, folder, ...options }, store, units.length > 0 ? log : undefined, progress);
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
    // 1. Replace changed blocks, ascending. findStale() compares the last blocks below the highest pulled block, so a
    //    block above it must not be fetched while a changed block remains.
    // 2. Fetch the lowest missing block alone, because the next pull begins at the first pulled block.
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
    if (units.length === 0) {
      await joinSettled(folder, has.last - options.confirmations, options.signal, progress);
      break;
    }
  }
  const heights = rangesOf(listPulledFiles(folder));
  if (heights.length > 0) updateBlocksFile(folder, source.origin, fetched, [...heights, ...empty], tip);
  return { ...totals, heights };
}

/** Updates the table of runes with the source's etchings, if the source has them. Logs nothing without `log`. */
async function updateRunes(
  source: Source,
  has: Extent,
  files: readonly PulledFile[],
  { isBehind, folder, confirmations }: PullOptions & { readonly isBehind: boolean; readonly folder: string },
  store: Store,
  log: Log | undefined,
  progress: Progress,
): Promise<void> {
  if (source.etchings === undefined) return;
  // Pulled rows of a database refer to the database's runes.
  const keepsOthers = isBehind || files.some(({ digest }) => digest === undefined);
  const runes = await pullEtchings(source.etchings, { folder, settled: has.last - confirmations, keepsOthers }, store, progress);
  if (runes === undefined) log?.info('runes', `${source.name} has no etchings, so builds of its blocks have none.`, { runes: 0 });
  else if (runes > 0) log?.info('runes', `Fetched ${count(runes, 'etching')}.`, { runes });
}

/** Returns the heights of a range that the source has read. Heights without a file have no records. */
const readWithin = (source: Source, { first, last }: Heights): Heights[] =>
  (source.heightsRead ?? []).flatMap((run) => {
    const part = { first: Math.max(run.first, first), last: Math.min(run.last, last) };
    return part.first <= part.last ? [part] : [];
  });

/** True for a file that has blocks to keep and blocks that this pull replaces or removes. */
const isCut = (file: PulledFile, { heights, replaced }: Stale, { last }: Extent): boolean =>
  isStale(file, heights) || (replaced > 0 && file.first <= last && last < file.last);

const highest = (files: readonly PulledFile[]): number => files.reduce((top, file) => Math.max(top, file.last), -1);

interface Stale {
  /**
   * Heights of pulled blocks that must be fetched again: blocks that differ from the source's, that are in two files,
   * or whose file lacks its checksum.
   */
  readonly heights: ReadonlySet<number>;
  /** Number of pulled blocks that differ from the source's. */
  readonly replaced: number;
  /** Files of blocks that a reorganisation removed: above the source's tip, or without records now. */
  readonly orphans: readonly PulledFile[];
}

/**
 * Compares pulled blocks with the source: only the last blocks, or all blocks if the source knows digests. Throws an
 * InputError if a settled block differs.
 */
async function findStale(
  { confirmations }: PullOptions,
  source: Source,
  has: Extent,
  files: readonly PulledFile[],
  folder: string,
  store: Store,
): Promise<Stale> {
  const heights = files.flatMap((file) => heightsOf(file)).filter((height) => height >= has.first && height <= has.last);
  const top = heights.reduce((most, height) => Math.max(most, height), -1);
  // The highest settled block is compared too, because a difference there means that the chains fork below it.
  const settled = heights.filter((height) => height <= top - confirmations).reduce((most, height) => Math.max(most, height), -1);
  const compared = (height: number) => height >= has.first && height <= top && (height >= settled || source.knowsDigests);
  const compare = async (file: PulledFile, asked: readonly number[]): Promise<Map<number, Comparison>> => {
    const theirs = await source.identities(asked);
    const withRows = [...theirs.values()].some(({ rows }) => rows !== undefined);
    const ours = identitiesInName(file, theirs) ?? (await readIdentities(folder, file, asked, withRows, store));
    return new Map(asked.map((height) => [height, comparisonOf(ours.get(height), theirs.get(height))]));
  };
  const different: number[] = [];
  for (const file of files) {
    // `different[0]` is the lowest block that differs, because heights ascend.
    if (source.knowsDigests && (different[0] ?? Number.POSITIVE_INFINITY) <= settled) break;
    const asked = heightsOf(file).filter(compared);
    if (asked.length === 0) continue;
    for (const [height, comparison] of await compare(file, asked)) if (comparison === 'other') different.push(height);
  }
  const deepest = different.reduce((least, height) => Math.min(least, height), Number.POSITIVE_INFINITY);
  if (deepest <= settled) {
    const fileAt = new Map(files.flatMap((file) => heightsOf(file).map((height) => [height, file])));
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
  const stale = new Set([...different, ...inTwoFiles(heights), ...withoutChecksum(files, folder, has)]);
  const cut = files.find((file) => !isJoined(file) && file.first < has.first && isStale(file, stale));
  if (cut !== undefined) {
    throw new InputError(`${join(folder, cut.path)} must be fetched again, but ${source.name} begins at block ${has.first}`, [
      'Pull from the source of this file, or remove the file.',
    ]);
  }
  const orphans = files.filter(
    (file) => (different.length > 0 && file.first > has.last) || heightsOf(file).every((height) => gone.has(height)),
  );
  return { heights: stale, replaced: different.length, orphans };
}

/** Comparison of a pulled block with the source's. `empty`: neither has records, so nothing is proved. */
type Comparison = 'same' | 'other' | 'empty';

function comparisonOf(ours: BlockIdentity | undefined, theirs: BlockIdentity | undefined): Comparison {
  if (ours === undefined || theirs === undefined || !isSameBlock(ours, theirs)) return 'other';
  return ours.hash === '' && theirs.records === 0 ? 'empty' : 'same';
}

/**
 * Finds the lowest of these ascending heights whose block differs from the source's. The block at the last height must
 * differ. Searches the highest heights first, because most reorganisations are shallow, then by bisection.
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

/** Returns heights that are in two files, because a pull was killed before it removed the old file. */
function inTwoFiles(heights: readonly number[]): number[] {
  const seen = new Set<number>();
  return heights.filter((height) => seen.size === seen.add(height).size);
}

/** Returns the heights of ledger files without a checksum, because a pull was killed before it wrote the checksum. */
const withoutChecksum = (files: readonly PulledFile[], folder: string, has: Extent): number[] =>
  files
    .filter(({ path, digest }) => digest === undefined && !hasChecksum(join(folder, path)))
    .flatMap((file) => heightsOf(file))
    .filter((height) => height >= has.first && height <= has.last);

const digestOf = (block: BlockIdentity | undefined): string | undefined => block?.digest ?? (block?.records === 0 ? EMPTY : undefined);

/** Returns the identities of a file's blocks from the file name, if the digest in it is enough for the comparison. */
function identitiesInName(file: PulledFile, theirs: ReadonlyMap<number, BlockIdentity>): Map<number, BlockIdentity> | undefined {
  if (file.digest === undefined) return undefined;
  if (isJoined(file)) {
    const blocks = heightsOf(file).flatMap((height) => {
      const digest = digestOf(theirs.get(height));
      return digest === undefined ? [] : [{ height, digest }];
    });
    // If the digest differs, only the content of the file tells which blocks differ.
    const isSame = blocks.length > file.last - file.first && joinedDigest(blocks) === file.digest;
    return isSame ? new Map(theirs) : undefined;
  }
  if (theirs.get(file.first)?.digest === undefined) return undefined;
  return new Map([[file.first, { hash: '', records: 0, digest: file.digest }]]);
}

function announce(source: Source, has: Extent, range: Heights, units: readonly Heights[], replaced: number, log: Log): void {
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

/**
 * Runs `work` on all items, `atOnce` in parallel. After a failure starts no more, waits for running ones, and throws.
 */
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

const rangesOf = (files: readonly PulledFile[]): Heights[] =>
  joinRuns(files.map(({ first, last }) => [first, last])).map(([first, last]) => ({ first, last }));

/**
 * Finds the pulled blocks that a source has replaced or removed. A changed settled block is an error, not a
 * replacement.
 */
import { join } from 'node:path';
import { count } from '../cli/log.ts';
import type { Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { type BlockIdentity, isSameBlock } from './blockIdentity.ts';
import type { Extent, Source } from './blockSource.ts';
import { heightsOf } from './heightRange.ts';
import { isStale } from './planBlocks.ts';
import { EMPTY, isJoined, joinedDigest, type PulledFile, readIdentities } from './pulledFiles.ts';
import { hasChecksum } from './writePulled.ts';

export interface Stale {
  /**
   * Heights of pulled blocks that must be fetched again. Such a block differs from the source's block, is in two files,
   * or has a file without a checksum.
   */
  readonly heights: ReadonlySet<number>;
  /** Number of pulled blocks that differ from the source's. */
  readonly replaced: number;
  /**
   * Files of blocks that a reorganisation removed: the blocks are above the source's tip, or not listed there any more.
   */
  readonly orphans: readonly PulledFile[];
}

/**
 * Compares pulled blocks with the source: only the last blocks, or all blocks if the source knows digests. Throws an
 * InputError if a settled block differs.
 */
export async function findStale(
  confirmations: number,
  source: Source,
  has: Extent,
  files: readonly PulledFile[],
  folder: string,
  store: Store,
): Promise<Stale> {
  const heights = files.flatMap((file) => heightsOf(file)).filter((height) => height >= has.first && height <= has.last);
  const top = heights.reduce((most, height) => Math.max(most, height), -1);
  // Compares the highest settled block too. If this block differs, the chains fork below the blocks that this pull may
  // replace.
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
    // Stops comparing if a settled block differs, because this function then throws an error. `different[0]` is the
    // lowest of the differing blocks.
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
      `block ${fork} differs between ${folder} and ${source.name}; the last ${count(top - fork + 1, 'block')} would have to be replaced, but this pull replaces only the last ${confirmations}`,
      [
        `If the chain was reorganised, pull with --confirmations ${top - fork + 1} or more.`,
        `If it was not, check --from; or remove the files of block ${fork} and above from ${folder}, and pull again.`,
      ],
    );
  }
  const gone = new Set(different.filter((height) => !has.has(height)));
  const stale = new Set([...different, ...inTwoFiles(heights), ...withoutChecksum(files, folder, has)]);
  const cut = files.find((file) => !isJoined(file) && file.first < has.first && isStale(file, stale));
  if (cut !== undefined)
    throw new InputError(`${join(folder, cut.path)} must be fetched again, but ${source.name} begins at block ${has.first}`, [
      'Pull from the source of this file, or remove the file.',
    ]);
  const orphans = files.filter(
    (file) => (different.length > 0 && file.first > has.last) || heightsOf(file).every((height) => gone.has(height)),
  );
  return { heights: stale, replaced: different.length, orphans };
}

/**
 * Result of comparing a pulled block with the source's block. `empty`: neither block has records, so whether they are
 * the same is unknown.
 */
type Comparison = 'same' | 'other' | 'empty';

function comparisonOf(ours: BlockIdentity | undefined, theirs: BlockIdentity | undefined): Comparison {
  if (ours === undefined || theirs === undefined || !isSameBlock(ours, theirs)) return 'other';
  return ours.hash === '' && theirs.records === 0 ? 'empty' : 'same';
}

/**
 * Finds the lowest of these ascending heights whose block differs from the source's. The block at the last height must
 * differ. Searches from the top in growing steps, because most reorganisations are shallow, then by bisection.
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

/**
 * Returns the heights that are in two files. A pull leaves such files if it is killed before it removes the old file.
 */
function inTwoFiles(heights: readonly number[]): number[] {
  const seen = new Set<number>();
  return heights.filter((height) => seen.size === seen.add(height).size);
}

/**
 * Returns the heights of ledger files without a checksum. A pull leaves such a file if it is killed before it writes
 * the checksum.
 */
const withoutChecksum = (files: readonly PulledFile[], folder: string, has: Extent): number[] =>
  files
    .filter(({ path, digest }) => digest === undefined && !hasChecksum(join(folder, path)))
    .flatMap((file) => heightsOf(file))
    .filter((height) => height >= has.first && height <= has.last);

const digestOf = (block: BlockIdentity | undefined): string | undefined => block?.digest ?? (block?.records === 0 ? EMPTY : undefined);

/** Returns the identities of a file's blocks from the digest in the file's name, if this is enough to compare them. */
function identitiesInName(file: PulledFile, theirs: ReadonlyMap<number, BlockIdentity>): Map<number, BlockIdentity> | undefined {
  if (file.digest === undefined) return undefined;
  if (isJoined(file)) {
    const blocks = heightsOf(file).flatMap((height) => {
      const digest = digestOf(theirs.get(height));
      return digest === undefined ? [] : [{ height, digest }];
    });
    // If the digest differs, the caller must read the file to find out which blocks differ.
    const isSame = blocks.length > file.last - file.first && joinedDigest(blocks) === file.digest;
    return isSame ? new Map(theirs) : undefined;
  }
  if (theirs.get(file.first)?.digest === undefined) return undefined;
  return new Map([[file.first, { hash: '', records: 0, digest: file.digest }]]);
}

/**
 * Finds the pulled blocks that a source has replaced or removed. A changed settled block is an error, not a
 * replacement.
 */
import { join } from 'node:path';
import { count } from '../cli/log.ts';
import type { Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import type { BlockIdentity } from './blockIdentity.ts';
import type { Extent } from './blockSource.ts';
import { heightsOf } from './heightRange.ts';
import type { RowsSource } from './mirror/rows/rowsSource.ts';
import { isStale } from './planBlocks.ts';
import { type PulledFile, readIdentities } from './pulledFiles.ts';
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
 * Compares the last pulled blocks with the source. Throws an InputError if a settled block differs.
 */
export async function findStale(
  confirmations: number,
  source: RowsSource,
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
  const compared = (height: number) => height >= has.first && height <= top && height >= settled;
  const compare = async (file: PulledFile, asked: readonly number[]): Promise<Map<number, Comparison>> => {
    const theirs = await source.identities(asked);
    const ours = await readIdentities(folder, file, asked, store);
    return new Map(asked.map((height) => [height, comparisonOf(ours.get(height), theirs.get(height))]));
  };
  const different: number[] = [];
  for (const file of files) {
    const asked = heightsOf(file).filter(compared);
    if (asked.length === 0) continue;
    for (const [height, comparison] of await compare(file, asked)) if (comparison === 'other') different.push(height);
  }
  const deepest = different.reduce((least, height) => Math.min(least, height), Number.POSITIVE_INFINITY);
  if (deepest <= settled) {
    const fileAt = new Map(files.flatMap((file) => heightsOf(file).map((height) => [height, file])));
    const below = [...new Set(heights)].filter((height) => height <= deepest).sort((a, b) => a - b);
    const fork = await findFork(below, async (height) => {
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
  const cut = files.find((file) => file.first < has.first && isStale(file, stale));
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
  if (ours === undefined || theirs === undefined || ours.hash !== theirs.hash || ours.records !== theirs.records) return 'other';
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
    .filter(({ path }) => !hasChecksum(join(folder, path)))
    .flatMap((file) => heightsOf(file))
    .filter((height) => height >= has.first && height <= has.last);

/** Plans which blocks to fetch, from the wanted range, the source's range and the pulled files. Does no I/O. */
import { InputError } from '../errors.ts';
import { HEIGHTS_PER_FILE, hundredOf } from '../rows/rowsForm.ts';
import { type Extent, MOST_BLOCKS } from './blockSource.ts';
import { type Heights, heightsOf } from './heightRange.ts';
import type { PulledFile } from './pulledFiles.ts';

export interface WantedBlocks {
  /**
   * First height, or a number of last blocks. If undefined, the pull begins at the first pulled block, or at the
   * source's first if no block was pulled.
   */
  readonly from: number | { readonly last: number } | undefined;
  /** Last height; undefined for the tip. */
  readonly to: number | undefined;
}

export interface PlanInput {
  readonly wanted: WantedBlocks;
  readonly source: Extent;
  /** Number of the source's last blocks that a reorganisation may still replace. Older blocks are called settled. */
  readonly confirmations: number;
  readonly files: readonly PulledFile[];
  /** Heights of pulled blocks that differ from the source's blocks. */
  readonly stale: ReadonlySet<number>;
}

export interface Plan {
  readonly range: Heights;
  /** Ranges to fetch, ascending. Each becomes one file. */
  readonly units: readonly Heights[];
  /** Files to remove, because the pull keeps only the last N blocks, and all blocks of these files are older. */
  readonly outgrown: readonly PulledFile[];
}

/** Throws an InputError if the source has more blocks to fetch than one pull may fetch. */
export function plan({ wanted, source, confirmations, files, stale }: PlanInput): Plan {
  const last = Math.min(wanted.to ?? Number.MAX_SAFE_INTEGER, source.last);
  const range = { first: firstOf(wanted, source, files), last };
  const fresh = files.filter((file) => !isStale(file, stale));
  const covered = new Set(fresh.flatMap((file) => heightsOf(file)));
  const missing: number[] = [];
  const miss = (height: number) => {
    if (covered.has(height) || height < source.first || height > source.last || !source.has(height)) return;
    missing.push(height);
    if (missing.length > MOST_BLOCKS)
      throw new InputError(`the source has more than ${MOST_BLOCKS} blocks to fetch, up to height ${source.last}`, [
        'Check --from, or fetch fewer blocks at once with --blocks, such as --blocks 840000..899999.',
      ]);
  };
  for (let height = range.first; height <= range.last; height += 1) miss(height);
  // A stale file is removed with all its blocks, so its unchanged blocks must be fetched too.
  const outside = files.filter((file) => isStale(file, stale)).flatMap((file) => heightsOf(file));
  for (const height of outside) if (height < range.first || height > range.last) miss(height);

  const settled = source.last - confirmations;
  const units: Heights[] = [];
  // Each hundred of settled blocks becomes one file. This file also replaces the files of blocks that were
  // fetched one by one while they were new.
  for (let start = hundredOf(range.first).first; start <= Math.min(range.last, settled); start += HEIGHTS_PER_FILE) {
    const wantedPart = {
      first: Math.max(start, range.first),
      last: Math.min(start + HEIGHTS_PER_FILE - 1, wanted.to ?? Number.MAX_SAFE_INTEGER),
    };
    const touching = fresh.filter((file) => file.first <= wantedPart.last && file.last >= wantedPart.first);
    // Extends the wanted part to all heights of the files that it touches, because the new file replaces these files.
    const stretch = {
      first: touching.reduce((least, { first }) => Math.min(least, first), wantedPart.first),
      last: touching.reduce((most, { last }) => Math.max(most, last), wantedPart.last),
    };
    const isWhole = touching.length === 1 && touching[0]?.first === stretch.first && touching[0].last === stretch.last;
    const isThere = stretch.first >= source.first && stretch.last <= settled;
    if (wantedPart.first <= wantedPart.last && isThere && !isWhole) units.push(stretch);
  }
  const inStretch = new Set(units.flatMap(heightsOf));
  for (const height of missing) if (!inStretch.has(height)) units.push({ first: height, last: height });
  units.sort((a, b) => a.first - b.first);

  const moves = typeof wanted.from === 'object';
  return { range, units, outgrown: moves ? files.filter((file) => file.last < range.first) : [] };
}

function firstOf({ from }: WantedBlocks, source: Extent, files: readonly PulledFile[]): number {
  if (typeof from === 'number') return Math.max(from, source.first);
  if (from === undefined) return Math.max(files[0]?.first ?? source.first, source.first);
  const first = Math.max(source.last - from.last + 1, 0);
  return Math.max(hundredOf(first).first, source.first);
}

export const isStale = (range: Heights, stale: ReadonlySet<number>): boolean => heightsOf(range).some((height) => stale.has(height));

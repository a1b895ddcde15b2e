/**
 * Which blocks to fetch: from what is wanted, what the source has, and what is held. Pure.
 */
import type { HeldFile } from './held.ts';
import type { Extent } from './source.ts';

/** The blocks that a user asks for. */
export interface WantedBlocks {
  /** A height; how many blocks back from the tip; or undefined for where the folder or else the source begins. */
  readonly from: number | { readonly last: number } | undefined;
  /** Undefined for the tip. */
  readonly to: number | undefined;
}

/** Heights, both included. */
export interface Heights {
  readonly first: number;
  readonly last: number;
}

export interface PlanInput {
  readonly wanted: WantedBlocks;
  readonly source: Extent;
  /** This many of the source's last blocks may still be replaced. */
  readonly confirmations: number;
  /** How many settled heights the source puts into a file; a range begins at a multiple of it. */
  readonly perFile: number;
  readonly held: readonly HeldFile[];
  /** Heights whose held block is not the source's any more. */
  readonly stale: ReadonlySet<number>;
}

export interface Plan {
  /** The range that is wanted, as heights. */
  readonly range: Heights;
  /** What to fetch, ascending; each becomes a file. */
  readonly units: readonly Heights[];
  /** Held files that nothing of `units` replaces and that are not wanted: below a window that moves with the tip. */
  readonly outgrown: readonly HeldFile[];
}

export function plan({ wanted, source, confirmations, perFile, held, stale }: PlanInput): Plan {
  const last = Math.min(wanted.to ?? Number.MAX_SAFE_INTEGER, source.last);
  const range = { first: firstOf(wanted, source, perFile, held), last };
  const fresh = held.filter((file) => !isStale(file, stale));
  const covered = new Set(fresh.flatMap((file) => heightsOf(file)));
  const missing: number[] = [];
  const miss = (height: number) => {
    if (!covered.has(height) && height >= source.first && height <= source.last && source.has(height)) missing.push(height);
  };
  for (let height = range.first; height <= range.last; height += 1) miss(height);
  // A stale file of several blocks is fetched anew as a whole, or its good blocks would be lost with it.
  const outside = held.filter((file) => isStale(file, stale)).flatMap((file) => heightsOf(file));
  for (const height of outside) if (height < range.first || height > range.last) miss(height);

  const settled = source.last - confirmations;
  const units: Heights[] = [];
  if (perFile > 1) {
    // Whole stretches of settled blocks become one file each, also those that were fetched one by one while they were new.
    for (let start = range.first - (range.first % perFile); start <= Math.min(range.last, settled); start += perFile) {
      const wantedPart = { first: Math.max(start, range.first), last: Math.min(start + perFile - 1, wanted.to ?? Number.MAX_SAFE_INTEGER) };
      const touching = fresh.filter((file) => file.first <= wantedPart.last && file.last >= wantedPart.first);
      // All that these files hold, or the new file would hold some of it twice.
      const stretch = {
        first: touching.reduce((least, { first }) => Math.min(least, first), wantedPart.first),
        last: touching.reduce((most, { last }) => Math.max(most, last), wantedPart.last),
      };
      const isWhole = touching.length === 1 && touching[0]?.first === stretch.first && touching[0].last === stretch.last;
      const isThere = stretch.first >= source.first && stretch.last <= settled;
      if (wantedPart.first <= wantedPart.last && isThere && !isWhole) units.push(stretch);
    }
  }
  const inStretch = new Set(units.flatMap(heightsOf));
  for (const height of missing) if (!inStretch.has(height)) units.push({ first: height, last: height });
  units.sort((a, b) => a.first - b.first);

  const moves = typeof wanted.from === 'object';
  return { range, units, outgrown: moves ? held.filter((file) => file.last < range.first) : [] };
}

function firstOf({ from }: WantedBlocks, source: Extent, perFile: number, held: readonly HeldFile[]): number {
  if (typeof from === 'number') return Math.max(from, source.first);
  if (from === undefined) return Math.max(held[0]?.first ?? source.begin, source.first);
  const first = Math.max(source.last - from.last + 1, 0);
  return Math.max(first - (first % perFile), source.first);
}

const isStale = (file: HeldFile, stale: ReadonlySet<number>): boolean => heightsOf(file).some((height) => stale.has(height));

/** All heights from the first to the last. */
export const heightsOf = ({ first, last }: Heights): number[] => Array.from({ length: Math.max(last - first + 1, 0) }, (_, i) => first + i);

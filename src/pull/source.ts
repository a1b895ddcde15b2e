/**
 * What a pull asks of the place that the data is at.
 */
import type { BlockIdentity } from './block.ts';
import type { Heights } from './plan.ts';

/** What was fetched and is in its place. */
export interface Fetched {
  /** Relative to the folder `pulled`. */
  readonly path: string;
  readonly records: number;
  readonly bytes: number;
}

/** No chain is as high, for centuries: a source that says so is wrong. */
export const HIGHEST = 10_000_000;

/** What a source has. */
export interface Extent extends Heights {
  /** Where a pull begins that names no range and finds nothing held. `first` is the lowest block that the source may have. */
  readonly begin: number;
  /** Whether the source has a block at this height, as far as it tells: a block without records may be one that it does not hold. */
  has(height: number): boolean;
}

export interface Source {
  /** What it is, for people: without keys and passwords. */
  readonly name: string;
  /** How many settled heights share a file. */
  readonly perFile: number;
  /** Whether it tells every block's digest at no cost, so that everything held is compared and not only the last blocks. */
  readonly knowsDigests: boolean;
  /** Looks at the source anew, and at one moment of it where it can: what it has now. */
  look(): Promise<Extent>;
  /** What the blocks at these heights are now. */
  identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>>;
  /** Called before blocks are fetched: brings what their files depend on. `isBehind` when more is held than the source has. */
  prepare(isBehind: boolean): Promise<void>;
  /** Fetches these blocks into one file. */
  fetch(unit: Heights): Promise<Fetched>;
  close(): Promise<void>;
}

/**
 * Interface between a pull and its source: a database, a server or a mirror.
 */
import type { LastRead, Rules, Sources } from '../contract/sources.ts';
import type { BlockIdentity } from './block.ts';
import type { EtchingList } from './etchings.ts';
import type { Heights } from './heights.ts';
import type { Fetched } from './write.ts';

/** Highest valid height. Bitcoin's chain reaches it in about 170 years; a source with a higher block has wrong data. */
export const HIGHEST = 10_000_000;

/**
 * Most blocks that a source may list, and that a pull fetches at once: each takes some 300 bytes of memory. The main
 * chain has 137,000 blocks with runes in 2026, and gets 53,000 a year.
 */
export const MOST_BLOCKS = 1_000_000;

/** The range of blocks that a source has; it may lack some blocks in between. */
export interface Extent extends Heights {
  /** First height to pull if no range is given and nothing was pulled yet. May be above `first`. */
  readonly begin: number;
  /** False if the source lists no records at this height. Then the block is empty, or the source lacks it. */
  has(height: number): boolean;
}

/** The origin of a source with the same rules for all heights. */
export const allBy = (rules: Rules): Sources => [{ rules, blocks: [[0, HIGHEST]] }];

export interface Source {
  /** Name for messages, without keys and passwords. */
  readonly name: string;
  /** By which rules the source makes its rows, for all heights. Known after the first look(). */
  readonly origin: Sources;
  /** Ranges of heights that the source has read, also those without records. Undefined if it does not say. */
  readonly heightsRead?: readonly Heights[];
  /** The last block that the source has read. Undefined if it does not say. */
  readonly tip?: LastRead | undefined;
  /** Settled heights per file. */
  readonly perFile: number;
  /** True if digests of all blocks cost nothing. Then a pull compares all pulled blocks, not only the last ones. */
  readonly knowsDigests: boolean;
  /** The etchings of a server or a mirror. A database has a table of runes instead. */
  readonly etchings?: EtchingList;
  /** Reads the range of blocks that the source has now. A database source begins a new snapshot. */
  look(): Promise<Extent>;
  identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>>;
  /**
   * Fetches data that block files refer to, before blocks are fetched. `isBehind`: some pulled block is above the
   * source's tip.
   */
  prepare?(isBehind: boolean): Promise<void>;
  /** Fetches a range of blocks into one file. */
  fetch(unit: Heights): Promise<Fetched>;
  close?(): Promise<void>;
}

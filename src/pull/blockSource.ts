/** Interface between a pull and its source: a database, a server or a mirror. */
import type { BlocksFile, LastRead, Rules, Sources } from '../contract/sources.ts';
import type { BlockIdentity } from './blockIdentity.ts';
import type { Heights } from './heightRange.ts';
import type { EtchingList } from './mirror/pullEtchings.ts';
import type { Fetched } from './writePulled.ts';

/** Highest valid height. Bitcoin's chain reaches it in about 170 years, so a greater height means wrong data. */
export const HIGHEST = 10_000_000;

/**
 * Maximum number of blocks that a source may list, and that one pull fetches. Bounds the memory: a block takes some 300
 * bytes. Mainnet has 137,000 blocks with runes in 2026, and gets 53,000 more a year.
 */
export const MOST_BLOCKS = 1_000_000;

/** Range of blocks that a source has. Blocks within the range may be missing. */
export interface Extent extends Heights {
  /** First height to pull if no range is given and nothing was pulled before. May be above `first`. */
  readonly begin: number;
  /** False if the source lists no records at this height: the block is empty, or the source lacks the block. */
  has(height: number): boolean;
}

/** Returns the `origin` of a source that makes the rows of all heights by the same rules. */
export const allBy = (rules: Rules): Sources => [{ rules, blocks: [[0, HIGHEST]] }];

export interface Source {
  /** Name for messages, without keys and passwords. */
  readonly name: string;
  /** Rules by which the source makes its rows, and the heights to which they apply. Valid after the first look(). */
  readonly origin: Sources;
  /** Ranges of heights that the source has read, with or without records. Undefined if the source does not say. */
  readonly heightsRead?: readonly Heights[];
  /** Last block that the source has read. Undefined if the source does not say. */
  readonly tip?: LastRead | undefined;
  /** Further values from a mirror's list of rows, which `pulled/blocks.json` gets if the pull reaches `tip`. */
  readonly facts?: Pick<BlocksFile, 'network' | 'ends'>;
  /** Number of heights per file, for blocks at least `confirmations` below the tip. Newer blocks get one file each. */
  readonly perFile: number;
  /**
   * True if `identities` returns digests without any request. Then a pull compares all pulled blocks with the source,
   * not only the last blocks.
   */
  readonly knowsDigests: boolean;
  /** Etchings of a server or a mirror. Undefined for a database, which has a table of runes instead. */
  readonly etchings?: EtchingList | undefined;
  /** Reads the range of blocks that the source has now. If the source is a database, begins a new snapshot. */
  look(): Promise<Extent>;
  identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>>;
  /**
   * Fetches data that block files refer to. Call it before `fetch`. `isBehind` is true if a pulled block is above the
   * source's tip.
   */
  prepare?(isBehind: boolean): Promise<void>;
  /** Fetches a range of blocks into one file. */
  fetch(unit: Heights): Promise<Fetched>;
  close?(): Promise<void>;
}

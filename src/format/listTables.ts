/** The lists of an archive. The levels (levels.ts) of all lists ascend, and end at the same heights. */
import type { DocumentLevel, LevelSteps } from './levels.ts';

/** The etchings (lists/etchings.ts). */
export interface EtchingTables {
  readonly total: number;
  readonly levels: readonly DocumentLevel[];
  /** Names of the runes that were etched in the blocks of a level ("All names" in lists/etchings.ts). */
  readonly runes: readonly DocumentLevel[];
}

/** A level of the lists of activity (lists/activity.ts). */
export interface PlacedLevel extends DocumentLevel {
  /** Size of the pages of all blocks below this level, in bytes. The position in a pointer plus `begin` is the position in the archive. */
  readonly begin: number;
}

/** Runes with a balance below zero, which only wrong data has. */
export interface Unbalanced {
  /** Ids of some of these runes, the oldest first. */
  readonly runes: readonly string[];
  /** Number of the other runes. */
  readonly more: number;
}

export interface HolderLevel extends DocumentLevel {
  /**
   * Number of balances of a rune below zero, which only wrong data has, after the level minus the number before it. Omits runes without a
   * change.
   */
  readonly belowZero?: readonly (readonly [ordinal: number, change: number])[];
}

export interface BalanceTables {
  /** Documents of balances by address. */
  readonly addresses: readonly DocumentLevel[];
  /** Documents of holders by rune. */
  readonly holders: readonly HolderLevel[];
  /** Omitted if no rune has a balance below zero. */
  readonly unbalanced?: Unbalanced | undefined;
}

export interface OutputTables {
  /** Hash of the highest block: 64 hex digits, no prefix. */
  readonly tipHash: string;
  /** Documents by outpoint. */
  readonly outputs: readonly DocumentLevel[];
  /** Documents by address. */
  readonly addresses: readonly DocumentLevel[];
  /** "Starts" in lists/unspentOutputs.ts. Omits levels whose lists have no pages. */
  readonly starts: readonly DocumentLevel[];
}

export interface ListTables extends LevelSteps {
  /** The highest block; -1 without blocks. The ranges of the levels depend on it. */
  readonly tip: number;
  /** The lowest block, only in layout `files`. The ranges of the levels depend on it too. */
  readonly lowest?: number | undefined;
  /** Maximum number of entries in a document. A longer list has pages of this size. */
  readonly page: number;
  /** Undefined if the data lacks etchings. The first level begins at height 0, even if the lowest block is higher. */
  readonly etchings?: EtchingTables | undefined;
  /** Names of the runes that were etched in the blocks of a level. In a mirror without etchings, of those in the records of its blocks. */
  readonly names: readonly DocumentLevel[];
  /** Activity by rune and by address. Undefined in a mirror without these lists. */
  readonly activity?: readonly PlacedLevel[] | undefined;
  /** Undefined if the data lacks older blocks. */
  readonly balances?: BalanceTables | undefined;
  /** Undefined if the data is not from a node. */
  readonly outputs?: OutputTables | undefined;
}

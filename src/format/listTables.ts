/** The lists of an archive. The levels (levels.ts) of all lists end at the same heights. */
import type { DocumentLevel, LevelSteps } from './levels.ts';

/** The etchings (lists/etchings.ts). */
export interface EtchingTables {
  readonly total: number;
  /** Ascending by height. */
  readonly levels: readonly DocumentLevel[];
  /** Names of the runes that were etched in the blocks of a level (lists/allRuneNames.ts), ascending by height. */
  readonly runes: readonly DocumentLevel[];
}

/** A level of the lists of activity (lists/activity.ts). */
export interface PlacedLevel extends DocumentLevel {
  /**
   * Size of the pages of all blocks below this level, in bytes. A pointer gives the position of a page relative to the level's first page.
   * This position plus `begin` is relative to the archive's first page.
   */
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
   * For each rune, the change in the number of balances below zero: the number after the level, minus the number before it. Runes without a
   * change are omitted. Only wrong data has balances below zero.
   */
  readonly belowZero?: readonly (readonly [ordinal: number, change: number])[];
}

export interface BalanceTables {
  /** Documents of balances by address, ascending by height. */
  readonly addresses: readonly DocumentLevel[];
  /** Documents of holders by rune, ascending by height. */
  readonly holders: readonly HolderLevel[];
  /** Omitted if no rune has a balance below zero. */
  readonly unbalanced?: Unbalanced | undefined;
}

export interface OutputTables {
  /** Hash of the highest block: 64 hex digits, no prefix. */
  readonly tipHash: string;
  /** Documents by outpoint, ascending by height. */
  readonly outputs: readonly DocumentLevel[];
  /** Documents by address, ascending by height. */
  readonly addresses: readonly DocumentLevel[];
  /**
   * Documents with a lower bound for each page of a list ("Starts" in lists/unspentOutputs.ts), ascending by height. Omits levels whose
   * lists have no pages.
   */
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
  /**
   * Names of runes (lists/names.ts). A level has the runes that were etched in its blocks. In a mirror without etchings, a level has the
   * runes that occur in the records of its blocks.
   */
  readonly names: readonly DocumentLevel[];
  /** Activity by rune and by address, ascending by height. Undefined in a mirror without these lists. */
  readonly activity?: readonly PlacedLevel[] | undefined;
  /** Undefined if the data lacks older blocks. */
  readonly balances?: BalanceTables | undefined;
  /** Undefined if the data is not from a node. */
  readonly outputs?: OutputTables | undefined;
}

/**
 * The lists of an archive. All are in levels (levels.ts) that end at the same heights.
 */
import type { DocumentFile, DocumentLevel, LevelSteps } from './levels.ts';
import type { Level } from './sortedTable.ts';

/** The etchings (etchings.ts). */
export interface EtchingTables {
  readonly total: number;
  /** Ascending by height. */
  readonly levels: readonly DocumentLevel[];
}

/** One level of the lists. Both tables have the same range of heights. */
export interface ActivityLevel {
  /** Size of the pages of all blocks below the level, in bytes. */
  readonly begin: number;
  readonly heads: Level;
  /** `counts` has only the number of all pointers. */
  readonly pointers: Level;
}

/** Runes with a balance below zero, which only wrong data has. */
export interface Unbalanced {
  /** Ids of some of them, the oldest first. */
  readonly runes: readonly string[];
  /** Number of others. */
  readonly more: number;
}

/** A level of holders. */
export interface HolderLevel extends DocumentLevel {
  /** For runes by their ordinals: how many more balances are below zero after the level than before it. Left out if there are none. */
  readonly belowZero?: readonly (readonly [ordinal: number, change: number])[];
}

export interface BalanceTables {
  /** Balances of addresses, ascending by height. */
  readonly addresses: readonly DocumentLevel[];
  /** Ascending by height. */
  readonly holders: readonly HolderLevel[];
  /** Left out if there are none. */
  readonly unbalanced?: Unbalanced | undefined;
}

export interface OutputTables {
  /** Hash of the highest block: 64 hex digits, no prefix. */
  readonly tipHash: string;
  /** Documents by outpoint, ascending by height. */
  readonly outputs: readonly DocumentLevel[];
  /** Documents by address, ascending by height. */
  readonly addresses: readonly DocumentLevel[];
  /** Starts of pages, ascending by height. Only levels with pages. */
  readonly starts: readonly DocumentLevel[];
}

export interface ListTables extends LevelSteps {
  /** The highest block; -1 without blocks. The ranges of the levels follow from it. */
  readonly tip: number;
  /** In layout `files`, the lowest block: the ranges follow from it too. */
  readonly lowest?: number | undefined;
  /** Most entries in a document of a list. A longer list has pages. */
  readonly page: number;
  /** Undefined if the data does not have all etchings. Their levels begin at height 0. */
  readonly etchings?: EtchingTables | undefined;
  /** The table of names: of the runes etched in the blocks of a level, or without etchings, of the runes in their records. */
  readonly names: readonly Level[];
  /** Activity by rune and by address, the lowest level first. Undefined in a mirror without them. */
  readonly activity?: readonly ActivityLevel[] | undefined;
  /** Undefined if the data lacks older blocks. */
  readonly balances?: BalanceTables | undefined;
  /** Undefined if the data is not from a node. */
  readonly outputs?: OutputTables | undefined;
}

/** Returns all files of documents. */
export function filesOfLists(tables: ListTables | undefined): readonly DocumentFile[] {
  const { etchings, balances, outputs } = tables ?? {};
  const levels = [etchings?.levels, balances?.addresses, balances?.holders, outputs?.outputs, outputs?.addresses, outputs?.starts];
  return levels.flatMap((one = []) => one).flatMap(({ files }) => files);
}

/**
 * The lists of an archive: activity by rune and by address, balances and holders. All are in levels of the same ranges
 * of heights (levels.ts).
 */

import type { ActivityLevel } from './activityTables.ts';
import type { BalanceTables } from './balanceTables.ts';
import type { DocumentFile, LevelSteps } from './levels.ts';
import type { OutputTables } from './outputTables.ts';

export interface ListTables extends LevelSteps {
  /** The highest block; -1 without blocks. The ranges of the levels follow from it. */
  readonly tip: number;
  /** In layout `files`, the lowest block: the ranges follow from it too. */
  readonly lowest?: number | undefined;
  /** Most entries in a document of a list. A longer list has pages. */
  readonly page: number;
  /** Activity by rune and by address, the lowest level first. */
  readonly activity: readonly ActivityLevel[];
  /** Undefined if the data lacks older blocks. */
  readonly balances?: BalanceTables | undefined;
  /** Undefined if the data is not from a node. */
  readonly outputs?: OutputTables | undefined;
}

/** Returns all files of documents. */
export function filesOfLists(tables: ListTables | undefined): readonly DocumentFile[] {
  const { balances, outputs } = tables ?? {};
  const levels = [balances?.addresses, balances?.holders, outputs?.outputs, outputs?.addresses, outputs?.starts];
  return levels.flatMap((one = []) => one).flatMap(({ files }) => files);
}

/**
 * The lists of an archive: activity by rune and by address, balances and holders. All are in levels of the same ranges
 * of heights (levels.ts, LIST_STEPS).
 */

import { type ActivityLevel, areActivityLevels } from './activityTables.ts';
import { areBalances, type BalanceTables } from './balanceTables.ts';
import type { DocumentFile } from './documents.ts';
import { areOutputs, type OutputTables } from './outputTables.ts';

export interface ListTables {
  /** The highest block; -1 without blocks. The ranges of the levels follow from it. */
  readonly tip: number;
  /** In layout `files`, the lowest block: the ranges follow from it too. */
  readonly lowest?: number | undefined;
  /** Activity by rune and by address, the lowest level first. */
  readonly activity: readonly ActivityLevel[];
  /** Undefined if the data lacks older blocks. */
  readonly balances?: BalanceTables | undefined;
  /** Undefined if the data is not from a node. */
  readonly outputs?: OutputTables | undefined;
}

/** Returns all files of documents. */
export function filesOfLists(tables: ListTables | undefined): readonly DocumentFile[] {
  const { changes = [], holders = [] } = tables?.balances ?? {};
  const { outputs = [], addresses = [] } = tables?.outputs ?? {};
  return [...changes, ...holders, ...outputs, ...addresses].flatMap(({ files }) => files);
}

/** True for the tables of a root. */
export function areLists(value: unknown, isLevel: (level: unknown) => boolean): value is ListTables {
  const { tip, lowest = 0, activity, balances, outputs } = Object(value) as Readonly<Record<string, unknown>>;
  return (
    Number.isSafeInteger(lowest) &&
    Number(lowest) >= 0 &&
    Number.isSafeInteger(tip) &&
    Number(tip) >= -1 &&
    areActivityLevels(activity, isLevel) &&
    (balances === undefined || areBalances(balances)) &&
    (outputs === undefined || areOutputs(outputs))
  );
}

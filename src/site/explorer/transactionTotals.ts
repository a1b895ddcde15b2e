/** Sums of a transaction's amounts, by rune and operation. Needs no browser. */

import { groupBy } from '../../groupBy.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { addDecimals } from './amountMath.ts';

export interface RuneTotals {
  readonly rune: Rune;
  /** Exact decimal sums. Omits operations without amounts. */
  readonly sums: Readonly<Partial<Record<Operation, string>>>;
}

/** Sums the amounts of a complete list by rune and operation. Runes keep the order of their first records. */
export function totalsOf(results: readonly Activity[]): RuneTotals[] {
  const parts = results.flatMap(({ rune, operation, amount }) => (amount === undefined ? [] : [{ rune, operation, amount }]));
  return [...groupBy(parts, ({ rune }) => rune.id).values()].flatMap((same) => {
    const sums = [...groupBy(same, ({ operation }) => operation)].map(([operation, each]) => [
      operation,
      addDecimals(each.map(({ amount }) => amount)),
    ]);
    const [first] = same;
    return first === undefined ? [] : [{ rune: first.rune, sums: Object.fromEntries(sums) as RuneTotals['sums'] }];
  });
}

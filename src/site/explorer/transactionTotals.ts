/** Sums of a transaction's amounts, by rune and operation. Needs no browser. */

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
  const runes = new Map<string, { rune: Rune; amounts: Map<Operation, string[]> }>();
  for (const { rune, operation, amount } of results) {
    if (amount === undefined) continue;
    const one = runes.get(rune.id) ?? { rune, amounts: new Map<Operation, string[]>() };
    runes.set(rune.id, one);
    one.amounts.set(operation, [...(one.amounts.get(operation) ?? []), amount]);
  }
  return [...runes.values()].map(({ rune, amounts }) => ({
    rune,
    sums: Object.fromEntries([...amounts].map(([operation, each]) => [operation, addDecimals(each)])),
  }));
}

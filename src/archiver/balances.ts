/**
 * Writes balances of addresses and holders of runes (archive/balanceTables.ts).
 */

import { type DocumentLevel, lastRanked } from '../archive/levels.ts';
import type { BalanceTables, HolderLevel, Unbalanced } from '../archive/listTables.ts';
import { MOST_RUNES_NAMED } from '../contract/schemas.ts';
import { type Store, text } from '../store/duckdb.ts';
import type { UnsortedRows } from '../store/sortedRows.ts';
import { BalanceRows, type KnownLevel, type RowForm } from './balanceRows.ts';
import { documentsIn, type LevelForm, reusedLevels, writeDocuments } from './changes.ts';
import type { LevelPlan } from './listedRecords.ts';

export interface BalanceForm extends LevelForm<'addresses' | 'holders'>, RowForm {
  /** The highest block. */
  readonly tip: number;
}

/** Writes the levels that the last build does not have. */
export async function writeBalances(plans: readonly LevelPlan[], form: BalanceForm, store: Store): Promise<BalanceTables> {
  const lists = form.old?.root.lists;
  const before = lists?.balances;
  const ranked = lastRanked(form.tip, form.limits.listLevels);
  const wasRanked = lastRanked(lists?.tip ?? -1, form.limits.listLevels);
  const addresses: DocumentLevel[] = [];
  const holders: HolderLevel[] = [];
  const rows = new BalanceRows(form, store);
  await rows.begin();
  const write = (kind: 'addresses' | 'holders', plan: LevelPlan, unsorted: UnsortedRows) =>
    writeDocuments(form.writer(kind, plan), plan, documentsIn(unsorted, form.limits, store));
  let isSame = true;
  for (const plan of plans) {
    // A newest level may become a ranked one, whose long lists are whole. Levels above one that is made again are, too.
    isSame &&= plan.isSame && plan.last <= ranked === plan.last <= wasRanked;
    const known = reusedLevels(plan, before?.addresses);
    let level: KnownLevel = { addresses: known[0], holders: reusedLevels(plan, before?.holders)[0] };
    if (isSame) rows.keep(level);
    else {
      await rows.add(plan, known, plan.last <= ranked);
      const byAddress = await write('addresses', plan, await rows.addressRows());
      const byRune = await write('holders', plan, await rows.holderRows());
      const belowZero = await rows.belowZero();
      level = { addresses: byAddress, holders: byRune && belowZero.length > 0 ? { ...byRune, belowZero } : byRune };
    }
    if (level.addresses !== undefined) addresses.push(level.addresses);
    if (level.holders !== undefined) holders.push(level.holders);
  }
  await rows.end();
  const unbalanced = await findUnbalanced(holders, form, store);
  return { addresses, holders, ...(unbalanced === undefined ? {} : { unbalanced }) };
}

/** Finds runes with a balance below zero after the highest block. */
async function findUnbalanced(levels: readonly HolderLevel[], { etchings }: RowForm, store: Store): Promise<Unbalanced | undefined> {
  const sums = new Map<number, number>();
  for (const { belowZero = [] } of levels) for (const [ordinal, change] of belowZero) sums.set(ordinal, (sums.get(ordinal) ?? 0) + change);
  const all = [...sums].filter(([, balances]) => balances > 0).map(([ordinal]) => ordinal);
  if (all.length === 0) return undefined;
  const named = all.sort((a, b) => a - b).slice(0, MOST_RUNES_NAMED);
  const rows = await store.rows(`SELECT id FROM ${etchings} WHERE ordinal IN (${named.join()}) ORDER BY ordinal`, { id: text });
  return { runes: rows.map(({ id }) => id), more: all.length - rows.length };
}

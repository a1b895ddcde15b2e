/**
 * Rows of a list of activity. Within a transaction, a send and its receive are one row, and so are a mint and its
 * receive. Needs no browser.
 */

import { runsOf } from '../../groupBy.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { decimalsOf, unitsOf } from './amountMath.ts';

/** Record of a list. In a rune's list, records have no rune. */
export type ListedRecord = Omit<Activity, 'rune'> & { readonly rune?: Rune };

export interface ActivityRow<T extends ListedRecord> {
  /** The record that has the row's rune and amount. */
  readonly record: T;
  /** Location of the record that has the row's output. */
  readonly location: Activity['location'];
  /** Operation of the record, if the row joins no other record. `to itself` is a transfer from an address to itself. */
  readonly kind: Operation | 'transfer' | 'to itself';
  /** Undefined if the row has no sender or no receiver, and null for a script without an address. */
  readonly from: string | null | undefined;
  readonly to: string | null | undefined;
}

/** A window of a list of activity. */
export interface ListWindow<T extends ListedRecord> {
  /** Number of records of the list before `results`. */
  readonly offset: number;
  readonly results: readonly T[];
}

/** Joins the records of each transaction in a window to rows, in the order of the records. */
export function transactionsOf<T extends ListedRecord>({ offset, results }: ListWindow<T>): ActivityRow<T>[][] {
  const transactions = runsOf(results, (one, next) => one.location.tx_id !== next.location.tx_id);
  return transactions.map((records, i) => rowsOf(records, i === 0 && offset > 0));
}

/**
 * Joins the records of a transaction. A receive has no row of its own if its amount is the exact sum of the sends before
 * it, or of these sends and a mint after it. `isCutBefore` is true if the transaction may begin on an earlier page: this
 * page then may have sent what a receive is above its sends, so it joins no mint.
 */
function rowsOf<T extends ListedRecord>(records: readonly T[], isCutBefore: boolean): ActivityRow<T>[] {
  const decimals = decimalsOf(records.map(({ amount }) => amount));
  const units = ({ amount = '0' }: T) => unitsOf(amount, decimals);
  /** Sends that no receive has followed yet, by output. */
  const waiting = new Map<string, T[]>();
  const unmatched: { readonly receive: T; readonly sends: readonly T[]; readonly rest: bigint }[] = [];
  const joined = new Set<T>();
  const minted = new Map<T, T>();
  for (const record of records) {
    const { operation, rune, address, receiver_address, location } = record;
    const output = `${rune?.id} ${location.output} ${location.vout} ${operation === 'send' ? receiver_address : address}`;
    const sends = waiting.get(output) ?? [];
    if (operation === 'send') waiting.set(output, [...sends, record]);
    else if (operation === 'receive') {
      waiting.delete(output);
      const rest = sends.reduce((left, send) => left - units(send), units(record));
      if (rest === 0n && sends.length > 0) for (const one of [record, ...sends]) joined.add(one);
      else if (rest > 0n && !isCutBefore) unmatched.push({ receive: record, sends, rest });
    } else if (operation === 'mint') {
      const isOf = ({ receive, rest }: (typeof unmatched)[number]) =>
        receive.rune?.id === rune?.id && rest === units(record) && !joined.has(receive);
      const of = unmatched.filter(isOf).at(-1);
      if (of === undefined) continue;
      for (const one of [of.receive, ...of.sends]) joined.add(one);
      minted.set(record, of.receive);
    }
  }
  return records.flatMap((record): ActivityRow<T>[] => {
    const { operation, address = null, receiver_address = null, location } = record;
    if (operation === 'receive') return joined.has(record) ? [] : [{ record, location, kind: operation, from: undefined, to: address }];
    if (operation === 'send') {
      const kind = !joined.has(record) ? operation : address !== null && address === receiver_address ? 'to itself' : 'transfer';
      return [{ record, location, kind, from: address, to: receiver_address }];
    }
    const receive = minted.get(record);
    const from = operation === 'burn' ? address : (address ?? undefined);
    return [{ record, location: receive?.location ?? location, kind: operation, from, to: receive && (receive.address ?? null) }];
  });
}

/** Returns how the amount of a row in the list of an address changes its balance. Empty if it does not. */
export const signOf = ({ kind, to }: ActivityRow<ListedRecord>): '+' | '−' | '' =>
  kind === 'receive' || (kind === 'mint' && to !== undefined) ? '+' : kind === 'send' || kind === 'burn' ? '−' : '';

/**
 * Rows of a list of activity. A send and its receive are one row, and so are a mint and its receive. The rows of an
 * address are added up by transaction and rune. Needs no browser.
 */

import { groupBy } from '../../groupBy.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import { shiftDecimals } from '../../pages/decimalAmounts.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { decimalsOf, unitsOf } from './amountMath.ts';
import { runsOf } from './chartColumns.ts';

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
  readonly total: number;
  readonly results: readonly T[];
  /** Known records of the list directly before and after `results`. */
  readonly before?: readonly T[];
  readonly after?: readonly T[];
}

/** A receive whose amount is above the sum of its sends. `rest` is the difference. */
interface Unmatched<T> {
  readonly receive: T;
  readonly sends: readonly T[];
  readonly at: number;
  readonly mint: string;
  readonly rest: bigint;
}

/**
 * Joins records to rows, in the order of the records. A receive has no row of its own if its amount is the exact sum of
 * the sends before it, or of these sends and a mint after it. A send and its receive, or a receive and its mint, must
 * be less than `reach` records apart. So a row depends only on records near it, and it is the same on every page.
 * Returns the rows whose send, mint, burn, etching or lone receive is in `results`.
 */
export function rowsOf<T extends ListedRecord>(
  { offset, results, before = [], after = [] }: ListWindow<T>,
  reach: number,
): ActivityRow<T>[] {
  const records = [...before, ...results, ...after];
  const decimals = decimalsOf(records.map(({ amount }) => amount));
  const units = ({ amount = '0' }: T) => unitsOf(amount, decimals);
  const cut = offset > before.length ? records[0]?.location.tx_id : undefined;
  /** Sends that no receive has followed yet, by output, with their indexes in `records`. */
  const waiting = new Map<string, [send: T, at: number][]>();
  const unmatched: Unmatched<T>[] = [];
  const joined = new Set<T>();
  const minted = new Map<T, T>();
  for (const [at, record] of records.entries()) {
    const { operation, rune, address, receiver_address, location } = record;
    const mint = `${location.tx_id} ${rune?.id}`;
    const output = `${mint} ${location.output} ${location.vout} ${operation === 'send' ? receiver_address : address}`;
    const sends = waiting.get(output) ?? [];
    if (operation === 'send') {
      sends.push([record, at]);
      waiting.set(output, sends);
    } else if (operation === 'receive') {
      waiting.delete(output);
      const own: T[] = [];
      let rest = units(record);
      // Stops when the sum reaches the amount. So earlier sends, which may not have been fetched, do not matter.
      for (const [send, place] of sends.reverse()) {
        if (rest <= 0n || at - place >= reach) break;
        rest -= units(send);
        own.push(send);
      }
      if (rest === 0n && own.length > 0) for (const one of [record, ...own]) joined.add(one);
      // The receive may also have unknown sends if its transaction begins before the known records.
      else if (rest > 0n && !(location.tx_id === cut && at < reach)) unmatched.push({ receive: record, sends: own, at, mint, rest });
    } else if (operation === 'mint') {
      const isOf = (one: Unmatched<T>) =>
        one.mint === mint && one.rest === units(record) && at - one.at < reach && !joined.has(one.receive);
      const of = unmatched.filter(isOf).at(-1);
      if (of === undefined) continue;
      for (const one of [of.receive, ...of.sends]) joined.add(one);
      minted.set(record, of.receive);
    }
  }
  return results.flatMap((record): ActivityRow<T>[] => {
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

/** Returns the first and the last known record, each only if the list continues beyond it. */
const endsOf = <T extends ListedRecord>({ offset, total, results, before = [], after = [] }: ListWindow<T>): readonly (T | undefined)[] => {
  const records = [...before, ...results, ...after];
  const first = offset - before.length;
  return [first > 0 ? records[0] : undefined, first + records.length < total ? records.at(-1) : undefined];
};

/** Numbers of records that the first two rounds of requests fetch: few bytes, and enough for most transactions. */
const FEW = [1, 3];

/**
 * Adds records before and after a window, for its rows to join. Fetches them only if a row joins no other record, and
 * the transaction of this row may continue beyond the window. Sends at most eight requests, each for up to `reach`
 * records. If a request fails or the list has changed meanwhile, a pair on two pages gets two rows. `ofAddress` is true
 * for a list of one address. Such a list has no mints, and has the receive of a send only if it is to this address.
 */
export async function withNeighbours<L extends ListWindow<ListedRecord>>(
  list: L,
  fetch: (window: { readonly offset: number; readonly limit: number }) => Promise<ListWindow<ListedRecord>>,
  reach: number,
  ofAddress = false,
): Promise<L> {
  let known = list;
  try {
    for (const few of [...FEW, reach, reach]) {
      const { before = [], after = [], offset, total, results } = known;
      const rows = rowsOf(known, reach);
      const isOpen = (end: ListedRecord | undefined, ...kinds: readonly ActivityRow<ListedRecord>['kind'][]) =>
        rows.some(
          ({ record, kind, from, to }) =>
            record.location.tx_id === end?.location.tx_id &&
            kinds.includes(kind) &&
            (kind !== 'mint' || to === undefined) &&
            (kind !== 'send' || !ofAddress || from === to),
        );
      const [begin, end, size] = [offset - before.length, offset + results.length + after.length, Math.min(few, reach)];
      const [first, last] = endsOf(known);
      const [earlier, later] = await Promise.all([
        isOpen(first, 'send', 'receive', 'mint') ? fetch({ offset: Math.max(0, begin - size), limit: Math.min(size, begin) }) : undefined,
        isOpen(last, 'send', ofAddress ? 'send' : 'receive') ? fetch({ offset: end, limit: Math.min(size, total - end) }) : undefined,
      ]);
      if (!earlier && !later) break;
      if ((earlier ?? later)?.total !== total || (later ?? earlier)?.total !== total) return list;
      known = { ...list, before: [...(earlier?.results ?? []), ...before], after: [...after, ...(later?.results ?? [])] };
    }
    return known;
  } catch {
    return list;
  }
}

/** Row of the list of an address. `net` is the sum of several rows, which follow it. */
export interface AddressRow<T extends ListedRecord> {
  readonly row: ActivityRow<T>;
  readonly kind: ActivityRow<T>['kind'] | 'net';
  readonly amount: string | undefined;
  /** How the amount changes the balance. Empty if it does not. */
  readonly sign: '+' | '−' | '';
  /** Amount that the transaction also sends from the address to itself. */
  readonly toItself?: string;
}

const signOf = ({ kind, to }: ActivityRow<ListedRecord>): AddressRow<ListedRecord>['sign'] =>
  kind === 'receive' || (kind === 'mint' && to !== undefined) ? '+' : kind === 'send' || kind === 'burn' ? '−' : '';

/**
 * Adds up the rows of an address. Returns a group for each rune of a transaction: one row, or the net amount and the
 * rows that it sums. The first row also has the sum of the amounts that go to the address itself (`toItself`). Does not
 * add up the rows of a transaction if another page may have more of its rows.
 */
export function netRows<T extends ListedRecord>(list: ListWindow<T>, reach: number): AddressRow<T>[][] {
  const { before = [], after = [] } = list;
  const transactions = runsOf(rowsOf(list, reach), (one, next) => one.record.location.tx_id !== next.record.location.tx_id);
  const cut = new Set([...before, ...after, ...endsOf(list)].map((record) => record?.location.tx_id));
  return transactions.flatMap((transaction) => {
    const isWhole = transaction.every(({ record }) => !cut.has(record.location.tx_id));
    const byRune = groupBy<ActivityRow<T>, unknown>(transaction, (row) => (row.record.amount === undefined ? row : row.record.rune?.id));
    return [...byRune.values()].flatMap((same) => (isWhole ? [netOf(same)] : same.map((row) => netOf([row]))));
  });
}

/** Adds up the rows of a rune. */
function netOf<T extends ListedRecord>(rows: readonly ActivityRow<T>[]): AddressRow<T>[] {
  const decimals = decimalsOf(rows.map(({ record }) => record.amount));
  const sum = (some: readonly AddressRow<T>[]) =>
    some.reduce((units, { amount = '0', sign }) => units + unitsOf(amount, decimals) * (sign === '−' ? -1n : 1n), 0n);
  const all = rows.map((row): AddressRow<T> => ({ row, kind: row.kind, amount: row.record.amount, sign: signOf(row) }));
  const own = all.filter(({ kind }) => kind === 'to itself');
  const others = all.filter(({ kind }) => kind !== 'to itself');
  const toItself = own.length === 0 ? undefined : shiftDecimals(sum(own), decimals);
  const [first] = others;
  if (first === undefined) return own.slice(0, 1).map((row) => ({ ...row, amount: toItself }));
  const marked = toItself === undefined ? {} : { toItself };
  if (others.length === 1) return [{ ...first, ...marked }];
  const net = sum(others);
  const sign = net === 0n ? '' : net < 0n ? '−' : '+';
  return [{ row: first.row, kind: 'net', amount: shiftDecimals(net < 0n ? -net : net, decimals), sign, ...marked }, ...others];
}

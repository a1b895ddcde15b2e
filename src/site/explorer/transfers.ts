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

/** Sends to an output, and receives of this output. */
interface Group<T> {
  readonly sends: T[];
  readonly receives: T[];
  readonly mint: string;
}

/**
 * Joins the records of a page to rows, in the order of the records. Leaves out a receive if sends or a mint on the same
 * page have exactly its amount. All other records have a row of their own, so each record is in one row, even if its
 * counterpart is on another page. `offset` is the number of records before this page.
 */
export function rowsOf<T extends ListedRecord>(records: readonly T[], offset: number): ActivityRow<T>[] {
  const groups = new Map<string, Group<T>>();
  const mints = new Map<string, T>();
  for (const record of records) {
    const { operation, rune, address, receiver_address, location } = record;
    const mint = `${location.tx_id} ${rune?.id}`;
    // A transaction mints at most once. If the previous page has some of its records, a receive here may be of a send there.
    const isCut = offset > 0 && location.tx_id === records[0]?.location.tx_id;
    if (operation === 'mint' && !isCut) mints.set(mint, record);
    if (operation !== 'send' && operation !== 'receive') continue;
    const key = `${mint} ${location.output} ${location.vout} ${operation === 'send' ? receiver_address : address}`;
    const group = groups.get(key) ?? { sends: [], receives: [], mint };
    groups.set(key, group);
    group[operation === 'send' ? 'sends' : 'receives'].push(record);
  }
  const joined = new Set<T>();
  const minted = new Map<T, T>();
  for (const { sends, receives, mint } of groups.values()) {
    const [first] = receives;
    if (first === undefined) continue;
    const of = mints.get(mint);
    const decimals = decimalsOf([...sends, ...receives, ...(of ? [of] : [])].map(({ amount }) => amount));
    const sum = (some: readonly T[]) => some.reduce((units, { amount = '0' }) => units + unitsOf(amount, decimals), 0n);
    const rest = sum(receives) - sum(sends);
    const isMinted = of !== undefined && rest > 0n && rest === sum([of]) && !minted.has(of);
    if (rest !== 0n && !isMinted) continue;
    for (const record of [...sends, ...receives]) joined.add(record);
    if (isMinted) minted.set(of, first);
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
 * Adds up the rows of an address. Returns a group for each rune of a transaction: one row, or the net amount and its
 * rows. The group has one row for all amounts that go to the address itself. `total` is the length of the list. Leaves
 * the rows of a transaction alone if another page may have more of them.
 */
export function netRows<T extends ListedRecord>(
  rows: readonly ActivityRow<T>[],
  offset: number,
  records: number,
  total: number,
): AddressRow<T>[][] {
  const transactions = runsOf(rows, (before, after) => before.record.location.tx_id !== after.record.location.tx_id);
  return transactions.flatMap((transaction, i) => {
    const isWhole = (i > 0 || offset === 0) && (i < transactions.length - 1 || offset + records >= total);
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

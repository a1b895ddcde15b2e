/** Rows of activity, and sums of amounts. In a transaction, a send and its receive are one row, and so are a mint and its receive. */
import { groupBy, runsOf } from '../../groupBy.ts';
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { addDecimals, decimalsOf, unitsOf } from './amountMath.ts';

/** Record of a list. In a rune's list, records have no rune. */
type ListedRecord = Omit<Activity, 'rune'> & { readonly rune?: Rune };

export interface ActivityRow {
  /** The record that has the row's rune and amount. */
  readonly record: ListedRecord;
  /** Location of the record that has the row's output. */
  readonly location: Activity['location'];
  /** Operation of the record, if the row joins no other record. `to itself` is a transfer from an address to itself. */
  readonly kind: Operation | 'transfer' | 'to itself';
  /** Undefined if the row has no sender or no receiver, and null for a script without an address. */
  readonly from: string | null | undefined;
  readonly to: string | null | undefined;
}

export interface ListWindow {
  /** Number of records of the list before `results`. */
  readonly offset: number;
  readonly results: readonly ListedRecord[];
}

/** Joins the records of each transaction in a window to rows, in the order of the records. */
export function transactionsOf({ offset, results }: ListWindow): ActivityRow[][] {
  const transactions = runsOf(results, (one, next) => one.location.tx_id !== next.location.tx_id);
  return transactions.map((records, i) => rowsOf(records, i === 0 && offset > 0));
}

const outputOf = ({ operation, rune, address, receiver_address, location: { output, vout } }: ListedRecord): string =>
  `${rune?.id} ${output} ${vout} ${operation === 'send' ? receiver_address : address}`;

/**
 * Joins the records of a transaction. A receive has no row of its own if its amount is the exact sum of the sends to its output, or of
 * these sends and a mint. `isCutBefore` is true if the transaction may begin on an earlier page: this page then may have sent what a
 * receive is above its sends, so it joins no mint.
 */
function rowsOf(records: readonly ListedRecord[], isCutBefore: boolean): ActivityRow[] {
  const decimals = decimalsOf(records.map(({ amount }) => amount));
  const units = ({ amount = '0' }: ListedRecord) => unitsOf(amount, decimals);
  const moved = records.filter(({ operation }) => operation === 'send' || operation === 'receive');
  const joined = new Set<ListedRecord>();
  /** Receives of mints. */
  const minted = new Map<ListedRecord, ListedRecord>();
  for (const all of [...groupBy(moved, outputOf).values()].reverse()) {
    const rest = all.reduce((sum, one) => (one.operation === 'receive' ? sum + units(one) : sum - units(one)), 0n);
    const receive = all.find(({ operation }) => operation === 'receive');
    const isMint = (one: ListedRecord) => one.operation === 'mint' && one.rune?.id === receive?.rune?.id && units(one) === rest;
    const mint = receive === undefined || rest <= 0n || isCutBefore ? undefined : records.find((one) => isMint(one) && !minted.has(one));
    if (mint !== undefined && receive !== undefined) minted.set(mint, receive);
    if (mint !== undefined || (rest === 0n && all.length > 1)) for (const one of all) joined.add(one);
  }
  return records.flatMap((record): ActivityRow[] => {
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
export const signOf = ({ kind, to }: ActivityRow): '+' | '−' | '' =>
  kind === 'receive' || (kind === 'mint' && to !== undefined) ? '+' : kind === 'send' || kind === 'burn' ? '−' : '';

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

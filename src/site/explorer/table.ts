/**
 * Tables of records, amounts and a transaction's totals. On narrow screens CSS turns rows into cards. The roles are
 * explicit, because a table loses its implicit roles if CSS changes its display.
 */

import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits, shorten } from '../formatValues.ts';
import { alignmentOf, amountOf } from './alignedAmounts.ts';
import { type Child, el } from './dom.ts';
import { addressLink, blockLink, outputLink, runeLink, timeOf, transactionLink } from './parts.ts';
import { runsOf } from './scales.ts';
import { type RuneTotals, totalsOf } from './transactionTotals.ts';

/** Record of a list. In a rune's list, records have no rune. */
type ListedRecord = Omit<Activity, 'rune'> & Partial<Pick<Activity, 'rune'>>;

/** Column of amounts with aligned decimal points, or of other cells. `isNumber` aligns to the right. */
export type Column<T> = { readonly name: string } & (
  | { readonly amount: (entry: T) => string | undefined }
  | { readonly isNumber?: true; readonly cell: (entry: T, index: number) => readonly Child[] }
);

const OPERATION: Column<ListedRecord> = {
  name: 'Operation',
  cell: ({ operation }) => [el('span', { class: 'operation', 'data-operation': operation }, operation)],
};
const AMOUNT: Column<ListedRecord> = { name: 'Amount', amount: ({ amount }) => amount };
const ADDRESS: Column<ListedRecord> = { name: 'Address', cell: addressesOf };

/** Column of the block and time of an entry. */
export const BLOCK: Column<{ readonly location: Pick<Activity['location'], 'block_height' | 'timestamp'> }> = {
  name: 'Block',
  cell: ({ location }) => [blockLink(location.block_height), ' ', el('span', { class: 'quiet' }, timeOf(location.timestamp))],
};

/** Columns of an amount of a rune. */
export const RUNE_AMOUNT: readonly Column<{ readonly rune: Rune; readonly balance: string }>[] = [
  { name: 'Rune', cell: ({ rune }) => [runeLink(rune)] },
  { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)] },
  { name: 'Balance', amount: ({ balance }) => balance },
];

const RECORD_COLUMNS: readonly Column<Activity>[] = [
  OPERATION,
  { name: 'Rune', cell: ({ rune }) => runeCell(rune) },
  AMOUNT,
  ADDRESS,
  { name: 'Output', cell: outputOf },
];

/** Renders records in the API's order. Groups records of a block by transaction. */
export function activityTable(records: readonly Activity[], kind: 'block' | 'transaction'): HTMLElement {
  const isBlock = kind === 'block';
  const groups = isBlock ? runsOf(records, (before, after) => before.location.tx_id !== after.location.tx_id) : [records];
  return tableOf('activity', 'Activity, the last first', RECORD_COLUMNS, groups, isBlock ? transactionRow : undefined);
}

/** Renders records of a rune or an address, newest first. */
export function newestTable(kind: 'rune' | 'address', records: readonly ListedRecord[]): HTMLElement {
  const rune: Column<ListedRecord> = { name: 'Rune', cell: (record) => (record.rune === undefined ? [] : [runeLink(record.rune)]) };
  const columns: readonly Column<ListedRecord>[] = [
    OPERATION,
    ...(kind === 'address' ? [rune] : []),
    AMOUNT,
    ADDRESS,
    { name: 'Transaction', cell: ({ location }) => [transactionLink(location.tx_id)] },
    BLOCK,
  ];
  return tableOf('activity-list', 'Activity, the newest first', columns, [records]);
}

/** Operations in the order in which a transaction applies them. Omits etchings, which have no amount. */
const SUMMED: readonly (readonly [operation: Operation, name: string])[] = [
  ['send', 'Sent'],
  ['mint', 'Minted'],
  ['receive', 'Received'],
  ['burn', 'Burned'],
];

/** Renders the totals of a transaction by rune. `records` is the transaction's complete list. */
export function totalsTable(records: readonly Activity[]): HTMLElement {
  const totals = totalsOf(records);
  const shown = SUMMED.filter(([operation]) => totals.some(({ sums }) => sums[operation] !== undefined));
  const columns: readonly Column<RuneTotals>[] = [
    { name: 'Rune', cell: ({ rune }) => runeCell(rune) },
    ...shown.map(([operation, name]) => ({ name, amount: ({ sums }: RuneTotals) => sums[operation] })),
  ];
  const table = tableOf('totals', 'Totals of this transaction', columns, [totals]);
  table.prepend(el('caption', {}, 'Totals'));
  return table;
}

/**
 * Renders a table of the class `kind`. `headOf` creates the row above a group from the group's first entry. An index
 * counts from the start of its group.
 */
export function tableOf<T>(
  kind: string,
  label: string,
  columns: readonly Column<T>[],
  groups: readonly (readonly T[])[],
  headOf?: ((first: T) => HTMLElement) | undefined,
): HTMLElement {
  const classOf = (column: Column<T>) => ('amount' in column || column.isNumber ? 'amount' : undefined);
  const heads = columns.map((column) => el('th', { role: 'columnheader', scope: 'col', class: classOf(column) }, column.name));
  const cellOf = (column: Column<T>, entry: T, index: number) => {
    const children = 'amount' in column ? amountCell(column.amount(entry)) : column.cell(entry, index);
    // On narrow screens a cell may show the name of its column.
    const attributes = { role: 'cell', class: classOf(column), 'data-label': column.name };
    return el('td', attributes, children.length === 0 ? undefined : el('div', {}, ...children));
  };
  const rowOf = (entry: T, index: number) => el('tr', { role: 'row' }, ...columns.map((column) => cellOf(column, entry, index)));
  const amounts = columns.flatMap((column) => ('amount' in column ? groups.flat().map(column.amount) : []));
  return el(
    'table',
    { role: 'table', class: `records ${kind}`, 'aria-label': label, style: alignmentOf(amounts) },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads)),
    ...groups.map((group) => {
      const head = headOf === undefined ? [] : group.slice(0, 1).map(headOf);
      return el('tbody', { role: 'rowgroup' }, ...head, ...group.map(rowOf));
    }),
  );
}

function transactionRow({ location: { tx_id, tx_index } }: Activity): HTMLElement {
  const place = el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`);
  const content = el('div', {}, transactionLink(tx_id), ' ', place);
  const cell = el('th', { role: 'rowheader', scope: 'rowgroup', colspan: String(RECORD_COLUMNS.length) }, content);
  return el('tr', { role: 'row', class: 'transaction' }, cell);
}

const amountCell = (amount: string | undefined): Child[] => (amount === undefined ? [] : [amountOf(amount)]);

const runeCell = (rune: Rune): Child[] => [runeLink(rune), ' ', el('code', { class: 'quiet', title: 'Rune id' }, rune.id)];

/**
 * Renders the address that received, sent or burned, and the receiver of a send. Etchings and mints have no address.
 * Other records lack it if an output's script has none.
 */
function addressesOf({ operation, address, receiver_address }: ListedRecord): Child[] {
  const isMove = operation === 'receive' || operation === 'send' || operation === 'burn';
  const arrow = el('span', { class: 'quiet', title: 'Receiver' }, '→');
  return [
    ...(isMove || address !== undefined ? [addressOf(address, 'address')] : []),
    ...(operation === 'send' || receiver_address !== undefined
      ? [el('span', { class: 'to' }, arrow, addressOf(receiver_address, "receiver's address"))]
      : []),
  ];
}

const addressOf = (address: string | undefined, what: string): Child =>
  address === undefined ? el('span', { class: 'quiet' }, 'no address') : addressLink(address, what);

/**
 * Renders an output of either dialect: `txid` with `vout`, or `txid:vout`. Shows only the index for outputs of the
 * record's own transaction.
 */
function outputOf({ location: { output, vout, tx_id } }: Activity): Child[] {
  if (output === undefined) return [];
  const [txId = '', index = vout] = output.replace(/^0x/, '').split(':');
  const outpoint = index === undefined ? txId : `${txId}:${index}`;
  const shown = index === undefined ? shorten(txId) : `:${index}`;
  return [outputLink(outpoint, txId === tx_id.replace(/^0x/, '') ? shown : `${shorten(txId)}${shown}`)];
}

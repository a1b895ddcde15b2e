/**
 * Tables of records, amounts and a transaction's totals. On narrow screens CSS turns rows into cards. The roles are
 * explicit, because a table loses its implicit roles if CSS changes its display.
 */

import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { count, groupDigits, shorten } from '../formatValues.ts';
import { alignmentOf, amountOf } from './alignedAmounts.ts';
import { type Child, el } from './dom.ts';
import { addressLink, blockLink, outputLink, runeLink, timeOf, transactionLink } from './parts.ts';
import { runsOf } from './scales.ts';
import { type RuneTotals, totalsOf } from './transactionTotals.ts';
import { type ActivityRow, type ListedRecord, rowsOf } from './transfers.ts';

/** Column of amounts with aligned decimal points, or of other cells. `isNumber` aligns to the right. */
export type Column<T> = { readonly name: string } & (
  | { readonly amount: (entry: T) => string | undefined; readonly sign?: (entry: T) => string }
  | { readonly isNumber?: true; readonly cell: (entry: T, index: number) => readonly Child[] }
);

type Row = ActivityRow<ListedRecord>;

const OPERATION: Column<Row> = { name: 'Operation', cell: ({ kind }) => [operationOf(kind, kind)] };
const AMOUNT: Column<Row> = { name: 'Amount', amount: ({ record }) => record.amount };
const ADDRESSES: Column<Row> = { name: 'From and to', cell: addressesOf };
const RUNE: Column<Row> = { name: 'Rune', cell: ({ record: { rune } }) => (rune === undefined ? [] : [runeLink(rune)]) };
const TRANSACTION: Column<Row> = { name: 'Transaction', cell: ({ record }) => [transactionLink(record.location.tx_id)] };

const operationOf = (kind: Row['kind'], text: string): HTMLElement => el('span', { class: 'operation', 'data-operation': kind }, text);

/** Shows the block and the time of an entry. */
export const blockCell = ({ location }: { readonly location: Pick<Activity['location'], 'block_height' | 'timestamp'> }): Child[] => [
  blockLink(location.block_height),
  ' ',
  el('span', { class: 'quiet' }, timeOf(location.timestamp)),
];

const BLOCK_OF_RECORD: Column<Row> = { name: 'Block', cell: ({ record }) => blockCell(record) };

/** Columns of an amount of a rune. */
export const RUNE_AMOUNT: readonly Column<{ readonly rune: Rune; readonly balance: string }>[] = [
  { name: 'Rune', cell: ({ rune }) => [runeLink(rune)] },
  { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)] },
  { name: 'Balance', amount: ({ balance }) => balance },
];

const RECORD_COLUMNS: readonly Column<ActivityRow<Activity>>[] = [
  OPERATION,
  { name: 'Rune', cell: ({ record }) => runeCell(record.rune) },
  AMOUNT,
  ADDRESSES,
  { name: 'Output', cell: ({ location }) => outputOf(location) },
];

/** Renders records in the API's order. Groups records of a block by transaction. */
export function activityTable(records: readonly Activity[], offset: number, kind: 'block' | 'transaction'): HTMLElement {
  const isBlock = kind === 'block';
  const rows = rowsOf(records, offset);
  const groups = isBlock ? runsOf(rows, (before, after) => before.record.location.tx_id !== after.record.location.tx_id) : [rows];
  return noted(
    tableOf('activity', 'Activity, the last first', RECORD_COLUMNS, groups, isBlock ? transactionRow : undefined),
    records,
    rows,
  );
}

const RUNE_COLUMNS: readonly Column<Row>[] = [OPERATION, AMOUNT, ADDRESSES, TRANSACTION, BLOCK_OF_RECORD];

const IN_OR_OUT: Partial<Record<Row['kind'], { readonly text: string; readonly sign: string }>> = {
  receive: { text: 'in', sign: '+' },
  send: { text: 'out', sign: '−' },
  burn: { text: 'burn', sign: '−' },
};

/** Columns of records of one address: in or out, and how the amount changes its balance. */
const ADDRESS_COLUMNS: readonly Column<Row>[] = [
  { name: 'Operation', cell: ({ kind }) => [operationOf(kind, IN_OR_OUT[kind]?.text ?? kind)] },
  RUNE,
  { ...AMOUNT, sign: ({ kind }) => IN_OR_OUT[kind]?.sign ?? '' },
  { name: 'To', cell: ({ kind, to }) => (kind === 'send' ? [receiverOf(addressOf(to, "receiver's address"))] : []) },
  TRANSACTION,
  BLOCK_OF_RECORD,
];

/** Renders records of a rune or an address, newest first. */
export function newestTable(kind: 'rune' | 'address', records: readonly ListedRecord[], offset: number): HTMLElement {
  const rows = rowsOf(records, offset);
  const columns = kind === 'rune' ? RUNE_COLUMNS : ADDRESS_COLUMNS;
  return noted(tableOf('activity-list', 'Activity, the newest first', columns, [rows]), records, rows);
}

/** Adds a note to a table that has fewer rows than records, because the pages of a list count records. */
function noted(table: HTMLElement, records: readonly unknown[], rows: readonly unknown[]): HTMLElement {
  const text = `${count(records.length, 'record')} in ${count(rows.length, 'row')}: a send or mint and its receive are one`;
  if (rows.length < records.length) table.prepend(el('caption', { class: 'joined quiet' }, text));
  return table;
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
    const children = 'amount' in column ? amountCell(column.amount(entry), column.sign?.(entry)) : column.cell(entry, index);
    // On narrow screens a cell may show the name of its column.
    const attributes = { role: 'cell', class: classOf(column), 'data-label': column.name };
    return el('td', attributes, children.length === 0 ? undefined : el('div', {}, ...children));
  };
  const rowOf = (entry: T, index: number) => el('tr', { role: 'row' }, ...columns.map((column) => cellOf(column, entry, index)));
  const amounts = columns.flatMap((column) => ('amount' in column ? groups.flat().map(column.amount) : []));
  const hasSigns = columns.some((column) => 'amount' in column && column.sign !== undefined);
  return el(
    'table',
    { role: 'table', class: `records ${kind}`, 'aria-label': label, style: alignmentOf(amounts, hasSigns) },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads)),
    ...groups.map((group) => {
      const head = headOf === undefined ? [] : group.slice(0, 1).map(headOf);
      return el('tbody', { role: 'rowgroup' }, ...head, ...group.map(rowOf));
    }),
  );
}

function transactionRow({ record: { location } }: ActivityRow<Activity>): HTMLElement {
  const { tx_id, tx_index } = location;
  const place = el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`);
  const content = el('div', {}, transactionLink(tx_id), ' ', place);
  const cell = el('th', { role: 'rowheader', scope: 'rowgroup', colspan: String(RECORD_COLUMNS.length) }, content);
  return el('tr', { role: 'row', class: 'transaction' }, cell);
}

const amountCell = (amount: string | undefined, sign?: string): Child[] => (amount === undefined ? [] : [amountOf(amount, sign)]);

const runeCell = (rune: Rune): Child[] => [runeLink(rune), ' ', el('code', { class: 'quiet' }, rune.id)];

/** Shows the sender, an arrow and the receiver of a row. Rows of etchings have neither. */
function addressesOf({ kind, from, to }: Row): Child[] {
  const receiver = kind === 'to itself' ? 'itself' : addressOf(to, from === undefined ? 'address' : "receiver's address");
  return [...(from === undefined ? [] : [addressOf(from, 'address')]), ...(to === undefined ? [] : [receiverOf(receiver)])];
}

const receiverOf = (receiver: Child): Child =>
  el('span', { class: 'to' }, el('span', { class: 'quiet', title: 'Receiver' }, '→'), receiver);

const addressOf = (address: string | null | undefined, what: string): Child =>
  address === null || address === undefined ? el('span', { class: 'quiet' }, 'no address') : addressLink(address, what);

/**
 * Renders an output of either dialect: `txid` with `vout`, or `txid:vout`. Shows only the index for outputs of the
 * record's own transaction.
 */
function outputOf({ output, vout, tx_id }: Activity['location']): Child[] {
  if (output === undefined) return [];
  const [txId = '', index = vout] = output.replace(/^0x/, '').split(':');
  const outpoint = index === undefined ? txId : `${txId}:${index}`;
  const shown = index === undefined ? shorten(txId) : `:${index}`;
  return [outputLink(outpoint, txId === tx_id.replace(/^0x/, '') ? shown : `${shorten(txId)}${shown}`)];
}

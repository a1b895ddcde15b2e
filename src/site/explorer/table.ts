/** Tables of records, amounts and a transaction's totals. */

import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits, shorten } from '../formatValues.ts';
import { type Child, el } from './dom.ts';
import { addressLink, blockLink, linkTo, outputLink, runeLink, timeOf, transactionLink } from './parts.ts';
import { nameCell } from './runeCells.ts';
import { type Column, tableOf } from './tableOf.ts';
import { type RuneTotals, totalsOf } from './transactionTotals.ts';
import { type ActivityRow, type AddressRow, type ListedRecord, type ListWindow, netRows, transactionsOf } from './transfers.ts';
import { listOf } from './views.ts';

type Row = ActivityRow<ListedRecord>;

/** Widths of columns that several tables have. */
const OPERATION_WIDTH = '6.5rem';
export const BLOCK_WIDTH = '11rem';
const TRANSACTION_WIDTH = 'clamp(9.5rem, 16vw, 14rem)';

const OPERATION: Column<Row> = { name: 'Operation', width: OPERATION_WIDTH, cell: ({ kind }) => [operationOf(kind, kind)] };
const AMOUNT: Column<Row> = { name: 'Amount', amount: ({ record }) => record.amount };
const ADDRESSES: Column<Row> = { name: 'From and to', least: '18rem', cell: addressesOf };
const transactionCell = ({ record }: Row): Child[] => [transactionLink(record.location.tx_id)];

const operationOf = (kind: Row['kind'], text: string): HTMLElement => el('span', { class: 'operation', 'data-operation': kind }, text);

export const blockCell = ({ location }: { readonly location: Pick<Activity['location'], 'block_height' | 'timestamp'> }): Child[] => [
  blockLink(location.block_height),
  ' ',
  el('span', { class: 'quiet' }, timeOf(location.timestamp)),
];

export const RUNE_AMOUNT: readonly Column<{ readonly rune: Rune; readonly balance: string }>[] = [
  { name: 'Rune', cell: ({ rune }) => [runeLink(rune)] },
  { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)] },
  { name: 'Balance', amount: ({ balance }) => balance },
];

const RECORD_COLUMNS: readonly Column<ActivityRow<Activity>>[] = [
  OPERATION,
  { name: 'Rune', width: 'clamp(13rem, 20vw, 17rem)', cell: ({ record }) => nameCell(record.rune) },
  AMOUNT,
  ADDRESSES,
  { name: 'Output', width: '4.5rem', cell: ({ location }) => outputOf(location) },
];

/** Renders records in the API's order. Groups records of a block by transaction. */
export function activityTable(list: ListWindow<Activity>, kind: 'block' | 'transaction'): HTMLElement {
  const groups = transactionsOf(list).map(({ rows }) => rows);
  const headOf = kind === 'block' ? transactionRow : undefined;
  return tableOf('records activity', 'Activity, the last first', RECORD_COLUMNS, groups, { headOf });
}

const RUNE_COLUMNS: readonly Column<Row>[] = [
  OPERATION,
  AMOUNT,
  ADDRESSES,
  { name: 'Transaction', width: TRANSACTION_WIDTH, cell: transactionCell },
  { name: 'Block', width: BLOCK_WIDTH, cell: ({ record }) => blockCell(record) },
];

type NetRow = AddressRow<ListedRecord>;

const IN_OR_OUT: Partial<Record<NetRow['kind'], string>> = { receive: 'in', send: 'out' };
/** Operation whose colour a net amount gets, by the sign of the amount. */
const HUE_OF_NET = { '+': 'receive', '−': 'send', '': 'to itself' } as const;

/** Shows a cell only in the first of the rows for one rune of one transaction. */
const once =
  (cell: (row: Row) => readonly Child[]) =>
  ({ row }: NetRow, index: number): readonly Child[] =>
    index === 0 ? cell(row) : [];

/** Columns for the activity of one address: sends and receives are named `out` and `in`, and amounts have a sign. */
const ADDRESS_COLUMNS: readonly Column<NetRow>[] = [
  {
    name: 'Operation',
    width: OPERATION_WIDTH,
    cell: ({ kind, sign }) => [operationOf(kind === 'net' ? HUE_OF_NET[sign] : kind, IN_OR_OUT[kind] ?? kind)],
  },
  { name: 'Rune', least: '10rem', cell: once(({ record: { rune } }) => (rune === undefined ? [] : [runeLink(rune)])) },
  { name: 'Amount', amount: ({ amount }) => amount, sign: ({ sign }) => sign },
  { name: 'From or to', least: '11rem', cell: otherSideCell },
  { name: 'Transaction', width: TRANSACTION_WIDTH, cell: once(transactionCell) },
  { name: 'Block', width: BLOCK_WIDTH, cell: once(({ record }) => blockCell(record)) },
];

/** Renders records of a rune, newest first. */
export const runeActivityTable = (list: ListWindow<ListedRecord>): HTMLElement =>
  tableOf('records activity-list', 'Activity, the newest first', RUNE_COLUMNS, [transactionsOf(list).flatMap(({ rows }) => rows)]);

/** Renders records of an address, newest first. */
export const addressActivityTable = (list: ListWindow<Activity>): HTMLElement =>
  tableOf('records activity-list nets', 'Activity, the newest first', ADDRESS_COLUMNS, netRows(list));

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
    { name: 'Rune', cell: ({ rune }) => nameCell(rune) },
    ...shown.map(([operation, name]) => ({ name, amount: ({ sums }: RuneTotals) => sums[operation] })),
  ];
  return tableOf('records totals', 'Totals of this transaction', columns, [totals], { caption: 'Totals' });
}

function transactionRow({ record: { location } }: ActivityRow<Activity>): HTMLElement {
  const { tx_id, tx_index } = location;
  const place = el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`);
  const content = el('div', {}, transactionLink(tx_id), ' ', place);
  const cell = el('th', { role: 'rowheader', scope: 'rowgroup', colspan: String(RECORD_COLUMNS.length) }, content);
  return el('tr', { role: 'row', class: 'transaction' }, cell);
}

/** Shows the sender, an arrow and the receiver of a row. Rows of etchings have neither. */
function addressesOf({ kind, from, to }: Row): Child[] {
  const receiver = kind === 'to itself' ? 'itself' : addressOf(to, from === undefined ? 'address' : "receiver's address");
  return [...(from === undefined ? [] : [addressOf(from, 'address')]), ...(to === undefined ? [] : [receiverOf(receiver)])];
}

/**
 * Shows the receiver of a row of an address, and the amount that goes to the address itself. Records of a receive do not
 * name the sender, but those of its transaction do.
 */
function otherSideCell({ kind, row: { record, to }, toItself }: NetRow): Child[] {
  const transaction = linkTo(listOf('transaction', record.location.tx_id), 'where from');
  const sides: Child[] =
    kind === 'send'
      ? [receiverOf(addressOf(to, "receiver's address"))]
      : kind === 'receive'
        ? [el('span', { class: 'to' }, '←', transaction)]
        : [];
  return toItself === undefined
    ? sides
    : [...sides, el('div', { class: 'quiet' }, operationOf('to itself', `${groupDigits(toItself)} to itself`))];
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

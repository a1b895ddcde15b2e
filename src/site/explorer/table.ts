/** Tables of records, amounts and a transaction's totals. */
import type { Operation } from '../../pages/blockAndTransactionLists.ts';
import type { Activity, Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits, shorten } from '../formatValues.ts';
import { type Child, el } from './dom.ts';
import { addressLink, blockLink, linkTo, nameCell, outputLink, runeLink, timeOf, transactionLink } from './parts.ts';
import { byName, type Column, tableOf } from './tableOf.ts';
import { type ListWindow, type ActivityRow as Row, type RuneTotals, signOf, totalsOf, transactionsOf } from './transfers.ts';
import { type Kind, viewAt } from './views.ts';

export const BLOCK_WIDTH = '11rem';

/** Shows a block and its time. The rune that the protocol itself etched has no time. */
export const blockCell = ({ location }: { readonly location: Pick<Activity['location'], 'block_height' | 'timestamp'> }): Child[] => [
  blockLink(location.block_height),
  ...(location.timestamp === 0 ? [] : [' ', el('span', { class: 'quiet' }, timeOf(location.timestamp))]),
];

interface RuneAmount {
  readonly rune: Rune;
  readonly balance: string;
}

export const byRuneName = (a: RuneAmount, b: RuneAmount): number => byName(a.rune, b.rune);

/** Compares runes by the numbers of their ids. */
const byRuneId = (a: RuneAmount, b: RuneAmount): number => a.rune.id.localeCompare(b.rune.id, 'en', { numeric: true });

export const RUNE_AMOUNT: readonly Column<RuneAmount>[] = [
  { name: 'Rune', cell: ({ rune }) => [runeLink(rune)], order: byRuneName },
  { name: 'Rune id', cell: ({ rune }) => [el('code', { class: 'quiet' }, rune.id)], order: byRuneId },
  { name: 'Balance', amount: ({ balance }) => balance },
];

const RUNE: Column<Row> = {
  name: 'Rune',
  width: 'clamp(9rem, 20vw, 17rem)',
  cell: ({ record: { rune } }) => (rune === undefined ? [] : nameCell(rune)),
};

/** Renders records by transaction, in the API's order. In the list of an address, amounts have the sign of their change of the balance. */
export function activityTable(list: ListWindow, of: Kind): HTMLElement {
  const isAddress = of === 'address';
  const columns: readonly Column<Row>[] = [
    { name: 'Operation', width: '6.5rem', cell: ({ kind }) => [el('span', { class: 'operation', 'data-operation': kind }, kind)] },
    // A rune's list does not repeat the rune.
    ...(of === 'rune' ? [] : [RUNE]),
    { name: 'Amount', amount: ({ record }: Row) => record.amount, ...(isAddress ? { sign: signOf } : {}) },
    isAddress ? { name: 'From or to', least: '10rem', cell: otherSideOf } : { name: 'From and to', least: '10rem', cell: addressesOf },
    { name: 'Output', width: '4.5rem', cell: ({ location }: Row) => outputOf(location) },
  ];
  const headOf = of === 'transaction' ? undefined : (row: Row) => transactionRow(row, of === 'block', columns.length);
  return tableOf('records activity', 'Activity, the last first', columns, transactionsOf(list), { headOf });
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
    { name: 'Rune', cell: ({ rune }) => nameCell(rune) },
    ...shown.map(([operation, name]) => ({ name, amount: ({ sums }: RuneTotals) => sums[operation] })),
  ];
  return tableOf('records totals', 'Totals of this transaction', columns, [totals], { caption: 'Totals' });
}

/** Renders the row above the records of a transaction. In the list of a block, all transactions have the same block. */
function transactionRow({ record: { location } }: Row, isInBlock: boolean, columns: number): HTMLElement {
  const { tx_id, tx_index } = location;
  const place = isInBlock
    ? [el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`)]
    : blockCell({ location });
  const cell = el(
    'th',
    { role: 'rowheader', scope: 'rowgroup', colspan: columns },
    el('div', {}, transactionLink(tx_id), el('span', {}, ...place)),
  );
  return el('tr', { role: 'row', class: 'transaction' }, cell);
}

/** Shows the sender, an arrow and the receiver of a row. Rows of etchings have neither. */
function addressesOf({ kind, from, to }: Row): Child[] {
  const receiver = kind === 'to itself' ? 'itself' : addressOf(to, from === undefined ? 'address' : "receiver's address");
  return [...(from === undefined ? [] : [addressOf(from, 'address')]), ...(to === undefined ? [] : [receiverOf(receiver)])];
}

/** Shows the receiver of a row of an address. Only the other records of its transaction say whether a receive has a sender or is a mint's. */
function otherSideOf({ kind, record, to }: Row): Child[] {
  if (kind === 'send') return [receiverOf(addressOf(to, "receiver's address"))];
  return kind === 'receive'
    ? [el('span', { class: 'to' }, '←', linkTo(viewAt('transaction', record.location.tx_id), 'sender or mint'))]
    : [];
}

const receiverOf = (receiver: Child): Child =>
  el('span', { class: 'to' }, el('span', { class: 'quiet', title: 'Receiver' }, '→'), receiver);

const addressOf = (address: string | null | undefined, what: string): Child =>
  address === null || address === undefined ? el('span', { class: 'quiet' }, 'no address') : addressLink(address, what);

/** Renders an output of either dialect, `txid` with `vout` or `txid:vout`: only its index if it is of the record's own transaction. */
function outputOf({ output, vout, tx_id }: Activity['location']): Child[] {
  if (output === undefined) return [];
  const [txId = '', index = vout] = output.replace(/^0x/, '').split(':');
  const outpoint = index === undefined ? txId : `${txId}:${index}`;
  const shown = index === undefined ? shorten(txId) : `:${index}`;
  return [outputLink(outpoint, txId === tx_id.replace(/^0x/, '') ? shown : `${shorten(txId)}${shown}`)];
}

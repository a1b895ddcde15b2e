/**
 * The table of records. On narrow screens CSS turns rows into cards, so each cell has its column's name as a label. The
 * roles are explicit, because a table loses its implicit roles when CSS changes its display.
 */

import { groupDigits, shorten } from '../format.ts';
import { type Child, el } from './dom.ts';
import { addressLink, idWithCopy, runeLink } from './parts.ts';
import type { Activity } from './source.ts';

type Column = readonly [name: string, cell: (activity: Activity) => Child[]];

const COMMON: readonly Column[] = [
  ['Operation', ({ operation }) => [el('span', { class: 'operation', 'data-operation': operation }, operation)]],
  ['Rune', ({ rune }) => [runeLink(rune), ' ', el('code', { class: 'quiet', title: 'Rune id' }, rune.id)]],
  ['Amount', ({ amount }) => (amount === undefined ? [] : [amountOf(amount)])],
  ['Address', addressesOf],
  ['Output', outputOf],
];

const COLUMNS: Readonly<Record<'block' | 'transaction', readonly Column[]>> = {
  transaction: COMMON,
  block: [
    ...COMMON,
    [
      'Transaction',
      ({ location: { tx_id, tx_index } }) => [
        idWithCopy(tx_id, 'transaction id', { to: { kind: 'transaction', id: tx_id, offset: 0 } }),
        ' ',
        el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`),
      ],
    ],
  ],
};

/** Renders records in the API's order. */
export function activityTable(results: readonly Activity[], kind: 'block' | 'transaction'): HTMLElement {
  const columns = COLUMNS[kind];
  const head = el(
    'tr',
    { role: 'row' },
    ...columns.map(([name]) => el('th', { role: 'columnheader', scope: 'col', class: classOf(name) }, name)),
  );
  const rows = results.map((activity) => el('tr', { role: 'row' }, ...columns.map(([name, cell]) => cellOf(name, cell(activity)))));
  return el(
    'table',
    { role: 'table', class: 'activity', 'aria-label': 'Activity, the last first' },
    el('thead', { role: 'rowgroup' }, head),
    el('tbody', { role: 'rowgroup' }, ...rows),
  );
}

const classOf = (name: string): string | undefined => (name === 'Amount' ? 'amount' : undefined);

const cellOf = (name: string, children: readonly Child[]): HTMLElement =>
  el('td', { role: 'cell', class: classOf(name), 'data-label': name }, children.length === 0 ? undefined : el('div', {}, ...children));

/** Adds thousands separators to the integer part of an amount. */
export function amountOf(amount: string): HTMLElement {
  const [whole = '', fraction] = groupDigits(amount).split('.');
  return el('data', { value: amount }, whole, fraction === undefined ? undefined : el('span', { class: 'quiet' }, `.${fraction}`));
}

/**
 * Renders who received, sent or burned, and the receiver of a send. Etchings and mints have no address. In other records
 * it is missing if an output's script has none.
 */
export function addressesOf({ operation, address, receiver_address }: Omit<Activity, 'rune'>): Child[] {
  const isMove = operation === 'receive' || operation === 'send' || operation === 'burn';
  const arrow = el('span', { class: 'quiet', title: 'Receiver' }, '→ ');
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
 * Renders an output of either dialect: `txid` with `vout`, or `txid:vout`. For outputs of the record's own transaction
 * it shows only the index.
 */
function outputOf({ location: { output, vout, tx_id } }: Activity): Child[] {
  if (output === undefined) return [];
  const [txId = '', index = vout] = output.replace(/^0x/, '').split(':');
  const outpoint = index === undefined ? txId : `${txId}:${index}`;
  const shown = index === undefined ? shorten(txId) : `:${index}`;
  return [idWithCopy(outpoint, 'output', { shown: txId === tx_id.replace(/^0x/, '') ? shown : `${shorten(txId)}${shown}` })];
}

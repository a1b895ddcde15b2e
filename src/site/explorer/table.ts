/**
 * The table of activity. On narrow screens its rows become cards, so every cell has its column's name, and the roles are written out: a table that
 * is displayed as something else would lose them.
 */

import { groupDigits, shorten } from '../format.ts';
import { type Child, el } from './dom.ts';
import { idWithCopy } from './parts.ts';
import type { Activity } from './source.ts';

type Column = readonly [name: string, cell: (activity: Activity) => Child[]];

const COMMON: readonly Column[] = [
  ['Operation', ({ operation }) => [el('span', { class: 'operation', 'data-operation': operation }, operation)]],
  ['Rune', ({ rune }) => [el('span', { class: 'rune' }, rune.spaced_name), ' ', el('code', { class: 'quiet', title: 'Rune id' }, rune.id)]],
  ['Amount', ({ amount }) => (amount === undefined ? [] : [amountOf(amount)])],
  [
    'Address',
    ({ address, receiver_address }) => [
      ...addressOf(address, 'address'),
      ...(receiver_address === undefined
        ? []
        : [
            el(
              'span',
              { class: 'to' },
              el('span', { class: 'quiet', title: 'Receiver' }, '→ '),
              ...addressOf(receiver_address, "receiver's address"),
            ),
          ]),
    ],
  ],
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

/** The records in the order in which the API gave them. */
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

/** The text that the API gave, with its whole part in groups. */
function amountOf(amount: string): HTMLElement {
  const [whole = '', fraction] = groupDigits(amount).split('.');
  return el('data', { value: amount }, whole, fraction === undefined ? undefined : el('span', { class: 'quiet' }, `.${fraction}`));
}

const addressOf = (address: string | undefined, what: string): Child[] => (address === undefined ? [] : [idWithCopy(address, what)]);

/** An outpoint in either dialect's spelling: `txid` with the index beside it, or `txid:vout`. Of the transaction's own outputs the index is enough. */
function outputOf({ location: { output, vout, tx_id } }: Activity): Child[] {
  if (output === undefined) return [];
  const [txId = '', index = vout] = output.replace(/^0x/, '').split(':');
  const outpoint = index === undefined ? txId : `${txId}:${index}`;
  const shown = index === undefined ? shorten(txId) : `:${index}`;
  return [idWithCopy(outpoint, 'output', { shown: txId === tx_id.replace(/^0x/, '') ? shown : `${shorten(txId)}${shown}` })];
}

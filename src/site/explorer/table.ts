/**
 * The tables of records and of a transaction's totals. On narrow screens CSS turns rows into cards. The roles are
 * explicit, because a table loses its implicit roles when CSS changes its display.
 */

import type { Operation } from '../../pages/lists.ts';
import { groupDigits, shorten } from '../format.ts';
import { alignmentOf, amountOf } from './amounts.ts';
import { type Child, el } from './dom.ts';
import { addressLink, idWithCopy, runeLink } from './parts.ts';
import type { Activity } from './source.ts';
import { totalsOf } from './totals.ts';

type Column = readonly [name: string, cell: (activity: Activity) => Child[]];

const COLUMNS: readonly Column[] = [
  ['Operation', ({ operation }) => [el('span', { class: 'operation', 'data-operation': operation }, operation)]],
  ['Rune', ({ rune }) => runeOf(rune)],
  ['Amount', ({ amount }) => (amount === undefined ? [] : [amountOf(amount)])],
  ['Address', addressesOf],
  ['Output', outputOf],
];

/** Renders records in the API's order. Those of a block are grouped by transaction. */
export function activityTable(results: readonly Activity[], kind: 'block' | 'transaction'): HTMLElement {
  const rowOf = (activity: Activity) =>
    row(COLUMNS.map(([name, cell]) => cellOf(name, cell(activity), name === 'Amount' ? 'amount' : undefined)));
  const groups = kind === 'block' ? runsOf(results) : [results];
  return table(
    'activity',
    'Activity, the last first',
    COLUMNS.map(([name]) => name),
    groups.map((group) => [...(kind === 'block' ? group.slice(0, 1).map(transactionRow) : []), ...group.map(rowOf)]),
    results.map(({ amount }) => amount),
  );
}

/** Operations in the order in which runes go through a transaction. Etchings have no amount. */
const SUMMED: readonly (readonly [operation: Operation, name: string])[] = [
  ['send', 'Sent'],
  ['mint', 'Minted'],
  ['receive', 'Received'],
  ['burn', 'Burned'],
];

/** Renders the totals of a transaction by rune. `results` is its whole list. */
export function totalsTable(results: readonly Activity[]): HTMLElement {
  const totals = totalsOf(results);
  const columns = SUMMED.filter(([operation]) => totals.some(({ sums }) => sums[operation] !== undefined));
  const rows = totals.map(({ rune, sums }) =>
    row([
      cellOf('Rune', runeOf(rune)),
      ...columns.map(([operation, name]) => {
        const sum = sums[operation];
        return cellOf(name, sum === undefined ? [] : [amountOf(sum)], 'amount');
      }),
    ]),
  );
  const amounts = totals.flatMap(({ sums }) => Object.values(sums));
  return table('totals', 'Totals of this transaction', ['Rune', ...columns.map(([, name]) => name)], [rows], amounts);
}

/** Renders a table. `groups` are its rows; `amounts` tell how much room each side of the decimal point needs. */
function table(
  kind: 'activity' | 'totals',
  label: string,
  names: readonly string[],
  groups: readonly (readonly HTMLElement[])[],
  amounts: readonly (string | undefined)[],
): HTMLElement {
  const isAmount = (name: string) => name === 'Amount' || SUMMED.some(([, each]) => each === name);
  const head = names.map((name) => el('th', { role: 'columnheader', scope: 'col', class: isAmount(name) ? 'amount' : undefined }, name));
  return el(
    'table',
    { role: 'table', class: `records ${kind}`, 'aria-label': label, style: alignmentOf(amounts) },
    kind === 'totals' ? el('caption', {}, 'Totals') : undefined,
    el('thead', { role: 'rowgroup' }, row(head)),
    ...groups.map((rows) => el('tbody', { role: 'rowgroup' }, ...rows)),
  );
}

/** Renders a row of a table. */
export const row = (cells: readonly HTMLElement[]): HTMLElement => el('tr', { role: 'row' }, ...cells);

/** Renders a cell. On narrow screens it may show the name of its column. */
export const cellOf = (name: string, children: readonly Child[], kind?: 'amount'): HTMLElement =>
  el('td', { role: 'cell', class: kind, 'data-label': name }, children.length === 0 ? undefined : el('div', {}, ...children));

/** Splits records into runs of the same transaction. */
function runsOf(results: readonly Activity[]): Activity[][] {
  const runs: Activity[][] = [];
  for (const activity of results) {
    const run = runs.at(-1);
    if (run?.[0]?.location.tx_id === activity.location.tx_id) run.push(activity);
    else runs.push([activity]);
  }
  return runs;
}

function transactionRow({ location: { tx_id, tx_index } }: Activity): HTMLElement {
  const id = idWithCopy(tx_id, 'transaction id', { to: { kind: 'transaction', id: tx_id, offset: 0 } });
  const place = el('span', { class: 'quiet', title: 'Place in the block' }, `#${groupDigits(tx_index)}`);
  const cell = el('th', { role: 'rowheader', scope: 'rowgroup', colspan: String(COLUMNS.length) }, el('div', {}, id, ' ', place));
  return el('tr', { role: 'row', class: 'transaction' }, cell);
}

const runeOf = (rune: Activity['rune']): Child[] => [runeLink(rune), ' ', el('code', { class: 'quiet', title: 'Rune id' }, rune.id)];

/**
 * Renders who received, sent or burned, and the receiver of a send. Etchings and mints have no address. In other records
 * it is missing if an output's script has none.
 */
export function addressesOf({ operation, address, receiver_address }: Omit<Activity, 'rune'>): Child[] {
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

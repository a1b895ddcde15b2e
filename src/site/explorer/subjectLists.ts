/**
 * The lists on pages of runes and addresses: their tabs, their tables, and what a mirror says that does not have them.
 */
import type { Mirror, MirrorManifest } from '../../client/index.ts';
import type { FoundRune } from '../../pages/search.ts';
import { count, groupDigits } from '../format.ts';
import { alignmentOf, amountOf } from './amounts.ts';
import { type Child, el } from './dom.ts';
import { pagingOf, type Shown } from './paging.ts';
import { apiSource, blockLink, idWithCopy, linkTo, runeLink, timeOf } from './parts.ts';
import type { Activity } from './source.ts';
import { addressesOf, cellOf, row } from './table.ts';
import { SUBJECT_LISTS, type SubjectList, type SubjectView, targetOf } from './views.ts';

/** How a page asks the mirror. */
export interface Source {
  readonly mirror: Mirror;
  readonly manifest: MirrorManifest;
  /** Finds runes by the first letters of their names. */
  readonly find: (letters: string) => Promise<readonly FoundRune[]>;
  readonly signal: AbortSignal;
}

/** A page that is ready to be shown. */
export interface DetailsPage {
  readonly title: string;
  /** Said to screen readers. */
  readonly said: string;
  readonly nodes: readonly Node[];
}

/** A list of a rune or an address, or why the mirror does not have it. */
interface SubjectPart {
  /** The path of the list below `runes/v1`. */
  readonly path: string;
  /** Undefined if the mirror does not have the list. */
  readonly fetch: ((window: { readonly offset: number; readonly limit?: number | undefined }) => Promise<Shown>) | undefined;
  readonly table: (shown: Shown) => HTMLElement;
  /** What is said of an empty list, and of a mirror without it. */
  readonly empty: string;
  readonly missing: string;
}
export type SubjectParts = Readonly<Partial<Record<SubjectList, SubjectPart>>>;

/** Lists with their totals; undefined for a list that the mirror does not have. */
export type Totals = Readonly<Partial<Record<SubjectList, number>>>;

const NAMES: Readonly<Record<SubjectList, string>> = { activity: 'Activity', holders: 'Holders', balances: 'Balances' };

/** The lists of a page: the one that the view shows, and the totals of all. */
export interface FetchedLists {
  readonly list: SubjectList;
  readonly shown: Shown | undefined;
  readonly totals: Totals;
}

/** Fetches the list that a view shows, and one entry of the others for their totals. */
export async function fetchLists(view: SubjectView, parts: SubjectParts): Promise<FetchedLists> {
  const names = SUBJECT_LISTS[view.kind];
  const list = view.list ?? names.find((name) => parts[name]?.fetch !== undefined) ?? names[0];
  const window = { offset: view.offset, limit: view.limit };
  const fetched = await Promise.all(
    names.map(async (name) => [name, await parts[name]?.fetch?.(name === list ? window : { offset: 0, limit: 1 })] as const),
  );
  return {
    list,
    shown: fetched.find(([name]) => name === list)?.[1],
    totals: Object.fromEntries(fetched.flatMap(([name, result]) => (result === undefined ? [] : [[name, result.total]]))),
  };
}

/** Renders the tabs, the shown list with its paging, and its request. */
export function listNodes(view: SubjectView, { list, shown, totals }: FetchedLists, parts: SubjectParts): Node[] {
  const tabs = SUBJECT_LISTS[view.kind].map((name) => {
    const link = linkTo({ ...view, list: name, limit: undefined, offset: 0 }, NAMES[name]);
    link.className = 'chip';
    link.dataset['step'] = `tab ${name}`;
    if (name === list) link.setAttribute('aria-current', 'true');
    const total = totals[name];
    if (total !== undefined) link.append(' ', el('span', { class: 'total' }, groupDigits(total)));
    return link;
  });
  const part = parts[list];
  const nav = el('nav', { class: 'chips', 'aria-label': 'Lists' }, ...tabs);
  if (part === undefined || shown === undefined) return [nav, el('p', { class: 'note' }, part?.missing)];
  const source = apiSource(targetOf(part.path, view));
  if (shown.total === 0) return [nav, el('p', { class: 'note' }, part.empty), source];
  const here = { ...view, list };
  if (shown.results.length === 0) {
    const start = linkTo({ ...here, offset: 0 }, 'Show the first page');
    return [
      nav,
      el('p', { class: 'note' }, `This list has ${count(shown.total, 'entry').replace(/ys$/, 'ies')} and ends before this page. `, start),
      source,
    ];
  }
  const again = shown.results.length < shown.total ? [pagingOf(here, shown, 'Pages, again')] : [];
  return [nav, pagingOf(here, shown, 'Pages'), part.table(shown), ...again, source];
}

/** A column: `isNumber` aligns it to the right. */
export interface Column<T> {
  readonly name: string;
  readonly isNumber?: true;
  readonly cell: (entry: T, index: number) => Child[];
}

/** Renders a table. `amounts` are those that it shows. On narrow screens CSS turns rows into cards, as in table.ts. */
export function tableOf<T>(
  label: string,
  kind: SubjectList,
  columns: readonly Column<T>[],
  entries: readonly T[],
  amounts: readonly (string | undefined)[],
): HTMLElement {
  const classOf = ({ isNumber }: Column<T>) => (isNumber ? 'amount' : undefined);
  const heads = columns.map((column) => el('th', { role: 'columnheader', scope: 'col', class: classOf(column) }, column.name));
  const rowOf = (entry: T, index: number) => row(columns.map((column) => cellOf(column.name, column.cell(entry, index), classOf(column))));
  return el(
    'table',
    { role: 'table', class: `records ${kind}-list`, 'aria-label': label, style: alignmentOf(amounts) },
    el('thead', { role: 'rowgroup' }, row(heads)),
    el('tbody', { role: 'rowgroup' }, ...entries.map(rowOf)),
  );
}

/** A record of a rune's list lacks the rune. */
type ListedRecord = Omit<Activity, 'rune'> & Partial<Pick<Activity, 'rune'>>;

/** Renders records of a rune or an address, newest first. */
export function recordsTable(kind: SubjectView['kind'], records: readonly ListedRecord[]): HTMLElement {
  const rune: Column<ListedRecord> = { name: 'Rune', cell: (record) => (record.rune === undefined ? [] : [runeLink(record.rune)]) };
  const columns: readonly Column<ListedRecord>[] = [
    { name: 'Operation', cell: ({ operation }) => [el('span', { class: 'operation', 'data-operation': operation }, operation)] },
    ...(kind === 'address' ? [rune] : []),
    { name: 'Amount', isNumber: true, cell: ({ amount }) => (amount === undefined ? [] : [amountOf(amount)]) },
    { name: 'Address', cell: addressesOf },
    {
      name: 'Transaction',
      cell: ({ location: { tx_id } }) => [idWithCopy(tx_id, 'transaction id', { to: { kind: 'transaction', id: tx_id, offset: 0 } })],
    },
    {
      name: 'Block',
      cell: ({ location }) => [blockLink(location.block_height), ' ', el('span', { class: 'quiet' }, timeOf(location.timestamp))],
    },
  ];
  const amounts = records.map(({ amount }) => amount);
  return tableOf('Activity, the newest first', 'activity', columns, records, amounts);
}

/** A bar that shows a share from 0 to 1. */
export function shareBar(share: number): HTMLElement {
  const width = `width:${Math.min(Math.max(share, 0), 1) * 100}%`;
  return el('span', { class: 'share', 'aria-hidden': 'true' }, el('span', { style: width }));
}

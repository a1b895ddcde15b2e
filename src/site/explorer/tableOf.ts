/**
 * Builds tables, which readers may sort by their columns. On phones CSS turns rows of the class `records` into cards. The
 * roles are explicit, because a table loses its implicit roles if CSS changes its display.
 */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { alignmentOf, amountOf } from './alignedAmounts.ts';
import { compareAmounts } from './amountMath.ts';
import { type Child, el } from './dom.ts';
import { announce } from './parts.ts';

type Compare<T> = (a: T, b: T) => number;

/**
 * Column of amounts with aligned decimal points, or of other cells. `isNumber` aligns to the right. Columns without a
 * `width` share the rest of the table, and none of them is narrower than its `least` width. A reader may sort by columns
 * with an `order`, and by amounts.
 */
export type Column<T> = { readonly name: string; readonly width?: string; readonly least?: string; readonly order?: Compare<T> } & (
  | { readonly amount: (entry: T) => string | undefined; readonly sign?: (entry: T) => string }
  | { readonly isNumber?: true; readonly cell: (entry: T, index: number) => readonly Child[] }
);

/** Returns a column of whole numbers, which a reader may sort. */
export const numbersOf = <T>(name: string, numberIn: (entry: T) => number | string): Column<T> => ({
  name,
  isNumber: true,
  cell: (entry) => [groupDigits(numberIn(entry))],
  order: byAmount((entry) => String(numberIn(entry))),
});

/** Compares runes by name. Spacers are sorted like spaces: DOG•GO comes before DOGS. */
export function byName(a: Pick<Rune, 'spaced_name'>, b: Pick<Rune, 'spaced_name'>): number {
  const [first, second] = [a.spaced_name.replaceAll('•', ' '), b.spaced_name.replaceAll('•', ' ')];
  return first < second ? -1 : first > second ? 1 : 0;
}

const byAmount =
  <T>(amountIn: (entry: T) => string | undefined): Compare<T> =>
  (a, b) =>
    compareAmounts(amountIn(a) ?? '0', amountIn(b) ?? '0');

/** Returns the width that a table needs to show a column, as CSS. */
const widthOf = (column: Column<never>): string =>
  column.width ?? ('amount' in column ? 'var(--amount)' : (column.least ?? (column.isNumber ? '5rem' : '8rem')));

interface TableOptions<T> {
  /** Creates the row above a group from the group's first entry. */
  readonly headOf?: ((first: T) => HTMLElement) | undefined;
  /** Text above the table. */
  readonly caption?: string | undefined;
  /**
   * Lets a reader sort the table, which must have one group. Sorts it by the column `first` until a reader chooses
   * another. `isPart` is true for a page of a longer list: a note then says that the page is sorted, and not the list.
   */
  readonly sort?: { readonly first?: string; readonly isPart: boolean };
}

/**
 * Renders a table with these classes, which scrolls if its columns need more than the width of the page. The `index`
 * that `cell` gets counts from the start of the group.
 */
export function tableOf<T>(
  classes: string,
  label: string,
  columns: readonly Column<T>[],
  groups: readonly (readonly T[])[],
  { headOf, caption, sort }: TableOptions<T> = {},
): HTMLElement {
  const classOf = (column: Column<T>) => ('amount' in column || column.isNumber ? 'amount' : undefined);
  const heads = columns.map((column) => {
    const style = column.width && `--width: ${column.width}`;
    return el('th', { role: 'columnheader', scope: 'col', class: classOf(column), style }, column.name);
  });
  const cellOf = (column: Column<T>, entry: T, index: number) => {
    const children = 'amount' in column ? amountCell(column.amount(entry), column.sign?.(entry)) : column.cell(entry, index);
    // On phones a cell shows the name of its column.
    const attributes = { role: 'cell', class: classOf(column), 'data-label': column.name };
    return el('td', attributes, children.length === 0 ? undefined : el('div', {}, ...children));
  };
  const rowOf = (entry: T, index: number) => el('tr', { role: 'row' }, ...columns.map((column) => cellOf(column, entry, index)));
  const amounts = columns.flatMap((column) => ('amount' in column ? groups.flat().map(column.amount) : []));
  const hasSigns = columns.some((column) => 'amount' in column && column.sign !== undefined);
  const bodies = groups.map((group) => {
    const rows = group.map(rowOf);
    const body = el('tbody', { role: 'rowgroup' }, ...(headOf === undefined ? [] : group.slice(0, 1).map(headOf)), ...rows);
    if (sort !== undefined) makeSortable(columns, heads, group, rows, body, sort.first);
    return body;
  });
  const table = el(
    'table',
    {
      role: 'table',
      class: classes,
      'aria-label': label,
      style: `--least: calc(${columns.map(widthOf).join(' + ')}); ${alignmentOf(amounts, hasSigns)}`,
    },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads)),
    ...bodies,
  );
  const note = sort?.isPart ? el('p', { class: 'quiet' }, 'Headings sort this page.') : undefined;
  return el('div', { class: 'wide' }, caption === undefined ? note : el('p', { class: 'caption' }, caption), table);
}

const amountCell = (amount: string | undefined, sign?: string): Child[] => (amount === undefined ? [] : [amountOf(amount, sign)]);

/** The last sorting that a reader chose. It stays when new data or another page is shown. */
let chosen: { readonly name: string; readonly isDescending: boolean } | undefined;

/**
 * Adds buttons that sort the rows to the heads of columns. Numbers are first sorted in descending order. Sorts by the
 * column that a reader chose last, or by the column `first`.
 */
function makeSortable<T>(
  columns: readonly Column<T>[],
  heads: readonly HTMLElement[],
  entries: readonly T[],
  rows: readonly HTMLElement[],
  body: HTMLElement,
  first: string | undefined,
): void {
  const sorts = columns.flatMap((column, i) => {
    const order = 'amount' in column ? byAmount(column.amount) : column.order;
    const head = heads[i];
    if (order === undefined || head === undefined) return [];
    const button = el('button', { type: 'button', class: 'sort', 'data-arrow': '↕', 'data-step': `sort ${column.name}` }, column.name);
    head.replaceChildren(button);
    const sort = (isDescending: boolean) => {
      const sorted = entries.map((entry, at) => ({ entry, row: rows[at] ?? '' }));
      sorted.sort((a, b) => order(a.entry, b.entry) * (isDescending ? -1 : 1));
      body.append(...sorted.map(({ row }) => row));
      for (const other of heads) {
        other.removeAttribute('aria-sort');
        other.querySelector('button')?.setAttribute('data-arrow', '↕');
      }
      head.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');
      button.dataset['arrow'] = isDescending ? '↓' : '↑';
    };
    const startsDescending = 'amount' in column || column.isNumber === true;
    button.addEventListener('click', () => {
      const order = head.getAttribute('aria-sort');
      const isDescending = order === null ? startsDescending : order === 'ascending';
      chosen = { name: column.name, isDescending };
      sort(isDescending);
      announce(`Sorted by ${column.name}, ${isDescending ? 'descending' : 'ascending'}`);
    });
    return [{ name: column.name, sort, startsDescending }];
  });
  const start = sorts.find(({ name }) => name === chosen?.name) ?? sorts.find(({ name }) => name === first);
  start?.sort(start.name === chosen?.name ? chosen.isDescending : start.startsDescending);
}

/**
 * Builds tables with aligned amounts, which readers may sort. On phones CSS turns rows of the class `records` into cards. The roles are
 * explicit, because a table loses its implicit roles if CSS changes its display.
 */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { compareAmounts } from './amountMath.ts';
import { type Child, el } from './dom.ts';
import { announce, breakable } from './parts.ts';

type Compare<T> = (a: T, b: T) => number;

/**
 * Column of amounts with aligned decimal points, or of other cells. `isNumber` aligns to the right. Columns without a `width` share the
 * rest of the table, and none of them is narrower than its `least` width. Readers may sort by columns with an `order`, and by amounts.
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

/** Compares runes by name. Spacers come before letters: DOG•GO before DOGS. */
export const byName = (a: Pick<Rune, 'spaced_name'>, b: Pick<Rune, 'spaced_name'>): number =>
  a.spaced_name.localeCompare(b.spaced_name, 'en');

const byAmount =
  <T>(amountIn: (entry: T) => string | undefined): Compare<T> =>
  (a, b) =>
    compareAmounts(amountIn(a) ?? '0', amountIn(b) ?? '0');

/** Returns the width that a table needs to show a column, as CSS. */
const widthOf = (column: Column<never>): string =>
  column.width ?? ('amount' in column ? 'var(--amount)' : (column.least ?? (column.isNumber ? '5rem' : '8rem')));

/**
 * Renders a table with these classes, which scrolls if its columns need more than the width of the page. `caption` is a text above it.
 * `headOf` creates the row above a group from the group's first entry. The `index` that `cell` gets counts from the start of the group.
 */
export function tableOf<T>(
  classes: string,
  label: string,
  columns: readonly Column<T>[],
  groups: readonly (readonly T[])[],
  { headOf, caption }: { readonly headOf?: ((first: T) => HTMLElement) | undefined; readonly caption?: string } = {},
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
  const table = el(
    'table',
    {
      role: 'table',
      class: classes,
      'aria-label': label,
      style: `--least: calc(${columns.map(widthOf).join(' + ')}); ${alignmentOf(amounts, hasSigns)}`,
    },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads)),
    ...groups.map((group) => {
      const head = headOf === undefined ? [] : group.slice(0, 1).map(headOf);
      return el('tbody', { role: 'rowgroup' }, ...head, ...group.map(rowOf));
    }),
  );
  return el('div', { class: 'wide' }, caption === undefined ? undefined : el('p', { class: 'caption' }, caption), table);
}

/** Most characters on each side of the decimal point. Longer integer parts wrap, and amounts with more decimals are not aligned. */
const MOST = { whole: 20, fraction: 18 };

/** Splits an amount at the decimal point. Adds separators to its integer part. */
function partsOf(amount: string): { readonly whole: string; readonly fraction: string } {
  const [whole = '', fraction = ''] = groupDigits(amount).split('.');
  return { whole, fraction };
}

/**
 * Renders an amount after its sign, without zeros at the end of its decimals, which its title and the CSV file have. In a table with the
 * style of `alignmentOf`, decimal points are aligned. Returns nothing for undefined.
 */
function amountCell(amount: string | undefined, sign = ''): HTMLElement[] {
  if (amount === undefined) return [];
  const { whole, fraction } = partsOf(amount);
  // Only an integer part that is too long for a phone may wrap, after separators.
  const digits = whole.length <= MOST.whole ? [whole] : breakable(whole, /(?<=,)/);
  const title = /\.\d*0$/.test(amount) ? amount : undefined;
  return [
    el(
      'data',
      { value: amount, title, class: fraction.length > MOST.fraction ? undefined : 'aligned' },
      el('span', {}, sign, ...digits),
      el('span', { class: 'fraction quiet' }, fraction === '' ? undefined : `.${fraction}`),
    ),
  ];
}

/** Returns the style of a table with these amounts, which sets the width on each side of the decimal point. */
function alignmentOf(amounts: readonly (string | undefined)[], hasSigns: boolean): string {
  const parts = amounts.flatMap((amount) => (amount === undefined ? [] : [partsOf(amount)]));
  const aligned = parts.filter(({ fraction }) => fraction.length <= MOST.fraction);
  // A separator is half as wide as a digit.
  const widthOf = (text: string) => text.length - (text.split(',').length - 1) / 2;
  const widest = (part: 'whole' | 'fraction') =>
    aligned.reduce((most, each) => Math.max(most, Math.min(widthOf(each[part]), MOST[part])), 0);
  const decimals = widest('fraction');
  return `--whole: ${widest('whole') + (hasSigns ? 1 : 0)}ch; --fraction: ${decimals === 0 ? '0px' : `calc(${decimals}ch + 0.3em)`}`;
}

/** The last sorting that a reader chose. It stays when new data or another page is shown. */
let chosen: { readonly name: string; readonly isDescending: boolean } | undefined;

/**
 * Adds buttons that sort the rows of a table, which must have one group, to the heads of its columns. Numbers are first sorted in
 * descending order. Sorts by the column that a reader chose last, or by the column `first`. `isPart` is true for a page of a longer list: a
 * note then says that the page is sorted, and not the list.
 */
export function sortable<T>(
  table: HTMLElement,
  columns: readonly Column<T>[],
  entries: readonly T[],
  { first, isPart }: { readonly first?: string; readonly isPart: boolean },
): HTMLElement {
  const heads = [...table.querySelectorAll('th')];
  const rows = [...table.querySelectorAll('tbody tr')];
  const sorts = columns.flatMap((column, i) => {
    const { name } = column;
    const order = 'amount' in column ? byAmount(column.amount) : column.order;
    const head = heads[i];
    if (order === undefined || head === undefined) return [];
    const button = el('button', { type: 'button', class: 'sort', 'data-arrow': '↕', 'data-step': `sort ${name}` }, name);
    head.replaceChildren(button);
    const sort = (isDescending: boolean) => {
      const sorted = entries.map((entry, at) => ({ entry, row: rows[at] ?? '' }));
      sorted.sort((a, b) => order(a.entry, b.entry) * (isDescending ? -1 : 1));
      table.querySelector('tbody')?.append(...sorted.map(({ row }) => row));
      for (const other of heads) {
        other.removeAttribute('aria-sort');
        other.querySelector('button')?.setAttribute('data-arrow', '↕');
      }
      head.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');
      button.dataset['arrow'] = isDescending ? '↓' : '↑';
    };
    const isNumber = 'amount' in column || column.isNumber === true;
    button.addEventListener('click', () => {
      const shown = head.getAttribute('aria-sort');
      const isDescending = shown === null ? isNumber : shown === 'ascending';
      chosen = { name, isDescending };
      sort(isDescending);
      announce(`Sorted by ${name}, ${isDescending ? 'descending' : 'ascending'}`);
    });
    return [{ name, sort, isNumber }];
  });
  const start = sorts.find(({ name }) => name === chosen?.name) ?? sorts.find(({ name }) => name === first);
  start?.sort(start.name === chosen?.name ? chosen.isDescending : start.isNumber);
  if (isPart) table.prepend(el('p', { class: 'quiet' }, 'Headings sort this page.'));
  return table;
}

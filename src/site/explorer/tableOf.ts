/**
 * Builds tables. On phones CSS turns rows of the class `records` into cards. The roles are explicit, because a table loses its implicit
 * roles if CSS changes its display.
 */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { alignmentOf, amountOf } from './alignedAmounts.ts';
import { compareAmounts } from './amountMath.ts';
import { type Child, el } from './dom.ts';

type Compare<T> = (a: T, b: T) => number;

/**
 * Column of amounts with aligned decimal points, or of other cells. `isNumber` aligns to the right. Columns without a `width` share the
 * rest of the table, and none of them is narrower than its `least` width. A reader may sort by columns with an `order`, and by amounts
 * (sortable.ts).
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

export const byAmount =
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

const amountCell = (amount: string | undefined, sign?: string): Child[] => (amount === undefined ? [] : [amountOf(amount, sign)]);

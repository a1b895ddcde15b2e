/** Tables that readers sort by their columns. */
import { el } from './dom.ts';
import { announce } from './parts.ts';
import { byAmount, type Column } from './tableOf.ts';

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

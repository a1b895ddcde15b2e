/** Tables that readers sort by their columns. */
import type { Rune } from '../../serve/client/mirrorClient.ts';
import { el } from './dom.ts';
import { announce } from './parts.ts';

export type Compare<T> = (a: T, b: T) => number;

/** Compares runes by name. Spacers are sorted like spaces: DOG•GO comes before DOGS. */
export function byName(a: Pick<Rune, 'spaced_name'>, b: Pick<Rune, 'spaced_name'>): number {
  const [first, second] = [a.spaced_name.replaceAll('•', ' '), b.spaced_name.replaceAll('•', ' ')];
  return first < second ? -1 : first > second ? 1 : 0;
}

/** The last sorting that a reader chose. It stays when new data or another page is shown. */
let chosen: { readonly name: string; readonly isDescending: boolean } | undefined;

/**
 * Adds buttons that sort a table to its column heads. The table must have one group of rows. `entries` has the entry of
 * each row. `by` maps the name of a column to the function that compares entries. Columns of amounts are first sorted
 * in descending order. Sorts the table by the column that a reader chose last, or by `first`. `isPart` is true if the
 * table is a page of a longer list: a caption then says that the page is sorted, and not the list.
 */
export function sortable<T>(
  table: HTMLElement,
  entries: readonly T[],
  by: Readonly<Record<string, Compare<T>>>,
  { first, isPart }: { readonly first?: string; readonly isPart: boolean },
): HTMLElement {
  const rows = [...table.querySelectorAll('tbody tr')].flatMap((row, i) => {
    const entry = entries[i];
    return entry === undefined ? [] : [{ row, entry }];
  });
  const heads = new Map([...table.querySelectorAll('thead th')].map((head) => [head.textContent ?? '', head] as const));
  const sort = (name: string, isDescending: boolean) => {
    const compare = by[name];
    if (compare === undefined) return;
    rows.sort((a, b) => compare(a.entry, b.entry) * (isDescending ? -1 : 1));
    table.querySelector('tbody')?.append(...rows.map(({ row }) => row));
    for (const [other, head] of heads) {
      if (other === name) head.setAttribute('aria-sort', isDescending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
      head.querySelector('button')?.setAttribute('data-arrow', other !== name ? '↕' : isDescending ? '↓' : '↑');
    }
  };
  const startsDescending = (name: string) => heads.get(name)?.classList.contains('amount') === true;
  for (const name of Object.keys(by)) {
    const head = heads.get(name);
    const button = el('button', { type: 'button', class: 'sort', 'data-arrow': '↕', 'data-step': `sort ${name}` }, name);
    button.addEventListener('click', () => {
      const order = head?.getAttribute('aria-sort');
      const isDescending = order == null ? startsDescending(name) : order === 'ascending';
      chosen = { name, isDescending };
      sort(name, isDescending);
      announce(`Sorted by ${name}, ${isDescending ? 'descending' : 'ascending'}`);
    });
    head?.replaceChildren(button);
  }
  table.classList.add('sortable');
  if (isPart) table.prepend(el('p', { class: 'quiet' }, 'Headings sort this page.'));
  if (chosen !== undefined && chosen.name in by) sort(chosen.name, chosen.isDescending);
  else if (first !== undefined) sort(first, startsDescending(first));
  return table;
}

/** Paging of a list: links to the first, previous, next and last page, and the page sizes. */

import { groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { linkTo } from './parts.ts';
import { settings } from './settings.ts';
import { type FoundView, searchOf } from './views.ts';

/** Fetches a window of a list. */
export type FetchWindow = (window: { readonly offset: number; readonly limit?: number | undefined }) => Promise<Shown>;

export interface Shown {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly results: readonly unknown[];
  /** The list describes the state after the block of this height. Undefined for the mirror's highest block. */
  readonly block_height?: number | undefined;
}

/** Formats the shown window: `21–40 of 1,234`. */
export const rangeOf = ({ offset, total, results }: Shown): string =>
  `${groupDigits(offset + 1)}–${groupDigits(offset + results.length)} of ${groupDigits(total)}`;

/**
 * Renders a window of a list: the table, with a paging row above. If the list has other pages, there is another paging
 * row below. `size` is the list's total as text, for the note about a window past the end.
 */
export function pagesOf<T extends Shown>(view: FoundView, shown: T, size: string, table: (shown: T) => HTMLElement): HTMLElement[] {
  if (shown.results.length === 0) {
    const start = linkTo({ ...view, offset: 0 }, 'Show the first page');
    return [el('p', { class: 'note' }, `This list has ${size} and ends before this page. `, start)];
  }
  const again = shown.results.length < shown.total ? [pagingOf(view, shown, 'Pages, again')] : [];
  return [pagingOf(view, shown, 'Pages'), table(shown), ...again];
}

/** Renders a paging row. It has links unless the list fits on a page of the smallest size that the list offers. */
function pagingOf(view: FoundView, result: Shown, name: string): HTMLElement {
  const { total, offset, limit } = result;
  const [smallest = 20] = settings.pageSizes;
  const nav = el('nav', { class: 'paging', 'aria-label': name }, el('span', { class: 'range' }, rangeOf(result)));
  // Only a list that reads several pages at once has a limit above the largest page size. It offers no other size.
  const hasSizes = limit <= (settings.pageSizes.at(-1) ?? smallest);
  if (total <= (hasSizes ? smallest : limit) && offset === 0) return nav;
  const last = Math.floor((total - 1) / limit) * limit;
  const step = (text: string, arrow: string, to: number, isDead: boolean) =>
    isDead ? deadStep(arrow, text) : stepTo(searchOf({ ...view, offset: to }), arrow, `${text} page`, `${name} ${text}`);
  nav.append(
    el(
      'span',
      { class: 'steps' },
      step('First', '«', 0, offset === 0),
      step('Previous', '‹', Math.max(offset - limit, 0), offset === 0),
      step('Next', '›', offset + limit, offset + limit >= total),
      step('Last', '»', last, offset >= last),
    ),
  );
  if (hasSizes) nav.append(sizes(view, limit, offset));
  return nav;
}

/**
 * Creates a link with an arrow as its text and `title` as its accessible name. The next page has a link with the same
 * `key`, which can then get the focus.
 */
export const stepTo = (href: string, arrow: string, title: string, key?: string): HTMLElement =>
  el('a', { href, class: 'chip', 'data-step': key, 'aria-label': title, title }, arrow);

/** Creates a disabled arrow for a page that does not exist. */
export const deadStep = (arrow: string, title?: string): HTMLElement =>
  el('span', { class: 'chip', 'aria-disabled': 'true', title }, arrow);

/**
 * Returns links to the same offset with other page sizes. Links can be opened in a new tab, unlike entries of a menu.
 */
function sizes(view: FoundView, limit: number, offset: number): HTMLElement {
  const [smallest] = settings.pageSizes;
  const each = settings.pageSizes.map((size) => {
    if (size === limit) return el('span', { class: 'chip', 'aria-current': 'true' }, groupDigits(size));
    const first = Math.floor(offset / size) * size;
    const href = searchOf({ ...view, limit: size === smallest ? undefined : size, offset: first });
    return el('a', { href, class: 'chip', 'aria-label': `${size} per page` }, groupDigits(size));
  });
  return el('span', { class: 'sizes' }, ...each, ' per page');
}

/**
 * Long pages of lists whose entries the mirror reads from many places. Such a page first shows as many entries as the
 * smallest page size, and the others when the reader comes near them.
 */
import { count, groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { pagesOf, rangeOf, type Shown } from './paging.ts';
import { announce } from './parts.ts';
import { settings } from './settings.ts';
import { withOtherPages } from './table.ts';
import type { ListedRecord, ListWindow } from './transfers.ts';
import { type SubjectView, searchOf } from './views.ts';

export type FetchWindow = (window: { readonly offset: number; readonly limit?: number | undefined }) => Promise<Shown>;

/** Views of which all entries were loaded. When shown again (new data, back button), they begin with all entries. */
const completed = new Set<string>();

/** Distance in pixels from the visible part of the page at which the other entries are loaded. */
const NEAR = 300;

/** Fetches the entries of a view, or only the first of a long page if the mirror reads them from many places. */
export async function fetchFirst(view: SubjectView, fetch: FetchWindow, isScattered = false): Promise<Shown> {
  const { offset, limit } = view;
  const [smallest, ...longer] = settings.pageSizes;
  if (!isScattered) return fetch({ offset, limit });
  const isWhole = limit === undefined || !longer.includes(limit) || completed.has(searchOf(view));
  const first = await fetch({ offset, limit: isWhole ? limit : smallest });
  return isWhole ? withRecordsAround(view, first, fetch) : { ...first, limit };
}

/** All lists that are read from many places are lists of activity, so their entries are records. */
const withRecordsAround = ({ kind }: SubjectView, shown: Shown, fetch: FetchWindow): Promise<Shown> => {
  const list = shown as ListWindow<ListedRecord> & Shown;
  return withOtherPages(list, fetch as FetchWindow & Parameters<typeof withOtherPages>[1], kind === 'address');
};

/** Shows the fetched entries of a view, and loads the other entries of its page. */
export function growingPage(view: SubjectView, first: Shown, table: (shown: Shown) => HTMLElement, fetch: FetchWindow): HTMLElement {
  const { offset, limit, total, results } = first;
  const place = el('div');
  const show = (shown: Shown, more?: HTMLElement) =>
    place.replaceChildren(...pagesOf(view, shown, count(shown.total, 'entry', 'entries'), table, more));
  const missing = results.length === 0 ? 0 : Math.min(limit, total - offset) - results.length;
  const button = el('button', { type: 'button' }, `Show ${groupDigits(missing)} more`);
  show(first, missing > 0 ? el('p', {}, button) : undefined);
  if (missing <= 0) return place;
  const links = () => [...place.querySelectorAll<HTMLElement>('a, button')];
  const load = async () => {
    near.disconnect();
    // Remembers the focus, because a disabled button loses it.
    const hadFocus = button.matches(':focus');
    button.disabled = true;
    try {
      const rest = await fetch({ offset: offset + results.length, limit: missing });
      // Another total means that the list has changed. Then reads the complete page again.
      const whole = rest.total === total ? { ...first, after: [], results: [...results, ...rest.results] } : await fetch({ offset, limit });
      const all = await withRecordsAround(view, whole, fetch);
      // Stops if another page, or the same page with new data, was shown meanwhile.
      if (!place.isConnected) return;
      const focused = links().findIndex((link) => link.matches(':focus'));
      const next = hadFocus ? links().indexOf(button) : -1;
      show(all);
      links()[focused < 0 ? next : focused]?.focus({ preventScroll: true });
      completed.add(searchOf(view));
      if (all.results.length > 0) announce(`Entries ${rangeOf(all)}`);
    } catch {
      button.disabled = false;
      button.textContent = 'The other entries cannot be read: try again';
      if (hadFocus) button.focus();
    }
  };
  const near = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && void load(), {
    rootMargin: `${NEAR}px`,
  });
  near.observe(button);
  button.addEventListener('click', load);
  return place;
}

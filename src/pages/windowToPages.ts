/**
 * Maps windows to pages, in two steps, because the total of a list is known only after one of its pages was read. `firstRead` returns the
 * page to try. `secondRead` returns the next page, if the window needs it. An answer never reads more than two existing pages.
 */
import { defaultLimit, maximumLimit, type Site } from './mirrorOptions.ts';
import type { Window } from './parseQuery.ts';

/** True if builds have a page for exactly this window. Its file is the answer. */
export const isPage = ({ limit, offset }: Window, { pageSizes }: Site): boolean => pageSizes.includes(limit) && offset % limit === 0;

/**
 * Returns the smallest page that covers the window, because a smaller page takes less time to read: 20 records instead of 1,000 for a
 * window of 5. If no page covers the window, returns the page of the largest size in which the window begins.
 */
export function firstRead(window: Window, site: Site): Window {
  for (const limit of site.pageSizes) {
    const offset = Math.floor(window.offset / limit) * limit;
    if (window.offset + window.limit <= offset + limit) return { limit, offset };
  }
  const limit = maximumLimit(site);
  return { limit, offset: Math.floor(window.offset / limit) * limit };
}

/** Returns the page after `first`, if the window and the list extend into this page. */
export function secondRead(window: Window, first: Window, total: number): Window | undefined {
  const next = first.offset + first.limit;
  const end = Math.min(window.offset + window.limit, total);
  return end > next ? { limit: first.limit, offset: next } : undefined;
}

/** Returns the first page, which every existing list has. Its total says whether a missing page is past the list's end. */
export const fallbackPage = (site: Site): Window => ({ limit: defaultLimit(site), offset: 0 });

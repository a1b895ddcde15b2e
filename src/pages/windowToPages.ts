/**
 * Maps windows to pages. A list's total is known only after one of its pages was read, so this takes two steps.
 * `firstRead` returns the page to try, and `secondRead` returns the next page, if the window needs it. An answer never
 * reads more than two existing pages.
 */
import type { PageId } from './filePaths.ts';
import { defaultLimit, maximumLimit, type Site } from './mirrorOptions.ts';
import type { Window } from './parseQuery.ts';

/** Returns the page that equals the window, if the build has such pages. Its file is the exact answer. */
export function exactPage(window: Window, site: Site): PageId | undefined {
  const isPage = site.pageSizes.includes(window.limit) && window.offset % window.limit === 0;
  return isPage ? { limit: window.limit, offset: window.offset } : undefined;
}

/**
 * Returns the smallest page that covers the window. If none does, returns the page of the largest size in which the
 * window begins. Smaller pages take less to read: 20 records instead of 1,000 for a window of 5.
 */
export function firstRead(window: Window, site: Site): PageId {
  for (const limit of site.pageSizes) {
    const offset = Math.floor(window.offset / limit) * limit;
    if (window.offset + window.limit <= offset + limit) return { limit, offset };
  }
  const limit = maximumLimit(site);
  return { limit, offset: Math.floor(window.offset / limit) * limit };
}

/** Returns the page after `first` when the window extends into it and the list has that many records. */
export function secondRead(window: Window, first: PageId, total: number): PageId | undefined {
  const next = first.offset + first.limit;
  const end = Math.min(window.offset + window.limit, total);
  return end > next ? { limit: first.limit, offset: next } : undefined;
}

/** Returns the first page, which every list in the data has. It has the total if the tried page does not exist. */
export const fallbackPage = (site: Site): PageId => ({ limit: defaultLimit(site), offset: 0 });

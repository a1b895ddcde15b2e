/**
 * From a window to pages. A list's total is known only once a page of it was read, so this is a plan in two steps:
 * `firstRead` names the page to try, and `secondRead` what to read after it (or that nothing more is needed).
 * At most two pages that exist are ever read for one answer.
 */
import { defaultLimit, maximumLimit, type Site } from './lists.ts';
import type { PageId } from './paths.ts';
import type { Window } from './request.ts';

/** The page that equals the window, when the build has such pages: its file is the answer, byte for byte. */
export function exactPage(window: Window, site: Site): PageId | undefined {
  const isPage = site.pageSizes.includes(window.limit) && window.offset % window.limit === 0;
  return isPage ? { limit: window.limit, offset: window.offset } : undefined;
}

/**
 * The smallest page that covers the whole window, or, when none does, the page of the largest size in which it begins.
 * Smaller pages are preferred because they are less to read: 5 records out of 20, not out of 1,000.
 */
export function firstRead(window: Window, site: Site): PageId {
  for (const limit of site.pageSizes) {
    const offset = Math.floor(window.offset / limit) * limit;
    if (window.offset + window.limit <= offset + limit) return { limit, offset };
  }
  const limit = maximumLimit(site);
  return { limit, offset: Math.floor(window.offset / limit) * limit };
}

/** The page after `first` when the window goes on into it and the list (of `total` records) reaches that far. */
export function secondRead(window: Window, first: PageId, total: number): PageId | undefined {
  const next = first.offset + first.limit;
  const end = Math.min(window.offset + window.limit, total);
  return end > next ? { limit: first.limit, offset: next } : undefined;
}

/** The page that every list in the data has: it tells the total when the page that was tried does not exist. */
export const fallbackPage = (site: Site): PageId => ({ limit: defaultLimit(site), offset: 0 });

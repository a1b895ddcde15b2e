/** The compressed files beside pages: which pages have them, and their paths. */
import type { Encoding, Site } from './mirrorOptions.ts';
import type { Window } from './parseQuery.ts';

/** Pages with fewer records are not compressed, because they fit into one network packet. */
export const LEAST_RECORDS_TO_COMPRESS = 3;

/** Returns the encodings of a page's compressed files. `total`, the list's total, must be above the page's offset. */
export const encodingsOf = (page: Window, total: number, site: Site): readonly Encoding[] =>
  Math.min(page.limit, total - page.offset) < LEAST_RECORDS_TO_COMPRESS ? [] : site.compress;

/** Returns the path of a compressed file, e.g. `runes/v1/blocks/840000.json.gz`. */
export const sidecarPath = (path: string, encoding: Encoding): string => `${path}.${encoding}`;

export const withSidecars = (path: string, page: Window, total: number, site: Site): string[] => [
  path,
  ...encodingsOf(page, total, site).map((encoding) => sidecarPath(path, encoding)),
];

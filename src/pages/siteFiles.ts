/**
 * The files of a build that are not of the API: the pages for people, their scripts, documents and bulk data. What they are called, and with which
 * headers hosts send them. All of them have fixed names, so that a host can tell them from other things in the same bucket.
 */
import { LANDING_PATH } from './paths.ts';
import { isReadByRanges } from './ranges.ts';
import { API_HEADERS, FILE_HEADERS } from './respond.ts';

/** The API's description. It lies at the root: the address of the mirror in it is relative. */
export const OPENAPI_PATH = 'openapi.json';
/** The page that shows it. */
export const DOCS_PATH = 'docs/index.html';

const API_FILE = /^runes\/v1\/(?:[0-9a-z]+(?:-[0-9a-z]+)?\/)*[0-9a-z]+\.json$/;
const SITE_FILE =
  /^(?:index\.html|(?:charts|client|explorer)\.(?:js|css)|client\.d\.ts|openapi\.json|docs\/(?:index\.html|[a-z-]+\.(?:js|css)|LICENSE\.txt)|activity\/[0-9a-z]+\.(?:parquet|json))$/;

/** Whether a build may have a file of this path, and so whether a host that stores other things too may send it. */
export const isBuiltFile = (path: string): boolean => API_FILE.test(path) || SITE_FILE.test(path);

/**
 * The page that a path of a folder stands for: `/` and `/docs/`. Paths begin with a slash here, as in requests; undefined for all others.
 */
export function pageOfFolder(pathname: string): string | undefined {
  if (pathname === '/') return LANDING_PATH;
  return pathname === '/docs/' ? DOCS_PATH : undefined;
}

/** Where a path leads that a page's own paths do not work below, relative to it: `/docs` to `docs/`. */
export const redirectOf = (pathname: string): string | undefined => (pathname === '/docs' ? 'docs/' : undefined);

/** Headers of the pages for people, beside those of every file: their scripts and what these ask for are the mirror's own, and they are in no frame. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/** Scripts of other origins may see where in a file a part of it is. */
const RANGE_HEADERS: Readonly<Record<string, string>> = { 'access-control-expose-headers': 'content-range, etag' };

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
  // Declarations of types. The ending is registered for videos only.
  ts: 'text/plain; charset=utf-8',
};

/** The headers of a file of a build, but those about caching. */
export function fileHeaders(path: string): Readonly<Record<string, string>> {
  const ending = path.slice(path.lastIndexOf('.') + 1);
  const type = TYPES[ending];
  if (type === undefined) return API_HEADERS;
  return {
    ...FILE_HEADERS,
    'content-type': type,
    ...(ending === 'html' ? PAGE_HEADERS : {}),
    ...(isReadByRanges(path) ? RANGE_HEADERS : {}),
  };
}

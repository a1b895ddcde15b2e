/**
 * Headers of answers: types, caching, what a browser may do with an answer, and ETags.
 */
import { isReadByRanges } from './ranges.ts';

export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

/** Headers of every file, whatever its type: any page of any site may read it, and its type is not guessed. */
export const FILE_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'etag',
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Headers that every answer of the API carries. A browser that shows one runs nothing, whatever is in it. */
export const API_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json; charset=utf-8',
  ...FILE_HEADERS,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

/** Headers of every error. */
export const ERROR_HEADERS: Readonly<Record<string, string>> = { ...API_HEADERS, 'cache-control': 'no-store' };

/** Nothing is kept without asking: the list of an unknown id may exist a minute later (decisions.md, "Headers"). */
const CACHE_CONTROL = 'public, no-cache, must-revalidate';

/** How long a CDN may answer with records that are settled before it asks again, in seconds: until then it may miss a correction of old data. */
const CDN_SECONDS = 86_400;

/**
 * What caches may do with a 200 or 304. Clients always ask; a CDN (RFC 9213) may hold records of blocks that are settled for a day, and never an
 * answer without records.
 */
export const cachingHeaders = (isSettled: boolean): Readonly<Record<string, string>> =>
  isSettled
    ? { 'cache-control': CACHE_CONTROL, 'cdn-cache-control': `public, max-age=${CDN_SECONDS}` }
    : { 'cache-control': CACHE_CONTROL };

export const PREFLIGHT_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': ALLOWED_METHODS,
  'access-control-allow-headers': '*',
  'access-control-max-age': '86400',
};

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

/** The strong ETag of a body, from its SHA-256 in hex. */
export const etagOfDigest = (sha256: string): string => `"${sha256.slice(0, 32)}"`;

/** The compressed form of a body has a strong ETag of its own. */
export const compressedEtag = (etag: string): string => `${etag.slice(0, -1)}-gz"`;

/**
 * Whether an `if-none-match` header holds this ETag: a list, weak forms and `*` are understood, and so is a tag without its quotes,
 * which the recorded server took.
 */
export function matchesEtag(header: string | null | undefined, etag: string): boolean {
  if (header === null || header === undefined) return false;
  const bare = (tag: string) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1');
  return header.trim() === '*' || header.split(',').some((tag) => bare(tag) === bare(etag));
}

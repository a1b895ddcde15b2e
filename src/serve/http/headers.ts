/** Headers of answers: content types, caching, browser security and ETags. Headers of requests: conditions and Accept-Encoding. */
import { NOT_FOUND_PATH } from '../../pages/fileKinds.ts';
import { isReadByRanges } from './ranges.ts';

/** HTTP headers, as alternating names and values. Node writes them 15 µs faster than an object: a third of a request's time. */
export type HeaderList = readonly string[];

const headerList = (headers: Readonly<Record<string, string>>): HeaderList => Object.entries(headers).flat();

export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

/** Headers of every answer: web pages of any origin may read the file, and browsers must not guess its type. */
export const FILE_HEADERS: Readonly<Record<string, string>> = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'etag',
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** Headers of every API answer. The policy stops a browser that displays an answer from running scripts in it. */
export const API_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json; charset=utf-8',
  ...FILE_HEADERS,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
};

export const ERROR_HEADERS: Readonly<Record<string, string>> = { ...API_HEADERS, 'cache-control': 'no-store' };

/** Clients revalidate every answer, because an unknown id may exist after the next block. */
const CACHE_CONTROL = 'public, no-cache, must-revalidate';

/** Seconds for which a CDN may cache records of settled blocks. If these are corrected, clients may get the old ones for so long. */
const CDN_SECONDS = 86_400;

/** Returns the caching headers of a 200 or 304. A CDN (RFC 9213) may cache only records of settled blocks. */
export const cachingHeaders = (isSettled: boolean): Readonly<Record<string, string>> =>
  isSettled
    ? { 'cache-control': CACHE_CONTROL, 'cdn-cache-control': `public, max-age=${CDN_SECONDS}` }
    : { 'cache-control': CACHE_CONTROL };

/** For files of layout `archive`, which never change. Proxies must not compress them: clients read ranges of the plain bytes. */
const IMMUTABLE = { 'cache-control': 'public, max-age=31536000, immutable, no-transform' };

/** Further headers of HTML pages. The pages may load scripts and data only from the mirror, and cannot be framed. */
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/** Lets scripts of other origins read the header that says which part of a file an answer has. */
const RANGE_HEADERS: Readonly<Record<string, string>> = { 'access-control-expose-headers': 'content-range, etag' };

/** Content types by file extension. All other files are JSON. */
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  bin: 'application/octet-stream',
  parquet: 'application/vnd.apache.parquet',
  // TypeScript declarations. The type that is registered for this extension is a video format.
  ts: 'text/plain; charset=utf-8',
};

/** Returns the headers of a build's file, except caching headers. */
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

const SETTLED = headerList({ ...API_HEADERS, ...cachingHeaders(true) });
const UNSETTLED = headerList({ ...API_HEADERS, ...cachingHeaders(false) });

/** Headers of all other answers, and those that answers may have in addition. */
export const HEADERS = {
  error: headerList(ERROR_HEADERS),
  errorPage: headerList({ ...fileHeaders(NOT_FOUND_PATH), 'cache-control': 'no-store' }),
  redirect: headerList(FILE_HEADERS),
  preflight: headerList({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': ALLOWED_METHODS,
    'access-control-allow-headers': '*',
    'access-control-max-age': '86400',
  }),
  allow: ['allow', ALLOWED_METHODS],
  ranges: ['accept-ranges', 'bytes'],
  vary: ['vary', 'accept-encoding'],
  zipped: ['content-encoding', 'gzip'],
} satisfies Readonly<Record<string, HeaderList>>;

/** Returns the headers of a file of a build. */
export const headersOfFile = (path: string): HeaderList => [
  ...headerList({ ...fileHeaders(path), ...(path.endsWith('.bin') ? IMMUTABLE : cachingHeaders(false)) }),
  ...(isReadByRanges(path) ? HEADERS.ranges : []),
];

/** Headers of lists that depend on the last block, and its height. */
let newest = { height: -1, headers: UNSETTLED };

/** Returns the headers of a list. `height` is the last block that the list takes into account, if its body does not say so; -1 without. */
export function listHeaders({ isSettled, height }: { readonly isSettled: boolean; readonly height?: number }): HeaderList {
  if (height === undefined) return isSettled ? SETTLED : UNSETTLED;
  if (newest.height !== height) {
    const named = { 'x-block-height': String(height), 'access-control-expose-headers': 'etag, x-block-height' };
    newest = { height, headers: headerList({ ...API_HEADERS, ...cachingHeaders(false), ...(height < 0 ? {} : named) }) };
  }
  return newest.headers;
}

/** Returns the strong ETag of a body by its SHA-256 in hex. */
export const etagOfDigest = (sha256: string): string => `"${sha256.slice(0, 32)}"`;

export const compressedEtag = (etag: string): string => `${etag.slice(0, -1)}-gz"`;

/**
 * True if an `if-none-match` header matches this ETag. Accepts lists, weak ETags and `*`. Also accepts ETags without quotes, because Hiro's
 * server did.
 */
export function matchesEtag(header: string, etag: string): boolean {
  const bare = (tag: string) => tag.trim().replace(/^(?:W\/)?("?)(.*)\1$/, '$2');
  return header.trim() === '*' || header.split(',').some((tag) => bare(tag) === bare(etag));
}

/** An item of Accept-Encoding: a name and its weight. */
const ITEM = /^(\*|[a-z-]+)(?:;q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?$/;

/**
 * True if a client with this Accept-Encoding (RFC 9110, 12.5.3) accepts gzip and does not prefer the uncompressed body. Ignores malformed
 * parts of the header. Answers are never brotli: fast brotli saves too little for a second compressed copy of every file in memory.
 */
export function takesGzip(header: string | undefined): boolean {
  if (header === undefined || header === '') return false;
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [, name, weight = '1'] = ITEM.exec(part.replace(/[ \t]/g, '')) ?? [];
    if (name !== undefined) weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight));
  }
  const weight = weights.get('gzip') ?? weights.get('*') ?? 0;
  return weight > 0 && weight >= (weights.get('identity') ?? 0);
}

/**
 * Every kind of file of a build, and whether hosts send it. `test/pages/siteFiles.test.ts` compares this table with the files that builds
 * write, with verification, the documents, the API's description, netlify.toml, and the recipes of nginx and Caddy. Content type and
 * headers depend on the extension (serve/http/headers.ts).
 */
import { FEED_PATH, LANDING_PATH, LATEST_PATH, MANIFEST_PATH, MARKER_PATH, STATS_PATH, STATUS_PATH } from './filePaths.ts';

/** The OpenAPI description. It is in the root folder, because the server URL in it is relative. */
export const OPENAPI_PATH = 'openapi.json';

/** The page for a path that the mirror does not have. */
export const NOT_FOUND_PATH = '404.html';

export interface FileKind {
  /** The path, or an example if the kind has many files. */
  readonly path: string;
  /** Matches the paths of a kind that has many files. */
  readonly pattern?: RegExp;
  /** False if hosts do not send the file at the file's own path. */
  readonly isSent?: false;
}

/** The files below `runes/`. Hosts send all of them. */
const API_FILES: readonly FileKind[] = [
  { path: STATUS_PATH },
  { path: MANIFEST_PATH },
  { path: 'runes/v1/digests/840000.json', pattern: /^runes\/v1\/digests\/[0-9]+\.json$/ },
  { path: STATS_PATH },
  { path: 'runes/v1/stats/840000.json', pattern: /^runes\/v1\/stats\/[0-9]+\.json$/ },
  { path: 'runes/v1/search/do.json', pattern: /^runes\/v1\/search\/[a-z]{1,2}(?:\/[a-z])*\.json$/ },
  { path: 'runes/v1/changes/840000.json', pattern: /^runes\/v1\/changes\/(?:[0-9]+|index)\.json$/ },
  { path: LATEST_PATH },
  { path: FEED_PATH },
  {
    path: 'runes/v1/blocks/840000.json',
    pattern: /^runes\/v1\/(?:blocks|transactions)\/[0-9a-z]+(?:\/[a-z]+)?(?:\/[0-9]+\/[0-9]+)?\.json$/,
  },
];

// The tables below are marked as pure, so that the bundler can leave them out of the client.

export const BUILD_FILES: readonly FileKind[] = /* @__PURE__ */ (() => [
  { path: LANDING_PATH },
  ...['explorer.js', 'explorer.css', 'details.js', 'listPage.js', 'download.js'].map((path) => ({ path })),
  ...[OPENAPI_PATH, 'docs/index.html', 'docs/init.js'].map((path) => ({ path })),
  ...['client.js', 'lists.js', 'proofs.js', 'pending.js', 'client.d.ts'].map((path) => ({ path })),
  { path: NOT_FOUND_PATH, isSent: false as const },
  { path: '404.json', isSent: false as const },
  { path: MARKER_PATH, isSent: false as const },
  ...API_FILES,
  { path: 'rows/840000-840099-3fa04c1b0d5e6f72.parquet', pattern: /^rows\/[0-9]+-[0-9]+-[0-9a-f]{16}(?:\.runes)?\.parquet$/ },
  { path: 'rows/index-97c1d2e3f4a5b6c7.json', pattern: /^rows\/index-[0-9a-f]{16}\.json$/ },
  { path: 'archive/3fa04c1b0d5e6f728394a5b6c7d8e9f00f9e8d7c6b5a493827f6e5d0b1c40af3.bin', pattern: /^archive\/[0-9a-f]{64}\.bin$/ },
])();

export const isOfKind = ({ path, pattern }: FileKind, file: string): boolean =>
  pattern === undefined ? path === file : pattern.test(file);

const SENT = /* @__PURE__ */ BUILD_FILES.filter(({ isSent = true }) => isSent);

/** True for a path at which hosts send a file of the build. Hosts send no other files. */
export const isBuiltFile = (path: string): boolean => SENT.some((kind) => isOfKind(kind, path));

/** True for such a path below `runes/`. */
export const isApiFile = (path: string): boolean => API_FILES.some((kind) => isOfKind(kind, path));

/** Returns the path of the HTML page for the folder `/` or `/docs/` of a request. Undefined for any other path. */
export const pageOfFolder = (pathname: string): string | undefined =>
  pathname.endsWith('/') ? BUILD_FILES.find(({ path }) => `/${path}` === `${pathname}index.html`)?.path : undefined;

/** Returns the redirect from `/docs` to `docs/`, because the relative links of the page need the slash. Undefined for other paths. */
export const redirectOf = (pathname: string): string | undefined =>
  pageOfFolder(`${pathname}/`) === undefined ? undefined : `${pathname.slice(pathname.lastIndexOf('/') + 1)}/`;

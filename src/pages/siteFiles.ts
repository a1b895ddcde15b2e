/**
 * Files of a build outside the API: HTML pages, scripts, documents and Parquet files. Their names are fixed, so that a
 * host can tell them from other files in the same bucket.
 */
import { LANDING_PATH } from './paths.ts';

/** The OpenAPI description. It is in the root folder, because the server URL in it is relative. */
export const OPENAPI_PATH = 'openapi.json';
/** The page that shows the OpenAPI description. */
export const DOCS_PATH = 'docs/index.html';

const API_FILE = /^runes\/v1\/(?:[0-9a-z]+(?:-[0-9a-z]+)?\/)*[0-9a-z]+\.json$/;
const SITE_FILE =
  /^(?:index\.html|(?:charts|client|explorer)\.(?:js|css)|client\.d\.ts|openapi\.json|docs\/(?:index\.html|[a-z-]+\.(?:js|css)|LICENSE\.txt)|activity\/[0-9a-z]+\.(?:parquet|json))$/;

/** True for paths that a build may have. A host that also stores other files may send only these. */
export const isBuiltFile = (path: string): boolean => API_FILE.test(path) || SITE_FILE.test(path);

/**
 * Returns the HTML page of a folder: `/` and `/docs/`. Undefined for any other path. Paths begin with a slash, as in
 * requests.
 */
export function pageOfFolder(pathname: string): string | undefined {
  if (pathname === '/') return LANDING_PATH;
  return pathname === '/docs/' ? DOCS_PATH : undefined;
}

/** Returns the relative redirect target of `/docs`, which lacks the slash that the page's relative URLs need. */
export const redirectOf = (pathname: string): string | undefined => (pathname === '/docs' ? 'docs/' : undefined);

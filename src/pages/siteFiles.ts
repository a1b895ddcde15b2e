/**
 * The files of a build that are not of the API: the pages for people, their scripts, documents and bulk data. All of them have fixed names, so that a host can tell them from other things in the same bucket.
 */
import { LANDING_PATH } from './paths.ts';

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

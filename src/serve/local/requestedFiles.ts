/**
 * Files that clients request by path: landing page, manifest, digests, pages, and files that the folder's owner added.
 */
import { extname } from 'node:path';
import { isBuiltFile, pageOfFolder } from '../../pages/fileKinds.ts';
import { decodeStrictly } from '../../pages/parseQuery.ts';
import { API_HEADERS, cachingHeaders, FILE_HEADERS, fileCaching, fileHeaders, TEXT_TYPES } from '../http/headers.ts';
import { type Headers, headerList } from './sendAnswer.ts';

/** Maximum length of a file name and of a path on common file systems, in bytes. */
const LONGEST_NAME = 255;
const LONGEST_PATH = 1024;

/** Content types by file extension. Files with other extensions get a type that browsers download. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ...Object.entries(TEXT_TYPES),
  ['csv', 'text/csv; charset=utf-8'],
  ['ico', 'image/x-icon'],
  ['png', 'image/png'],
  ['svg', 'image/svg+xml'],
  ['xml', 'application/xml'],
]);

/**
 * Returns the path of the requested file, relative to the folder. Undefined for hidden files, `..`, names that are too
 * long for a file system, and names with characters that are special on Windows.
 */
export function plainPathOf(target: string): string | undefined {
  const [encoded = ''] = target.split('?');
  const path = decodeStrictly(encoded);
  if (path === undefined) return undefined;
  const page = pageOfFolder(path);
  if (page !== undefined) return page;
  const names = path.slice(1).split('/');
  const isName = (name: string) => name !== '' && !name.startsWith('.') && Buffer.byteLength(name) <= LONGEST_NAME;
  const isPlain = path.startsWith('/') && path.length <= LONGEST_PATH && !FORBIDDEN.test(path) && names.every(isName);
  return isPlain ? names.join('/') : undefined;
}

const FORBIDDEN = /[\0-\x1f\x7f\\:]/;

const CACHING = cachingHeaders(false);
const JSON_HEADERS = headerList({ ...API_HEADERS, ...CACHING });
const OTHER = headerList({ ...FILE_HEADERS, ...CACHING });
/** Headers of the build's files other than JSON, by file extension. */
const BUILT = new Map<string, Headers>();

/**
 * Returns the headers of a file by its path. Files that the folder's owner added get no content security policy,
 * because the owner's pages may run any script.
 */
export function headersOf(path: string): Headers {
  const type = extname(path).slice(1).toLowerCase();
  if (type === 'json') return JSON_HEADERS;
  if (!isBuiltFile(path)) return [...OTHER, 'content-type', TYPES.get(type) ?? 'application/octet-stream'];
  const known = BUILT.get(type);
  if (known !== undefined) return known;
  const headers = headerList({ ...fileHeaders(path), ...fileCaching(path) });
  BUILT.set(type, headers);
  return headers;
}

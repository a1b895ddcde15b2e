/**
 * The page map (pages/respond.ts) for hosts that use Request and Response, such as edge functions and workers. A host
 * adds only a few lines.
 */
import { FormatError } from '../format/formatVersion.ts';
import { hexOf } from '../format/sha256.ts';
import { answerFromLists } from '../lists/answers.ts';
import { type Files, MissingFileError, type OpenFile } from '../pages/fileAccess.ts';
import { NOT_FOUND_PATH } from '../pages/fileKinds.ts';
import { MirrorReader } from '../pages/mirrorReader.ts';
import { inflateText, partOf, rangeOf } from './archiveParts.ts';
import { errorBody, notFound, RETRY_LATER } from './http/errorBodies.ts';
import {
  API_HEADERS,
  cachingHeaders,
  ERROR_HEADERS,
  errorPageHeaders,
  etagOfDigest,
  fileCaching,
  fileHeaders,
  heightHeaders,
  matchesEtag,
  PREFLIGHT_HEADERS,
} from './http/headers.ts';
import { type Reply, reply, wantsPage } from './http/methods.ts';

/**
 * Reads a file of the build by its path (`runes/v1/...`). Returns the file server's response, whatever its status.
 * `range` is a Range header, which the file server may ignore.
 */
export type FetchFile = (path: string, range?: string) => Promise<Response>;

/** A mirror on top of a file server. Caches the manifest and parts of the archive, so create one per host instance. */
export class FetchMirror {
  readonly #reader: MirrorReader<FetchedFile>;

  /**
   * `freshMs` is the time in milliseconds for which a manifest from memory may be used. Give Infinity if the files
   * never change during a deployment. `now` is the clock.
   */
  constructor(fetchFile: FetchFile, freshMs: number, now = Date.now) {
    this.#reader = new MirrorReader(filesBehind(fetchFile), answerFromLists, freshMs, false, now);
  }

  /**
   * Answers an API request. Returns undefined for any other path (`/runes/v1/manifest.json`, `/`), which the host then
   * serves itself. Answers 503 if a required file stays missing, or if the files have another format version. Rejects
   * if files cannot be read at all, so that the host can use its own fallback.
   */
  async answer(request: Request): Promise<Response | undefined> {
    const answer = await this.#answerTo(request.method, targetOf(request));
    switch (answer?.kind) {
      case undefined:
        return unavailable(request);
      case 'other':
        return undefined;
      case 'preflight':
        return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
      case 'page':
        return await sendBody(request, answer.page.content, cachingHeaders(answer.isSettled), answer.page.etag);
      case 'window':
        return await sendBody(request, answer.body, { ...cachingHeaders(answer.isSettled), ...heightHeaders(answer.height) });
      case 'error':
        return errorResponse(request, answer, answer.allow === undefined ? {} : { allow: answer.allow });
    }
  }

  /** Returns undefined if a required file is missing. */
  async #answerTo(method: string, target: string): Promise<Reply<FetchedFile> | undefined> {
    try {
      return await reply(method, target, () => this.#reader.answer(target));
    } catch (error) {
      if (error instanceof MissingFileError) return undefined;
      if (error instanceof FormatError) return { kind: 'error', ...errorBody(503, error.message) };
      throw error;
    }
  }
}

/**
 * Returns the files behind `fetchFile`. Only a 404 means that a file does not exist. Rejects for any other failure,
 * because then the file may exist.
 */
const filesBehind = (fetchFile: FetchFile): Files<FetchedFile> => ({
  open: async (path) => {
    const response = await fetchFile(path);
    if (response.ok) {
      const content = await response.text();
      return { content, etag: strongEtag(response), text: () => Promise.resolve(content) };
    }
    await response.body?.cancel();
    if (response.status === 404) return undefined;
    throw new Error(`${path} was answered with status ${response.status}`);
  },
  read: async (path, offset, length, size) =>
    partOf(path, await (length === size ? fetchFile(path) : fetchFile(path, rangeOf(offset, length))), offset, length),
  inflate: inflateText,
});

/** Returns the path and query of a request. `URL` resolves `..`, but keeps the percent-encoding. */
function targetOf({ url }: Request): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

type MoreHeaders = Readonly<Record<string, string>>;

/** A file: its content, and the file server's ETag. An answer whose body is exactly this file gets the same ETag. */
interface FetchedFile extends OpenFile {
  readonly content: string;
  readonly etag: string | undefined;
}

/**
 * Returns the file server's ETag as a strong ETag. File servers make ETags of compressed answers weak, but the decoded
 * bytes are the same.
 */
const strongEtag = (file: Response): string | undefined => file.headers.get('etag')?.replace(/^W\//, '');

export function errorResponse(request: Request, { status, body }: ReturnType<typeof errorBody>, more: MoreHeaders = {}): Response {
  return new Response(request.method === 'HEAD' ? null : body, { status, headers: { ...ERROR_HEADERS, ...more } });
}

/** Returns the 503 for a required file that is missing or cannot be read. */
export const unavailable = (request: Request): Response => errorResponse(request, errorBody(503, RETRY_LATER), { 'retry-after': '5' });

/** Returns the API's JSON 404 for paths under `/runes` that are neither a route nor a file. */
export const jsonNotFound = (request: Request): Response => errorResponse(request, notFound(request.method, targetOf(request)));

/** Returns the 404 for a path that is not in the build: a page for browsers outside the API, otherwise JSON. */
export async function pathNotFound(request: Request, fetchFile: FetchFile): Promise<Response> {
  if (!wantsPage(request.method, targetOf(request), request.headers.get('accept'))) return jsonNotFound(request);
  const page = await fetchFile(NOT_FOUND_PATH);
  if (page.ok && request.method === 'GET') return new Response(page.body, { status: 404, headers: errorPageHeaders() });
  await page.body?.cancel();
  return page.ok ? new Response(null, { status: 404, headers: errorPageHeaders() }) : jsonNotFound(request);
}

/** Forwards a file with the file server's ETag. Without such an ETag, reads the body to compute one. */
export async function sendFile(request: Request, file: Response, more: MoreHeaders = {}): Promise<Response> {
  const etag = strongEtag(file);
  if (etag === undefined) return sendBody(request, await file.text(), more);
  return passOn(request, file, 200, new Headers({ ...API_HEADERS, ...cachingHeaders(false), etag, ...more }));
}

/**
 * Forwards the file server's answer for a file that clients read by ranges: the complete file, a part of it, or a 416.
 */
export async function sendByRanges(request: Request, path: string, file: Response): Promise<Response> {
  const etag = strongEtag(file);
  const headers = new Headers({
    ...fileCaching(path),
    'accept-ranges': 'bytes',
    ...fileHeaders(path),
    ...(etag === undefined ? {} : { etag }),
  });
  for (const name of ['content-length', 'content-range']) {
    const value = file.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return passOn(request, file, file.status, headers);
}

/**
 * Answers with the body of `file`. Sends no body for HEAD, and a 304 if the client already has the ETag of `headers`.
 */
async function passOn(request: Request, file: Response, status: number, headers: Headers): Promise<Response> {
  const etag = headers.get('etag');
  const isKnown = etag !== null && matchesEtag(request.headers.get('if-none-match'), etag);
  if (!isKnown && request.method === 'GET') return new Response(file.body, { status, headers });
  await file.body?.cancel();
  if (isKnown) headers.delete('content-length');
  return new Response(null, { status: isKnown ? 304 : status, headers });
}

async function sendBody(request: Request, body: string, more: MoreHeaders, known?: string): Promise<Response> {
  const etag = known ?? (await etagOf(body));
  const headers = { ...API_HEADERS, ...cachingHeaders(false), etag, ...more };
  if (matchesEtag(request.headers.get('if-none-match'), etag)) return new Response(null, { status: 304, headers });
  return new Response(request.method === 'HEAD' ? null : body, { headers });
}

const etagOf = async (body: string): Promise<string> =>
  etagOfDigest(hexOf(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)))));

/**
 * Reads the files of a mirror over plain HTTP from any host. Accepts only complete files of a mirror: for a missing file, a host may answer
 * with a web page, a redirect or a part of the file, and none of these may be taken for an empty list.
 */
import { messageOf } from '../../errors.ts';
import { MOST_INFLATED } from '../../format/root.ts';
import { type Files, MissingFileError, type OpenFile } from '../../pages/fileAccess.ts';
import { MANIFEST_PATH } from '../../pages/filePaths.ts';
import { inflateText, partOf, rangeOf, requestOf, textOf } from '../archiveParts.ts';

/** Thrown if a file cannot be read: the host is unreachable, refuses the request, or has no mirror. See `cause`. */
export class UnreadableError extends Error {}

/** Revalidates every file: some hosts let browsers cache each for another time, so answers could mix files of two builds. */
const ASK_AGAIN: RequestInit & { readonly cache: string } = { cache: 'no-cache' };

/** Keeps answers to range requests out of the browser's cache: some browsers mix up cached ranges of a file. */
const NEVER_KEPT: RequestInit & { readonly cache: string } = { cache: 'no-store' };

/**
 * Largest gap in bytes between two pages that one request reads together. Smaller than that of servers: on a slow connection unneeded bytes
 * take longer than a concurrent request. Clients with keys allow the gap of servers, because they read complete pieces of 16 KB anyway.
 */
const NEAR_BYTES = 2 * 1024;

/** Longest time in milliseconds until a file has arrived. Otherwise a host could answer without end. */
const TIMEOUT_MS = 60_000;

/** Longest time of a timer in JavaScript. A longer one would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface MirrorFiles extends Files<OpenFile> {
  /**
   * Returns the text of any JSON file of the mirror, by its path. Undefined if the host does not have the file. A client with keys reads
   * only the manifest, and files for which the caller gives the digest `sha256`, which the signed manifest proves.
   */
  file(path: string, sha256?: string): Promise<string | undefined>;
}

/**
 * Returns a reader of the files below `base`, which ends with a slash. With a signal, concurrent reads of the same part of a file share one
 * request. Without one, none do: a server may use this reader for several incoming requests, and on some platforms one of these cannot wait
 * for a read that another has started. A file that takes longer than `timeoutMs` is unreadable.
 */
export function filesAt(base: URL, fetch: typeof globalThis.fetch, signal?: AbortSignal, timeoutMs = TIMEOUT_MS): MirrorFiles {
  /** Fetches a file: undefined if the host does not have it. `take` reads the content of a successful response. */
  const get = async <Content>(path: string, init: RequestInit, take: (response: Response) => Promise<Content>) => {
    const { href } = new URL(path, base);
    const stop = new AbortController();
    const forward = () => stop.abort(signal?.reason);
    const late = () => stop.abort(new UnreadableError(`${href} did not arrive within ${timeoutMs} ms`));
    const timer = setTimeout(late, Math.min(timeoutMs, LONGEST_TIMER_MS));
    if (signal?.aborted) forward();
    signal?.addEventListener('abort', forward);
    const answer = async () => {
      const response = await fetch(href, { ...init, signal: stop.signal });
      if (response.ok) return take(response);
      const { status } = response;
      if (status === 404 || status === 416 || (status === 403 && isMissingObject(response, await textIn(path, response)))) return undefined;
      throw new UnreadableError(`${href} was answered with status ${status}`);
    };
    try {
      return await unlessAborted(answer(), stop.signal);
    } catch (error) {
      if (error instanceof UnreadableError || signal?.aborted) throw error;
      const advice = 'Check the connection, and that the host allows this page to read it (CORS)';
      throw new UnreadableError(`${href} cannot be read (${messageOf(error)}). ${advice}`, { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', forward);
      // Ends a response whose body was not read to its end.
      stop.abort();
    }
  };
  const pending = new Map<string, Promise<Uint8Array | undefined>>();
  const read = (path: string): Promise<string | undefined> => get(path, ASK_AGAIN, (response) => textIn(path, response));
  const checked = async (path: string, fits: (value: unknown) => boolean): Promise<string | undefined> => {
    const text = await read(path);
    if (text === undefined || fits(parse(text))) return text;
    const isPage = text.trimStart().startsWith('<');
    throw new MissingFileError(path, isPage ? 'was answered with a web page' : 'is truncated or not a file of a mirror');
  };
  const manifest = async (): Promise<string> => {
    const text = await read(MANIFEST_PATH);
    const isManifest = text !== undefined && (parse(text) as { generator?: unknown } | undefined)?.generator === 'rune-activity-mirror';
    if (isManifest) return text;
    throw new UnreadableError(
      `no mirror found at ${base.href}: ${MANIFEST_PATH} is ${text === undefined ? 'missing' : 'not a manifest'}. The base is the URL before /runes/v1`,
    );
  };
  return {
    open: async (path) => {
      const content = await (path === MANIFEST_PATH ? manifest() : checked(path, isComplete));
      return content === undefined ? undefined : { text: async () => content };
    },
    file: (path) => checked(path, (value) => value !== undefined),
    read: (path, offset, length, size) => {
      const name = `${path} ${offset} ${length}`;
      const init = length === size ? {} : { ...NEVER_KEPT, ...requestOf(rangeOf(offset, length)) };
      const reading =
        pending.get(name) ?? get(path, init, (response) => partOf(path, response, offset, length)).finally(() => pending.delete(name));
      if (signal !== undefined) pending.set(name, reading);
      return reading;
    },
    inflate: inflateText,
    nearBytes: NEAR_BYTES,
  };
}

/** Returns the text of a file. Rejects for more than 64 MB: no file of a mirror is that large. */
const textIn = (path: string, { body }: Response): Promise<string> =>
  textOf(body, MOST_INFLATED, () => new UnreadableError(`${path} has more than ${MOST_INFLATED} bytes`));

/** Waits for `work`. Rejects with the signal's reason if `signal` aborts first. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop));
  });
}

/** True for a 403 that means a missing object, as S3 sends it for a bucket that allows reading but not listing. */
const isMissingObject = (response: Response, body: string): boolean =>
  /^application\/xml\b/i.test(response.headers.get('content-type') ?? '') && /<Error>\s*<Code>AccessDenied<\/Code>/.test(body);

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** True for the JSON of an API file. A page must have as many records as its limit, offset and total require. */
function isComplete(value: unknown): boolean {
  const file = Object(value) as Readonly<Record<string, unknown>>;
  const { limit, offset, total, results } = file;
  if (!Array.isArray(results)) return ['server_version', 'etchings', 'ordinals'].some((key) => key in file);
  return results.length === Math.max(Math.min(Number(limit), Number(total) - Number(offset)), 0);
}

/** File sources of a worker: its own deployed assets, an R2 bucket, or an HTTP origin. */
import { requestOf } from '../archiveParts.ts';
import type { FetchFile } from '../fetchHost.ts';
import { contentRange, isReadByRanges, type Part, satisfy, wantedRange } from '../http/ranges.ts';

/** Variables, secrets and bindings of the worker. `hosting/README.md` explains them. */
export interface Settings {
  readonly ASSETS?: Assets;
  readonly BUCKET?: Bucket;
  readonly PREFIX?: string;
  readonly ORIGIN?: string;
  readonly FRESH_SECONDS?: string;
}

interface Assets {
  fetch(request: Request): Promise<Response>;
}

/** The part of an R2 binding that the worker uses. With it, the project needs no package with all types of the platform. */
interface Bucket {
  /** `range` is in bytes. */
  get(key: string, options?: { readonly range: { readonly offset: number; readonly length: number } }): Promise<BucketObject | null>;
  head(key: string): Promise<{ readonly size: number; readonly httpEtag: string } | null>;
}

interface BucketObject {
  readonly body: ReadableStream<Uint8Array>;
  readonly httpEtag: string;
  /** Size of the complete object, in bytes. */
  readonly size: number;
}

/** The worker's settings are wrong. The message is for the operator and contains no secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Returns the file reader that the settings select. Throws a SettingsError if they select none or several. */
export function originOf(settings: Settings): FetchFile {
  const { ASSETS, BUCKET, ORIGIN, PREFIX } = settings;
  const named = [ASSETS && 'ASSETS', BUCKET && 'BUCKET', isSet(ORIGIN) && 'ORIGIN'].filter(Boolean);
  if (named.length > 1) throw new SettingsError(`${named.join(' and ')} are set together; keep one of them`);
  if (BUCKET !== undefined) return bucketOrigin(BUCKET, withSlash(PREFIX ?? ''));
  if (isSet(PREFIX)) throw new SettingsError('PREFIX is only for an R2 bucket; add it to ORIGIN or to the folder of ASSETS instead');
  if (ASSETS !== undefined) return deployedOrigin(ASSETS);
  if (!isSet(ORIGIN))
    throw new SettingsError(
      'this worker has no source of files: deploy a folder of files as ASSETS, bind an R2 bucket as BUCKET, or set the variable ORIGIN',
    );
  if (!/^https?:\/\/[^?#]+$/.test(ORIGIN)) throw new SettingsError('ORIGIN must be a URL such as https://example.org/mirror');
  return (path, range) => fetch(withSlash(ORIGIN) + path, requestOf(range));
}

/**
 * Returns the time in milliseconds for which the worker may use a manifest from memory. Unlimited for deployed assets: a new deployment
 * starts new isolates.
 */
export function freshMsOf({ ASSETS, FRESH_SECONDS }: Settings): number {
  if (!isSet(FRESH_SECONDS)) return ASSETS === undefined ? 30_000 : Number.POSITIVE_INFINITY;
  if (!/^[0-9]{1,6}$/.test(FRESH_SECONDS)) throw new SettingsError(`FRESH_SECONDS must be a whole number of seconds, not ${FRESH_SECONDS}`);
  return Number(FRESH_SECONDS) * 1000;
}

/**
 * Reads files that were deployed with the worker. The binding ignores ranges and returns no length, so this cuts the range out of the
 * complete file. A deployed file has at most 25 MiB.
 */
function deployedOrigin(assets: Assets): FetchFile {
  return async (path, range) => {
    const file = await assets.fetch(new Request(`https://assets.local/${path}`));
    if (!file.ok || !isReadByRanges(path)) return file;
    const bytes = new Uint8Array(await file.arrayBuffer());
    const facts = { size: bytes.length, httpEtag: file.headers.get('etag') };
    const wanted = wantedRange(range);
    if (wanted === undefined) return sent(200, bytes, facts);
    const part = satisfy(wanted, bytes.length);
    return part === undefined ? sent(416, null, facts) : sent(206, bytes.subarray(part.start, part.end + 1), facts, part);
  };
}

/** Reads files of an R2 bucket. Answers 404 for a missing object, which means an unknown id. Rejects if the bucket cannot be read. */
function bucketOrigin(bucket: Bucket, prefix: string): FetchFile {
  return async (path, range) => {
    const key = prefix + path;
    const wanted = wantedRange(range);
    const get = ({ start, end }: Part) => bucket.get(key, { range: { offset: start, length: end - start + 1 } });
    if (wanted === undefined) {
      const object = await bucket.get(key);
      return object === null ? missing() : sent(200, object.body, object);
    }
    if (wanted.kind === 'from' && wanted.end !== undefined) {
      // Readers of layout `archive` send such ranges. One request to R2 suffices if the object has all of the part.
      const part = { start: wanted.start, end: wanted.end };
      const object = await get(part).catch(() => null);
      if (object !== null && object.size > part.end) return sent(206, object.body, object, part);
      await object?.body.cancel();
    }
    const found = await bucket.head(key);
    if (found === null) return missing();
    const part = satisfy(wanted, found.size);
    if (part === undefined) return sent(416, null, found);
    const object = await get(part);
    if (object === null) return missing();
    // The object may be replaced between the two requests.
    if (object.httpEtag !== found.httpEtag) throw new Error(`${key} was replaced while it was read`);
    return sent(206, object.body, object, part);
  };
}

const missing = (): Response => new Response(null, { status: 404 });

/** Returns a file, a part of it, or a 416. `size` is the size of the file in bytes. */
function sent(
  status: 200 | 206 | 416,
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
  { size, httpEtag }: { readonly size: number; readonly httpEtag: string | null },
  part?: Part,
): Response {
  const headers = new Headers(httpEtag === null ? {} : { etag: httpEtag });
  if (status !== 416) headers.set('content-length', String(part === undefined ? size : part.end - part.start + 1));
  if (status !== 200) headers.set('content-range', contentRange(size, part));
  return new Response(body, { status, headers });
}

/** True for a variable with a value. The dashboard keeps empty variables, so they count as missing. */
const isSet = (value: string | undefined): value is string => value !== undefined && value !== '';

const withSlash = (prefix: string): string => (prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`);

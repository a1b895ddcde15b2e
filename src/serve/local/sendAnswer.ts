/** Sends answers: headers, ETags, 304 and compression. */
import { closeSync, createReadStream } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorBody } from '../http/errorBodies.ts';
import {
  API_HEADERS,
  cachingHeaders,
  compressedEtag,
  ERROR_HEADERS,
  errorPageHeaders,
  heightHeaders,
  matchesEtag,
} from '../http/headers.ts';
import { contentRange, satisfy, wantedRange } from '../http/ranges.ts';
import { takesGzip } from './acceptEncoding.ts';
import { type BuiltFile, etagOf, GZIP_LEVEL, gzipped, type LargeFile } from './builtFiles.ts';

/**
 * HTTP headers, as alternating names and values. Node writes such a list 15 µs faster than an object, which is a third
 * of the time of a request.
 */
export type Headers = readonly string[];

export const headerList = (headers: Readonly<Record<string, string>>): Headers => Object.entries(headers).flat();

const API_ERROR: Headers = headerList(ERROR_HEADERS);
export const PAGE_ERROR: Headers = headerList(errorPageHeaders());
const SETTLED: Headers = headerList({ ...API_HEADERS, ...cachingHeaders(true) });
const UNSETTLED: Headers = headerList({ ...API_HEADERS, ...cachingHeaders(false) });

/** Headers of lists that depend on the last block, and its height. */
let newest = { height: -1, headers: UNSETTLED };

/**
 * Returns the headers for records of a list. CDNs may cache records of settled blocks. `height` is the last block that the
 * list takes into account, if its body does not say so.
 */
export function listHeaders(isSettled: boolean, height?: number): Headers {
  if (height === undefined) return isSettled ? SETTLED : UNSETTLED;
  if (newest.height !== height)
    newest = { height, headers: headerList({ ...API_HEADERS, ...cachingHeaders(false), ...heightHeaders(height) }) };
  return newest.headers;
}
const VARY: Headers = ['vary', 'accept-encoding'];

/** Minimum size of a body for compression. A smaller body fits into one network packet uncompressed. */
const COMPRESS_FROM_BYTES = 1000;

type ApiError = ReturnType<typeof errorBody>;

/** Body with one character per byte, and its compressed form if the archive has it. */
interface MadeBody {
  readonly body: string;
  readonly gzip?: Uint8Array;
}

interface BodyForm {
  readonly bytes: Buffer;
  readonly etag: string;
  gzip: Uint8Array | undefined;
}

/** Bytes and ETags of bodies. Saves computing them again when the server sends a cached answer again. */
const forms = new WeakMap<MadeBody, BodyForm>();

function formOf(made: MadeBody): BodyForm {
  const known = forms.get(made);
  if (known !== undefined) return known;
  const bytes = Buffer.from(made.body, 'latin1');
  const form = { bytes, etag: etagOf(bytes), gzip: made.gzip };
  forms.set(made, form);
  return form;
}

export class Exchange {
  constructor(
    readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly compresses: boolean,
  ) {}

  get method(): string {
    return this.request.method ?? 'GET';
  }

  /** Sends a file as a 200 or 304. `headers` are those of the file's type. */
  async sendFile(file: BuiltFile, headers: Headers): Promise<void> {
    if (file.bytes === undefined) return this.#sendLarge(await file.openLarge(), headers);
    const { bytes } = file;
    await this.#sendWhole(bytes, file.etag(bytes), () => file.gzip(bytes), headers);
  }

  async #sendLarge({ fd, size, etag }: LargeFile, headers: Headers): Promise<void> {
    const isZipped = this.#isZipped(size);
    const known = this.#knownTag(etag, isZipped);
    if (this.method === 'HEAD' || known !== undefined) closeSync(fd);
    if (known !== undefined) return this.#sendNotModified(known, headers);
    // The compressed size is unknown until the end, so there is no content-length.
    const form = isZipped ? ZIPPED : ['content-length', String(size)];
    this.#writeHead(200, [...headers, ...this.#validators(isZipped ? compressedEtag(etag) : etag), ...form]);
    if (this.method === 'HEAD') return void this.response.end();
    const content = createReadStream('', { fd, start: 0, end: size - 1 });
    if (isZipped) await pipeline(content, createGzip({ level: GZIP_LEVEL }), this.response);
    else await pipeline(content, this.response);
  }

  /**
   * Sends a file that clients read by ranges: the complete file or a part of it, uncompressed. Streams the file, so
   * that it is never completely in memory.
   */
  async sendByRanges(file: BuiltFile, headers: Headers): Promise<void> {
    const { fd, size, etag } = await file.openLarge();
    const known = this.#knownTag(etag, false);
    // If the ETag in If-Range differs, the client has a part of another file, so it gets the complete file.
    const isSame = (this.request.headers['if-range'] ?? etag) === etag;
    const wanted = this.method === 'GET' && isSame ? wantedRange(this.request.headers.range) : undefined;
    const part = wanted === undefined ? { start: 0, end: size - 1 } : satisfy(wanted, size);
    const all = [...headers, 'accept-ranges', 'bytes', 'etag', etag];
    if (this.method === 'HEAD' || known !== undefined || part === undefined || size === 0) closeSync(fd);
    if (known !== undefined) return this.sendNothing(304, all);
    if (part === undefined)
      return this.sendError(errorBody(416, `the file has ${size} bytes`), ['accept-ranges', 'bytes', 'content-range', contentRange(size)]);
    const place = wanted === undefined ? [] : ['content-range', contentRange(size, part)];
    this.#writeHead(wanted === undefined ? 200 : 206, [...all, ...place, 'content-length', String(part.end - part.start + 1)]);
    // A stream cannot read an empty range.
    if (this.method === 'HEAD' || size === 0) this.response.end();
    else await pipeline(createReadStream('', { fd, ...part }), this.response);
  }

  /** Sends a body from the page map, as a 200 or 304. */
  async sendBody(made: MadeBody, headers: Headers): Promise<void> {
    const form = formOf(made);
    const gzip = async () => {
      form.gzip ??= await gzipped(form.bytes);
      return form.gzip;
    };
    await this.#sendWhole(form.bytes, form.etag, gzip, headers);
  }

  /** Sends an error of the API. If `headers` is PAGE_ERROR, the body is a page for people. */
  sendError({ status, body }: ApiError, more: Headers = [], headers: Headers = API_ERROR): void {
    this.#writeHead(status, [...headers, ...more, 'content-length', String(Buffer.byteLength(body))]);
    this.response.end(this.method === 'HEAD' ? undefined : body);
  }

  sendNothing(status: number, headers: Headers): void {
    this.#writeHead(status, headers);
    this.response.end();
  }

  /**
   * Ends a request that failed. Sends the error if no headers were sent yet. Otherwise cuts the connection, so that the
   * client does not take a partial answer for a complete one.
   */
  fail(error: ApiError, more: Headers): void {
    if (this.response.headersSent) this.response.destroy();
    else this.sendError(error, more);
  }

  /** True if a body of this many bytes is sent compressed. */
  #isZipped(size: number): boolean {
    return this.compresses && size >= COMPRESS_FROM_BYTES && takesGzip(this.request.headers['accept-encoding']);
  }

  /**
   * Returns the ETag of the body that the client already has, compressed or not. Undefined if the client has neither.
   * Prefers the ETag of the form that would be sent.
   */
  #knownTag(etag: string, isZipped: boolean): string | undefined {
    const known = this.request.headers['if-none-match'];
    if (known === undefined) return undefined;
    const forms = isZipped ? [compressedEtag(etag), etag] : [etag, compressedEtag(etag)];
    return forms.find((form) => matchesEtag(known, form));
  }

  #sendNotModified(etag: string, headers: Headers): void {
    this.sendNothing(304, [...headers, ...this.#validators(etag)]);
  }

  async #sendWhole(plain: Uint8Array, etag: string, gzip: () => Promise<Uint8Array>, headers: Headers): Promise<void> {
    const isZipped = this.#isZipped(plain.length);
    const known = this.#knownTag(etag, isZipped);
    if (known !== undefined) return this.#sendNotModified(known, headers);
    const bytes = isZipped ? await gzip() : plain;
    const form = ['content-length', String(bytes.length), ...(isZipped ? ZIPPED : [])];
    this.#writeHead(200, [...headers, ...this.#validators(isZipped ? compressedEtag(etag) : etag), ...form]);
    this.response.end(this.method === 'HEAD' ? undefined : bytes);
  }

  /** Returns the headers that both a 200 and a 304 must have. */
  #validators(etag: string): Headers {
    return ['etag', etag, ...(this.compresses ? VARY : [])];
  }

  #writeHead(status: number, headers: Headers): void {
    // Node's types require a mutable list, but Node does not change it.
    this.response.writeHead(status, headers as string[]);
  }
}

const ZIPPED: Headers = ['content-encoding', 'gzip'];

/** Makes the answers of every host from an origin of files: methods, ranges, ETags, compression and errors. Uses no platform API. */
import type { WindowAnswer } from '../../pages/envelope.ts';
import type { OpenFile } from '../../pages/fileAccess.ts';
import { isBuiltFile, NOT_FOUND_PATH, pageOfFolder, redirectOf } from '../../pages/fileKinds.ts';
import { decodeStrictly } from '../../pages/parseQuery.ts';
import { parsePath } from '../../pages/parseRequest.ts';
import type { Answer, PageAnswer } from '../../pages/respond.ts';
import { errorBody, notAllowed, notFound, RETRY_LATER, refusalBody } from './errorBodies.ts';
import { compressedEtag, HEADERS, type HeaderList, headersOfFile, listHeaders, matchesEtag, takesGzip } from './headers.ts';
import { isReadByRanges, wantedRange } from './ranges.ts';

export interface Asked {
  readonly method: string;
  /** Path and query, still percent-encoded. Begins with a slash. */
  readonly target: string;
  /** Returns the value of a header by its name in lower case. */
  header(name: string): string | undefined;
}

/** A body that is not in memory. One of the two functions must be called. */
interface UnreadBody<Stream> {
  stream(): Stream;
  close(): unknown;
}

type Body<Stream> = string | Uint8Array | UnreadBody<Stream>;

/** A file or a made body, as an origin gives it. */
export interface Content<Stream> {
  readonly body: Body<Stream>;
  /** Undefined if the origin has none, for files that clients read by ranges. */
  readonly etag: string | undefined | Promise<string>;
  /** Size of the body in bytes. Undefined if the host's platform says it. */
  readonly size?: number | undefined;
  /** Compresses the body. */
  gzip?(): Body<Stream> | Promise<Body<Stream>>;
  /** The Content-Range header, if a range was asked for. `isEmpty` if the file has no byte of this range. */
  readonly part?: { readonly isEmpty: boolean; readonly place: string | undefined } | undefined;
}

/** The files of a mirror, and the answers of the page map from them. */
export interface Origin<File extends OpenFile, Stream, Request extends Asked = Asked> {
  /** False if the host's platform compresses answers. */
  readonly compresses: boolean;
  /** Answers a GET or HEAD by the page map (pages/respond.ts). */
  read(asked: Request): Promise<Answer<File>>;
  /** Returns the content of an answer of `read`. */
  contentOf(found: PageAnswer<File> | WindowAnswer): Content<Stream> | Promise<Content<Stream>>;
  /** Opens a file of the build. `range` is a valid Range header, for a file that clients read by ranges. Undefined if the file does not exist. */
  file(path: string, range?: string): Promise<Content<Stream> | undefined>;
}

/** An answer, to be sent unchanged. For HEAD, a body in memory is only there to be counted. */
export interface Reply<Stream> {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body?: Body<Stream>;
}

const NONE: HeaderList = [];

/** Minimum size of a body for compression. A smaller one fits into one network packet. */
const COMPRESS_FROM_BYTES = 1000;

export function errorReply(error: ReturnType<typeof errorBody>, more = NONE): Reply<never> {
  return { ...error, headers: [...HEADERS.error, ...more] };
}

/** The 503 for files that are missing or cannot be read. */
export const unavailable = (message = RETRY_LATER): Reply<never> => errorReply(errorBody(503, message), ['retry-after', '5']);

/** Answers a request from an origin. Rejects if a required file is missing or cannot be read. */
export async function replyTo<File extends OpenFile, Stream, Request extends Asked>(
  asked: Request,
  origin: Origin<File, Stream, Request>,
): Promise<Reply<Stream>> {
  const { method, target } = asked;
  if (method === 'OPTIONS') return { status: 204, headers: HEADERS.preflight };
  if (method !== 'GET' && method !== 'HEAD') {
    const { kind } = parsePath(target);
    if (kind === 'outside' || kind === 'unknown') return errorReply(notFound(method, target));
    return errorReply(notAllowed(method), HEADERS.allow);
  }
  const found = await origin.read(asked);
  switch (found.kind) {
    case 'page':
    case 'window':
      return send(asked, await origin.contentOf(found), listHeaders(found), origin.compresses);
    case 'refusal':
      return errorReply(refusalBody(found));
    case 'other':
      return sendFile(asked, origin);
  }
}

/** The part of an origin that sends files by their paths. */
type FilesOfOrigin<Stream> = Pick<Origin<OpenFile, Stream>, 'compresses' | 'file'>;

/** Sends the file at a path that is not a route of the API, or a 404: a page to browsers outside the API, otherwise JSON. */
async function sendFile<Stream>(asked: Asked, origin: FilesOfOrigin<Stream>): Promise<Reply<Stream>> {
  const decoded = decodeStrictly(asked.target.split('?', 1)[0] ?? '');
  if (decoded !== undefined) {
    const path = pageOfFolder(decoded) ?? decoded.slice(1);
    const redirect = redirectOf(`/${path}`);
    if (redirect !== undefined) return { status: 301, headers: [...HEADERS.redirect, 'location', redirect, 'content-length', '0'] };
    const content = isBuiltFile(path) ? await open(asked, path, origin) : undefined;
    if (content !== undefined) return send(asked, content, headersOfFile(path), origin.compresses);
  }
  const wantsPage = /\btext\/html\b/i.test(asked.header('accept') ?? '') && parsePath(asked.target).kind === 'outside';
  const page = wantsPage ? await origin.file(NOT_FOUND_PATH) : undefined;
  if (page === undefined) return errorReply(notFound(asked.method, asked.target));
  return withBody(asked, 404, [...HEADERS.errorPage, ...lengthOf(page.size)], page.body);
}

/** Opens a file, or the part of it that the client wants. */
async function open<Stream>(asked: Asked, path: string, origin: FilesOfOrigin<Stream>): Promise<Content<Stream> | undefined> {
  const range = asked.method === 'GET' && isReadByRanges(path) ? asked.header('range') : undefined;
  if (wantedRange(range) === undefined) return origin.file(path);
  const content = await origin.file(path, range);
  const condition = asked.header('if-range');
  if (content?.part === undefined || condition === undefined || condition === content.etag) return content;
  // The client has a part of another file, so it gets the complete file.
  await close(content.body);
  return origin.file(path);
}

/** Sends a file or a made body: as a 304, complete, as the part that the client wants, or as a 416. */
async function send<Stream>(asked: Asked, content: Content<Stream>, headers: HeaderList, compresses: boolean): Promise<Reply<Stream>> {
  const { body, etag: tagOrPromise, size, part } = content;
  const etag = typeof tagOrPromise === 'object' ? await tagOrPromise : tagOrPromise;
  const zips = compresses && content.gzip !== undefined;
  const isZipped = zips && size !== undefined && size >= COMPRESS_FROM_BYTES && takesGzip(asked.header('accept-encoding'));
  const vary = zips ? HEADERS.vary : NONE;
  const known = etag === undefined ? undefined : knownTag(asked.header('if-none-match'), etag, isZipped);
  if (known !== undefined || part?.isEmpty === true) await close(body);
  if (known !== undefined) return { status: 304, headers: [...headers, 'etag', known, ...vary] };
  const place = part?.place === undefined ? NONE : ['content-range', part.place];
  if (part?.isEmpty === true)
    return errorReply(errorBody(416, 'the range begins after the end of the file'), [...HEADERS.ranges, ...place]);
  const tag = etag === undefined ? NONE : ['etag', isZipped ? compressedEtag(etag) : etag];
  if (!isZipped || content.gzip === undefined)
    return withBody(asked, part === undefined ? 200 : 206, [...headers, ...tag, ...vary, ...place, ...lengthOf(size)], body);
  const zipped = await content.gzip();
  // The compressed size of a stream is unknown until its end.
  const length = lengthOf(isUnread(zipped) ? undefined : zipped.length);
  return withBody(asked, 200, [...headers, ...tag, ...vary, ...length, ...HEADERS.zipped], zipped);
}

const lengthOf = (size: number | undefined): HeaderList => (size === undefined ? NONE : ['content-length', String(size)]);

export const isUnread = <Stream>(body: Body<Stream>): body is UnreadBody<Stream> => typeof body === 'object' && 'close' in body;

async function close<Stream>(body: Body<Stream>): Promise<void> {
  if (isUnread(body)) await body.close();
}

/** Returns an answer. For HEAD, closes a body that is not in memory. */
async function withBody<Stream>({ method }: Asked, status: number, headers: HeaderList, body: Body<Stream>): Promise<Reply<Stream>> {
  if (method !== 'HEAD' || !isUnread(body)) return { status, headers, body };
  await body.close();
  return { status, headers };
}

/** Returns the ETag of the form that the client already has, compressed or not, preferably of the form that would be sent. */
function knownTag(header: string | undefined, etag: string, isZipped: boolean): string | undefined {
  if (header === undefined) return undefined;
  const forms = isZipped ? [compressedEtag(etag), etag] : [etag, compressedEtag(etag)];
  return forms.find((form) => matchesEtag(header, form));
}

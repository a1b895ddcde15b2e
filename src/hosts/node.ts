/**
 * The local server: node:http around the page map, serve-handler for the files that are no business of the API.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import serveHandler from 'serve-handler';
import { codeOf, InputError, messageOf } from '../errors.ts';
import { type BuiltSite, siteOf } from '../pages/lists.ts';
import { MANIFEST_PATH } from '../pages/paths.ts';
import {
  type Answer,
  API_HEADERS,
  cachingHeaders,
  errorBody,
  MissingFileError,
  matchesEtag,
  notFound,
  type PageSource,
  PREFLIGHT_HEADERS,
  RETRY_LATER,
  respond,
} from '../pages/respond.ts';

/** Larger pages are streamed; smaller ones are cheaper read at once. */
const STREAM_FROM_BYTES = 256 * 1024;

/** Holds the first record of a page, but for an address of kilobytes. */
const START_BYTES = 4096;

interface FilePage {
  readonly path: string;
  readonly size: number;
  /** Size and time of change: while they are the same, so is the ETag. */
  readonly stamp: string;
  /** The content of a small file. */
  readonly bytes: Buffer | undefined;
}

/**
 * A server for the build in `dir`, not listening yet. A build that replaces the folder's content is picked up while it runs. Throws an
 * InputError when there is no build in the folder.
 */
export function createMirrorServer(dir: string): Server {
  const site = watchSite(dir);
  site();
  const source = fileSource(dir);
  const server = createServer((request, response) => {
    answer(request, response, dir, site, source).catch((error: unknown) => {
      // The reason may name paths of this machine, so it goes to the log and not to the client.
      process.stderr.write(`${request.method} ${request.url}: ${messageOf(error)}\n`);
      if (response.headersSent) response.destroy();
      else sendError(request, response, errorBody(503, RETRY_LATER), { 'retry-after': '5' });
    });
  });
  server.on('clientError', (error, socket) => {
    const status = codeOf(error) === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
    const body = errorBody(status, STATUS_CODES[status] ?? 'Bad Request').body;
    if (socket.writable) {
      socket.end(
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    } else socket.destroy();
  });
  return server;
}

/** What the manifest says of the build; it is read again when it has changed, which costs microseconds to find out. Throws when there is none. */
function watchSite(dir: string): () => BuiltSite {
  const path = join(dir, MANIFEST_PATH);
  let known: { readonly site: BuiltSite; readonly stamp: string } | undefined;
  return () => {
    const stats = statSync(path, { throwIfNoEntry: false });
    const stamp = `${stats?.ino}:${stats?.size}:${stats?.mtimeMs}`;
    if (known?.stamp !== stamp) known = { site: readSite(path), stamp };
    return known.site;
  };
}

function readSite(path: string): BuiltSite {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new InputError(`there is no build: ${path} is missing`, ['Run npm run build first, or name the folder with --dir.']);
  }
  try {
    return siteOf(JSON.parse(text));
  } catch (error) {
    throw new InputError(`${path} is not the manifest of a build: ${messageOf(error)}`, ['Run npm run build again.']);
  }
}

function fileSource(dir: string): PageSource<FilePage> {
  const source: PageSource<FilePage> = {
    open: async (path) => {
      const absolute = join(dir, path);
      try {
        const handle = await open(absolute);
        try {
          const { size, mtimeMs } = await handle.stat();
          const bytes = size < STREAM_FROM_BYTES ? await handle.readFile() : undefined;
          return { path: absolute, size, stamp: `${size}:${mtimeMs}`, bytes };
        } finally {
          await handle.close();
        }
      } catch (error) {
        if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
        throw error;
      }
    },
    text: async (page) => (page.bytes === undefined ? readFile(page.path, 'utf8') : page.bytes.toString('utf8')),
    start: async (page) => (page.bytes === undefined ? readStart(page.path) : page.bytes.toString('latin1', 0, START_BYTES)),
    // The system keeps files in memory, and knows when they change.
    index: async (path) => {
      const file = await source.open(path);
      return file && source.text(file);
    },
  };
  return source;
}

async function readStart(path: string): Promise<string> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  dir: string,
  site: () => BuiltSite,
  source: PageSource<FilePage>,
): Promise<void> {
  const method = request.method ?? 'GET';
  const target = targetOf(request);
  if (method === 'OPTIONS') {
    response.writeHead(204, PREFLIGHT_HEADERS).end();
    return;
  }
  const found = await answerSteadily(method, target, site, source);
  switch (found.kind) {
    case 'page':
      return sendPage(request, response, found.page, cachingHeaders(found.isSettled));
    case 'body':
      if (found.status === 200) sendBytes(request, response, Buffer.from(found.body), cachingHeaders(found.isSettled));
      else sendError(request, response, found, found.allow === undefined ? {} : { allow: found.allow });
      return;
    default:
      return serveFile(request, response, dir, target);
  }
}

/** How often a request is tried while the build is replaced under it. */
const TRIES = 3;

/**
 * The answer of one build. A build that replaces another writes its manifest before it removes what the other had alone, so when a file is not there
 * and the manifest is still the one that the request began with, then the build does not have it. Throws a MissingFileError when no try held.
 */
async function answerSteadily(
  method: string,
  target: string,
  site: () => BuiltSite,
  source: PageSource<FilePage>,
): Promise<Answer<FilePage>> {
  let failure = new MissingFileError(MANIFEST_PATH, 'changes all the time');
  for (let i = 0; i < TRIES; i += 1) {
    const used = site();
    try {
      const found = await respond(method, target, used, source);
      if (site() === used) return found;
    } catch (error) {
      // A build may have just removed what an older pointer named.
      if (!(error instanceof MissingFileError)) throw error;
      failure = error;
    }
  }
  throw failure;
}

/** The path and query of a request; a proxy may send a whole URL, and `OPTIONS *` has none. */
function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  return url.startsWith('/') ? url : `/${url.replace(/^[a-z]+:\/\/[^/?]*\/?/i, '')}`;
}

/** Files outside the API's routes: the landing page, the manifest, pages by their own path. Everything else is a JSON 404. */
async function serveFile(request: IncomingMessage, response: ServerResponse, dir: string, target: string): Promise<void> {
  const missing = () => sendError(request, response, notFound(request.method ?? 'GET', target));
  if ((request.method !== 'GET' && request.method !== 'HEAD') || !isPlainPath(target)) return missing();
  // serve-handler finds a folder's index.html only together with clean URLs, which would also answer /runes/v1/blocks/840000.
  request.url = target === '/' || target.startsWith('/?') ? '/index.html' : target;
  response.setHeader('access-control-allow-origin', '*');
  response.setHeader('x-content-type-options', 'nosniff');
  for (const [name, value] of Object.entries(cachingHeaders(false))) response.setHeader(name, value);
  const options = { public: dir, cleanUrls: false, directoryListing: false, etag: true };
  await serveHandler(request, response, options, { sendError: async () => missing() });
}

/** Bytes of a file name on common file systems. */
const LONGEST_NAME = 255;

/** Whether a target is one that a file of a build can have: serve-handler would answer the others with a page of its own. */
function isPlainPath(target: string): boolean {
  try {
    const path = decodeURIComponent(target.split('?')[0] ?? '');
    const fits = (name: string) => !name.startsWith('.') && Buffer.byteLength(name) <= LONGEST_NAME;
    return !/[\0\\]/.test(path) && path.split('/').every(fits);
  } catch {
    return false;
  }
}

type Headers = Readonly<Record<string, string>>;

async function sendPage(request: IncomingMessage, response: ServerResponse, page: FilePage, caching: Headers): Promise<void> {
  if (page.bytes !== undefined) return sendBytes(request, response, page.bytes, caching);
  const etag = await etagOfLarge(page);
  if (!sendHead(request, response, { ...caching, etag }, page.size)) return;
  await pipeline(createReadStream(page.path), response);
}

function sendBytes(request: IncomingMessage, response: ServerResponse, bytes: Buffer, caching: Headers): void {
  const etag = `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`;
  if (sendHead(request, response, { ...caching, etag }, bytes.length)) response.end(bytes);
}

/** Writes the head of a 200 or 304; false when there is no body to follow. */
function sendHead(request: IncomingMessage, response: ServerResponse, more: Headers & { etag: string }, length: number): boolean {
  const headers = { ...API_HEADERS, ...more };
  if (matchesEtag(request.headers['if-none-match'], more.etag)) {
    response.writeHead(304, headers).end();
    return false;
  }
  response.writeHead(200, { ...headers, 'content-length': length });
  if (request.method !== 'HEAD') return true;
  response.end();
  return false;
}

function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: { status: number; body: string },
  headers: Record<string, string> = {},
): void {
  const length = Buffer.byteLength(error.body);
  response.writeHead(error.status, { ...API_HEADERS, 'cache-control': 'no-store', 'content-length': length, ...headers });
  response.end(request.method === 'HEAD' ? undefined : error.body);
}

/** ETags of large files by path, so that they are hashed once. */
const largeEtags = new Map<string, { stamp: string; etag: string }>();

async function etagOfLarge(page: FilePage): Promise<string> {
  const known = largeEtags.get(page.path);
  if (known?.stamp === page.stamp) return known.etag;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(page.path)) hash.update(chunk);
  const etag = `"${hash.digest('hex').slice(0, 32)}"`;
  if (largeEtags.size >= 1000) largeEtags.clear();
  largeEtags.set(page.path, { stamp: page.stamp, etag });
  return etag;
}

/**
 * The local server: node:http around the page map.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { messageOf } from '../errors.ts';
import { errorBody, notFound, RETRY_LATER, shortTarget } from '../http/errors.ts';
import { FILE_HEADERS, PREFLIGHT_HEADERS } from '../http/headers.ts';
import { reply } from '../http/methods.ts';
import { isReadByRanges } from '../http/ranges.ts';
import { isPagePath, isSidecarPath, MANIFEST_PATH } from '../pages/paths.ts';
import { type Answer, MissingFileError, readFacts, respond } from '../pages/respond.ts';
import { redirectOf } from '../pages/siteFiles.ts';
import { headersOf, plainPathOf } from './node/filePaths.ts';
import { type BuiltFile, BuiltFiles, ForeignFileError } from './node/files.ts';
import { inTurn, LIMITS, type Limits, limitServer, serverOptions } from './node/limits.ts';
import { Exchange, headerList, listHeaders } from './node/send.ts';
import { WatchedBuild } from './node/watchedBuild.ts';

export interface ServerSettings {
  /** Whether answers are compressed for clients that take it. */
  readonly compresses: boolean;
  readonly limits: Limits;
}

/**
 * A server for the build in `dir`, not listening yet. A build that replaces the folder's content is picked up while it runs. Throws an
 * InputError when there is no build in the folder.
 */
export function createMirrorServer(dir: string, { compresses = true, limits = LIMITS }: Partial<ServerSettings> = {}): Server {
  const site = new WatchedBuild(dir);
  const files = new BuiltFiles(dir);
  const listener = inTurn((request, response) => {
    const exchange = new Exchange(request, response, compresses);
    answer(exchange, site, files).catch((error: unknown) => {
      // The client went away in the middle of an answer.
      if (response.destroyed) return;
      // The reason may name paths of this machine, so it goes to the log and not to the client.
      process.stderr.write(`${exchange.method} ${JSON.stringify(shortTarget(request.url ?? ''))}: ${messageOf(error)}\n`);
      exchange.fail(errorBody(503, RETRY_LATER), ['retry-after', '5']);
    });
  });
  const server = createServer(serverOptions(limits), listener);
  // What a client expects besides an answer is no reason to refuse it one.
  server.on('checkExpectation', listener);
  limitServer(server, limits);
  return server;
}

const PREFLIGHT = headerList(PREFLIGHT_HEADERS);
const REDIRECT = headerList(FILE_HEADERS);

async function answer(exchange: Exchange, site: WatchedBuild, files: BuiltFiles): Promise<void> {
  const { method, request } = exchange;
  const hosts = hostHeadersOf(request);
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    const message = hosts > 1 ? 'a request must have only one Host header' : 'a request of HTTP/1.1 must have a Host header';
    return exchange.sendError(errorBody(400, message), ['connection', 'close']);
  }
  if (method === 'OPTIONS') return exchange.sendNothing(204, PREFLIGHT);
  const target = targetOf(request);
  const found = await reply(method, target, () => answerSteadily(target, site, files));
  switch (found.kind) {
    case 'page':
      return exchange.sendFile(found.page, listHeaders(found.isSettled));
    case 'window':
      return exchange.sendBody(found.body, listHeaders(found.isSettled));
    case 'error':
      return exchange.sendError(found, found.allow === undefined ? [] : ['allow', found.allow]);
    default:
      return sendPlainFile(exchange, target, site, files);
  }
}

/** How often a request is tried while the build is replaced under it; the first time may be after it was. */
const TRIES = 4;

/**
 * The answer of one build. A build that replaces another writes its manifest before it removes what the other had alone, so when a file is not there
 * and the manifest is still the one that the request began with, then the build does not have it. Whether it is, is asked once, at the end: the request
 * begins with the manifest that was found last. Rejects with a MissingFileError when no try held.
 */
async function answerSteadily(target: string, site: WatchedBuild, files: BuiltFiles): Promise<Answer<BuiltFile>> {
  let failure: unknown;
  for (let i = 0; i < TRIES; i += 1) {
    const used = site.last;
    try {
      const found = await respond(target, used, files);
      if (site.now() === used) return found;
    } catch (error) {
      // A build may have just removed what an older pointer named, or the manifest may be of another.
      if (site.now() === used && !(error instanceof MissingFileError)) throw error;
      failure = error;
    }
  }
  // Made only here: an error with its stack takes longer than reading a file.
  throw failure ?? new MissingFileError(MANIFEST_PATH, 'changes all the time');
}

/** The number of Host headers: Node keeps only the first of several in `headers`, where a proxy in front may have taken the last. */
function hostHeadersOf({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') count += 1;
  return count;
}

/** The path and query of a request; a proxy may send a whole URL, and `OPTIONS *` has none. */
function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  return url.startsWith('/') ? url : `/${url.replace(/^[a-z]+:\/\/[^/?]*\/?/i, '')}`;
}

/** A file outside the API's routes. Everything else is a JSON 404, and so is a link that leads out of the folder. */
async function sendPlainFile(exchange: Exchange, target: string, site: WatchedBuild, files: BuiltFiles): Promise<void> {
  const path = exchange.method === 'GET' || exchange.method === 'HEAD' ? plainPathOf(target) : undefined;
  const redirect = path === undefined ? undefined : redirectOf(`/${path}`);
  if (redirect !== undefined) return exchange.sendNothing(301, [...REDIRECT, 'location', redirect, 'content-length', '0']);
  const file = path === undefined ? undefined : await openPlain(path, files);
  if (path === undefined || file === undefined) return exchange.sendError(notFound(exchange.method, target));
  if (isPagePath(path, site.last)) await readFacts(file, path);
  // Builds create pages and their compressed files in place, and whether one of these is whole cannot be seen. All other files are renamed into place.
  if (isSidecarPath(path) && site.isUnfinished()) throw new MissingFileError(path, 'may be half written: the build is not finished');
  return isReadByRanges(path) ? exchange.sendByRanges(file, headersOf(path)) : exchange.sendFile(file, headersOf(path));
}

async function openPlain(path: string, files: BuiltFiles): Promise<BuiltFile | undefined> {
  try {
    return await files.open(path);
  } catch (error) {
    if (error instanceof ForeignFileError) return undefined;
    throw error;
  }
}

/** The local server: serves the page map (pages/respond.ts) over node:http. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Log } from '../../cli/log.ts';
import { messageOf } from '../../errors.ts';
import { FormatError } from '../../format/formatVersion.ts';
import { PartCache } from '../../format/partCache.ts';
import type { ServerLimits } from '../../limits.ts';
import { answerFromLists } from '../../lists/answers.ts';
import { MissingFileError } from '../../pages/fileAccess.ts';
import { NOT_FOUND_PATH, redirectOf } from '../../pages/fileKinds.ts';
import { isPagePath, MANIFEST_PATH } from '../../pages/filePaths.ts';
import type { BuiltSite } from '../../pages/mirrorOptions.ts';
import { type Answer, readFacts, respond } from '../../pages/respond.ts';
import { errorBody, notFound, RETRY_LATER, shortTarget } from '../http/errorBodies.ts';
import { FILE_HEADERS, PREFLIGHT_HEADERS } from '../http/headers.ts';
import { reply, wantsPage } from '../http/methods.ts';
import { isReadByRanges } from '../http/ranges.ts';
import { logRequests } from './accessLog.ts';
import { type BuiltFile, BuiltFiles, ForeignFileError } from './builtFiles.ts';
import { CLIENT_LIMITS, type ClientLimits, inTurn, limitServer, serverOptions } from './clientLimits.ts';
import { ClientLeftError, FairFiles, Turns } from './fairTurns.ts';
import { headersOf, plainPathOf } from './requestedFiles.ts';
import { Exchange, headerList, listHeaders, PAGE_ERROR } from './sendAnswer.ts';
import { WatchedBuild } from './watchedBuild.ts';

export interface ServerSettings {
  readonly compresses: boolean;
  readonly limits: ClientLimits;
  readonly accessLog: Log;
  /** The clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Creates a server for the build in `dir`; the caller starts it with `listen`. The server notices a new build in the
 * same folder. Throws an InputError if the folder has no build.
 */
export function createMirrorServer(
  dir: string,
  { compresses = true, limits = CLIENT_LIMITS, accessLog, now = Date.now }: Partial<ServerSettings> = {},
): Server {
  const site = new WatchedBuild(dir);
  const files = new BuiltFiles(dir, limits, now);
  const cache = new PartCache(limits.partBytes, new PartCache(limits.pageBytes));
  const turns = new Turns();
  const listener = inTurn((request, response) => {
    const exchange = new Exchange(request, response, compresses);
    const source: Source = { site, files, fair: new FairFiles(files, turns, response, limits), cache, limits };
    answer(exchange, source).catch((error: unknown) => {
      // Ignores the error if the client has disconnected.
      if (response.destroyed) return;
      // Only the log gets the reason, because it may contain paths of this machine.
      process.stderr.write(`${exchange.method} ${JSON.stringify(shortTarget(request.url ?? ''))}: ${messageOf(error)}\n`);
      exchange.fail(errorBody(503, error instanceof FormatError ? error.message : RETRY_LATER), ['retry-after', '5']);
    });
  }, limits);
  const server = createServer(serverOptions(limits), listener);
  // Answers requests with an unknown `Expect` header normally. Without this listener, Node would refuse them.
  server.on('checkExpectation', listener);
  limitServer(server, limits);
  if (accessLog !== undefined) logRequests(server, accessLog);
  server.on('close', () => files.close());
  return server;
}

interface Source {
  readonly site: WatchedBuild;
  readonly files: BuiltFiles;
  /** The same files as `files`, for this request only (fairTurns.ts). */
  readonly fair: FairFiles;
  readonly cache: PartCache;
  readonly limits: ServerLimits;
}

const PREFLIGHT = headerList(PREFLIGHT_HEADERS);
const REDIRECT = headerList(FILE_HEADERS);

async function answer(exchange: Exchange, source: Source): Promise<void> {
  const { method, request } = exchange;
  const hosts = hostHeadersOf(request);
  if (hosts > 1 || (hosts === 0 && request.httpVersion === '1.1')) {
    const message = hosts > 1 ? 'a request must have only one Host header' : 'a request of HTTP/1.1 must have a Host header';
    return exchange.sendError(errorBody(400, message), ['connection', 'close']);
  }
  if (method === 'OPTIONS') return exchange.sendNothing(204, PREFLIGHT);
  const target = targetOf(request);
  const found = await reply(method, target, () => answerFromOneBuild(target, source));
  switch (found.kind) {
    case 'page':
      return exchange.sendFile(found.page, listHeaders(found.isSettled));
    case 'window':
      return exchange.sendBody(found, listHeaders(found.isSettled, found.height));
    case 'error':
      return exchange.sendError(found, found.allow === undefined ? [] : ['allow', found.allow]);
    default:
      return sendPlainFile(exchange, target, source);
  }
}

/**
 * Maximum number of attempts per request while a build replaces files. The first attempt may use an outdated manifest.
 */
const ATTEMPTS = 4;

/**
 * Answers from a single build. A build writes its manifest before it removes files of the last build. So if a file is
 * missing and the manifest is unchanged, the current build does not have the file. Each attempt uses the last known
 * manifest, and checks only afterwards whether the manifest is still current. Rejects with a MissingFileError if all
 * attempts fail.
 */
async function answerFromOneBuild(target: string, source: Source): Promise<Answer<BuiltFile>> {
  const { site, files } = source;
  let failure: unknown;
  for (let i = 0; i < ATTEMPTS; i += 1) {
    const used = site.last;
    try {
      const found = await answerFrom(used, target, source);
      if (site.now() === used) return found;
    } catch (error) {
      if (error instanceof ClientLeftError) throw error;
      // Tries again if the used manifest is outdated, or a file is missing, which a build may have just removed.
      if (site.now() === used && !(error instanceof MissingFileError)) throw error;
      // Opens files again: an open file of an archive may be damaged, while a repair has put a good file at its path.
      files.close();
      failure = error;
    }
  }
  // This error is not created in the loop, because creating an error with its stack takes longer than reading a file.
  throw failure ?? new MissingFileError(MANIFEST_PATH, 'changed during every attempt');
}

/**
 * Cached answers from an archive, by build. The answer to a target changes only with the build, and making it takes
 * longer than sending it.
 */
const answers = new WeakMap<BuiltSite, PartCache>();
/** An answer is stored as text, as bytes and compressed. */
const COPIES = 3;
/** Memory overhead of an answer, besides its content. */
const BYTES_PER_ANSWER = 600;

function answerFrom(site: BuiltSite, target: string, { fair, cache, limits }: Source): Promise<Answer<BuiltFile>> {
  if (site.archive === undefined) return respond(target, site, fair, answerFromLists, cache);
  const known = answers.get(site) ?? new PartCache(limits.answerBytes);
  answers.set(site, known);
  return known.get(target, async () => {
    const value = await respond(target, site, fair, answerFromLists, cache);
    const bytes = value.kind === 'window' ? value.body.length * COPIES + target.length * 2 + BYTES_PER_ANSWER : Number.POSITIVE_INFINITY;
    // Infinity means that the answer is not cached. A long answer would displace many others from the cache. An answer
    // of another kind than `window` is a file, which `files` caches.
    return { value, bytes: bytes <= limits.answerBytes / 4 ? bytes : Number.POSITIVE_INFINITY };
  });
}

/** Counts Host headers. Node's `headers` has only the first of several, but a proxy may have used the last. */
function hostHeadersOf({ rawHeaders }: IncomingMessage): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') count += 1;
  return count;
}

/** Returns the path and query of a request. A proxy may send a complete URL, and `OPTIONS *` has no path. */
function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  return url.startsWith('/') ? url : `/${url.replace(/^[a-z]+:\/\/[^/?]*\/?/i, '')}`;
}

/**
 * Sends the file at a path that is not a route of the API. Sends a 404 if the path has no file, or is a link out of the
 * folder.
 */
async function sendPlainFile(exchange: Exchange, target: string, { site, files }: Source): Promise<void> {
  const path = exchange.method === 'GET' || exchange.method === 'HEAD' ? plainPathOf(target) : undefined;
  const redirect = path === undefined ? undefined : redirectOf(`/${path}`);
  if (redirect !== undefined) return exchange.sendNothing(301, [...REDIRECT, 'location', redirect, 'content-length', '0']);
  const file = path === undefined ? undefined : await openPlain(path, files);
  if (path === undefined || file === undefined) return sendNotFound(exchange, target, files);
  // Builds write pages directly to their paths, and all other files to temporary paths that they then rename. An
  // incomplete page can be recognised.
  if (isPagePath(path, site.last)) await readFacts(file, path);
  return isReadByRanges(path) ? exchange.sendByRanges(file, headersOf(path)) : exchange.sendFile(file, headersOf(path));
}

/** Sends a 404: a page to browsers outside the API, otherwise JSON. */
async function sendNotFound(exchange: Exchange, target: string, files: BuiltFiles): Promise<void> {
  const isPage = wantsPage(exchange.method, target, exchange.request.headers.accept);
  const page = isPage ? (await openPlain(NOT_FOUND_PATH, files))?.bytes : undefined;
  if (page === undefined) exchange.sendError(notFound(exchange.method, target));
  else exchange.sendError({ status: 404, body: page.toString() }, [], PAGE_ERROR);
}

async function openPlain(path: string, files: BuiltFiles): Promise<BuiltFile | undefined> {
  try {
    return await files.open(path);
  } catch (error) {
    if (error instanceof ForeignFileError) return undefined;
    throw error;
  }
}

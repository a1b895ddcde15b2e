/**
 * The Cloudflare worker. Answers the API by the page map (pages/respond.ts), and serves the other files of the build
 * from deployed assets, R2 or another origin. Does not use Cloudflare's cache, because reading R2 is so cheap that code
 * for the cache is not worth it.
 */
import { messageOf } from '../../errors.ts';
import { isBuiltFile, pageOfFolder, redirectOf } from '../../pages/fileKinds.ts';
import { errorResponse, type FetchFile, FetchMirror, pathNotFound, sendByRanges, sendFile, unavailable } from '../fetchHost.ts';
import { errorBody } from '../http/errorBodies.ts';
import { FILE_HEADERS, fileHeaders, PREFLIGHT_HEADERS } from '../http/headers.ts';
import { isReadByRanges, wantedRange } from '../http/ranges.ts';
import { freshMsOf, originOf, type Settings, SettingsError } from './origins.ts';

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}

interface Host {
  readonly key: string;
  readonly mirror: FetchMirror;
  readonly fetchFile: FetchFile;
}

/** Mirror that an isolate keeps between requests. */
let host: Host | undefined;

/**
 * Returns the mirror for these settings. Makes a new mirror if the settings differ from those of the last request,
 * because the platform does not promise that all requests of an isolate have the same settings.
 */
function hostOf(settings: Settings): Host {
  const key = JSON.stringify(Object.entries(settings).map(([name, value]) => [name, typeof value === 'string' ? value : '']));
  if (host?.key !== key) {
    const fetchFile = originOf(settings);
    host = { key, fetchFile, mirror: new FetchMirror(fetchFile, freshMsOf(settings)) };
  }
  return host;
}

async function answer(request: Request, settings: Settings): Promise<Response> {
  try {
    const { mirror, fetchFile } = hostOf(settings);
    return (await mirror.answer(request)) ?? (await serveFile(request, fetchFile));
  } catch (error) {
    console.error(`${request.method} ${request.url}: ${messageOf(error)}`);
    return error instanceof SettingsError ? errorResponse(request, errorBody(500, error.message)) : unavailable(request);
  }
}

/** Serves files of a build. Refuses all other files, because a private bucket may have other files too. */
async function serveFile(request: Request, fetchFile: FetchFile): Promise<Response> {
  if (request.method === 'OPTIONS') return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
  const { pathname } = new URL(request.url);
  const redirect = redirectOf(pathname);
  if (redirect !== undefined) return new Response(null, { status: 301, headers: { ...FILE_HEADERS, location: redirect } });
  const path = pageOfFolder(pathname) ?? pathname.slice(1);
  if ((request.method !== 'GET' && request.method !== 'HEAD') || !isBuiltFile(path)) return pathNotFound(request, fetchFile);
  if (isReadByRanges(path)) return serveByRanges(request, path, fetchFile);
  const file = await fetchFile(path);
  return file.ok ? sendFile(request, file, fileHeaders(path)) : refused(request, path, file, fetchFile);
}

/** Answers a request for a file that `fetchFile` does not have. Rejects for any status but 404. */
async function refused(request: Request, path: string, file: Response, fetchFile: FetchFile): Promise<Response> {
  await file.body?.cancel();
  if (file.status === 404) return pathNotFound(request, fetchFile);
  throw new Error(`${path} was answered with status ${file.status}`);
}

/** Serves a file that clients read by ranges: the complete file, or a part of it. */
async function serveByRanges(request: Request, path: string, fetchFile: FetchFile): Promise<Response> {
  const range = request.method === 'GET' ? request.headers.get('range') : null;
  let file = range !== null && wantedRange(range) !== undefined ? await fetchFile(path, range) : await fetchFile(path);
  const condition = request.headers.get('if-range');
  if (file.status !== 200 && condition !== null && condition !== file.headers.get('etag')) {
    // The client has a part of an older file, so it gets the new file from the start.
    await file.body?.cancel();
    file = await fetchFile(path);
  }
  if (file.ok) return sendByRanges(request, path, file);
  if (file.status !== 416) return refused(request, path, file, fetchFile);
  await file.body?.cancel();
  const place = file.headers.get('content-range');
  return errorResponse(
    request,
    errorBody(416, 'the range begins after the end of the file'),
    place === null ? {} : { 'content-range': place },
  );
}

export default {
  fetch(request: Request, settings: Settings, context: Context): Promise<Response> {
    const response = answer(request, settings);
    // Concurrent requests wait for one read of the manifest, which belongs to the first of these requests. The read
    // must continue if the client of the first request disconnects. Otherwise the other requests would wait forever.
    context.waitUntil(response);
    return response;
  },
};

/**
 * The Cloudflare worker. Answers the API by the page map (pages/respond.ts), and serves the other files of the build from deployed assets,
 * R2 or another origin. Does not use Cloudflare's cache, because reading R2 is so cheap that code for the cache is not worth it.
 */
import { messageOf } from '../../errors.ts';
import { FetchMirror, responseOf } from '../fetchHost.ts';
import { errorBody } from '../http/errorBodies.ts';
import { errorReply, unavailable } from '../http/handler.ts';
import { freshMsOf, originOf, type Settings, SettingsError } from './origins.ts';

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}

/** Mirror that an isolate keeps between requests, and its settings. */
let host: { readonly key: string; readonly mirror: FetchMirror } | undefined;

/**
 * Returns the mirror for these settings. Makes a new mirror if the settings differ from those of the last request, because the platform
 * does not promise that all requests of an isolate have the same settings.
 */
function mirrorOf(settings: Settings): FetchMirror {
  const key = JSON.stringify(Object.entries(settings).map(([name, value]) => [name, typeof value === 'string' ? value : '']));
  if (host?.key !== key) host = { key, mirror: new FetchMirror(originOf(settings), freshMsOf(settings)) };
  return host.mirror;
}

async function answer(request: Request, settings: Settings): Promise<Response> {
  try {
    return await mirrorOf(settings).answer(request);
  } catch (error) {
    console.error(`${request.method} ${request.url}: ${messageOf(error)}`);
    return responseOf(request, error instanceof SettingsError ? errorReply(errorBody(500, error.message)) : unavailable());
  }
}

export default {
  fetch(request: Request, settings: Settings, context: Context): Promise<Response> {
    const response = answer(request, settings);
    // Concurrent requests wait for one read of the manifest, which belongs to the first of these requests. The read must continue if the
    // client of the first request disconnects. Otherwise the other requests would wait forever.
    context.waitUntil(response);
    return response;
  },
};

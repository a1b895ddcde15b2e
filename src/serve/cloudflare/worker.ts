/** The Cloudflare worker. Does not use Cloudflare's cache: reading R2 is so cheap that code for the cache is not worth it. */
import { messageOf } from '../../errors.ts';
import { FetchMirror, responseOf } from '../fetchHost.ts';
import { errorBody } from '../http/errorBodies.ts';
import { errorReply, unavailable } from '../http/handler.ts';
import { freshMsOf, originOf, type Settings, SettingsError } from './origins.ts';

/** The mirror that an isolate keeps between requests. `key` tells its settings. */
let host: { readonly key: string; readonly mirror: FetchMirror } | undefined;

/** Returns the mirror for these settings. The platform does not promise that all requests of an isolate have the same settings. */
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
  fetch(request: Request, settings: Settings, context: { waitUntil(promise: Promise<unknown>): void }): Promise<Response> {
    const response = answer(request, settings);
    // Concurrent requests wait for one read of the manifest, which belongs to the first of them. It must continue if the client of this
    // first request disconnects. Otherwise the others would wait forever.
    context.waitUntil(response);
    return response;
  },
};

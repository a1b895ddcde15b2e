/**
 * The Netlify edge function: files come from the site's own CDN, the rest is the page map. It decides every request of the API; the
 * redirect rules in netlify.toml only step in when it fails.
 */
import { FetchMirror, jsonNotFound } from '../fetch.ts';

/** Files are left to the CDN (`excludedPath`), so reading a page does not call this function again. */
export const config = {
  path: ['/runes', '/runes/*'],
  excludedPath: ['/runes/v1/*.json'],
  onError: 'bypass',
  // The CDN keeps what `cdn-cache-control` allows, until the next deploy; the whole query is a part of the key.
  cache: 'manual',
};

/**
 * A deploy has its own instances of this function and never changes, so what was read once stays true. A deploy has several addresses, and one of them may
 * stop working: files are read from the address of the request, and so the mirror of another address is not used for it.
 */
let last: { readonly origin: string; readonly mirror: FetchMirror } | undefined;

export default async function activity(request: Request): Promise<Response> {
  const { origin } = new URL(request.url);
  if (last?.origin !== origin) {
    last = { origin, mirror: new FetchMirror((path) => fetch(new URL(`/${path}`, origin)), Number.POSITIVE_INFINITY) };
  }
  // What is no request of the API is a 404 at once: the redirect rules would take paths with a stray slash for the API's.
  return (await last.mirror.answer(request)) ?? jsonNotFound(request);
}

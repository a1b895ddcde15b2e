/**
 * The Netlify edge function. Answers every API request from the files on the site's own CDN. The redirect rules in netlify.toml apply only
 * if the function fails.
 */
import { rangeHeaders } from '../archiveParts.ts';
import { type FetchFile, FetchMirror } from '../fetchHost.ts';

/** `excludedPath` lets the CDN serve JSON files, so that this function does not call itself to read a page. */
export const config = {
  path: ['/runes', '/runes/*'],
  excludedPath: ['/runes/v1/*.json'],
  onError: 'bypass',
  // The CDN caches as `cdn-cache-control` allows, until the next deploy. Its cache key includes the complete query.
  cache: 'manual',
};

/**
 * The mirror of the last request. It stays valid, because a deploy never changes and has its own instances of this function. A request to
 * another origin gets a new mirror: a deploy may have several origins, and a request must read files from its own origin, because the other
 * may stop working.
 */
let last: { readonly origin: string; readonly mirror: FetchMirror } | undefined;

export default async function activity(request: Request): Promise<Response> {
  const { origin } = new URL(request.url);
  if (last?.origin !== origin) {
    const fetchFile: FetchFile = (path, range) =>
      fetch(new URL(`/${path}`, origin), range === undefined ? {} : { headers: rangeHeaders(range) });
    last = { origin, mirror: new FetchMirror(fetchFile, Number.POSITIVE_INFINITY, Date.now, () => false) };
  }
  // Answers 404 itself for a path that is not an API request. The redirect rules would treat such a path with a stray slash as an API
  // request.
  return last.mirror.answer(request);
}

/** The Netlify edge function: answers from files on the site's CDN. If it fails, the redirect rules in netlify.toml apply. */
import { requestOf } from '../archiveParts.ts';
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
 * The mirror of the last request. It stays valid, because a deploy never changes and has its own instances of this function. A deploy may
 * have several origins: a request reads files from its own, because another may stop working.
 */
let last: { readonly origin: string; readonly mirror: FetchMirror } | undefined;

export default async function activity(request: Request): Promise<Response> {
  const { origin } = new URL(request.url);
  if (last?.origin !== origin) {
    const fetchFile: FetchFile = (path, range) => fetch(new URL(`/${path}`, origin), requestOf(range));
    last = { origin, mirror: new FetchMirror(fetchFile, Number.POSITIVE_INFINITY) };
  }
  // Answers 404 itself for other paths: the redirect rules would treat such a path with a stray slash as an API request.
  return last.mirror.answer(request);
}

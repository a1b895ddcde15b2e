/**
 * The Netlify edge function: files come from the site's own CDN, the rest is the page map. It decides every request of the API; the
 * redirect rules in netlify.toml only step in when it fails.
 */
import type { Site } from '../../pages/lists.ts';
import { type FetchFile, fetchSite, jsonNotFound, respondToFetch } from '../fetch.ts';

/** Files are left to the CDN (`excludedPath`), so reading a page does not call this function again. */
export const config = {
  path: ['/runes', '/runes/*'],
  excludedPath: ['/runes/v1/*.json'],
  onError: 'bypass',
};

/** A deploy has its own instances of this function, so its manifest is read once by each. */
let site: Promise<Site> | undefined;

export default async function activity(request: Request): Promise<Response> {
  const fetchFile: FetchFile = (path) => fetch(new URL(`/${path}`, request.url));
  site ??= fetchSite(fetchFile);
  try {
    // What is no request of the API is a 404 at once: the redirect rules would take paths with a stray slash for the API's.
    return (await respondToFetch(request, await site, fetchFile)) ?? jsonNotFound(request);
  } catch (error) {
    site = undefined;
    throw error;
  }
}

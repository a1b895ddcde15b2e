/**
 * The Netlify edge function: files come from the site's own CDN, the rest is the page map. It decides every request of the API; the
 * redirect rules in netlify.toml only step in when it fails.
 */
import type { Site } from '../../pages/lists.ts';
import { type FetchFile, fetchSite, jsonNotFound, respondToFetch } from '../fetch.ts';

/** The part of Netlify's context that is used. */
interface Context {
  next(): Promise<Response>;
}

/** Files are left to the CDN (`excludedPath`), so reading a page does not call this function again. */
export const config = {
  path: ['/runes', '/runes/*'],
  excludedPath: ['/runes/v1/*.json'],
  onError: 'bypass',
};

/** A deploy has its own instances of this function, so its manifest is read once by each. */
let site: Promise<Site> | undefined;

export default async function activity(request: Request, context: Context): Promise<Response> {
  const fetchFile: FetchFile = (path) => fetch(new URL(`/${path}`, request.url));
  site ??= fetchSite(fetchFile);
  try {
    const answer = await respondToFetch(request, await site, fetchFile);
    if (answer !== undefined) return answer;
  } catch (error) {
    site = undefined;
    throw error;
  }
  const other = await context.next();
  return other.status === 404 ? jsonNotFound(request) : other;
}

/**
 * The page map for hosts that speak Request and Response: edge functions and workers. Each of them is a few lines around this.
 */
import { type Site, siteOf } from '../pages/lists.ts';
import { MANIFEST_PATH } from '../pages/paths.ts';
import { API_HEADERS, CACHE_CONTROL, matchesEtag, notFound, type PageSource, PREFLIGHT_HEADERS, respond } from '../pages/respond.ts';

/** Reads a file of the build by its path (`runes/v1/...`): the response of the host's file server, whatever its status. */
export type FetchFile = (path: string) => Promise<Response>;

/**
 * Answers a request of the API; undefined for a path that is none of the API's (`/runes/v1/manifest.json`, `/`), which the host then
 * serves itself. Rejects when files cannot be read, so that the host's own fallback can step in.
 */
export async function respondToFetch(request: Request, site: Site, fetchFile: FetchFile): Promise<Response | undefined> {
  const source: PageSource<Response> = {
    open: async (path) => {
      const response = await fetchFile(path);
      if (response.ok) return response;
      await response.body?.cancel();
      if (response.status === 404) return undefined;
      throw new Error(`${path} was answered with status ${response.status}`);
    },
    text: (page) => page.text(),
  };
  // The target as it came: URL has resolved `..` already, but leaves percent-encoding alone.
  const { pathname, search } = new URL(request.url);
  const answer = await respond(request.method, pathname + search, site, source);
  switch (answer.kind) {
    case 'other':
      return undefined;
    case 'preflight':
      return new Response(null, { status: 204, headers: PREFLIGHT_HEADERS });
    case 'page':
      return await sendPage(request, answer.page);
    case 'body':
      return await sendBody(request, answer.status, answer.body, answer.allow);
  }
}

/** The API's JSON 404, for paths under `/runes` that are neither a route nor a file. */
export function jsonNotFound(request: Request): Response {
  const { pathname, search } = new URL(request.url);
  const { status, body } = notFound(request.method, pathname + search);
  return new Response(request.method === 'HEAD' ? null : body, { status, headers: { ...API_HEADERS, 'cache-control': 'no-store' } });
}

/** A page as it is: its body is passed on unread, with the file server's own ETag. */
async function sendPage(request: Request, page: Response): Promise<Response> {
  const etag = page.headers.get('etag')?.replace(/^W\//, '');
  if (etag === undefined) return sendBody(request, 200, await page.text());
  const headers = { ...API_HEADERS, 'cache-control': CACHE_CONTROL, etag };
  if (matchesEtag(request.headers.get('if-none-match'), etag)) {
    await page.body?.cancel();
    return new Response(null, { status: 304, headers });
  }
  if (request.method === 'HEAD') {
    await page.body?.cancel();
    return new Response(null, { headers });
  }
  return new Response(page.body, { headers });
}

async function sendBody(request: Request, status: number, body: string, allow?: string): Promise<Response> {
  const headers: Record<string, string> = { ...API_HEADERS, 'cache-control': status === 200 ? CACHE_CONTROL : 'no-store' };
  if (allow !== undefined) headers['allow'] = allow;
  if (status === 200) {
    headers['etag'] = await etagOf(body);
    if (matchesEtag(request.headers.get('if-none-match'), headers['etag'])) return new Response(null, { status: 304, headers });
  }
  return new Response(request.method === 'HEAD' ? null : body, { status, headers });
}

async function etagOf(body: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)));
  return `"${[...hash.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}"`;
}

/** What the page map must know of the build, from its manifest. Rejects when the manifest is missing or of another program. */
export async function fetchSite(fetchFile: FetchFile): Promise<Site> {
  const response = await fetchFile(MANIFEST_PATH);
  if (!response.ok) throw new Error(`${MANIFEST_PATH} was answered with status ${response.status}`);
  return siteOf(await response.json());
}

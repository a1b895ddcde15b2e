/**
 * Calls the Netlify edge function with a Request, with the files of a build. test/hosts runs it in Netlify's emulator, and
 * fetchHost.test.ts sends the case table to the code that it shares with the worker.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordedOutput } from '../support/recorded.ts';

const MODULE = new URL('../../src/serve/netlify/edgeFunction.ts', import.meta.url);
const ORIGIN = 'https://mirror.example';
const BLOCK = '/runes/v1/blocks/840001';
let dist: string;
const read = (path: string) => readFileSync(join(dist, path), 'utf8');

/**
 * The CDN from which the function reads files. `asked` has the paths of all requests, and `instead` has answers that a test sends in place
 * of files.
 */
let asked: string[] = [];
let instead: Record<string, () => Response> = {};

async function cdn(input: URL): Promise<Response> {
  const { origin, pathname } = new URL(input);
  asked.push(origin === ORIGIN ? pathname : origin + pathname);
  const other = instead[pathname];
  if (other !== undefined) return other();
  try {
    const text = read(pathname);
    return new Response(text, { headers: { etag: `W/"${createHash('md5').update(text).digest('hex')}-df"`, age: '7' } });
  } catch {
    return new Response('<!doctype html>', { status: 404 });
  }
}

type EdgeFunction = (request: Request, context: { next(): Promise<Response> }) => Promise<Response>;
let activity: EdgeFunction;
/** Throws if the function passes a request on to the redirect rules: they accept paths outside of the API. */
const context = { next: () => Promise.reject(new Error('the function asked the redirect rules')) };
const send = (target: string) => activity(new Request(ORIGIN + target), context);

beforeAll(async () => {
  dist = await recordedOutput('files', 'hiro');
});

beforeEach(async () => {
  asked = [];
  instead = {};
  vi.stubGlobal('fetch', cdn);
  // Loads a new instance of the function, as after a deployment.
  vi.resetModules();
  activity = ((await import(MODULE.href)) as { default: EdgeFunction }).default;
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('the edge function', () => {
  it('passes a page through with the ETag of the CDN, made strong', async () => {
    const response = await send(`${BLOCK}/activity?limit=60&offset=60`);
    const text = read(`${BLOCK}/60/60.json`);
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(text);
    expect(Object.fromEntries(response.headers)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'etag',
      'cache-control': 'public, no-cache, must-revalidate',
      // The block is settled, so a CDN may cache the page.
      'cdn-cache-control': 'public, max-age=86400',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'content-type': 'application/json; charset=utf-8',
      'cross-origin-resource-policy': 'cross-origin',
      etag: `"${createHash('md5').update(text).digest('hex')}-df"`,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect(asked).toEqual(['/runes/v1/manifest.json', `${BLOCK}/60/60.json`]);
  });

  it('reads the manifest once', async () => {
    await Promise.all([send(`${BLOCK}/activity`), send('/runes/v1')]);
    await send(`${BLOCK}/activity`);
    expect(asked.filter((path) => path === '/runes/v1/manifest.json')).toHaveLength(1);
  });

  it('reads files from the origin of each request, not from that of the first', async () => {
    expect((await send(`${BLOCK}/activity`)).status).toBe(200);
    asked = [];
    expect((await activity(new Request(`https://other.example${BLOCK}/activity`), context)).status).toBe(200);
    expect(asked).toEqual(['https://other.example/runes/v1/manifest.json', `https://other.example${BLOCK}.json`]);
  });

  it('answers 503 for an incomplete page', async () => {
    for (const text of ['', read(`${BLOCK}/60/60.json`).slice(0, 5000)]) {
      instead[`${BLOCK}/60/60.json`] = () => new Response(text, { headers: { etag: '"half"' } });
      for (const query of ['?limit=60&offset=60', '?limit=30&offset=63']) {
        const response = await send(`${BLOCK}/activity${query}`);
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
      }
    }
  });

  it('makes an ETag if the CDN sends none', async () => {
    instead[`${BLOCK}.json`] = () => new Response(read(`${BLOCK}.json`));
    const response = await send(`${BLOCK}/activity`);
    expect(response.headers.get('etag')).toMatch(/^"[0-9a-f]{32}"$/);
    expect(await response.text()).toBe(read(`${BLOCK}.json`));
  });

  it.each([
    '/runes/v1/nothing',
    '/runes/v1/blocks/840001/activity/',
    '/runes/v1//blocks/840001/activity',
    '/runes/v1/blocks/840001%2Factivity',
  ])('answers %s with the 404 of the API', async (target) => {
    const response = await send(target);
    expect([response.status, await response.json()]).toEqual([
      404,
      { statusCode: 404, error: 'Not Found', message: `Route GET:${target} not found` },
    ]);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
  });
});

describe('the edge function leaves a request to the redirect rules', () => {
  const failed = () => new Response('no', { status: 503 });

  it('if a page cannot be read', async () => {
    instead[`${BLOCK}.json`] = failed;
    await expect(send(`${BLOCK}/activity`)).rejects.toThrow('runes/v1/blocks/840001.json was answered with status 503');
  });

  it.each([
    ['cannot be read', failed],
    ['is missing', () => new Response(null, { status: 404 })],
    ['is no JSON', () => new Response('<!doctype html>')],
    ['is of another program', () => Response.json({ generator: 'other', dialect: 'hiro', page_sizes: [20] })],
    ['has no page sizes', () => Response.json({ ...JSON.parse(read('runes/v1/manifest.json')), page_sizes: [] })],
  ])('if the manifest %s, and then recovers', async (_what, answer) => {
    instead['/runes/v1/manifest.json'] = answer;
    await expect(send(`${BLOCK}/activity`)).rejects.toThrow();
    instead = {};
    expect((await send(`${BLOCK}/activity`)).status).toBe(200);
  });
});

describe('the module of the edge function', () => {
  it('handles every path of the API except files, and lets the host continue if it fails', async () => {
    const { config } = (await import(MODULE.href)) as { config: unknown };
    expect(config).toEqual({ path: ['/runes', '/runes/*'], excludedPath: ['/runes/v1/*.json'], onError: 'bypass', cache: 'manual' });
  });

  it('imports only files of this project, because a library would be bundled completely', () => {
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s(?!type\s)[^;]*?from '([^']+)'/gm)) {
        expect(`${specifier} in ${file}`).toMatch(/^\.{1,2}\//);
        visit(join(dirname(file), specifier));
      }
    };
    visit(MODULE.pathname);
    expect(seen.size).toBeGreaterThan(5);
  });
});

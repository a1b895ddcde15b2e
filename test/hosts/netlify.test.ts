/**
 * Runs the Netlify deployment on Netlify's own engines: with the edge function, without it, and with a failing one.
 * Answers must equal those of the page map (src/pages) for the same build.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FetchFile, FetchMirror, jsonNotFound } from '../../src/serve/fetchHost.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild } from '../support/build.ts';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import type { Answer } from '../support/server.ts';
import { checkSiteFiles } from '../support/siteFiles.ts';
import { readVectors } from '../support/vectors.ts';
import { type NetlifyHost, startNetlify } from './netlifyChain.ts';

const dist = join(temporaryFolder(), 'dist');
const readDist: FetchFile = async (path) => {
  const file = join(dist, path);
  const isFile = existsSync(file) && statSync(file).isFile();
  return isFile ? new Response(readFileSync(file)) : new Response(null, { status: 404 });
};

interface Case {
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly expected: { readonly status: number; readonly body: string };
}

/**
 * Requests besides the recorded ones. Their paths lead out of a list's folder, or redirect rules may parse their
 * queries differently.
 */
const MORE_TARGETS = [
  '/runes/v1/blocks/840001/activity?operation_type=20%2F20',
  '/runes/v1/blocks/840001/activity?operation_type=..%2F840002',
  '/runes/v1/blocks/840001/activity?limit=..%2F..%2F840002%2F20&offset=20',
  '/runes/v1/blocks/840001/activity?limit=60%2F60.json%3F&offset=1',
  '/runes/v1/blocks/840001/activity?limit=60;offset=60',
  '/runes/v1/blocks/840001/activity?foo=1&limit=60&bar=2',
  '/runes/v1/blocks/840001/activity?Limit=60',
  '/runes/v1/blocks/840000/..%2F840001/activity',
  '/runes/v1/blocks/840000%2F..%2F840001/activity',
  '/runes/v1/blocks/840001%2F20%2F20.json%3F/activity',
  '/runes/v1/blocks/840001.json/activity',
  '/runes/v1/blocks/840001',
];

let cases: Case[] = [];
const mirror = new FetchMirror(readDist, Number.POSITIVE_INFINITY);

/**
 * Returns a case for a target. In the API, the expected answer comes from the page map. Elsewhere it is a file of the
 * build or a 404.
 */
async function toCase(target: string, headers: Readonly<Record<string, string>> = {}): Promise<Case> {
  const request = new Request(`http://127.0.0.1${target}`, { headers });
  const path = new URL(request.url).pathname.slice(1);
  const file = await readDist(path === '' ? 'index.html' : path);
  const response = (await mirror.answer(request)) ?? (file.ok ? file : jsonNotFound(request));
  return { target, headers, expected: { status: response.status, body: await response.text() } };
}

beforeAll(async () => {
  await testBuild(dist, { inputs: CONFORMANCE_INPUTS, dialect: 'hiro', parquet: true });
  const vectors = readVectors().filter((v) => v.method === 'GET' && [200, 400, 404].includes(v.status));
  cases = await Promise.all([...vectors.map((v) => toCase(v.path, v.request_headers)), ...MORE_TARGETS.map((target) => toCase(target))]);
});

/** Sends all cases, several in parallel. Returns the problems in the order of the cases. */
async function findProblems(
  host: NetlifyHost,
  all: readonly Case[],
  judge: (c: Case, answer: Answer) => string | undefined,
): Promise<string[]> {
  const problems: (string | undefined)[] = [];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < all.length; i = next++) {
      const one = all[i];
      if (one === undefined) return;
      const problem = judge(one, await host.send('GET', one.target, one.headers));
      if (problem !== undefined) problems[i] = `${one.target} => ${problem}`;
    }
  };
  await Promise.all(Array.from({ length: 6 }, work));
  return problems.filter((problem) => problem !== undefined);
}

const show = ({ status, body }: { status: number; body: string }) => `${status} ${body.slice(0, 60)}`;
const isExact = ({ expected }: Case, answer: Answer) => answer.status === expected.status && answer.body === expected.body;
const inApi = ({ target }: Case) => /^\/(?:runes(?:[/?]|$)|$)/.test(target);
/** Accepts exact answers. Outside the API, the host has its own 404 pages, so any 404 is right. */
const mustBeExact = (c: Case, answer: Answer) =>
  (inApi(c) ? isExact(c, answer) : answer.status === 404) ? undefined : `${show(answer)}, not ${show(c.expected)}`;
const mustBeExactOrNotFound = (c: Case, answer: Answer) => (answer.status === 404 ? undefined : mustBeExact(c, answer));

/**
 * Takes every fourth recorded request, and all others. More would take too long: the emulator starts a worker for each
 * request to the edge function. cases.test.ts sends all recorded requests.
 */
const fewer = (): Case[] => cases.filter((_, i) => i % 4 === 0 || i >= cases.length - MORE_TARGETS.length);

function startHost(edge: 'on' | 'off' | 'failing'): () => NetlifyHost {
  let host: NetlifyHost | undefined;
  beforeAll(async () => {
    host = await startNetlify({ dist, edge });
  });
  afterAll(() => host?.close());
  return () => {
    if (host === undefined) throw new Error('the host did not start');
    return host;
  };
}

const BLOCK = '/runes/v1/blocks/840001';
const readText = async (path: string) => (await readDist(path.slice(1))).text();

const EXPOSED = { 'access-control-expose-headers': 'etag' };
const API_HEADERS = { ...SECURITY_HEADERS.json, ...EXPOSED };

describe('Netlify with the edge function', () => {
  const host = startHost('on');

  it('answers recorded requests like the page map', async () => {
    expect(fewer().length).toBeGreaterThan(160);
    expect(await findProblems(host(), fewer(), mustBeExact)).toEqual([]);
    expect(host().edgeLog()).toBe('');
  });

  it('sends pages and windows with the headers of the API', async () => {
    for (const query of ['', '?limit=60&offset=60', '?limit=7&offset=3']) {
      const { status, headers } = await host().send('GET', `${BLOCK}/activity${query}`);
      expect({ status, headers }).toMatchObject({
        status: 200,
        headers: { ...API_HEADERS, 'cache-control': 'public, no-cache, must-revalidate', etag: expect.stringMatching(/^"[^"]+"$/) },
      });
    }
  });

  it('answers 304 to a current ETag, of a file or of a window', async () => {
    for (const query of ['', '?limit=7&offset=3']) {
      const { headers } = await host().send('GET', `${BLOCK}/activity${query}`);
      const again = await host().send('GET', `${BLOCK}/activity${query}`, { 'if-none-match': `W/${headers.etag}` });
      expect(again).toMatchObject({ status: 304, body: '', headers: { etag: headers.etag, 'access-control-allow-origin': '*' } });
    }
  });

  it('sends errors with CORS and without caching', async () => {
    for (const [target, status] of [
      ['/activity?limit=abc', 400],
      ['/nothing', 404],
    ] as const) {
      const answer = await host().send('GET', BLOCK + target);
      expect(answer).toMatchObject({ status, headers: { ...API_HEADERS, 'cache-control': 'no-store' } });
    }
  });

  it('answers HEAD, OPTIONS and other methods', async () => {
    const head = await host().send('HEAD', `${BLOCK}/activity`);
    expect(head).toMatchObject({ status: 200, body: '', headers: API_HEADERS });
    const preflight = await host().send('OPTIONS', `${BLOCK}/activity`, { origin: 'https://a.example' });
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-methods': 'GET, HEAD, OPTIONS' } });
    const post = await host().send('POST', `${BLOCK}/activity`);
    expect(post).toMatchObject({ status: 405, headers: { ...API_HEADERS, allow: 'GET, HEAD, OPTIONS' } });
  });

  it('leaves files to the host, with the headers of netlify.toml', async () => {
    for (const path of [`${BLOCK}.json`, `${BLOCK}/20/20.json`, '/runes/v1/manifest.json']) {
      const answer = await host().send('GET', path);
      expect(answer).toMatchObject({ status: 200, headers: API_HEADERS });
      expect(answer.headers['x-nf-edge-functions']).toBeUndefined();
      expect(answer.body).toBe(await readText(path));
    }
    await checkSiteFiles({ port: host().port, hasOwnTypes: true }, dist);
  });
});

/** Requests that need no edge function, each with the file that answers it. */
const CANONICAL: readonly (readonly [string, string])[] = [
  ['/runes/v1', '/runes/v1/index.json'],
  ['/runes/v1/', '/runes/v1/index.json'],
  ['/runes', '/runes/v1/index.json'],
  [`${BLOCK}/activity`, `${BLOCK}.json`],
  [`${BLOCK}/activity?limit=20`, `${BLOCK}.json`],
  [`${BLOCK}/activity?offset=0`, `${BLOCK}.json`],
  [`${BLOCK}/activity?limit=20&offset=0`, `${BLOCK}.json`],
  [`${BLOCK}/activity?offset=20`, `${BLOCK}/20/20.json`],
  [`${BLOCK}/activity?offset=20&limit=20`, `${BLOCK}/20/20.json`],
  [`${BLOCK}/activity?limit=60`, `${BLOCK}/60/0.json`],
  [`${BLOCK}/activity?limit=60&offset=60`, `${BLOCK}/60/60.json`],
  [`${BLOCK}/activity?operation_type=mint`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&limit=20&offset=0`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&offset=20`, `${BLOCK}/mint/20/20.json`],
  [`${BLOCK}/activity?operation_type=mint&limit=60`, `${BLOCK}/mint/60/0.json`],
  [`${BLOCK}/activity?offset=60&limit=60&operation_type=mint`, `${BLOCK}/mint/60/60.json`],
];

/**
 * Requests that the redirect rules answer with a page, although the API would refuse them. The engine ignores an extra
 * slash in a path. It does not see a parameter without `=`, with an encoded name, or before a final `&`. So no rule can
 * tell these requests from valid ones. The page states its own window.
 */
const FORGIVEN = [
  '/runes/v1/blocks/840014/activity/',
  '/runes/v1/transactions/1708cc05a3adee35263af6757840070ecf4a171a09d1c2c30613fba6dcef7478/activity/',
  '/runes//v1/blocks/840014/activity',
  '/runes/v1//blocks/840014/activity',
  '/runes/v1/blocks//840014/activity',
  '/runes/v1/blocks/840014//activity',
  '/runes/v1/blocks/840014%2Factivity',
  '/runes/v1/blocks/840014/activity?limit',
  '/runes/v1/blocks/840014/activity?offset',
  '/runes/v1/blocks/840014/activity?limit&offset',
  '/runes/v1/blocks/840014/activity?limit=2&',
  '/runes/v1/blocks/840014/activity?l%69mit=2',
  '/runes/v1/blocks/840001/activity?operation_type',
];

for (const edge of ['off', 'failing'] as const) {
  describe(`Netlify with the edge function ${edge}`, () => {
    const host = startHost(edge);

    it('answers canonical requests with their files, byte for byte', async () => {
      for (const [target, path] of CANONICAL) {
        const answer = await host().send('GET', target);
        expect({ target, status: answer.status, body: answer.body }).toEqual({ target, status: 200, body: await readText(path) });
      }
    });

    it('answers a transaction with its file', async () => {
      const { target } = cases.find((c) => c.target.startsWith('/runes/v1/transactions/') && c.target.endsWith('/activity')) ?? {
        target: '',
      };
      const answer = await host().send('GET', target);
      expect(answer.body).toBe(await readText(target.replace(/\/activity$/, '.json')));
    });

    it('answers everything else exactly or with a 404, except where rules cannot tell requests apart', async () => {
      const asked = edge === 'off' ? cases : fewer();
      const problems = await findProblems(host(), asked, mustBeExactOrNotFound);
      const forgiven = FORGIVEN.filter((target) => asked.some((one) => one.target === target));
      expect(forgiven.length).toBeGreaterThan(edge === 'off' ? 12 : 1);
      expect(problems.map((problem) => problem.split(' => ')[0])).toEqual(forgiven);
      for (const problem of problems) expect(problem).toContain('=> 200 {"limit":20,"offset":0,');
    });

    it('sends pages, and the 404 of other paths, with the headers of the API', async () => {
      const page = await host().send('GET', `${BLOCK}/activity?limit=60`);
      expect(page).toMatchObject({ status: 200, headers: { ...API_HEADERS, 'cache-control': 'public, no-cache, must-revalidate' } });
      const other = await host().send('GET', '/runes/v1/nothing');
      expect(other).toMatchObject({ status: 404, headers: API_HEADERS });
      expect(JSON.parse(other.body)).toMatchObject({ statusCode: 404, error: 'Not Found' });
    });

    it(edge === 'off' ? 'runs no function' : 'has tried the function', () => {
      const log = host().edgeLog();
      if (edge === 'off') expect(log).toBe('');
      else expect(log).toContain('runes/v1/manifest.json was answered with status 500');
    });
  });
}

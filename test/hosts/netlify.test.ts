/**
 * Runs the Netlify deployment on Netlify's own engines: with the edge function, without it, and with a failing one. Without the function,
 * the redirect rules of netlify.toml answer.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordedOutput, sampleOutput } from '../support/recorded.ts';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { checkSiteFiles } from '../support/siteFiles.ts';
import { checkEngine } from './engine.ts';
import { type NetlifyHost, startNetlify } from './netlifyChain.ts';

const API_HEADERS = { ...SECURITY_HEADERS.json, 'access-control-expose-headers': 'etag' };

describe('Netlify with the edge function', () => {
  let [host, dist]: [NetlifyHost?, string?] = [];
  beforeAll(async () => {
    dist = await sampleOutput('files');
    host = await startNetlify({ dist, edge: 'on' });
  });
  afterAll(() => host?.close());

  it('answers like the local server', async () => {
    await checkEngine(host as NetlifyHost, dist ?? '');
    expect(host?.edgeLog()).toBe('');
  });

  it('leaves files to the host, with the headers of netlify.toml', async () => {
    for (const path of ['/runes/v1/blocks/2000007.json', '/runes/v1/blocks/2000007/20/20.json', '/runes/v1/manifest.json']) {
      const answer = await host?.send('GET', path);
      expect(answer).toMatchObject({ status: 200, headers: API_HEADERS, body: readFileSync(join(dist ?? '', path), 'utf8') });
      expect(answer?.headers['x-nf-edge-functions']).toBeUndefined();
    }
    await checkSiteFiles({ port: host?.port ?? 0, hasOwnTypes: true }, dist ?? '');
  });
});

const BLOCK = '/runes/v1/blocks/840001';
/** A transaction with several pages. */
const TX = '/runes/v1/transactions/7619e0bce5def02bc2713889c76f039e7a721f2f3831531f18e2980b13659861';

/** Requests that need no edge function, each with the file that answers it. They need each of the redirect rules. */
const CANONICAL: readonly (readonly [string, string])[] = [
  ['/runes/v1', '/runes/v1/index.json'],
  ['/runes/v1/', '/runes/v1/index.json'],
  ['/runes', '/runes/v1/index.json'],
  ...[BLOCK, TX].flatMap((list) => [
    [`${list}/activity`, `${list}.json`] as const,
    [`${list}/activity?limit=20`, `${list}.json`] as const,
    [`${list}/activity?offset=0`, `${list}.json`] as const,
    [`${list}/activity?limit=20&offset=0`, `${list}.json`] as const,
    [`${list}/activity?offset=20`, `${list}/20/20.json`] as const,
    [`${list}/activity?offset=20&limit=20`, `${list}/20/20.json`] as const,
    [`${list}/activity?limit=60`, `${list}/60/0.json`] as const,
    [`${list}/activity?limit=60&offset=60`, `${list}/60/60.json`] as const,
  ]),
  [`${BLOCK}/activity?operation_type=mint`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&limit=20&offset=0`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&limit=20`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&offset=0`, `${BLOCK}/mint.json`],
  [`${BLOCK}/activity?operation_type=mint&offset=20`, `${BLOCK}/mint/20/20.json`],
  [`${BLOCK}/activity?operation_type=mint&limit=60`, `${BLOCK}/mint/60/0.json`],
  [`${BLOCK}/activity?offset=60&limit=60&operation_type=mint`, `${BLOCK}/mint/60/60.json`],
];

/**
 * Requests that the redirect rules answer with a page, although the API would refuse them. The engine ignores an extra slash in a path. It
 * does not see a parameter without `=`, with an encoded name, or before a final `&`. So no rule can tell these requests from valid ones.
 * The page states its own window.
 */
const FORGIVEN = [
  ...['/activity/', '//activity', '%2Factivity', '/activity?limit', '/activity?offset', '/activity?limit&offset'],
  ...['/activity?limit=2&', '/activity?l%69mit=2', '/activity?operation_type'],
]
  .map((rest) => BLOCK + rest)
  .concat([
    '/runes//v1/blocks/840001/activity',
    '/runes/v1//blocks/840001/activity',
    '/runes/v1/blocks//840001/activity',
    `${TX}/activity/`,
  ]);

/** Requests whose paths or queries could lead a redirect rule to another list, or to a page of another window. */
const REFUSED = [
  ...['operation_type=20%2F20', 'operation_type=..%2F840002', 'operation_type=nothing', 'limit=..%2F..%2F840002%2F20&offset=20'],
  ...['limit=60%2F60.json%3F&offset=1', 'limit=60;offset=60', 'foo=1&limit=60&bar=2', 'Limit=60', 'limit=7', 'limit=0', 'offset=7'],
  ...['limit=61&offset=0', 'limit=60&offset=30', 'offset=&limit=60', 'offset=5000'],
]
  .map((query) => `${BLOCK}/activity?${query}`)
  .concat(
    ...['/0840001/activity', '/840000/..%2F840001/activity', '/840000%2F..%2F840001/activity', '/840001%2F20%2F20.json%3F/activity'].map(
      (path) => `/runes/v1/blocks${path}`,
    ),
    ...['/runes/v1/blocks/840001.json/activity', BLOCK, '/runes/v1/nothing', '/runes/blocks/840001/activity', '/nothing'],
  );

for (const edge of ['off', 'failing'] as const) {
  describe(`Netlify with the edge function ${edge}`, () => {
    let [host, exact]: [NetlifyHost?, LocalHost?] = [];
    let dist: string;
    beforeAll(async () => {
      dist = await recordedOutput('files', 'hiro');
      exact = await startServer(dist);
      host = await startNetlify({ dist, edge });
    });
    afterAll(async () => {
      await exact?.close();
      await host?.close();
    });
    // The emulator starts a process for each request to the function.
    const fewer = <T>(all: readonly T[]) => all.filter((_, i) => edge === 'off' || i % 8 === 0);

    it('answers canonical requests with their files, byte for byte', async () => {
      for (const [target, path] of fewer(CANONICAL)) {
        const answer = await host?.send('GET', target);
        expect([target, answer?.status, answer?.body]).toEqual([target, 200, readFileSync(join(dist, path), 'utf8')]);
      }
    });

    it('answers everything else exactly or with a 404, except where rules cannot tell requests apart', async () => {
      for (const target of fewer(REFUSED)) {
        const [answer, expected] = [await host?.send('GET', target), await exact?.send('GET', target)];
        const isExact = answer?.status === expected?.status && answer?.body === expected?.body;
        expect([target, isExact || answer?.status === 404]).toEqual([target, true]);
      }
      for (const target of fewer(FORGIVEN)) {
        const answer = await host?.send('GET', target);
        expect([target, answer?.status, answer?.body.slice(0, 23)]).toEqual([target, 200, '{"limit":20,"offset":0,']);
      }
    });

    it('sends pages, and the 404 of other paths, with the headers of the API', async () => {
      const page = await host?.send('GET', `${BLOCK}/activity?limit=60`);
      expect(page).toMatchObject({ status: 200, headers: { ...API_HEADERS, 'cache-control': 'public, no-cache, must-revalidate' } });
      const other = await host?.send('GET', '/runes/v1/nothing');
      expect(other).toMatchObject({ status: 404, headers: API_HEADERS });
      expect(JSON.parse(other?.body ?? '')).toMatchObject({ statusCode: 404, error: 'Not Found' });
    });

    it(edge === 'off' ? 'runs no function' : 'has tried the function', () => {
      if (edge === 'off') expect(host?.edgeLog()).toBe('');
      else expect(host?.edgeLog()).toContain('runes/v1/manifest.json was answered with status 500');
    });
  });
}

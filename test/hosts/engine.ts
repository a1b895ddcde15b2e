/**
 * Shows that an engine passes the method, target and headers of requests to this program's code, and status, headers and bodies back.
 * test/serve sends the case table and the recorded requests to the same code without an engine. So together they show that a host answers
 * all of them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { filesBelow } from '../support/build.ts';
import { checkRanges } from '../support/ranges.ts';
import { type Answer, type LocalHost, startServer } from '../support/server.ts';
import { checkErrorPages, checkSiteFiles } from '../support/siteFiles.ts';

const BLOCK = '/runes/v1/blocks/2000007/activity';
const HASH = '00000000F00D99DCCC32C5291D13D871E27D9906C810B4257E859132E49B8CC3';
const OPTIONS = { origin: 'https://a.example', 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-api-key' };

type Asked = readonly [method: string, target: string, headers?: Readonly<Record<string, string>>];

const ASKED: readonly Asked[] = [
  // The answers to these repeat the target or the method.
  ['GET', '/runes/v1/nothing/%41%2f%2E%00/caf%C3%A9;a=b,c/?%6c=%2B+&&;=a?/:@$!*(),~'],
  ['GET', '/runes/nothing//'],
  ['GET', `${BLOCK}/`],
  ...['POST', 'PUT', 'DELETE', 'PATCH'].map((method) => [method, BLOCK] as const),
  ['POST', '/runes/v1/nothing'],
  // Every other kind of answer.
  ['GET', BLOCK],
  ['GET', `${BLOCK}?limit=60&offset=60`],
  ['GET', `${BLOCK}?limit=60&offset=30`],
  ['GET', `${BLOCK}?operation_type=send&offset=240`],
  ['GET', '/runes/v1/blocks/2000004/activity?limit=20&offset=40'],
  ['GET', '/runes/v1/blocks/5/activity'],
  ['HEAD', BLOCK],
  ['HEAD', `${BLOCK}?limit=7&offset=5`],
  ['HEAD', `${BLOCK}?limit=0`],
  ['OPTIONS', `${BLOCK}?limit=7`, OPTIONS],
  ['GET', `${BLOCK}?limit=61`],
  ['GET', '/runes/v1/transactions/..%2f..%2fetc/activity'],
  ['GET', '/runes/v1/addresses/x/balances'],
  // Spellings that an engine may normalise.
  ['GET', `/runes/blocks/${HASH}/activity?l%69mit=%32&&offset=0&x=%zz`],
  ['GET', '/runes/v1/etchings/SYNTHETIC%E2%80%A2CHARLIE/activity?limit=1'],
  ['GET', '/runes/v1/addresses/a%2Fb%00/activity'],
  ['GET', '/runes'],
  ['GET', '/runes/v1/?x=%'],
  // Compressed answers, which an engine may compress itself.
  ['GET', `${BLOCK}?limit=60&offset=60`, { 'accept-encoding': 'gzip' }],
  ['GET', `${BLOCK}?limit=60&offset=30`, { 'accept-encoding': 'br;q=0.9, gzip;q=0.5' }],
];

/** Headers that the program sets. The values of all others are up to the engine. */
const NAMES = [
  ...['allow-headers', 'allow-methods', 'allow-origin', 'expose-headers', 'max-age'].map((name) => `access-control-${name}`),
  ...['allow', 'cache-control', 'cdn-cache-control', 'content-security-policy', 'content-type', 'cross-origin-resource-policy'],
  ...['location', 'referrer-policy', 'retry-after', 'x-content-type-options'],
];

const shown = ({ status, headers, body }: Answer) => ({
  status,
  headers: Object.fromEntries(NAMES.map((name) => [name, headers[name]])),
  hasEtag: headers.etag !== undefined,
  body,
});

/** Checks that a host with a build of the sample answers like the local server. */
export async function checkEngine(host: LocalHost, dist: string): Promise<void> {
  const exact = await startServer(dist);
  try {
    for (const [method, target, headers] of ASKED) {
      const [answer, expected] = [await host.send(method, target, headers), await exact.send(method, target, headers)];
      expect({ method, target, ...shown(answer) }).toEqual({ method, target, ...shown(expected) });
      const { etag } = answer.headers;
      if (etag === undefined) continue;
      const again = await host.send(method, target, { ...headers, 'if-none-match': `"x", W/${etag.replace(/^W\//, '')}` });
      expect([target, again.status, again.body, again.headers['access-control-allow-origin']]).toEqual([target, 304, '', '*']);
    }
    for (const [known, status] of [
      ['*', 304],
      ['"x"', 200],
    ] as const)
      expect((await host.send('GET', BLOCK, { 'if-none-match': known })).status).toBe(status);
  } finally {
    await exact.close();
  }
}

/** Number of paths of the API of which one is requested by its own path. */
const EVERY = 25;

/** Checks the files of a build of the sample, on hosts that send them with code of this program. */
export async function checkFiles(host: LocalHost, dist: string): Promise<void> {
  await checkSiteFiles(host, dist);
  await checkRanges(host.port, dist);
  await checkErrorPages(host);
  const paths = filesBelow(dist).filter((path) => path.startsWith('runes/'));
  for (const path of ['runes/v1/manifest.json', ...paths.filter((_, i) => i % EVERY === 0)]) {
    const answer = await host.send('GET', `/${path}?x=1`);
    expect([path, answer.status, answer.body]).toEqual([path, 200, readFileSync(join(dist, path), 'utf8')]);
    const etag = String(answer.headers.etag);
    expect(await host.send('HEAD', `/${path}`)).toMatchObject({ status: 200, body: '', headers: { etag } });
    expect(await host.send('GET', `/${path}`, { 'if-none-match': `W/${etag}` })).toMatchObject({ status: 304, body: '' });
  }
  // Never files that are not of the build or that hosts must not send, nor folders, nor answers to other methods.
  for (const [method, target] of [
    ...['GET', 'HEAD'].map((one) => [one, '/.rune-activity-mirror'] as const),
    ['GET', '/%2erune-activity-mirror'],
    ['GET', '/runes/v1/.rune-activity-mirror'],
    ['GET', '/runes/v1/blocks/../../../.rune-activity-mirror'],
    ['GET', '/runes/v1/%2e%2e/%2e%2e/.rune-activity-mirror'],
    ['GET', '/..%2fsecret.json'],
    ['GET', '/404.json'],
    ['GET', '/index'],
    ['GET', '/runes/v1/manifest'],
    ['GET', '/runes/v1/blocks/'],
    ['GET', '/runes/v1/blocks/999.json'],
    ['HEAD', '/runes/v1/blocks/999.json'],
    ['GET', '//runes/v1/manifest.json'],
    ['POST', '/runes/v1/manifest.json'],
    ['POST', '/index.html'],
  ] as const) {
    const answer = await host.send(method, target);
    expect([method, target, answer.status]).toEqual([method, target, 404]);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
    if (method !== 'HEAD') expect(JSON.parse(answer.body)).toMatchObject({ statusCode: 404, error: 'Not Found' });
  }
}

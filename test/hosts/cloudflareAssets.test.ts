/**
 * Runs the Cloudflare worker with the files that are deployed together with it, as wrangler.jsonc in the root
 * configures.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import worker from '../../src/serve/cloudflare/worker.ts';
import { MANIFEST, readArchive } from '../support/archives.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { checkCase, LIST_CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { describeOutputs } from '../support/outputCases.ts';
import { checkRanges } from '../support/ranges.ts';
import type { LocalHost } from '../support/server.ts';
import { checkErrorPages, checkSiteFiles } from '../support/siteFiles.ts';
import { wrongVectors } from '../support/vectors.ts';
import { type Logged, startCloudflareAssets } from './cloudflareHost.ts';
import { checkFileHeaders } from './fileHeaders.ts';

const work = temporaryFolder();
const dist = (name: string) => join(work, name);

beforeAll(async () => {
  for (const layout of LAYOUTS) await testBuild(dist(layout), { inputs: [SAMPLE_INPUT], layout, lists: true, parquet: true });
});

/** Starts a host before the tests of a `describe`, and closes it afterwards. */
function using(name: string): () => LocalHost & Logged {
  let host: (LocalHost & Logged) | undefined;
  beforeAll(async () => {
    host = await startCloudflareAssets(dist(name));
  });
  afterAll(() => host?.close());
  return () => {
    if (host === undefined) throw new Error('the host did not start');
    return host;
  };
}

describeOutputs(startCloudflareAssets);

describe.each(LAYOUTS)('layout %s', (layout) => {
  const host = using(layout);
  it.each(LIST_CASES)('$name', (one) => checkCase(host(), one));

  it('serves every file of the API at its own path, and logs nothing', async () => {
    for (const path of ['index.html', ...filesBelow(dist(layout)).filter((path) => /^(?:runes|archive)\//.test(path))]) {
      const { status, body } = await host().send('GET', `/${path}?x=1`);
      expect({ path, status, body }).toEqual({ path, status: 200, body: readFileSync(join(dist(layout), path), 'utf8') });
    }
    expect(host().log()).toBe('');
  });

  it('sends files with the headers of the API and their own content type', () => checkFileHeaders(host()));

  it('serves the pages for people, their scripts and bulk data', () => checkSiteFiles(host(), dist(layout)));

  it('answers a wrong path with a page for browsers, but with JSON in the API', () => checkErrorPages(host()));

  it('answers requests for ranges of Parquet files', () => checkRanges(host().port, dist(layout)));

  it.each([
    ['GET', '/.rune-activity-mirror'],
    ['HEAD', '/.rune-activity-mirror'],
    ['GET', '/%2erune-activity-mirror'],
    ['GET', '/runes/v1/../../.rune-activity-mirror'],
    ['GET', '/runes/v1/%2e%2e/%2e%2e/.rune-activity-mirror'],
    ['GET', '/404.json'],
    ['GET', '/index'],
    ['GET', '/runes/v1/manifest'],
    ['GET', '/runes/v1/blocks/999.json'],
    ['GET', '//runes/v1/manifest.json'],
    ['POST', '/runes/v1/manifest.json'],
    ['POST', '/index.html'],
  ] as const)('answers %s %s with the 404 of the API, even if a file exists', async (method, target) => {
    const answer = await host().send(method, target);
    expect(answer.status).toBe(404);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
    if (method !== 'HEAD') expect(JSON.parse(answer.body)).toMatchObject({ statusCode: 404, error: 'Not Found' });
  });
});

it('answers the 720 recorded requests as recorded, or as a rule decides', async () => {
  await testBuild(dist('vectors'), { inputs: CONFORMANCE_INPUTS, dialect: 'hiro', layout: 'archive' });
  const host = await startCloudflareAssets(dist('vectors'));
  try {
    // Cloudflare's runtime compresses answers itself, so no test of encodings is possible.
    expect(await wrongVectors(host, ['Accept-Encoding'])).toEqual([]);
    expect(host.log()).toBe('');
  } finally {
    await host.close();
  }
});

it('is a 503 with Retry-After if a file was not deployed', async () => {
  await testBuild(dist('hole'), { inputs: [SAMPLE_INPUT], layout: 'archive' });
  const segment = readArchive(dist('hole')).root.segments.find(({ first, last }) => first <= 2000007 && last >= 2000007);
  rmSync(join(dist('hole'), `archive/${segment?.file}.bin`));
  const host = await startCloudflareAssets(dist('hole'));
  try {
    const target = '/runes/v1/blocks/2000007/activity';
    expect(await host.send('GET', target)).toMatchObject({ status: 503, headers: { 'retry-after': '5', 'cache-control': 'no-store' } });
    expect((await host.send('GET', '/runes/v1/blocks/840000/activity')).status).toBe(200);
  } finally {
    await host.close();
  }
});

describe('the files that are read', () => {
  /** Serves a build like Cloudflare's binding for assets, and records the paths of the reads. */
  function counted(): { fetch(request: Request): Promise<Response>; paths: string[] } {
    const paths: string[] = [];
    return {
      paths,
      fetch: (request) => {
        const path = new URL(request.url).pathname.slice(1);
        paths.push(path);
        return Promise.resolve(new Response(readFileSync(join(dist('archive'), path)), { headers: { etag: '"a"' } }));
      },
    };
  }
  const ask = (settings: Parameters<typeof worker.fetch>[1]) =>
    worker.fetch(new Request('https://m.example/runes/v1/blocks/2000007/activity?limit=60'), settings, { waitUntil: () => {} });

  it('are manifest, root and directory once, and then only pages, because a deployment never changes', async () => {
    const ASSETS = counted();
    for (let i = 0; i < 3; i += 1) expect((await ask({ ASSETS })).status).toBe(200);
    const count = (path: string) => ASSETS.paths.filter((one) => one.startsWith(path)).length;
    const { archive } = JSON.parse(readFileSync(join(dist('archive'), MANIFEST), 'utf8')) as { archive: { root: string } };
    expect([count(MANIFEST), count(`archive/${archive.root}`), count('archive/')]).toEqual([1, 1, 1 + 1 + 3]);
  });

  it('are read again as often as FRESH_SECONDS says', async () => {
    const ASSETS = counted();
    for (let i = 0; i < 3; i += 1) expect((await ask({ ASSETS, FRESH_SECONDS: '0' })).status).toBe(200);
    expect(ASSETS.paths.filter((path) => path.endsWith('manifest.json'))).toHaveLength(3);
  });
});

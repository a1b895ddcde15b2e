/**
 * Sends the case table to the code of hosts that use Request and Response, in this process. test/hosts shows that each engine passes
 * requests and answers unchanged.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { MANIFEST_PATH } from '../../src/pages/filePaths.ts';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { freshMsOf } from '../../src/serve/cloudflare/origins.ts';
import worker from '../../src/serve/cloudflare/worker.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from '../support/archives.ts';
import { checkCase, LIST_CASES } from '../support/cases.ts';
import { describeOutputs } from '../support/outputCases.ts';
import { sampleOutput } from '../support/recorded.ts';
import type { Host } from '../support/server.ts';
import { checkErrorPages } from '../support/siteFiles.ts';

/** The worker, with the files of a build as its deployed assets. */
function inProcess(dist: string): Host {
  const fetchFile = async (request: Request) => {
    const file = join(dist, new URL(request.url).pathname);
    if (!existsSync(file) || !statSync(file).isFile()) return new Response(null, { status: 404 });
    return new Response(readFileSync(file), { headers: { etag: `W/"${file}"` } });
  };
  return {
    send: async (method, target, headers = {}) => {
      const request = new Request(`https://mirror.example${target}`, { method, headers });
      // The worker keeps its mirror until its variables change.
      const settings = { ASSETS: { fetch: fetchFile }, of: dist };
      const response = await worker.fetch(request, settings, { waitUntil: () => {} });
      return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
    },
    close: () => Promise.resolve(),
  };
}

describe.each(LAYOUTS)('a worker with a build in layout %s', (layout) => {
  let host: Host;
  beforeAll(async () => {
    host = inProcess(await sampleOutput(layout));
  });

  it.each(LIST_CASES)('$name', (one) => checkCase(host, one));

  it('answers a wrong path with a page for browsers, but with JSON in the API', () => checkErrorPages(host));
});

describeOutputs((folder) => Promise.resolve(inProcess(folder)));

describe('a manifest in memory', () => {
  it('is used for as long as the host says, and read again after that', async () => {
    const dist = await sampleOutput('archive');
    let now = 1000;
    const { fetchFile, asked } = fileServer(dist);
    const mirror = new FetchMirror(fetchFile, 5000, () => now);
    for (const [time, reads] of [
      [1000, 1],
      [5999, 1],
      [6000, 2],
      [10_999, 2],
      [11_000, 3],
    ] as const) {
      now = time;
      expect((await mirror.answer(new Request('https://mirror.example/runes/v1/blocks/2000007/activity')))?.status).toBe(200);
      expect([time, asked.filter(({ path }) => path === MANIFEST_PATH).length]).toEqual([time, reads]);
    }
  });

  it('is used by a worker for FRESH_SECONDS, by default half a minute, or always if its files are deployed with it', () => {
    const ASSETS = { fetch: () => Promise.reject(new Error('not asked')) };
    expect([{ FRESH_SECONDS: '600' }, { FRESH_SECONDS: '0', ASSETS }, {}, { ASSETS }].map(freshMsOf)).toEqual([
      600_000,
      0,
      30_000,
      Infinity,
    ]);
  });
});

describe('a worker', () => {
  const ACTIVITY = 'https://m.example/runes/v1/blocks/2000007/activity';
  const bucket = { get: () => Promise.resolve(null), head: () => Promise.resolve(null) };
  const assets = { fetch: () => Promise.resolve(new Response(null, { status: 404 })) };

  it('reads manifest, root and directory of deployed files once, or as often as FRESH_SECONDS says', async () => {
    const dist = await sampleOutput('archive');
    const { archive } = JSON.parse(readFileSync(join(dist, MANIFEST_PATH), 'utf8')) as { archive: { root: string } };
    for (const [settings, manifests] of [
      [{}, 1],
      [{ FRESH_SECONDS: '0' }, 3],
    ] as const) {
      const { fetchFile, asked } = fileServer(dist);
      const ASSETS = { fetch: (request: Request) => fetchFile(new URL(request.url).pathname.slice(1)) };
      for (let i = 0; i < 3; i += 1) {
        const response = await worker.fetch(new Request(`${ACTIVITY}?limit=60`), { ASSETS, ...settings }, { waitUntil: () => {} });
        expect(response.status).toBe(200);
      }
      const count = (begin: string) => asked.filter(({ path }) => path.startsWith(begin)).length;
      expect([count(MANIFEST_PATH), count(`archive/${archive.root}`)]).toEqual([manifests, 1]);
      if (manifests === 1) expect(count('archive/')).toBe(1 + 1 + 3);
    }
  });

  it('reads on for other clients if the client that caused the read disconnects', async () => {
    // The platform stops the work of a request when its client disconnects, except for what `waitUntil` was given.
    const kept: Promise<unknown>[] = [];
    const answer = worker.fetch(new Request(ACTIVITY), { ASSETS: assets }, { waitUntil: (promise) => kept.push(promise) });
    expect(kept).toHaveLength(1);
    expect(await kept[0]).toBe(await answer);
  });

  it('is a 503 if R2 cannot be read, instead of an unknown id', async () => {
    const fail = () => Promise.reject(new Error('internal error (10001)'));
    const response = await worker.fetch(new Request(ACTIVITY), { BUCKET: { get: fail, head: fail } }, { waitUntil: () => {} });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  });

  it.each([
    [{}, 'as ASSETS, bind an R2 bucket as BUCKET, or set the variable ORIGIN'],
    [{ ORIGIN: '' }, 'bind an R2 bucket as BUCKET, or set the variable ORIGIN'],
    [{ ORIGIN: 'https://a.example', BUCKET: bucket }, 'BUCKET and ORIGIN are set together; keep one of them'],
    [{ ORIGIN: 'https://a.example', ASSETS: assets }, 'ASSETS and ORIGIN are set together'],
    [{ ASSETS: assets, BUCKET: bucket, ORIGIN: 'a' }, 'ASSETS and BUCKET and ORIGIN are set together'],
    [{ ASSETS: assets, PREFIX: 'a' }, 'PREFIX is only for an R2 bucket'],
    [{ ASSETS: assets, FRESH_SECONDS: 'soon' }, 'FRESH_SECONDS must be a whole number'],
    [{ ORIGIN: 'a.example/mirror' }, 'ORIGIN must be a URL'],
    [{ ORIGIN: 'https://a.example', PREFIX: 'a' }, 'PREFIX is only for an R2 bucket'],
    [{ BUCKET: bucket, FRESH_SECONDS: 'soon' }, 'FRESH_SECONDS must be a whole number'],
  ])('refuses the settings %j', async (settings, message) => {
    const response = await worker.fetch(new Request('https://m.example/runes/v1/'), settings, { waitUntil: () => {} });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ statusCode: 500, error: 'Internal Server Error', message: expect.stringContaining(message) });
    expect(response.headers.get('cache-control')).toBe('no-store');
  });
});

/** Runs the Cloudflare worker in Cloudflare's own runtime, with each kind of origin. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import worker from '../../src/serve/cloudflare/worker.ts';
import { readArchive } from '../support/archives.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { CASES, checkCase, LIST_CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { describeOutputs } from '../support/outputCases.ts';
import { checkRanges } from '../support/ranges.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { type Answer, startServer } from '../support/server.ts';
import { checkErrorPages, checkSiteFiles } from '../support/siteFiles.ts';
import { wrongVectors } from '../support/vectors.ts';
import { type CloudflareHost, startCloudflare } from './cloudflareHost.ts';
import { checkFileHeaders } from './fileHeaders.ts';
import { ACCESS_KEY, BUCKET, type S3Server, startS3 } from './s3Server.ts';

const work = temporaryFolder();
const dist = (name: string) => join(work, name);

beforeAll(async () => {
  for (const layout of LAYOUTS) await testBuild(dist(layout), { inputs: [SAMPLE_INPUT], layout, lists: true });
  await testBuild(dist('bulk'), { inputs: [SAMPLE_INPUT], parquet: true });
});

/** Starts a host before the tests of a `describe`, and closes it afterwards. */
function using<H extends { close(): Promise<void> }>(start: () => Promise<H>): () => H {
  let host: H | undefined;
  beforeAll(async () => {
    host = await start();
  });
  afterAll(() => host?.close());
  return () => {
    if (host === undefined) throw new Error('the host did not start');
    return host;
  };
}

async function overR2(name: string, settings: Readonly<Record<string, string>> = {}): Promise<CloudflareHost> {
  const host = await startCloudflare(settings);
  await host.put(dist(name), settings['PREFIX'] === undefined ? '' : `${settings['PREFIX']}/`);
  return host;
}

const RETRY = { status: 503, headers: { 'retry-after': '5', 'cache-control': 'no-store', 'access-control-allow-origin': '*' } };

describe.each(LAYOUTS)('R2, layout %s', (layout) => {
  const host = using(() => overR2(layout, layout === 'archive' ? {} : { PREFIX: 'a/mirror' }));
  it.each(LIST_CASES)('$name', (one) => checkCase(host(), one));
});

describeOutputs(async (folder) => {
  const host = await startCloudflare({});
  await host.put(folder, '');
  return host;
});

describe('R2, the 720 recorded requests', () => {
  const host = using(async () => {
    await testBuild(dist('vectors'), { inputs: CONFORMANCE_INPUTS, dialect: 'hiro', layout: 'archive' });
    return overR2('vectors');
  });

  it('are answered as recorded, or as a rule decides', async () => {
    // Cloudflare's runtime compresses answers itself, so no test of encodings is possible.
    expect(await wrongVectors(host(), ['Accept-Encoding'])).toEqual([]);
    expect(host().log()).toBe('');
  });
});

describe('Parquet files', () => {
  const origin = using(() => startServer(dist('bulk')));

  it('can be read in ranges from R2', async () => {
    const host = await overR2('bulk');
    await checkRanges(host.port, dist('bulk'));
    await checkSiteFiles(host, dist('bulk'));
    expect(host.log()).toBe('');
    await host.close();
  });

  it('can be read in ranges from an HTTP origin', async () => {
    const host = await startCloudflare({ ORIGIN: `http://127.0.0.1:${origin().port}` });
    await checkRanges(host.port, dist('bulk'));
    expect(host.log()).toBe('');
    await host.close();
  });
});

describe('R2, the files themselves', () => {
  const host = using(() => overR2('archive'));
  const text = (path: string) => readFileSync(join(dist('archive'), path), 'utf8');

  it('are served at their own paths', async () => {
    const paths = filesBelow(dist('archive')).filter((path) => /^(?:runes|archive)\//.test(path));
    for (const path of ['index.html', ...paths]) {
      const answer = await host().send('GET', `/${path}?x=1`);
      expect({ path, status: answer.status, body: answer.body }).toEqual({ path, status: 200, body: text(path) });
    }
  });

  it('have the headers of the API and their own content type', () => checkFileHeaders(host()));

  it('if missing, are answered with a page for browsers, but with JSON in the API', () => checkErrorPages(host()));

  it('do not include dot files, other objects, or answers to other methods', async () => {
    for (const [method, target] of [
      ['GET', '/.rune-activity-mirror'],
      ['GET', '/runes/v1/.rune-activity-mirror'],
      ['GET', '/runes/v1/blocks/../../../.rune-activity-mirror'],
      ['GET', '/runes/v1/%2e%2e/%2e%2e/.rune-activity-mirror'],
      ['GET', '/404.json'],
      ['GET', '/secret/other.json'],
      ['GET', '/runes/v1/blocks/999.json'],
      ['HEAD', '/runes/v1/blocks/999.json'],
      ['POST', '/runes/v1/manifest.json'],
      ['GET', '//runes/v1/manifest.json'],
    ] as const) {
      const answer = await host().send(method, target);
      expect([method, target, answer.status]).toEqual([method, target, 404]);
      expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
      if (method === 'GET') expect(JSON.parse(answer.body)).toMatchObject({ statusCode: 404, error: 'Not Found' });
    }
  });
});

describe('R2 with missing or unreadable files', () => {
  it('is a 503 with Retry-After if a file is missing, and is right again when the file is back', async () => {
    const host = await overR2('archive');
    try {
      const segment = readArchive(dist('archive')).root.segments.find(({ first, last }) => first <= 2000007 && last >= 2000007);
      await host.remove([`archive/${segment?.file}.bin`]);
      const target = '/runes/v1/blocks/2000007/activity';
      expect(await host.send('GET', target)).toMatchObject(RETRY);
      expect(await host.send('HEAD', target)).toMatchObject({ ...RETRY, body: '' });
      expect((await host.send('GET', '/runes/v1/blocks/840000/activity')).status).toBe(200);
      await host.put(dist('archive'));
      expect((await host.send('GET', target)).status).toBe(200);
    } finally {
      await host.close();
    }
  });

  it('is a 503 without a manifest, and the log says why', async () => {
    const host = await startCloudflare();
    try {
      expect(await host.send('GET', '/runes/v1/blocks/1/activity')).toMatchObject(RETRY);
      expect(await host.send('GET', '/')).toMatchObject(RETRY);
      expect(host.log()).toContain('runes/v1/manifest.json is missing');
      await host.put(dist('archive'));
      expect((await host.send('GET', '/')).status).toBe(200);
    } finally {
      await host.close();
    }
  });

  it('is a 503 if R2 cannot be read, instead of an unknown id', async () => {
    const fail = () => Promise.reject(new Error('internal error (10001)'));
    const bucket = { get: fail, head: fail };
    const response = await worker.fetch(
      new Request('https://m.example/runes/v1/blocks/1/activity'),
      { BUCKET: bucket },
      { waitUntil: () => {} },
    );
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
  });
});

describe('R2 after a new upload', () => {
  const target = '/runes/v1/blocks/7/activity';
  const total = ({ body }: Answer) => (JSON.parse(body) as { total: number }).total;
  const block = (height: number, records: number) =>
    ndjson(Array.from({ length: records }, (_, i) => record(height, i, { location: { block_hash: `0x${hex(`block ${height}`)}` } })));

  beforeAll(async () => {
    for (const [name, records] of [
      ['old', 3],
      ['new', 5],
    ] as const) {
      // Both blocks are in one file. Block 6 makes this file so large that the host caches only parts of it.
      writeFiles(work, { [`in-${name}/7.ndjson`]: block(7, records), [`in-${name}/6.ndjson`]: block(6, 400) });
      await testBuild(dist(name), { inputs: [dist(`in-${name}`)], layout: 'archive' });
    }
  });

  it.each([
    ['0', 5],
    ['600', 3],
  ])('FRESH_SECONDS %s gives %i records immediately, and the new records when the old pages are gone', async (seconds, atOnce) => {
    const host = await overR2('old', { FRESH_SECONDS: seconds });
    try {
      expect(total(await host.send('GET', target))).toBe(3);
      await host.put(dist('new'));
      expect(total(await host.send('GET', target))).toBe(atOnce);
      await host.remove(filesBelow(dist('old')).filter((path) => !existsSync(join(dist('new'), path))));
      expect(total(await host.send('GET', target))).toBe(5);
    } finally {
      await host.close();
    }
  });

  it('FRESH_SECONDS 1 gives the new records after a second', async () => {
    const host = await overR2('old', { FRESH_SECONDS: '1' });
    try {
      expect(total(await host.send('GET', target))).toBe(3);
      await host.put(dist('new'));
      await wait(1100);
      expect(total(await host.send('GET', target))).toBe(5);
    } finally {
      await host.close();
    }
  });
});

/** Starts a plain file server without ETags. The server awaits `gate` before each answer. */
async function startFiles(
  folder: string,
): Promise<{ port: number; gate: (path: string) => Promise<number | undefined>; close(): Promise<void> }> {
  const files = {
    port: 0,
    gate: (_path: string): Promise<number | undefined> => Promise.resolve(undefined),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://files').pathname;
    files.gate(path).then((status) => {
      const file = join(folder, path.replace(/^\/mirror\//, ''));
      const isFile = path.startsWith('/mirror/') && existsSync(file) && statSync(file).isFile();
      if (status !== undefined) response.writeHead(status).end();
      else if (isFile) response.writeHead(200).end(readFileSync(file));
      else response.writeHead(404).end('<h1>Not Found</h1>');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  files.port = (server.address() as AddressInfo).port;
  return files;
}

describe('an HTTP origin', () => {
  const files = using(() => startFiles(dist('archive')));
  const host = using(() => startCloudflare({ ORIGIN: `http://127.0.0.1:${files().port}/mirror`, FRESH_SECONDS: '0' }));

  it.each(CASES)('$name', (one) => checkCase(host(), one));

  it('without ETags: files get an ETag of their content', () => checkFileHeaders(host()));

  it('that fails is a 503, for the API and for files', async () => {
    files().gate = () => Promise.resolve(500);
    for (const target of ['/runes/v1/blocks/2000007/activity', '/runes/v1/manifest.json', '/']) {
      expect(await host().send('GET', target)).toMatchObject(RETRY);
    }
    files().gate = (path) => Promise.resolve(path.endsWith('manifest.json') ? undefined : 403);
    expect(await host().send('GET', '/runes/v1/blocks/2000007/activity')).toMatchObject(RETRY);
    files().gate = () => Promise.resolve(undefined);
    expect((await host().send('GET', '/runes/v1/blocks/2000007/activity')).status).toBe(200);
  });

  it('is read to the end for other clients if the client that caused the read disconnects', async () => {
    const slow = await startCloudflare({ ORIGIN: `http://127.0.0.1:${files().port}/mirror/`, FRESH_SECONDS: '600' });
    try {
      let asked = 0;
      let release: () => void = () => {};
      const held = new Promise<undefined>((resolve) => {
        release = () => resolve(undefined);
      });
      files().gate = (path) => {
        if (!path.endsWith('manifest.json')) return Promise.resolve(undefined);
        asked += 1;
        return held;
      };
      const first = connect(slow.port, '127.0.0.1');
      first.write('GET /runes/v1/blocks/2000007/activity HTTP/1.1\r\nhost: a\r\n\r\n');
      while (asked === 0) await wait(10);
      const second = slow.send('GET', '/runes/v1/blocks/2000007/activity');
      await wait(100);
      first.destroy();
      await wait(200);
      release();
      expect((await second).status).toBe(200);
      expect((await slow.send('GET', '/runes/v1/blocks/2000007/activity')).status).toBe(200);
      expect(asked).toBe(1);
    } finally {
      files().gate = () => Promise.resolve(undefined);
      await slow.close();
    }
  });
});

describe('a private S3 bucket', () => {
  let s3: S3Server;
  beforeAll(async () => {
    s3 = await startS3();
    for (const path of filesBelow(dist('archive'))) {
      s3.objects.set(`mirror/${path}`, {
        bytes: readFileSync(join(dist('archive'), path)),
        headers: { etag: `"${hex(path).slice(0, 32)}"` },
      });
    }
  });
  afterAll(() => s3.close());
  const settings = () => ({
    ORIGIN: `http://127.0.0.1:${s3.port}/${BUCKET}/mirror`,
    S3_ACCESS_KEY_ID: ACCESS_KEY.id,
    S3_SECRET_ACCESS_KEY: ACCESS_KEY.secret,
    S3_REGION: 'eu-central-1',
  });
  const host = using(() => startCloudflare(settings()));

  it.each(CASES)('$name', (one) => checkCase(host(), one));

  it('is a 503 with wrong keys, or without keys', async () => {
    for (const S3_SECRET_ACCESS_KEY of ['wrong', undefined]) {
      const { S3_ACCESS_KEY_ID, S3_REGION, ORIGIN } = settings();
      const wrong = await startCloudflare(
        S3_SECRET_ACCESS_KEY === undefined ? { ORIGIN } : { ORIGIN, S3_REGION, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY },
      );
      try {
        expect(await wrong.send('GET', '/runes/v1/blocks/2000007/activity')).toMatchObject(RETRY);
        expect(wrong.log()).toContain('status 403');
        expect(wrong.log()).not.toContain(ACCESS_KEY.secret);
      } finally {
        await wrong.close();
      }
    }
  });
});

describe('invalid settings', () => {
  const bucket = { get: () => Promise.resolve(null), head: () => Promise.resolve(null) };
  const assets = { fetch: () => Promise.resolve(new Response(null, { status: 404 })) };
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
    [{ ORIGIN: 'https://a.example', S3_ACCESS_KEY_ID: 'a' }, 'one is missing'],
    [{ BUCKET: bucket, FRESH_SECONDS: 'soon' }, 'FRESH_SECONDS must be a whole number'],
  ])('%j', async (settings, message) => {
    const response = await worker.fetch(new Request('https://m.example/runes/v1/'), settings, { waitUntil: () => {} });
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({ statusCode: 500, error: 'Internal Server Error', message: expect.stringContaining(message) });
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('are reported in the runtime too', async () => {
    const host = await startCloudflare({}, false);
    try {
      const { status, body } = await host.send('GET', '/runes/v1/');
      expect([status, body]).toEqual([500, expect.stringContaining('bind an R2 bucket as BUCKET')]);
      expect(host.log()).toContain('bind an R2 bucket as BUCKET');
    } finally {
      await host.close();
    }
  });
});

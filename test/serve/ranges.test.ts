/**
 * Tests Parquet files over HTTP: range requests are answered according to RFC 9110, and a Parquet reader works as docs/files.md describes.
 */
import { appendFileSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { isBuiltFile } from '../../src/pages/fileKinds.ts';
import { originOf } from '../../src/serve/cloudflare/origins.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { satisfy, wantedRange } from '../../src/serve/http/ranges.ts';
import edgeFunction from '../../src/serve/netlify/edgeFunction.ts';
import { filesBelow, rowsOf, temporaryFolder, testBuild } from '../support/build.ts';
import { Mirror } from '../support/bundledClient.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { blockBelow } from '../support/pages.ts';
import { checkRanges, rowsFile } from '../support/ranges.ts';
import { recordedOutput } from '../support/recorded.ts';
import { type LocalHost, listening, startServer } from '../support/server.ts';
import { checkSiteFiles } from '../support/siteFiles.ts';

const dist = join(temporaryFolder(), 'dist');
/** A file of an archive, whose ETag is its name. */
const LARGE = `archive/${'0'.repeat(64)}.bin`;
let host: LocalHost;
beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT], parquet: true });
  host = await startServer(dist);
});
afterAll(() => host.close());

describe('npm start', () => {
  it('answers range requests of Parquet files', () => checkRanges(host.port, dist));

  it('serves the explorer, its scripts and bulk data', () => checkSiteFiles(host, dist));

  it('recognises every file of a build', () => {
    expect(filesBelow(dist).filter((path) => !isBuiltFile(path))).toEqual(['.rune-activity-mirror', '404.html', '404.json']);
  });

  it('answers ranges of a file that no process can read at once, and sends only the requested bytes', async () => {
    mkdirSync(join(dist, 'archive'), { recursive: true });
    writeFileSync(join(dist, LARGE), '');
    truncateSync(join(dist, LARGE), 5 * 1024 ** 3);
    appendFileSync(join(dist, LARGE), 'end');
    const answer = await host.send('GET', `/${LARGE}`, { range: 'bytes=-3' });
    expect(answer).toMatchObject({ status: 206, body: 'end', headers: { 'content-length': '3' } });
  });

  it('closes the file when a client disconnects during a range', async () => {
    const url = `http://127.0.0.1:${host.port}/${LARGE}`;
    for (let i = 0; i < 5; i += 1) {
      await new Promise<void>((resolve, reject) => {
        const outgoing = request(url, { headers: { range: 'bytes=10-' }, agent: false }, (response) => {
          response.once('data', () => outgoing.destroy());
          response.once('close', resolve);
          response.on('error', () => undefined);
        });
        outgoing.on('error', (error) => (outgoing.destroyed ? undefined : reject(error)));
        outgoing.end();
      });
    }
    const answer = await host.send('GET', `/${rowsFile(dist, 'index')}`);
    expect(answer.status).toBe(200);
  });

  it('answers for an empty file and keeps running', async () => {
    writeFileSync(join(dist, 'rows/9800-9899-0000000000000000.parquet'), '');
    const ask = (headers = {}) => host.send('GET', '/rows/9800-9899-0000000000000000.parquet', headers);
    expect(await ask()).toMatchObject({ status: 200, body: '', headers: { 'content-length': '0', 'accept-ranges': 'bytes' } });
    expect(await ask({ range: 'bytes=0-3' })).toMatchObject({ status: 416, headers: { 'content-range': 'bytes */0' } });
  });

  it('ignores ranges of the API and of other files', async () => {
    for (const target of ['/runes/v1/blocks/2000001/activity', `/${rowsFile(dist, 'index')}`, '/runes/v1/manifest.json']) {
      const answer = await host.send('GET', target, { range: 'bytes=0-3' });
      expect([answer.status, answer.headers['accept-ranges'], answer.headers['content-range']]).toEqual([200, undefined, undefined]);
      expect(answer.body.length).toBeGreaterThan(100);
    }
  });
});

describe('a Range header', () => {
  it.each([
    ['bytes=0-', 10, { start: 0, end: 9 }],
    ['bytes=9-9', 10, { start: 9, end: 9 }],
    ['bytes= 2 - 3', 10, { start: 2, end: 3 }],
    ['bytes=-3', 10, { start: 7, end: 9 }],
    ['BYTES=0-0', 10, { start: 0, end: 0 }],
    ['bytes=-3', 0, undefined],
    ['bytes=0-', 0, undefined],
    ['bytes=10-', 10, undefined],
  ])('%s of %i bytes', (header, size, expected) => {
    const wanted = wantedRange(header);
    expect(wanted && satisfy(wanted, size)).toEqual(expected);
  });

  it.each([
    undefined,
    null,
    '',
    'bytes',
    'bytes=',
    'bytes=1',
    'bytes=3-1',
    'bytes=0-1,2-3',
    'bytes=0-1 2',
    'bytes=1 2-15',
    'bytes=1e3-',
    `bytes=${'9'.repeat(16)}-`,
  ])('%j is ignored', (header) => {
    expect(wantedRange(header)).toBeUndefined();
  });
});

describe('docs/files.md', () => {
  it('has an example that reads only a few columns of one block over HTTP', async () => {
    const example = blockBelow('docs/files.md', 'Rows', 'js');
    const ranges: string[] = [];
    // Writes the example of docs/files.md below the project's node_modules, so that its imports find the packages.
    const file = join(ROOT, `node_modules/.bulk-example-${process.pid}.mjs`);
    // Records the requests of the reader, and forwards them to the server.
    const watcher = createServer((incoming, response) => {
      if (incoming.url?.endsWith('.parquet') === true) ranges.push(`${incoming.method} ${incoming.headers.range ?? ''}`);
      const onward = request(
        { host: '127.0.0.1', port: host.port, method: incoming.method, path: incoming.url, headers: incoming.headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(response);
        },
      );
      incoming.pipe(onward);
    });
    const { url: origin, close } = await listening(watcher);
    try {
      const script = `${example.replace('https://host', origin).replace('= 840000;', '= 2000001;')}\nexport { named };`;
      expect(script).toContain(origin);
      expect(script).toContain('2000001');
      writeFileSync(file, script);
      const { named } = (await import(file)) as { named: Record<string, unknown>[] };
      const page = JSON.parse(readFileSync(join(dist, 'runes/v1/blocks/2000001.json'), 'utf8')) as {
        total: number;
        results: { rune: { spaced_name: string }; operation: string; amount?: string }[];
      };
      expect(named.length).toBe(page.total);
      expect(named.slice(0, page.results.length)).toEqual(
        page.results.map(({ rune, operation, amount }) => ({ name: rune.spaced_name, operation, amount: amount ?? null })),
      );
      expect(ranges[0]).toBe('HEAD ');
      expect(ranges.filter((one) => !/^(?:HEAD |GET bytes=[0-9]+-[0-9]+)$/.test(one))).toEqual([]);
      expect(ranges.length).toBeGreaterThan(3);
    } finally {
      rmSync(file, { force: true });
      await close();
    }
  });

  it('has SQL that joins rows and runes', async () => {
    const sql = blockBelow('docs/files.md', 'Rows', 'sql');
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: temporaryFolder() });
    const statements = sql.replace('https://host/', `${dist}/`).replace('840000 AND 840099', '2000001 AND 2000001').split(';');
    const query = statements.splice(-2, 1)[0] ?? '';
    for (const statement of statements) if (statement.trim() !== '') await store.run(statement);
    const found = await rowsOf(query, store);
    store.close();
    const { results } = JSON.parse(readFileSync(join(dist, 'runes/v1/blocks/2000001.json'), 'utf8')) as {
      results: { rune: { spaced_name: string }; operation: string; amount?: string }[];
    };
    const sums = new Map<string, [number, number]>();
    for (const { rune, operation, amount = '0' } of results) {
      const [events, sum] = sums.get(`${rune.spaced_name} ${operation}`) ?? [0, 0];
      sums.set(`${rune.spaced_name} ${operation}`, [events + 1, sum + Number(amount)]);
    }
    expect(found.map(({ spaced_name: name, operation, events }) => [`${name} ${operation}`, events]).sort()).toEqual(
      [...sums].map(([key, [events]]) => [key, events]).sort(),
    );
    for (const { spaced_name: name, operation, amount } of found)
      expect(Number(amount ?? 0)).toBeCloseTo(sums.get(`${name} ${operation}`)?.[1] ?? -1, 3);
  });
});

describe('a host that compresses ranges', () => {
  const TARGET = '/runes/v1/blocks/840001/activity?limit=5';
  const asked: { readonly range: string | undefined; readonly encoding: unknown }[] = [];
  const server = createServer(({ url = '', headers }, response) => {
    const { range, 'accept-encoding': encoding } = headers;
    asked.push({ range, encoding });
    const file = readFileSync(join(files, url));
    const [, from, to] = /^bytes=([0-9]+)-([0-9]+)$/.exec(range ?? '') ?? [];
    if (from === undefined) return void response.end(file);
    const part = file.subarray(Number(from), Number(to) + 1);
    const isZipped = String(encoding).includes('gzip');
    response.writeHead(206, { 'content-range': `bytes ${from}-${to}/${file.length}`, ...(isZipped && { 'content-encoding': 'gzip' }) });
    response.end(isZipped ? gzipSync(part) : part);
  });
  let [files, base, body] = ['', '', ''];

  /** Accepts compressed answers to requests for ranges, and cannot read them, as Bun's fetch(). */
  const likeBun: typeof fetch = (input, init) =>
    new Promise((resolve, reject) => {
      const { url, headers } = new Request(input, init);
      const sent = { 'accept-encoding': 'gzip, deflate, br, zstd', ...Object.fromEntries(headers) };
      request(url, { headers: sent }, async (response) => {
        const chunks = await response.toArray();
        if (response.headers['content-encoding'] !== undefined) return reject(new Error('ZlibError'));
        const own = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]);
        resolve(new Response(Buffer.concat(chunks), { status: response.statusCode ?? 0, headers: own }));
      }).end();
    });

  beforeAll(async () => {
    files = await recordedOutput('archive', 'hiro');
    base = (await listening(server)).url;
    const exact = await startServer(files);
    ({ body } = await exact.send('GET', TARGET));
    await exact.close();
  });
  afterEach(() => vi.unstubAllGlobals());
  afterAll(() => server.close());

  it.each<[string, () => Promise<string | undefined>]>([
    ['the client', async () => (await new Mirror(base).get(TARGET)).body],
    ['the function of Netlify', async () => (await edgeFunction(new Request(base + TARGET))).text()],
    [
      'the worker of Cloudflare',
      async () => (await new FetchMirror(originOf({ ORIGIN: base }), 0).answer(new Request(`http://host${TARGET}`)))?.text(),
    ],
  ])('is asked not to, by %s', async (_, read) => {
    vi.stubGlobal('fetch', likeBun);
    asked.length = 0;
    expect(await read()).toBe(body);
    const ranges = asked.filter(({ range }) => range !== undefined);
    expect(ranges.length).toBeGreaterThan(0);
    expect(new Set(ranges.map(({ encoding }) => encoding))).toEqual(new Set(['identity']));
  });
});

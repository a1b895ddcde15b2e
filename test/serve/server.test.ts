/** Tests the local server with the case table (test/support/cases.ts), and with faults that only a server can have. */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../../src/serve/local/clientLimits.ts';
import { RecordingLog, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { checkCase, LIST_CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { ROOT } from '../support/cli.ts';
import { RECORDED_LIMITS } from '../support/limits.ts';
import { describeOutputs } from '../support/outputCases.ts';
import { openSocket, sendRaw, untilClosed } from '../support/raw.ts';
import { sampleOutput } from '../support/recorded.ts';
import { ndjson, record } from '../support/records.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { checkErrorPages } from '../support/siteFiles.ts';
import { until } from '../support/until.ts';

const dist = join(temporaryFolder(), 'dist');
let host: LocalHost;

beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT], lists: true, limits: RECORDED_LIMITS });
  host = await startServer(dist);
});

afterAll(() => host.close());

describe('the case table', () => {
  it.each(LIST_CASES)('$name', (one) => checkCase(host, one));
});

describe('the case table, layout archive', () => {
  let archive: LocalHost;
  beforeAll(async () => {
    archive = await startServer(await sampleOutput('archive'));
  });
  afterAll(() => archive.close());

  it.each(LIST_CASES)('$name', (one) => checkCase(archive, one));
});

describeOutputs(startServer);

it('answers a wrong path with a page for browsers, but with JSON in the API', () => checkErrorPages(host));

describe('the README', () => {
  it('shows the real answer to its curl command', async () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const target = /^curl 'http:\/\/127\.0\.0\.1:3000([^']+)'$/m.exec(readme)?.[1] ?? '';
    const shown = /^```json\n(.*)\n```$/m.exec(readme)?.[1];
    expect((await host.send('GET', target)).body).toBe(shown);
  });
});

describe('the access log', () => {
  it('has an entry for each request, when its response has ended', async () => {
    const log = new RecordingLog();
    const logged = await startServer(dist, { accessLog: log });
    try {
      await logged.send('GET', '/runes/v1/blocks/2000007/activity?limit=1');
      await logged.send('HEAD', '/runes/v1/');
      await logged.send('GET', '/no%0athing"');
    } finally {
      await logged.close();
    }
    expect(log.infos.map(({ figures }) => [figures?.['method'], figures?.['target'], figures?.['status']])).toEqual([
      ['GET', '/runes/v1/blocks/2000007/activity?limit=1', 200],
      ['HEAD', '/runes/v1/', 200],
      ['GET', '/no%0athing"', 404],
    ]);
    expect(log.infos[2]?.message).toMatch(/^127\.0\.0\.1 GET "\/no%0athing\\"" 404 [\d.]+ ms$/);
  });
});

describe('files', () => {
  it('are served at their own paths, with CORS and an ETag of their content', async () => {
    for (const path of ['runes/v1/manifest.json', 'runes/v1/index.json', 'runes/v1/blocks/2000007/60/60.json']) {
      const answer = await host.send('GET', `/${path}`);
      expect([answer.status, answer.body]).toEqual([200, readFileSync(join(dist, path), 'utf8')]);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'access-control-allow-origin': '*',
        'cache-control': 'public, no-cache, must-revalidate',
      });
      expect(answer.headers['etag']).toMatch(/^"[0-9a-f]+"$/);
    }
  });

  it('include the explorer', async () => {
    const { status, headers, body } = await host.send('GET', '/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).toContain('<dt>Records</dt><dd>1,227</dd>');
    expect(body).toContain('840,000, 2,000,001 to 2,000,004 and 2,000,006 to 2,000,010');
    const links = [...body.matchAll(/(?:href|src)="(?!data:)([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) {
      // Links must be relative, because a mirror may be in a folder of its host.
      expect(link).not.toMatch(/^(?:\/|[a-z]+:)/);
      const { pathname, search } = new URL(link, 'http://mirror/');
      expect([link, (await host.send('GET', pathname + search)).status]).toEqual([link, 200]);
    }
  });

  it('of a new build are served as soon as it is complete', async () => {
    const out = join(temporaryFolder(), 'dist');
    const input = join(temporaryFolder(), 'a.ndjson');
    writeFileSync(input, ndjson([record(5, 1)]));
    await testBuild(out, { inputs: [input] });
    const own = await startServer(out);
    expect((await own.send('GET', '/runes/v1/blocks/5/activity?limit=61')).status).toBe(400);
    await testBuild(out, { inputs: [input], pageSizes: [20, 61], dialect: 'hiro' });
    expect((await own.send('GET', '/runes/v1/blocks/5/activity?limit=61')).status).toBe(200);
    await own.close();
  });
});

describe('a page larger than one read', () => {
  it('is streamed, with the same ETag rules', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson(Array.from({ length: 2000 }, (_, i) => record(5, i))) });
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'a.ndjson')], pageSizes: [20, 2000] });
    const own = await startServer(join(work, 'dist'));
    const page = readFileSync(join(work, 'dist/runes/v1/blocks/5/2000/0.json'));
    for (let i = 0; i < 2; i += 1) {
      const answer = await own.send('GET', '/runes/v1/blocks/5/activity?limit=2000');
      expect(answer.body).toBe(page.toString('utf8'));
      expect(answer.headers).toMatchObject({
        etag: `"${createHash('sha256').update(page).digest('hex').slice(0, 32)}"`,
        'content-length': String(page.length),
      });
      expect(
        (await own.send('GET', '/runes/v1/blocks/5/activity?limit=2000', { 'if-none-match': String(answer.headers['etag']) })).status,
      ).toBe(304);
    }
    expect(JSON.parse((await own.send('GET', '/runes/v1/blocks/5/activity?limit=1999&offset=1')).body)).toMatchObject({
      total: 2000,
      limit: 1999,
    });
    await own.close();
  });
});

describe('a build with a missing page', () => {
  const work = temporaryFolder();
  const out = join(work, 'dist');
  const BLOCK = 'runes/v1/blocks/5';
  let own: LocalHost;
  beforeAll(async () => {
    writeFiles(work, { 'a.ndjson': ndjson(Array.from({ length: 70 }, (_, i) => record(5, 1, { amount: String(i) }))) });
    await testBuild(out, { inputs: [join(work, 'a.ndjson')] });
    own = await startServer(out);
  });
  afterAll(() => own.close());

  /** Replaces the content of a file while `work` runs. */
  async function withBytes(path: string, bytes: Buffer, work: () => Promise<void>): Promise<void> {
    const file = join(out, path);
    const whole = readFileSync(file);
    // Removes the file before it is written, because the pages of a block by height and by hash are hard links of each other.
    const replace = (content: Buffer) => {
      rmSync(file);
      writeFileSync(file, content);
    };
    replace(bytes);
    await work();
    replace(whole);
    expect((await own.send('GET', `/${path}`)).status).toBe(200);
  }

  it('gets a 503 with Retry-After, not an empty list, and the reason is only logged', async () => {
    await withBytes(`${BLOCK}/60/60.json`, Buffer.from('half a pa'), async () => {
      const answer = await own.send('GET', `/${BLOCK}/activity?limit=60&offset=20`);
      expect([answer.status, answer.headers['retry-after'], answer.body.includes(work)]).toEqual([503, '5', false]);
    });
  });

  it.each([
    ['a page by its window', `${BLOCK}/60/60.json`, `/${BLOCK}/activity?limit=60&offset=60`],
    ['a first page', `${BLOCK}.json`, `/${BLOCK}/activity`],
    ['a page by operation', `${BLOCK}/receive/60/60.json`, `/${BLOCK}/activity?limit=60&offset=60&operation_type=receive`],
    ['a page by its own path', `${BLOCK}/60/60.json`, `/${BLOCK}/60/60.json`],
  ])('never sends the beginning of %s', async (_, path, target) => {
    const whole = readFileSync(join(out, path));
    for (const length of [0, 10, 60, whole.length >> 1, whole.length - 1]) {
      await withBytes(path, whole.subarray(0, length), async () => {
        expect([length, (await own.send('GET', target)).status]).toEqual([length, 503]);
      });
    }
  });
});

describe('a folder with a pipe for a manifest', () => {
  it('is refused at start and reported later, without waiting for a writer', async () => {
    const work = temporaryFolder();
    const out = join(work, 'dist');
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
    await testBuild(out, { inputs: [join(work, 'a.ndjson')] });
    const own = await startServer(out);
    const manifest = join(out, 'runes/v1/manifest.json');
    rmSync(manifest);
    execFileSync('mkfifo', [manifest]);
    // Runs in a separate process: if a read blocked forever, only killing its process could end it.
    const script = `import('./src/serve/local/server.ts').then(({ createMirrorServer }) => createMirrorServer(process.argv[1])).catch((error) => console.log(error.message))`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', '-e', script, out], { cwd: ROOT });
    expect(stdout).toContain(`${manifest} is not a file`);
    expect((await own.send('GET', '/runes/v1/blocks/5/activity')).status).toBe(503);
    await own.close();
  });
});

describe('raw requests', () => {
  it.each([
    ['that is not HTTP', 'hello\r\n\r\n', 400, 'Bad Request'],
    ['with a URL that is too long', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431, 'Request Header Fields Too Large'],
    [
      'with chunk extensions that are too long',
      `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\n`,
      413,
      'Payload Too Large',
    ],
  ])('%s are refused with the name of the status, as JSON', async (_, request, status, reason) => {
    const answer = (await sendRaw(host.port, request)).split('HTTP/1.1 ').at(-1) ?? '';
    expect(answer.split('\r\n')[0]).toBe(`${status} ${reason}`);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toEqual({
      statusCode: status,
      error: reason,
      message: expect.any(String),
    });
  });

  it('on more connections than the limit are cut immediately, until another connection ends', async () => {
    const own = await startServer(dist, { limits: { ...CLIENT_LIMITS, connections: 2 } });
    const sockets = [openSocket(own.port), openSocket(own.port)];
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const get = 'GET /runes/v1/blocks/2000002/activity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    expect(await untilClosed(openSocket(own.port, get))).toBe('');
    sockets[0]?.destroy();
    await until(async () => (await untilClosed(openSocket(own.port, get))).startsWith('HTTP/1.1 200 '));
    await own.close();
  });

  it('with a full URL as target, and OPTIONS *, are answered', async () => {
    const get = 'GET http://mirror.example/runes/v1/blocks/2000002/activity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    expect(await sendRaw(host.port, get)).toMatch(/^HTTP\/1\.1 200 [\s\S]*"total":1,/);
    expect(await sendRaw(host.port, 'OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 204 /);
  });

  it('of a client that closes its side are answered, also compressed', async () => {
    for (const more of ['', 'accept-encoding: gzip\r\n']) {
      const socket = connect({ port: host.port, host: '127.0.0.1', allowHalfOpen: true });
      socket.end(`GET /runes/v1/blocks/2000007/activity?limit=59 HTTP/1.1\r\nhost: x\r\n${more}\r\n`.repeat(2));
      const answer = await untilClosed(socket);
      expect([more, answer.split('HTTP/1.1 200 OK').length - 1]).toEqual([more, 2]);
      expect(answer.includes('content-encoding: gzip')).toBe(more !== '');
    }
  });

  it('with 10 kB of query are answered', async () => {
    expect((await host.send('GET', `/runes/v1/blocks/2000002/activity?x=${'y'.repeat(10_000)}`)).status).toBe(200);
    expect((await host.send('GET', `/runes/v1/blocks/${'9'.repeat(10_000)}/activity`)).status).toBe(200);
    expect((await host.send('GET', `/runes/v1/transactions/${'a'.repeat(10_000)}/activity`)).status).toBe(400);
  });
});

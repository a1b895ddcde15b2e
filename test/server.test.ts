/** The local server: the case table, and what only a server can get wrong. */
import { createHash } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from './support/build.ts';
import { CASES, checkCase, SAMPLE_INPUT } from './support/cases.ts';
import { ROOT } from './support/cli.ts';
import { ndjson, record } from './support/records.ts';
import { type LocalHost, startServer } from './support/server.ts';

const dist = join(temporaryFolder(), 'dist');
let host: LocalHost;

beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  host = await startServer(dist);
});

afterAll(() => host.close());

describe('the case table', () => {
  it.each(CASES)('$name', (one) => checkCase(host, one));
});

describe('the case table, layout packed', () => {
  let packed: LocalHost;
  beforeAll(async () => {
    const folder = join(temporaryFolder(), 'packed');
    await testBuild(folder, { inputs: [SAMPLE_INPUT], layout: 'packed' });
    packed = await startServer(folder);
  });
  afterAll(() => packed.close());

  it.each(CASES)('$name', (one) => checkCase(packed, one));
});

describe('the README', () => {
  it('shows the answer that its curl gets', async () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const target = /^curl 'http:\/\/127\.0\.0\.1:3000([^']+)'$/m.exec(readme)?.[1] ?? '';
    const shown = /^```json\n(.*)\n```$/m.exec(readme)?.[1];
    expect((await host.send('GET', target)).body).toBe(shown);
  });
});

describe('files', () => {
  it('are served by their own paths, with CORS and an ETag of their content', async () => {
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

  it('include the explorer, which says what is held', async () => {
    const { status, headers, body } = await host.send('GET', '/');
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).toContain('<dt>Records</dt><dd>1,227</dd>');
    expect(body).toContain('840,000, 2,000,001 to 2,000,004 and 2,000,006 to 2,000,010');
    const links = [...body.matchAll(/(?:href|src)="(?!data:)([^"]+)"/g)].map((match) => match[1] ?? '');
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) {
      // Relative, so that a mirror may be in a folder of its host.
      expect(link).not.toMatch(/^(?:\/|[a-z]+:)/);
      const { pathname, search } = new URL(link, 'http://mirror/');
      expect([link, (await host.send('GET', pathname + search)).status]).toEqual([link, 200]);
    }
  });

  it('outside the folder, listings and links are not', async () => {
    writeFileSync(join(dist, '..', 'secret.json'), '{"secret":1}');
    symlinkSync(join(dist, '..', 'secret.json'), join(dist, 'link.json'));
    for (const target of [
      '/../secret.json',
      '/%2e%2e/secret.json',
      '/..%2fsecret.json',
      '/runes/../../secret.json',
      '/runes/v1/%2e%2e/%2e%2e/%2e%2e/secret.json',
      '/\\..\\secret.json',
      '/link.json',
      '/%00',
      '/%zz',
      '//secret.json',
      '/runes/v1/blocks/',
      '/runes/v1/',
      '/runes/v1/blocks/840000/..%2f2000007/activity',
      '/runes/v1/blocks/..%2f..%2f..%2fsecret/activity',
      '/.git/config',
      '/.rune-activity-mirror',
      `/runes/v1/${'b'.repeat(300)}`,
      `/${'c'.repeat(300)}.json`,
    ]) {
      const { status, body } = await host.send('GET', target);
      expect([target, [200, 400, 404].includes(status), body.includes('secret":1'), body.includes('<title>'), body.includes(dist)]).toEqual(
        [target, true, false, false, false],
      );
      if (status !== 200) expect(JSON.parse(body)).toMatchObject({ statusCode: status });
    }
  });

  it('of another build are served as soon as it is there', async () => {
    const out = join(temporaryFolder(), 'dist');
    const input = join(temporaryFolder(), 'a.ndjson');
    writeFileSync(input, ndjson([record(5, 1)]));
    await testBuild(out, { inputs: [input] });
    const own = await startServer(out);
    expect((await own.send('GET', '/runes/v1/blocks/5/activity?limit=61')).status).toBe(400);
    await testBuild(out, { inputs: [input], pageSizes: [20, 61], dialect: 'hiro' });
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect((await own.send('GET', '/runes/v1/blocks/5/activity?limit=61')).status).toBe(200);
    await own.close();
  });
});

describe('a page larger than what is read at once', () => {
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

describe('a build with a hole', () => {
  it('is answered 503 with Retry-After, not with an empty list, and the reason stays here', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson(Array.from({ length: 70 }, (_, i) => record(5, i))) });
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'a.ndjson')] });
    writeFileSync(join(work, 'dist/runes/v1/blocks/5/60/60.json'), 'half a pa');
    const own = await startServer(join(work, 'dist'));
    const answer = await own.send('GET', '/runes/v1/blocks/5/activity?limit=60&offset=20');
    expect([answer.status, answer.headers['retry-after'], answer.body.includes(work)]).toEqual([503, '5', false]);
    await own.close();
  });
});

describe('raw requests', () => {
  const raw = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(host.port, '127.0.0.1', () => socket.write(text));
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk.toString('utf8');
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(answer));
    });

  it('that are no HTTP get a 400, oversized ones a 431, both as JSON', async () => {
    expect(await raw('hello\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*\{"statusCode":400,/);
    expect(await raw(`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 [\s\S]*\{"statusCode":431,/);
  });

  it('with a whole URL as target, and OPTIONS *, are understood', async () => {
    const get = 'GET http://mirror.example/runes/v1/blocks/2000002/activity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n';
    expect(await raw(get)).toMatch(/^HTTP\/1\.1 200 [\s\S]*"total":1,/);
    expect(await raw('OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 204 /);
  });

  it('with 10 kB of query are answered', async () => {
    expect((await host.send('GET', `/runes/v1/blocks/2000002/activity?x=${'y'.repeat(10_000)}`)).status).toBe(200);
    expect((await host.send('GET', `/runes/v1/blocks/${'9'.repeat(10_000)}/activity`)).status).toBe(200);
    expect((await host.send('GET', `/runes/v1/transactions/${'a'.repeat(10_000)}/activity`)).status).toBe(400);
  });
});

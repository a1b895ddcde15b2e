/** Tests compressed answers of the local server: which encoding a client gets, and that each encoding has its own ETag. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { takesGzip } from '../../src/serve/http/headers.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { sendRaw } from '../support/raw.ts';
import { type LocalHost, startServer } from '../support/server.ts';

describe('Accept-Encoding', () => {
  it.each<[string | undefined, boolean]>([
    [undefined, false],
    ['', false],
    ['gzip', true],
    ['gzip, deflate, br', true],
    ['br', false],
    ['GZip', true],
    ['x-gzip', true],
    ['gzip;q=0', false],
    ['gzip;q=0.001', true],
    ['gzip ; q=1.0 , br ; q=0.9', true],
    ['*', true],
    ['*;q=0', false],
    ['br;q=0, *', true],
    ['gzip, *;q=0', true],
    ['gzip;q=0, *', false],
    ['identity', false],
    ['identity, gzip;q=0.5', false],
    ['identity, gzip', true],
    ['identity;q=0.5, gzip', true],
    ['gzip;q=2', false],
    ['gzip;q=, br;q=x', false],
    ['gzip;level=9', false],
    [',,gzip,,', true],
    ['gzipped, brotli', false],
  ])('%j takes gzip: %s', (header, takes) => expect(takesGzip(header)).toBe(takes));
});

const BLOCK = '/runes/v1/blocks/2000007/activity';
const GZIP = { 'accept-encoding': 'gzip, br' };
/** Targets of all kinds: a page, a window, the small status file, another file, and a large file. */
const LARGE = '/openapi.json';
const COMPRESSED = [BLOCK, `${BLOCK}?limit=7&offset=3`, '/', '/runes/v1/blocks/2000007/60/60.json', LARGE];

describe('an answer', () => {
  const dist = join(temporaryFolder(), 'dist');
  let host: LocalHost;
  beforeAll(async () => {
    await testBuild(dist, { inputs: [SAMPLE_INPUT] });
    writeFileSync(join(dist, 'openapi.json'), JSON.stringify(Array.from({ length: 100_000 }, (_, i) => i)));
    host = await startServer(dist);
  });
  afterAll(() => host.close());

  it.each(COMPRESSED)('to %s has the same content, another ETag and the right length', async (target) => {
    const plain = await host.send('GET', target);
    for (let i = 0; i < 2; i += 1) {
      const zipped = await host.send('GET', target, GZIP);
      expect(zipped.body).toBe(plain.body);
      expect([plain.headers['content-encoding'], zipped.headers['content-encoding']]).toEqual([undefined, 'gzip']);
      expect([plain.headers.vary, zipped.headers.vary]).toEqual(['accept-encoding', 'accept-encoding']);
      expect(zipped.headers.etag).toBe(String(plain.headers.etag).replace(/"$/, '-gz"'));
      // An answer to HEAD has no body, so it has no transfer-encoding header.
      const { date: _, 'transfer-encoding': chunked, ...own } = zipped.headers;
      expect(chunked).toBe(target === LARGE ? 'chunked' : undefined);
      const { date: __, ...ofHead } = (await host.send('HEAD', target, GZIP)).headers;
      expect(ofHead).toEqual(own);
    }
    const bytes = Buffer.from(await sendRaw(host.port, `GET ${target} HTTP/1.0\r\naccept-encoding: gzip\r\n\r\n`), 'latin1');
    const body = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
    expect(gunzipSync(body).toString('utf8')).toBe(plain.body);
    expect(body.length).toBeLessThan(Buffer.byteLength(plain.body));
  });

  it.each(COMPRESSED)('to %s is a 304 for either ETag, and repeats the ETag of the client', async (target) => {
    const [plain, zipped] = [(await host.send('GET', target)).headers.etag, (await host.send('GET', target, GZIP)).headers.etag];
    for (const [known, told] of [
      [plain, plain],
      [zipped, zipped],
      [`W/${zipped}`, zipped],
      [`"x", ${plain}`, plain],
    ]) {
      for (const method of ['GET', 'HEAD']) {
        for (const more of [{}, GZIP]) {
          const again = await host.send(method, target, { 'if-none-match': String(known), ...more });
          expect(again).toMatchObject({ status: 304, body: '', headers: { etag: told, vary: 'accept-encoding' } });
        }
      }
    }
    expect((await host.send('GET', target, { ...GZIP, 'if-none-match': '*' })).headers.etag).toBe(zipped);
    expect((await host.send('GET', target, { 'if-none-match': '"other-gz"' })).status).toBe(200);
  });

  it('is uncompressed if it is small, an error, or for a client that does not accept gzip', async () => {
    for (const target of ['/runes/v1/', '/runes/v1/blocks/1/activity', '/nothing', `${BLOCK}?limit=0`]) {
      expect((await host.send('GET', target, GZIP)).headers['content-encoding']).toBeUndefined();
    }
    for (const header of ['br', 'gzip;q=0', 'identity', '*;q=0']) {
      expect((await host.send('GET', BLOCK, { 'accept-encoding': header })).headers['content-encoding']).toBeUndefined();
    }
  });

  it('to a range request is the whole body', async () => {
    const answer = await host.send('GET', LARGE, { range: 'bytes=0-9' });
    expect([answer.status, answer.body.length > 10]).toEqual([200, true]);
  });

  it('with --no-compression has an ETag of its content and is never compressed', async () => {
    const plain = await startServer(dist, { compresses: false });
    const answer = await plain.send('GET', BLOCK, GZIP);
    expect([answer.headers['content-encoding'], answer.headers.vary]).toEqual([undefined, undefined]);
    expect(answer.headers.etag).toBe(`"${createHash('sha256').update(answer.body).digest('hex').slice(0, 32)}"`);
    await plain.close();
  });
});

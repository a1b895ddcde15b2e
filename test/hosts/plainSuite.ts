/** Tests that every host without this project's code must pass. The hosts are nginx and Caddy, each with its shipped configuration. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild } from '../support/build.ts';
import { CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { sendRaw } from '../support/raw.ts';
import { recordedOutput, sampleOutput, sharedBuild } from '../support/recorded.ts';
import { REFUSED_CASES } from '../support/refusedCases.ts';
import { SECURITY_HEADERS } from '../support/securityHeaders.ts';
import { type LocalHost, startServer } from '../support/server.ts';
import { checkErrorPages, checkPlainRanges, checkSiteFiles } from '../support/siteFiles.ts';
import { classifyAll, countVerdicts, fetchRaw, judgeCases, notExact } from './plainHost.ts';
import { inventedTargets, ODD_TARGETS, type PlainRequest, requestsOf, vectorRequests } from './requests.ts';

export interface HostOptions {
  /** Port of `npm start`. If given, the host forwards requests without a file to this port. */
  readonly exactPort?: number;
  /** Page sizes of the build, if they are not 20,60. */
  readonly pageSizes?: readonly [number, number];
}

interface Plain {
  readonly name: string;
  start(dist: string, options?: HostOptions): Promise<LocalHost>;
  /**
   * Targets that the web server itself refuses, or rewrites before it forwards them. Their answers are not exact, even with `npm start`
   * behind the server.
   */
  readonly refusedByEngine: readonly string[];
  /** True if the configuration also sets the body of the error for a URL that is too long. */
  readonly wordsAllErrors: boolean;
}

const API_HEADERS = SECURITY_HEADERS.json;
const CACHED = { 'cache-control': 'public, no-cache, must-revalidate' };
const NO_STORE = { ...API_HEADERS, 'cache-control': 'no-store' };
const BLOCK = '/runes/v1/blocks/840001';
const UNKNOWN = `/runes/v1/transactions/${'ff'.repeat(32)}/activity`;

const gets = (targets: readonly string[]): PlainRequest[] => targets.map((target) => ({ method: 'GET', target }));

/** Defines the tests of a host. */
export function testPlainHost({ name, start, refusedByEngine, wordsAllErrors }: Plain): void {
  const folder = temporaryFolder();
  let sample: string;
  let recorded: string;
  const open: LocalHost[] = [];
  const keep = async (host: Promise<LocalHost>) => {
    open.push(await host);
    return host;
  };
  let exact: { readonly sample: LocalHost; readonly recorded: LocalHost };

  beforeAll(async () => {
    sample = await sampleOutput('files');
    recorded = await recordedOutput('files', 'hiro');
    exact = { sample: await keep(startServer(sample)), recorded: await keep(startServer(recorded)) };
  });
  afterAll(async () => {
    for (const host of open) await host.close();
  });

  describe(`${name} without code`, () => {
    let [ofSample, ofRecorded]: LocalHost[] = [];
    const host = () => ofRecorded as LocalHost;
    beforeAll(async () => {
      ofSample = await keep(start(sample));
      ofRecorded = await keep(start(recorded));
    });

    it('answers the case table exactly, or refuses requests that need code', async () => {
      const verdicts = await judgeCases(ofSample as LocalHost);
      expect(notExact(verdicts)).toEqual(REFUSED_CASES);
    });

    it('answers some of the recorded requests exactly, or refuses requests that need code', async () => {
      const verdicts = await classifyAll(host(), exact.recorded, vectorRequests());
      expect(new Set(verdicts)).toEqual(new Set(['exact', 'refused 404', 'refused 501']));
    });

    it('answers every request for a file with that file, in both dialects', async () => {
      for (const [dist, asked, reference, every] of [
        [sample, ofSample as LocalHost, exact.sample, 16],
        [recorded, host(), exact.recorded, 200],
      ] as const) {
        const paths = filesBelow(dist).filter((path) => requestsOf(path).length > 0);
        const requests = gets(paths.filter((_, i) => i % every === 0).flatMap(requestsOf));
        expect(requests.length).toBeGreaterThan(100);
        expect(countVerdicts(await classifyAll(asked, reference, requests))).toEqual({ exact: requests.length });
      }
    });

    it('answers odd spellings and invented requests exactly or with an honest error', async () => {
      const others = ODD_TARGETS.filter((_, i) => i % 12 === 0);
      const requests = [
        ...gets([...ODD_TARGETS, ...inventedTargets(300)]),
        ...['HEAD', 'OPTIONS', 'POST', 'DELETE'].flatMap((method) => others.map((target) => ({ method, target }))),
      ];
      const verdicts = await classifyAll(host(), exact.recorded, requests);
      const wrong = requests.flatMap(({ method, target }, i) =>
        verdicts[i]?.startsWith('WRONG') ? [`${method} ${target} ${verdicts[i]}`] : [],
      );
      expect(wrong).toEqual([]);
    });

    it('never answers a path out of its folder, a hidden file or a folder', async () => {
      for (const target of ODD_TARGETS.filter((one) => /%|\.\.|\/\/|\/\.|\/$/.test(one.split('?')[0] ?? ''))) {
        const { status } = await host().send('GET', target);
        if (!['/', '/runes/', '/runes/v1/'].includes(target.split('?')[0] ?? '')) expect([target, status >= 400]).toEqual([target, true]);
      }
    });

    it('sends the headers of the API with pages, files and the status', async () => {
      for (const target of [
        `${BLOCK}/activity`,
        `${BLOCK}/activity?limit=60&offset=60`,
        `${BLOCK}.json`,
        '/runes/v1/',
        '/runes/v1/manifest.json',
      ]) {
        const answer = await host().send('GET', target);
        expect(answer).toMatchObject({ status: 200, headers: { ...API_HEADERS, ...CACHED, etag: expect.stringMatching(/^"[^"]+"$/) } });
        expect(answer.headers['server'] ?? name.toLowerCase()).toBe(name.toLowerCase());
        const head = await host().send('HEAD', target);
        expect(head).toMatchObject({ status: 200, body: '', headers: { ...API_HEADERS, ...CACHED, etag: answer.headers.etag } });
      }
    });

    it('serves the pages for people, their scripts and bulk data', async () => {
      await checkSiteFiles(ofSample as LocalHost, sample);
      await checkPlainRanges((ofSample as LocalHost).port, sample);
    });

    it('sends errors with the headers of the API and without caching', async () => {
      for (const [target, status] of [
        [`${BLOCK}/activity?limit=7`, 501],
        [UNKNOWN, 404],
        ['/nothing', 404],
        [`${BLOCK}/activity?limit=0`, 501],
      ] as const) {
        expect(await host().send('GET', target)).toMatchObject({ status, headers: NO_STORE });
      }
      const post = await host().send('POST', `${BLOCK}/activity`);
      expect(post).toMatchObject({ status: 405, headers: { ...NO_STORE, allow: 'GET, HEAD, OPTIONS' } });
    });

    it('answers a preflight', async () => {
      const asked = { origin: 'https://a.example', 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-api-key' };
      const preflight = await host().send('OPTIONS', `${BLOCK}/activity?limit=7`, asked);
      expect([preflight.status, preflight.body]).toEqual([204, '']);
      expect(preflight.headers).toMatchObject({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
        'access-control-allow-headers': '*',
        'access-control-max-age': '86400',
      });
    });

    it('answers 304 to a current ETag, and a range request with the complete page', async () => {
      const target = `${BLOCK}/activity?limit=60`;
      const { headers, body } = await host().send('GET', target);
      const etag = String(headers.etag);
      for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const again = await host().send('GET', target, { 'if-none-match': known });
        expect(again).toMatchObject({ status: 304, body: '', headers: { etag, 'access-control-allow-origin': '*', ...CACHED } });
      }
      expect(await host().send('GET', target, { 'if-none-match': '"x"' })).toMatchObject({ status: 200, body });
      expect(await host().send('GET', target, { range: 'bytes=0-9' })).toMatchObject({ status: 200, body });
      expect((await host().send('GET', target, { range: 'bytes=99999999-' })).status).toBe(200);
    });

    it('ignores conditions with a date', async () => {
      const target = `${BLOCK}/activity?limit=60`;
      const { headers, body } = await host().send('GET', target);
      const times = [String(headers['last-modified'] ?? new Date().toUTCString()), 'Fri, 01 Jan 2100 00:00:00 GMT'];
      for (const time of times) {
        expect(await host().send('GET', target, { 'if-modified-since': time })).toMatchObject({ status: 200, body });
      }
    });

    it('answers in JSON what the engine itself refuses', async () => {
      const long = await host().send('GET', `${BLOCK}/activity?limit=60&x=${'x'.repeat(10_000)}`);
      expect([long.status, JSON.parse(long.body).statusCode]).toEqual(wordsAllErrors ? [414, 414] : [501, 501]);
      const path = await host().send('GET', `/runes/v1/${'x'.repeat(2000)}`);
      expect(path).toMatchObject({ status: 501, headers: NO_STORE });
      for (const bytes of [
        'GET /runes/v1/\0 HTTP/1.1\r\nHost: a\r\n\r\n',
        'GET / HTTP/1.1\r\n\r\n',
        'nothing\r\n\r\n',
        'GET /a b HTTP/1.1\r\nhost: a\r\n\r\n',
      ]) {
        const text = await sendRaw(host().port, bytes.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
        expect(text).toMatch(/^HTTP\/1\.[01] 400 Bad Request/);
        if (wordsAllErrors) expect(text).toContain('{"statusCode":400,');
      }
    });

    it('compresses pages, with a weak ETag', async () => {
      const target = `${BLOCK}/activity?limit=60&offset=60`;
      const { body } = await host().send('GET', target);
      const { headers, bytes } = await fetchRaw(host().port, target, { 'accept-encoding': 'GZip' });
      expect(headers).toMatchObject({
        ...API_HEADERS,
        'content-encoding': 'gzip',
        etag: expect.stringMatching(/^W\/"/),
        vary: 'Accept-Encoding',
      });
      expect(gunzipSync(bytes).toString('utf8')).toBe(body);
      const again = await host().send('GET', target, { 'accept-encoding': 'gzip', 'if-none-match': String(headers['etag']) });
      expect([again.status, again.body]).toEqual([304, '']);
    });
  });

  describe(`${name} without code, on other folders`, () => {
    const answerOf = async (dist: string, target: string, options: HostOptions = {}) => {
      const host = await start(dist, options);
      try {
        return await host.send('GET', target);
      } finally {
        await host.close();
      }
    };

    it('says that there is no complete build, instead of an unknown id', async () => {
      const unfinished = temporaryFolder();
      mkdirSync(join(unfinished, 'runes/v1/transactions'), { recursive: true });
      for (const dist of [temporaryFolder(), unfinished])
        expect(await answerOf(dist, UNKNOWN)).toMatchObject({ status: 503, headers: NO_STORE });
    });

    it('says that layout archive needs code', async () => {
      const dist = join(folder, 'archive');
      // An archive replaces a mirror in layout `files` in the same folder. The old files of lists may stay there.
      for (const layout of ['files', 'archive'] as const) await testBuild(dist, { inputs: [SAMPLE_INPUT], layout, lists: true });
      for (const target of [`${BLOCK}/activity`, UNKNOWN]) {
        const answer = await answerOf(dist, target);
        expect(answer).toMatchObject({ status: 503, headers: NO_STORE, body: expect.stringContaining('archive') });
      }
    });

    it('serves other page sizes if its marked lines name them', async () => {
      const dist = await sharedBuild('sizes', { inputs: CONFORMANCE_INPUTS, pageSizes: [30, 1000] });
      const host = await keep(start(dist, { pageSizes: [30, 1000] }));
      const reference = await keep(startServer(dist));
      const queries = ['', '?limit=30', '?limit=1000', '?limit=1000&offset=1000', '?offset=30', '?limit=60', '?limit=20', '?offset=20'];
      const verdicts = await classifyAll(host, reference, gets(queries.map((query) => `${BLOCK}/activity${query}`)));
      expect(verdicts).toEqual([...Array(4).fill('exact'), ...Array(4).fill('refused 501')]);
    });
  });

  describe(`${name} with npm start behind it`, () => {
    let [ofSample, ofRecorded]: LocalHost[] = [];
    const host = () => ofRecorded as LocalHost;
    beforeAll(async () => {
      ofSample = await keep(start(sample, { exactPort: exact.sample.port }));
      ofRecorded = await keep(start(recorded, { exactPort: exact.recorded.port }));
    });

    it('answers the whole case table exactly', async () => {
      const verdicts = await judgeCases(ofSample as LocalHost);
      expect(notExact(verdicts)).toEqual({});
      expect(Object.keys(verdicts)).toHaveLength(CASES.length);
    });

    it('answers a wrong path with a page for browsers, but with JSON in the API', () => checkErrorPages(ofSample as LocalHost));

    it('answers odd spellings exactly, unless the engine refuses them', async () => {
      const verdicts = await classifyAll(host(), exact.recorded, gets(ODD_TARGETS));
      const others = ODD_TARGETS.flatMap((target, i) => (verdicts[i] === 'exact' ? [] : [`${target} ${verdicts[i]}`]));
      expect(others).toEqual(refusedByEngine);
    });

    it('ignores the conditions that the API ignores', async () => {
      const target = `${BLOCK}/activity`;
      for (const [name, value] of [
        ['if-match', '"x"'],
        ['if-unmodified-since', 'Sat, 01 Jan 2000 00:00:00 GMT'],
      ] as const) {
        expect([name, (await host().send('GET', target, { [name]: value })).status]).toEqual([name, 200]);
      }
    });

    it('reads files from the disk, not from the program behind it', async () => {
      const alone = await keep(start(recorded));
      for (const [query, same] of [
        ['', true],
        ['?limit=60', true],
        ['?limit=7', false],
      ] as const) {
        const [here, there] = [await host().send('GET', `${BLOCK}/activity${query}`), await alone.send('GET', `${BLOCK}/activity${query}`)];
        expect([query, here.headers.etag === there.headers.etag]).toEqual([query, same]);
      }
    });

    it('sends the answers of the program compressed, with a separate ETag', async () => {
      const target = `${BLOCK}/activity?limit=50&offset=7`;
      const { headers, bytes } = await fetchRaw(host().port, target, { 'accept-encoding': 'gzip' });
      expect(headers).toMatchObject({ ...API_HEADERS, ...CACHED, 'content-encoding': 'gzip' });
      const plain = await host().send('GET', target);
      expect(gunzipSync(bytes).toString('utf8')).toBe(plain.body);
      expect(headers['etag']).not.toBe(plain.headers.etag);
    });

    it('answers pages, and an honest error otherwise, while the program is down', async () => {
      const gone = await startServer(recorded);
      await gone.close();
      const alone = await keep(start(recorded, { exactPort: gone.port }));
      expect((await alone.send('GET', `${BLOCK}/activity`)).status).toBe(200);
      expect(await alone.send('GET', `${BLOCK}/activity?limit=7`)).toMatchObject({
        status: 502,
        headers: NO_STORE,
        body: expect.stringContaining('"statusCode":502'),
      });
    });
  });
}

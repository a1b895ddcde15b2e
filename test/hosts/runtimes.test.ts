/**
 * Tests the local server in other runtimes than Node. Repeats those checks of test/serve/server.test.ts whose result
 * may depend on the runtime.
 */
import { createHash } from 'node:crypto';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, folderOnDisk, testBuild, writeFiles } from '../support/build.ts';
import { checkCase, LIST_CASES, SAMPLE_INPUT } from '../support/cases.ts';
import { describeOutputs } from '../support/outputCases.ts';
import { checkRanges } from '../support/ranges.ts';
import { ndjson, record } from '../support/records.ts';
import { checkSiteFiles } from '../support/siteFiles.ts';
import { wrongVectors } from '../support/vectors.ts';
import { RUNTIMES, type Runtime, type RuntimeHost, startRuntime } from './runtimeHost.ts';

const work = folderOnDisk();
const dist = (name: string) => join(work, name);

beforeAll(async () => {
  for (const layout of LAYOUTS) await testBuild(dist(layout), { inputs: [SAMPLE_INPUT], layout, lists: true, parquet: true });
  await testBuild(dist('vectors'), { inputs: CONFORMANCE_INPUTS, dialect: 'hiro' });
  writeFiles(work, { 'large.ndjson': ndjson(Array.from({ length: 2000 }, (_, i) => record(5, i))) });
  await testBuild(dist('large'), { inputs: [dist('large.ndjson')], pageSizes: [20, 2000] });
  writeFileSync(dist('secret.json'), '{"secret":1}');
  symlinkSync(dist('secret.json'), join(dist('files'), 'link.json'));
});

/** Starts a server before the tests of a `describe`, and stops it afterwards. */
function using(runtime: Runtime, name: string): () => RuntimeHost {
  let host: RuntimeHost | undefined;
  beforeAll(async () => {
    host = await startRuntime(runtime, dist(name));
  });
  afterAll(() => host?.close());
  return () => {
    if (host === undefined) throw new Error('the server did not start');
    return host;
  };
}

describe.each(RUNTIMES)('%s', (runtime) => {
  describe.each(LAYOUTS)('layout %s', (layout) => {
    const host = using(runtime, layout);
    it.each(LIST_CASES)('$name', (one) => checkCase(host(), one));
    it('logs nothing about the requests', () => expect(host().errors()).toBe(''));
  });

  describeOutputs((folder) => startRuntime(runtime, folder), folderOnDisk);

  it('answers the 720 recorded requests as recorded, or as a rule decides', async () => {
    const host = await startRuntime(runtime, dist('vectors'));
    try {
      // Deno compresses answers itself, so no test of encodings is possible.
      expect(await wrongVectors(host, runtime === 'deno' ? ['Accept-Encoding'] : [])).toEqual([]);
      expect(host.errors()).toBe('');
    } finally {
      await host.close();
    }
  });

  describe('files', () => {
    const host = using(runtime, 'files');

    it('are served for people too: pages, scripts and bulk data', async () => {
      await checkSiteFiles(host(), dist('files'));
      await checkRanges(host().port, dist('files'));
    });

    it('are served at their own paths, with CORS and an ETag', async () => {
      for (const [target, path] of [
        ['/', 'index.html'],
        ['/runes/v1/manifest.json', 'runes/v1/manifest.json'],
        ['/runes/v1/blocks/2000007/60/60.json', 'runes/v1/blocks/2000007/60/60.json'],
      ] as const) {
        const answer = await host().send('GET', target);
        expect([answer.status, answer.body]).toEqual([200, readFileSync(join(dist('files'), path), 'utf8')]);
        expect(answer.headers).toMatchObject({
          'content-type': path.endsWith('.html') ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8',
          'access-control-allow-origin': '*',
          'cache-control': 'public, no-cache, must-revalidate',
          etag: expect.stringMatching(/^"[0-9a-f]+"$/),
        });
        const again = await host().send('GET', target, { 'if-none-match': String(answer.headers.etag) });
        expect([again.status, again.body]).toEqual([304, '']);
        expect(await host().send('HEAD', target)).toMatchObject({ status: 200, body: '' });
      }
    });

    it.each([
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
      '/runes/v1/blocks/..%2f..%2f..%2fsecret/activity',
      '/.rune-activity-mirror',
      '/runes/v1/.rune-activity-mirror',
    ])('are refused for other paths: %s', async (target) => {
      const { status, body } = await host().send('GET', target);
      expect([400, 404]).toContain(status);
      expect(JSON.parse(body)).toMatchObject({ statusCode: status });
    });

    it('are recognised by the ETag of a compressed answer', async () => {
      const target = '/runes/v1/blocks/2000007/activity?limit=5&offset=3';
      const { status, headers } = await host().send('GET', target, { 'accept-encoding': 'gzip' });
      expect([status, headers['content-encoding']]).toEqual([200, 'gzip']);
      const again = await host().send('GET', target, { 'accept-encoding': 'gzip', 'if-none-match': String(headers.etag) });
      expect([again.status, again.body]).toEqual([304, '']);
    });

    it('that are large are streamed completely, with an ETag of their content', async () => {
      const own = await startRuntime(runtime, dist('large'));
      try {
        const page = readFileSync(join(dist('large'), 'runes/v1/blocks/5/2000/0.json'));
        const etag = `"${createHash('sha256').update(page).digest('hex').slice(0, 32)}"`;
        const answer = await own.send('GET', '/runes/v1/blocks/5/activity?limit=2000');
        expect(answer.body === page.toString('utf8')).toBe(true);
        expect(answer.headers).toMatchObject({ etag, 'content-length': String(page.length) });
        expect((await own.send('GET', '/runes/v1/blocks/5/activity?limit=2000', { 'if-none-match': etag })).status).toBe(304);
      } finally {
        await own.close();
      }
    });

    it('are still answered after malformed HTTP, and after clients that disconnect', async () => {
      for (const text of [
        'hello\r\n\r\n',
        'GET /runes/v1/ HTTP/1.1\r\nhost: x\r\n\r\n',
        `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
      ]) {
        await new Promise<void>((resolve) => {
          const socket = connect(host().port, '127.0.0.1', () => socket.write(text, () => socket.destroy()));
          socket.on('error', () => {}).on('close', () => resolve());
        });
      }
      expect((await host().send('GET', '/runes/v1/')).status).toBe(200);
    });
  });

  it('picks up a new build in the same folder', async () => {
    const block = (records: number) => {
      writeFileSync(dist(`${runtime}.ndjson`), ndjson(Array.from({ length: records }, (_, i) => record(5, i))));
      return testBuild(dist(runtime), { inputs: [dist(`${runtime}.ndjson`)] });
    };
    await block(1);
    const host = await startRuntime(runtime, dist(runtime));
    const total = async () => (JSON.parse((await host.send('GET', '/runes/v1/blocks/5/activity')).body) as { total: number }).total;
    try {
      expect(await total()).toBe(1);
      await block(3);
      expect(await total()).toBe(3);
    } finally {
      await host.close();
    }
  });

  it('ends at SIGTERM with code 0, though a connection is open', async () => {
    const host = await startRuntime(runtime, dist('files'));
    const idle = connect(host.port, '127.0.0.1');
    await new Promise<void>((resolve) => {
      idle.once('data', () => resolve());
      idle.on('error', () => {}).write('GET /runes/v1/ HTTP/1.1\r\nhost: x\r\n\r\n');
    });
    expect(await host.stop()).toBe(0);
    expect(host.errors()).toBe('');
    idle.destroy();
  });

  it('ends with a message and its exit code if there is no build', async () => {
    await expect(startRuntime(runtime, dist('nothing'))).rejects.toThrow('build not found');
  });
});

/** Runs the Cloudflare worker in Cloudflare's own runtime, with each kind of origin. */
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { readArchive } from '../support/archives.ts';
import { filesBelow, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { startPlainFiles } from '../support/plainFiles.ts';
import { checkRanges } from '../support/ranges.ts';
import { sampleOutput } from '../support/recorded.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { type Answer, startServer } from '../support/server.ts';
import { type Logged, startCloudflare, startCloudflareAssets } from './cloudflareHost.ts';
import { checkEngine, checkFiles } from './engine.ts';

const work = temporaryFolder();
const builds = { files: '', archive: '' };

beforeAll(async () => {
  builds.files = await sampleOutput('files');
  builds.archive = await sampleOutput('archive');
});

/** Runs `test` with a host, and closes the host. The worker must not have reported an error. */
async function quietly<H extends Logged & { close(): Promise<void> }>(host: H, test: (host: H) => Promise<void>): Promise<void> {
  try {
    await test(host);
    expect(host.log()).toBe('');
  } finally {
    await host.close();
  }
}

const ACTIVITY = '/runes/v1/blocks/2000007/activity';
const RETRY = { status: 503, headers: { 'retry-after': '5', 'cache-control': 'no-store', 'access-control-allow-origin': '*' } };

/** Returns the path of the archive's file that has block 2000007. */
function segmentOf(dist: string): string {
  const segment = readArchive(dist).root.segments.find(({ first, last }) => first <= 2000007 && last >= 2000007);
  return `archive/${segment?.file}.bin`;
}

describe('files deployed with the worker', () => {
  it.each(['files', 'archive'] as const)('in layout %s are answered like those of the local server', async (layout) => {
    await quietly(await startCloudflareAssets(builds[layout]), async (host) => {
      await checkEngine(host, builds[layout]);
      await checkFiles(host, builds[layout]);
    });
  });

  it('are a 503 with Retry-After if one of them was not deployed', async () => {
    const dist = join(work, 'hole');
    cpSync(builds.archive, dist, { recursive: true });
    rmSync(join(dist, segmentOf(dist)));
    await quietly(await startCloudflareAssets(dist), async (host) => {
      expect(await host.send('GET', ACTIVITY)).toMatchObject(RETRY);
      expect((await host.send('GET', '/runes/v1/blocks/840000/activity')).status).toBe(200);
    });
  });
});

describe('files in R2', () => {
  it('are answered like those of the local server, with a 503 while files are missing', async () => {
    const host = await startCloudflare({ PREFIX: 'a/mirror' });
    try {
      for (const target of ['/runes/v1/blocks/1/activity', '/']) expect(await host.send('GET', target)).toMatchObject(RETRY);
      // The lines of the log arrive after the answers.
      await vi.waitFor(() => expect(host.log().split('runes/v1/manifest.json is missing')).toHaveLength(3), 60_000);
      const said = host.log();
      await host.put(builds.archive, 'a/mirror/');
      await checkEngine(host, builds.archive);
      await checkFiles(host, builds.archive);
      await host.remove([`a/mirror/${segmentOf(builds.archive)}`]);
      const target = `${ACTIVITY}?limit=59&offset=1`;
      expect(await host.send('GET', target)).toMatchObject(RETRY);
      expect(await host.send('HEAD', target)).toMatchObject({ ...RETRY, body: '' });
      expect((await host.send('GET', '/runes/v1/blocks/840000/activity')).status).toBe(200);
      await host.put(builds.archive, 'a/mirror/');
      expect((await host.send('GET', target)).status).toBe(200);
      expect(host.log()).toBe(said);
    } finally {
      await host.close();
    }
  });

  it('of a new upload are answered for FRESH_SECONDS from the old ones, and at once when those are gone', async () => {
    const total = ({ body }: Answer) => (JSON.parse(body) as { total: number }).total;
    const block = (height: number, records: number) =>
      ndjson(Array.from({ length: records }, (_, i) => record(height, i, { location: { block_hash: `0x${hex(`block ${height}`)}` } })));
    const [before, after] = [join(work, 'old'), join(work, 'new')];
    for (const [folder, records] of [
      [before, 3],
      [after, 5],
    ] as const) {
      // Both blocks are in one file. Block 6 makes this file so large that the host caches only parts of it.
      writeFiles(`${folder}.in`, { '7.ndjson': block(7, records), '6.ndjson': block(6, 400) });
      await testBuild(folder, { inputs: [`${folder}.in`], layout: 'archive' });
    }
    await quietly(await startCloudflare({ FRESH_SECONDS: '600' }), async (host) => {
      const ask = async () => total(await host.send('GET', '/runes/v1/blocks/7/activity'));
      await host.put(before);
      expect(await ask()).toBe(3);
      await host.put(after);
      expect(await ask()).toBe(3);
      await host.remove(filesBelow(before).filter((path) => !existsSync(join(after, path))));
      expect(await ask()).toBe(5);
    });
  });
});

it('files of an HTTP origin without ETags are answered like those of the local server, and a failing origin is a 503', async () => {
  mkdirSync(join(work, 'origin'));
  symlinkSync(builds.archive, join(work, 'origin/mirror'));
  const files = await startPlainFiles(join(work, 'origin'));
  const host = await startCloudflare({ ORIGIN: `${files.base}/mirror`, FRESH_SECONDS: '0' });
  const refuse = (status: number) => ({ kind: 'status', status }) as const;
  try {
    await checkEngine(host, builds.archive);
    for (const target of ['/', '/runes/v1/manifest.json']) {
      const { headers } = await host.send('GET', target);
      expect((await host.send('GET', target, { 'if-none-match': String(headers.etag) })).status).toBe(304);
    }
    expect(host.log()).toBe('');
    files.fault = () => refuse(500);
    for (const target of [ACTIVITY, '/runes/v1/manifest.json', '/']) expect(await host.send('GET', target)).toMatchObject(RETRY);
    files.fault = (path) => (path.endsWith('manifest.json') ? undefined : refuse(403));
    expect(await host.send('GET', `${ACTIVITY}?limit=59`)).toMatchObject(RETRY);
    files.fault = () => undefined;
    expect((await host.send('GET', `${ACTIVITY}?limit=59`)).status).toBe(200);
  } finally {
    await host.close();
    await files.close();
  }
});

it('parts of files come from an HTTP origin too', async () => {
  const origin = await startServer(builds.files);
  await quietly(await startCloudflare({ ORIGIN: `http://127.0.0.1:${origin.port}/` }), (host) => checkRanges(host.port, builds.files));
  await origin.close();
});

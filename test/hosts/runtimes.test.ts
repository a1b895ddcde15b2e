/**
 * Tests the local server in other runtimes than Node. Repeats those checks of test/serve/server.test.ts whose result may depend on the
 * runtime.
 */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { folderOnDisk, testBuild, writeFiles } from '../support/build.ts';
import { checkRanges } from '../support/ranges.ts';
import { sampleOutput } from '../support/recorded.ts';
import { ndjson, record } from '../support/records.ts';
import { checkSiteFiles } from '../support/siteFiles.ts';
import { checkEngine } from './engine.ts';
import { RUNTIMES, type Runtime, type RuntimeHost, startRuntime } from './runtimeHost.ts';

const work = folderOnDisk();
const dist = (name: string) => join(work, name);

beforeAll(async () => {
  for (const layout of LAYOUTS) cpSync(await sampleOutput(layout), dist(layout), { recursive: true });
  writeFiles(work, { 'large.ndjson': ndjson(Array.from({ length: 2000 }, (_, i) => record(5, i))) });
  await testBuild(dist('large'), { inputs: [dist('large.ndjson')], pageSizes: [20, 2000] });
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
  it('answers like Node in layout archive', async () => {
    const host = await startRuntime(runtime, dist('archive'));
    try {
      await checkEngine(host, dist('archive'));
      expect(host.errors()).toBe('');
    } finally {
      await host.close();
    }
  });

  describe('files', () => {
    const host = using(runtime, 'files');

    it('are answered like by Node', async () => {
      await checkEngine(host(), dist('files'));
      await checkSiteFiles(host(), await sampleOutput('files'));
      await checkRanges(host().port, dist('files'));
      expect(host().errors()).toBe('');
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

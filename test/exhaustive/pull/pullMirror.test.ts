/**
 * Tests pulls from other mirrors of this program. They fetch only differences, work with a host that only serves files,
 * and check digests.
 */

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ActivityRecord } from '../../../src/contract/recordJson.ts';
import { activityInput } from '../../../src/contract/schemas.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { checksumText, sha256Of } from '../../../src/input/checksums.ts';
import { digestOfBlocks } from '../../../src/output/digests.ts';
import { DIALECTS, LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { identityOf } from '../../../src/pull/blockIdentity.ts';
import { listPulledFiles } from '../../../src/pull/pulledFiles.ts';
import { CONFORMANCE_INPUTS, filesBelow, RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { block, failedPull, leanBuild, testPull } from '../../support/pull.ts';
import { ndjson } from '../../support/records.ts';
import { startServer } from '../../support/server.ts';

let work: string;
let host: PlainFiles;
let base: string;
beforeEach(async () => {
  work = temporaryFolder();
  host = await startPlainFiles(join(work, 'dist'));
  base = host.base;
});
afterEach(() => host.close());

/**
 * Returns the blocks of a chain as an input file of the mirror. `forks` maps heights to names: blocks at the same
 * height differ if their names differ. One block in seven has several pages.
 */
const chain = (forks: Readonly<Record<number, string>>): string => {
  const heights = Object.keys(forks).map(Number);
  return ndjson(heights.flatMap((height) => block(height, height % 7 === 5 ? 151 : 1 + (height % 7), forks[height])));
};
const plain = (first: number, last: number, fork = ''): Record<number, string> =>
  Object.fromEntries(Array.from({ length: last - first + 1 }, (_, i) => [first + i, fork]));

/** Builds the mirror from these blocks. */
async function mirror(forks: Readonly<Record<number, string>>, options: Partial<Parameters<typeof testBuild>[1]> = {}): Promise<string> {
  writeFiles(work, { 'source/chain.ndjson': chain(forks) });
  return (await testBuild(join(work, 'dist'), { inputs: [join(work, 'source')], operationPages: false, ...options })).manifest.digest;
}
/** Computes the digest of the pulled files, by a build from them. */
function pulledDigest(): string {
  const folder = join(work, 'input/pulled');
  const blocks = listPulledFiles(folder).flatMap(({ path }) => {
    const text = gunzipSync(readFileSync(join(folder, path)))
      .toString()
      .trimEnd();
    const records = (text === '[]' ? [] : text.split('\n')).map((line) => activityInput.parse(JSON.parse(line)) as ActivityRecord);
    const heights = [...new Set(records.map(({ location }) => location.block_height))];
    return heights.map((height) => ({ height, ...identityOf(records.filter(({ location }) => location.block_height === height)) }));
  });
  return digestOfBlocks(blocks);
}

describe('a pull from a mirror', () => {
  it.each(LAYOUTS.flatMap((layout) => DIALECTS.map((dialect) => [layout, dialect] as const)))(
    'in layout %s, dialect %s: the same digest',
    async (layout, dialect) => {
      const digest = await mirror(plain(100, 113), { layout, dialect, lists: true });
      const log = new RecordingLog();
      await testPull(base, join(work, 'input'), { log });
      expect(log.notices).toEqual([]);
      expect(pulledDigest()).toBe(digest);
      // The pull has requested only files.
      expect(host.asked.filter((path) => path.endsWith('/activity'))).toEqual([]);
    },
  );

  it('of the recorded chain gives the same digest', async () => {
    // Omits the block with 5,000 records, which would take most of the time.
    const options = { inputs: CONFORMANCE_INPUTS, blocks: { from: 840_002, to: 840_039 }, pageSizes: [1000], operationPages: false };
    const { manifest } = await testBuild(join(work, 'dist'), options);
    await testPull(base, join(work, 'input'));
    expect(pulledDigest()).toBe(manifest.digest);
    expect((await leanBuild([join(work, 'input')])).digest).toBe(manifest.digest);
  });

  it("works the same over the mirror's own server", async () => {
    const digest = await mirror(plain(100, 110));
    const other = await startServer(join(work, 'dist'));
    await testPull(`http://127.0.0.1:${other.port}/runes/v1`, join(work, 'input'));
    await other.close();
    expect(pulledDigest()).toBe(digest);
  });

  it('fetches only differences', async () => {
    await mirror(plain(100, 120));
    await testPull(base, join(work, 'input'));
    const before = tree(join(work, 'input'));
    const digest = await mirror({ ...plain(100, 122), 118: 'fork', 119: 'fork' });
    host.asked.length = 0;
    expect(await testPull(base, join(work, 'input'))).toMatchObject({ blocks: 4, replaced: 2 });
    expect(new Set(host.asked.map((target) => /blocks\/([0-9]+)/.exec(target)?.[1]))).toEqual(
      new Set(['118', '119', '121', '122', undefined]),
    );
    expect(pulledDigest()).toBe(digest);
    const kept = Object.keys(tree(join(work, 'input'))).filter((path) => before[path] !== undefined);
    expect(kept).toHaveLength(20);
    host.asked.length = 0;
    expect(await testPull(base, join(work, 'input'))).toMatchObject({ blocks: 0 });
    // The pull has fetched no blocks: it requested the manifest twice, and the digests once.
    expect(host.asked).toHaveLength(3);
  });

  it('stops if a block with many blocks after it differs, at any height', async () => {
    await mirror(plain(100, 120));
    await testPull(base, join(work, 'input'));
    const before = tree(join(work, 'input'));
    await mirror({ ...plain(100, 122), 103: 'fork' });
    const error = await failedPull(base, join(work, 'input'));
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/^block 103 differs between .*; the last 18 blocks would have to be replaced/),
    ]);
    expect(error.details[0]).toMatch(/--confirmations 18 or more/);
    expect(tree(join(work, 'input'))).toEqual(before);
    expect(await testPull(base, join(work, 'input'), { confirmations: 18 })).toMatchObject({ replaced: 1 });
  });

  it('compares files from a database by their hashes and numbers of records', async () => {
    const source = await mirror(plain(100, 130));
    await testPull(base, join(work, 'input'));
    // Writes the same blocks as a pull from a database would.
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(work, 'scratch') });
    const rows = join(work, 'input/pulled/0/100-119.parquet');
    const files = filesBelow(join(work, 'input/pulled')).filter((path) => /\/1[01][0-9]-/.test(path));
    const list = files.map((path) => `'${join(work, 'input/pulled', path)}'`).join(', ');
    await store.run(`COPY (SELECT (location->>'block_height')::BIGINT AS block_height, upper(location->>'block_hash') AS block_hash
      FROM read_json([${list}], columns = {location: 'JSON'})) TO '${rows}' (FORMAT parquet)`);
    store.close();
    writeFileSync(`${rows}.sha256`, checksumText(rows, await sha256Of(rows)));
    for (const path of files) rmSync(join(work, 'input/pulled', path));
    expect(await testPull(base, join(work, 'input'))).toMatchObject({ blocks: 0 });
    await mirror({ ...plain(100, 130), 117: 'fork' });
    expect((await failedPull(base, join(work, 'input'))).message).toMatch(/^block 117 differs between/);
    // The pull fetches all blocks of the Parquet file, and then removes the file.
    expect(await testPull(base, join(work, 'input'), { confirmations: 20 })).toMatchObject({ blocks: 20, replaced: 1 });
    expect(pulledDigest()).not.toBe(source);
    expect(filesBelow(join(work, 'input/pulled'))).toHaveLength(32);
  });

  it('compares files of many blocks by their names, and fetches only the blocks that differ', async () => {
    const chain = { ...plain(98, 99), ...plain(110, 119), ...plain(121, 125), ...plain(201, 210) };
    await mirror(chain);
    const to = join(work, 'input');
    await testPull(base, to);
    const joined = () =>
      filesBelow(join(to, 'pulled')).flatMap((path) => /([0-9]+-[0-9]+)-[0-9a-f]{16}\.ndjson\.gz$/.exec(path)?.[1] ?? []);
    expect(joined()).toEqual(['110-119', '121-125', '98-99']);
    host.asked.length = 0;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0 });
    expect(host.asked).toHaveLength(3);
    // The mirror adds block 120. Below, it also replaces block 112.
    await mirror({ ...chain, 120: '' });
    expect(await testPull(base, to)).toMatchObject({ blocks: 1, replaced: 0 });
    const digest = await mirror({ ...chain, 120: '', 112: 'fork' });
    expect((await failedPull(base, to)).message).toMatch(/^block 112 differs between .*; the last 99 blocks would have to be replaced/);
    host.asked.length = 0;
    expect(await testPull(base, to, { confirmations: 99 })).toMatchObject({ blocks: 1, replaced: 1 });
    expect(new Set(host.asked.map((target) => /blocks\/([0-9]+)/.exec(target)?.[1]))).toEqual(new Set(['112', undefined]));
    expect(pulledDigest()).toBe(digest);
    expect(await testPull(base, to)).toMatchObject({ blocks: 0 });
    expect(joined()).toEqual(['110-120', '121-125', '98-99']);
    expect(pulledDigest()).toBe(digest);
  });

  it('requests a manifest again that was cut off', async () => {
    const digest = await mirror(plain(100, 104), { layout: 'archive' });
    const path = join(work, 'dist/runes/v1/manifest.json');
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(0, 30));
    let asked = 0;
    host.intercept = (target) => {
      asked += target.endsWith('manifest.json') ? 1 : 0;
      // The file was read before this call, so the next request gets the new one.
      if (asked === 1) writeFileSync(path, whole);
      return false;
    };
    await testPull(base, join(work, 'input'));
    expect(pulledDigest()).toBe(digest);
  });

  it('keeps blocks that the mirror removed below its first block, and treats its gaps as empty', async () => {
    await mirror({ ...plain(100, 110), ...plain(5_000_000, 5_000_003) });
    await testPull(base, join(work, 'input'));
    // The settled blocks share one file, and a second file has its checksum.
    expect(filesBelow(join(work, 'input'))).toHaveLength(7);
    const digest = pulledDigest();
    await mirror({ ...plain(105, 110), ...plain(5_000_000, 5_000_003) });
    expect(await testPull(base, join(work, 'input'))).toMatchObject({ blocks: 0, replaced: 0 });
    expect(pulledDigest()).toBe(digest);
  });

  it('removes a last block that the mirror no longer has', async () => {
    await mirror({ ...plain(100, 110) });
    await testPull(base, join(work, 'input'));
    const { 109: _, ...rest } = plain(100, 111, '');
    const digest = await mirror(rest);
    await testPull(base, join(work, 'input'));
    expect(pulledDigest()).toBe(digest);
  });

  it('continues from the files of a pull from a server of the API', async () => {
    const digest = await mirror(plain(100, 110));
    const other = await startServer(join(work, 'dist'));
    const to = join(work, 'input');
    // Forwards all requests except those for the manifest. So the pull treats the mirror like any other server.
    const proxy = createServer(async (request, response) => {
      if (request.url?.endsWith('manifest.json') === true) return response.writeHead(404).end();
      const answer = await fetch(`http://127.0.0.1:${other.port}${request.url}`);
      return response.writeHead(answer.status).end(await answer.text());
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    await testPull(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, to, { wanted: { from: 100, to: undefined } });
    proxy.close();
    proxy.closeAllConnections();
    await other.close();
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, replaced: 0 });
    expect(pulledDigest()).toBe(digest);
  });

  it('never accepts a page that does not match its digest', async () => {
    await mirror(plain(100, 104));
    const path = join(work, 'dist/runes/v1/blocks/103/60/60.json');
    const good = readFileSync(path, 'utf8');
    writeFileSync(path, good.replace('"amount":"61"', '"amount":"62"'));
    expect(readFileSync(path, 'utf8')).not.toBe(good);
    const error = await failedPull(base, join(work, 'input'), { retries: 2 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^block 103 has the digest [0-9a-f]{64}, but the mirror lists [0-9a-f]{64}; tried 3 times$/),
    ]);
    rmSync(path);
    expect((await failedPull(base, join(work, 'input'), { retries: 2 })).message).toMatch(
      /^block 103 cannot be read from the mirror's files/,
    );
    writeFileSync(path, good);
    expect(await testPull(base, join(work, 'input'))).toMatchObject({ heights: [{ first: 100, last: 104 }] });
  });

  it("never accepts digests that do not give the manifest's digest, as during an upload", async () => {
    await mirror(plain(100, 104));
    const old = readFileSync(join(work, 'dist/runes/v1/manifest.json'));
    const digest = await mirror({ ...plain(100, 104), 104: 'fork' });
    const now = readFileSync(join(work, 'dist/runes/v1/manifest.json'));
    writeFileSync(join(work, 'dist/runes/v1/manifest.json'), old);
    let manifests = 0;
    host.intercept = (target) => {
      manifests += target.endsWith('manifest.json') ? 1 : 0;
      if (manifests === 3) writeFileSync(join(work, 'dist/runes/v1/manifest.json'), now);
      return false;
    };
    const log = new RecordingLog();
    await testPull(base, join(work, 'input'), { log });
    expect(log.notices.filter((notice) => notice.includes('do not match the digest in its manifest')).length).toBeGreaterThanOrEqual(2);
    expect(pulledDigest()).toBe(digest);
  });

  it('repeats the request for a page that its host refuses, and then names the page', async () => {
    const digest = await mirror(plain(100, 104));
    const refuse = (times: number): PlainFiles['intercept'] => {
      let refusals = 0;
      return (path, _, response) => {
        if (!path.includes('/103') || refusals++ >= times) return false;
        response.writeHead(403).end('no');
        return true;
      };
    };
    host.intercept = refuse(2);
    const log = new RecordingLog();
    await testPull(base, join(work, 'input'), { log });
    expect(log.notices[0]).toMatch(/^block 103 needs runes\/v1\/blocks\/103.* but the mirror answered with status 403; trying again$/);
    expect(pulledDigest()).toBe(digest);
    host.intercept = refuse(Infinity);
    const error = await failedPull(base, join(temporaryFolder(), 'input'), { retries: 1 });
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/^block 103 needs .* status 403; tried 2 times$/)]);
  });

  it.each(LAYOUTS)('explains files that are damaged, in layout %s', async (layout) => {
    await mirror(plain(100, 104), { layout });
    const pages = filesBelow(join(work, 'dist')).filter((path) => /^(?:runes\/v1\/blocks|archive)\//.test(path));
    for (const path of pages) writeFileSync(join(work, 'dist', path), '{"limit":');
    const error = await failedPull(base, join(work, 'input'), { retries: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(
        layout === 'files'
          ? /^block 100 cannot be read from the mirror's files.*; tried 2 times$/
          : /^block 100 needs archive\/[0-9a-f]{64}[.]bin, which is damaged on the mirror; tried 2 times$/,
      ),
    ]);
  });

  it('explains digests that are damaged', async () => {
    await mirror(plain(100, 104));
    writeFileSync(join(work, 'dist/runes/v1/digests/0.json'), '{"blocks":[{"height":"100"}]}');
    const error = await failedPull(base, join(work, 'input'), { retries: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^http:.*\/digests\/0\.json has an unexpected response body: blocks\.0\.height: .*; tried 2 times$/),
    ]);
    expect(error.message).not.toContain('\n');
  });
});

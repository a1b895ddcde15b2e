/** Tests the cache of archive readers. Roots and directories are parsed only once, and damaged reads are not cached. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { PartCache } from '../../src/format/partCache.ts';
import { crossings } from '../../src/limits.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { archivePath } from '../../src/pages/filePaths.ts';
import { siteOf } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { contentOf, diskFiles, fileServer, MANIFEST, readArchive } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { Chain, fill } from '../support/chain.ts';
import { limitsWith } from '../support/limits.ts';
import { randomFor } from '../support/seed.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const chain = new Chain(at('in'));
const limits = limitsWith({ segmentBlocks: 4 });
const build = (name: string, objectSize: number) =>
  testBuild(at(name), { inputs: [at('in')], layout: 'archive', pageSizes: [2, 7, 20], objectSize, limits });

/** Returns the paths of all lists: blocks by height, blocks by hash, and transactions. */
const pathsOf = (out: string) =>
  readArchive(out).blocks.flatMap(({ height, hash, pages }) => {
    const ids = new Set(pages.flatMap((page) => [...page.matchAll(/"tx_id":"([^"]*)"/g)].map(([, id]) => `transactions/${id}`)));
    return [`blocks/${height}`, `blocks/${hash}`, ...ids].map((list) => `/runes/v1/${list}/activity`);
  });

beforeAll(async () => {
  fill(chain, randomFor('reader cache'), { blocks: 24 });
  chain.write();
  await build('out', 2 * 1024 * 1024);
});

describe('a segment', () => {
  it('has at most as many blocks as the limit, which the root names, also after incremental builds', async () => {
    for (const step of [1, 2]) {
      chain.set(chain.tip + step, [3, 1]);
      chain.write();
      await build('out', 2 * 1024 * 1024);
    }
    await build('full', 2 * 1024 * 1024);
    expect(tree(at('out'))).toEqual(tree(at('full')));
    expect(crossings.has('segmentBlocks')).toBe(true);
    const { root } = readArchive(at('out'));
    expect(root.segmentBlocks).toBe(4);
    expect(root.segments.map(({ first, last }) => last - first + 1)).toContain(4);
    for (const { first, last } of root.segments) expect(last - first).toBeLessThan(4);
  });
});

describe('a cache with space for one part', () => {
  it('inflates the root once for all answers, and each directory and page once for one answer', async () => {
    const { root } = readArchive(at('out'));
    const site = siteOf(JSON.parse(readFileSync(join(at('out'), MANIFEST), 'utf8')));
    const files = diskFiles(at('out'));
    const cache = new PartCache(1);
    let inflated: string[] = [];
    const counted = {
      ...files,
      inflate: async (member: Uint8Array, most: number) => {
        inflated.push(Buffer.from(member).toString('latin1'));
        return files.inflate(member, most);
      },
    };
    const before = crossings.get('cachedBytes') ?? 0;
    const content = (path: string) => readFileSync(join(at('out'), path));
    const rootMember = contentOf(at('out'), site.archive?.root ?? '').toString('latin1');
    const directories = root.segments.map(({ file, bytes, directory }) =>
      content(archivePath(file)).toString('latin1', bytes - directory, bytes),
    );
    let roots = 0;
    for (const path of pathsOf(at('out'))) {
      inflated = [];
      await respond(`${path}?limit=20&offset=13`, site, counted, answerFromLists, cache);
      roots += inflated.filter((member) => member === rootMember).length;
      for (const directory of directories) expect(inflated.filter((member) => member === directory).length).toBeLessThanOrEqual(1);
      expect(new Set(inflated).size).toBe(inflated.length);
    }
    expect(roots).toBe(1);
    expect(crossings.get('cachedBytes')).toBeGreaterThan(before);
  });
});

describe('a damaged read', () => {
  it.each([
    ['whole files', 4096],
    ['ranges', 2 * 1024 * 1024],
  ])('is not cached, so that the next read is used, with %s', async (_, objectSize) => {
    await build(`damaged-${objectSize}`, objectSize);
    const out = at(`damaged-${objectSize}`);
    const { root } = readArchive(out);
    const transaction = pathsOf(out).find((path) => path.includes('/transactions/')) ?? '';
    let readDamaged = 0;
    const height = chain.heights[3] ?? 0;
    const segment = root.segments.find(({ first, last }) => first <= height && height <= last);
    const paths = [archivePath(segment?.file ?? ''), ...root.ids.flatMap(({ files }) => files.map(({ file }) => archivePath(file)))];
    for (const damaged of paths) {
      // Damages two reads. A mirror retries once after it has read the manifest again, so both belong to the same answer.
      let left = 2;
      const { fetchFile } = fileServer(out, (path, content) => {
        if (path !== damaged || left === 0) return content;
        left -= 1;
        return Buffer.from(content.map((byte) => byte ^ 1));
      });
      const mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
      const target = damaged === paths[0] ? `/runes/v1/blocks/${height}/activity` : transaction;
      const ask = async () => (await mirror.answer(new Request(`http://127.0.0.1${target}`)))?.status;
      const statuses = [await ask()];
      const isRead = left < 2;
      for (let i = 0; i < 3 && left > 0 && isRead; i += 1) statuses.push(await ask());
      statuses.push(await ask());
      expect(statuses.at(-1)).toBe(200);
      if (isRead) readDamaged += 1;
      if (isRead) expect(statuses[0]).toBe(503);
    }
    expect(readDamaged).toBeGreaterThan(1);
  });
});

describe('the cache for parts', () => {
  const names = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  const step = fc.record({
    name: names,
    bytes: fc.oneof(fc.nat(40), fc.nat(140)),
    isForgotten: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  });

  it('keeps the most recently used parts, within its limit of bytes', async () => {
    const MOST = 100;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const cache = new PartCache(MOST);
        // Expected content of the cache, with the least recently used part first.
        let kept: { readonly name: string; readonly bytes: number }[] = [];
        for (const { name, bytes, isForgotten } of steps) {
          const known = kept.find((one) => one.name === name);
          kept = kept.filter((one) => one.name !== name);
          if (isForgotten) {
            cache.forget(name);
            continue;
          }
          let isLoaded = false;
          const value = await cache.get(name, async () => {
            isLoaded = true;
            return { value: bytes, bytes };
          });
          expect([value, isLoaded]).toEqual([known?.bytes ?? bytes, known === undefined]);
          kept.push({ name, bytes: value });
          while (kept.length > 1 && kept.reduce((sum, one) => sum + one.bytes, 0) > MOST) kept.shift();
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps the last root at any size, and no value of infinite size', async () => {
    const cache = new PartCache(1);
    const load = (value: string) => async () => value;
    const unexpected = () => Promise.reject(new Error('it was loaded again'));
    await cache.root('a', load('first'));
    await cache.get('part', async () => ({ value: 'part', bytes: 100 }));
    await cache.get('endless', async () => ({ value: 'endless', bytes: Number.POSITIVE_INFINITY }));
    expect(await cache.get('part', unexpected)).toBe('part');
    expect(await cache.get('endless', async () => ({ value: 'again', bytes: Number.POSITIVE_INFINITY }))).toBe('again');
    expect(await cache.root('a', unexpected)).toBe('first');
    expect(await cache.root('b', load('second'))).toBe('second');
    expect(await cache.root('a', load('third'))).toBe('third');
  });

  it('counts a part once if several requests loaded it at the same time, and stores no failure', async () => {
    const cache = new PartCache(100);
    const load = async () => ({ value: 'x', bytes: 20 });
    await Promise.all(Array.from({ length: 10 }, () => cache.get('same', load)));
    await expect(cache.get('failed', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    for (const name of ['a', 'b', 'c', 'd']) await cache.get(name, load);
    for (const name of ['same', 'a', 'b', 'c', 'd']) {
      expect(await cache.get(name, () => Promise.reject(new Error(`${name} was not kept`)))).toBe('x');
    }
  });
});

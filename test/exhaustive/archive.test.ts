/** Tests layout `archive` with all recorded data: random windows, many reorganisations, and damage of any byte. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { archiveFiles, fileServer, readArchive } from '../support/archives.ts';
import { CONFORMANCE_INPUTS, type TestBuild, temporaryFolder, testBuild, tree } from '../support/build.ts';
import { Chain } from '../support/chain.ts';
import { activityPaths, check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';
import { type Host, startServer } from '../support/server.ts';

const work = temporaryFolder();
const at = (name: string) => join(work, name);
const PAGE_SIZES = [3, 7, 20];

/** Builds of the recorded data. */
const BUILDS = {
  files: { layout: 'files' },
  /** Blocks have several segments (files of pages), and tables have several files. */
  small: { layout: 'archive', objectSize: 4096 },
  /** The archive has few files, which are read in ranges. */
  large: { layout: 'archive', objectSize: 8 * 1024 * 1024 },
} as const satisfies Record<string, Partial<TestBuild>>;
const ARCHIVES = ['small', 'large'] as const;

beforeAll(async () => {
  for (const [name, build] of Object.entries(BUILDS))
    await testBuild(at(name), { inputs: CONFORMANCE_INPUTS, pageSizes: PAGE_SIZES, ...build });
});

describe('a request', () => {
  const hosts = new Map<string, Host>();
  let paths: string[] = [];

  beforeAll(async () => {
    for (const name of Object.keys(BUILDS)) hosts.set(name, await startServer(at(name)));
    paths = activityPaths(at('files'));
    // Adds unknown ids, some of which have the same beginning or the same end as known ids.
    paths.push(
      ...paths
        .slice(0, 200)
        .map((path) => path.replace(/[0-9a-f]\/activity$/, (last) => (last.startsWith('0') ? '1' : '0') + last.slice(1))),
    );
    paths.push(...paths.slice(0, 200).map((path) => path.replace(/0x[0-9a-f]{8}/, '0xffffffff')));
  });
  afterAll(async () => {
    for (const host of hosts.values()) await host.close();
  });

  it('gets the same answer in both layouts and from files of any size: any list, any window, any operation', async () => {
    const windows = fc.record({
      at: fc.nat(1_000_000),
      limit: fc.option(fc.integer({ min: 0, max: 21 }), { nil: undefined }),
      offset: fc.option(fc.oneof(fc.nat(40), fc.nat(700), fc.nat(5100), fc.constant(2 ** 53 - 1)), { nil: undefined }),
      operation: fc.option(fc.constantFrom(...OPERATIONS, 'other'), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(windows, async ({ at: index, limit, offset, operation }) => {
        const given = Object.entries({ limit, offset, operation_type: operation }).filter(([, value]) => value !== undefined);
        const query = given.map(([name, value]) => `${name}=${value}`).join('&');
        const target = `${paths[index % paths.length]}?${query}`;
        const plain = await hosts.get('files')?.send('GET', target);
        for (const name of ARCHIVES) {
          for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
            const answer = await hosts.get(name)?.send('GET', target, headers);
            expect([target, answer?.status, answer?.body]).toEqual([target, plain?.status, plain?.body]);
            if (!('accept-encoding' in headers)) expect([target, answer?.headers['etag']]).toEqual([target, plain?.headers['etag']]);
          }
        }
      }),
      { numRuns: 600 },
    );
  }, 600_000);

  it('is answered from the same bytes after a build changed its layout', async () => {
    for (const name of ['small', 'files', 'large', 'small'] as const) {
      await testBuild(at('switched'), { inputs: CONFORMANCE_INPUTS, pageSizes: PAGE_SIZES, ...BUILDS[name] });
      expect(tree(at('switched'))).toEqual(tree(at(name)));
    }
  });
});

describe('damage', () => {
  it.each(ARCHIVES)(
    'of any byte never causes a wrong answer, and verification finds the damage: %s',
    async (name) => {
      const random = randomFor(`damage of ${name}`);
      const { root } = readArchive(at(name));
      // Directories, tables and the root are much smaller than pages, but the test damages them as often.
      const contents = archiveFiles(at(name)).map((path) => ({ path, segment: root.segments.find(({ file }) => path.includes(file)) }));
      const targets = activityPaths(at('files')).filter((_, i) => i % 150 === 0);
      const expected = new Map<string, string>();
      const ask = async (mirror: FetchMirror, target: string) => {
        const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
        return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
      };
      const whole = new FetchMirror(fileServer(at(name)).fetchFile, Number.POSITIVE_INFINITY);
      for (const target of targets) expected.set(target, await ask(whole, target));
      let later = 0;
      for (let i = 0; i < 150; i += 1) {
        const { path, segment } = contents[Math.floor(random() * contents.length)] ?? { path: '', segment: undefined };
        const length = readFileSync(join(at(name), path)).length;
        const isDirectory = segment !== undefined && random() < 0.5;
        const place = isDirectory ? length - 1 - Math.floor(random() * segment.directory) : Math.floor(random() * length);
        const bits = 1 << Math.floor(random() * 8);
        const damage = (content: Buffer) => {
          const copy = Buffer.from(content);
          copy[place] = (copy[place] ?? 0) ^ bits;
          return copy;
        };
        const { fetchFile } = fileServer(at(name), (asked, content) => (asked === path ? damage(content) : content));
        const mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
        for (const target of targets) {
          const answer = await ask(mirror, target);
          if (answer === '503') later += 1;
          else if (answer !== expected.get(target)) expect(`${path} at ${place}: ${answer}`, target).toBe(expected.get(target));
        }
        if (i % 20 > 0) continue;
        const before = readFileSync(join(at(name), path));
        writeFileSync(join(at(name), path), damage(before));
        const error = await check(at(name)).catch((thrown: unknown) => thrown);
        writeFileSync(join(at(name), path), before);
        expect(error instanceof VerificationError ? error.details : error).toContainEqual(expect.stringContaining(path));
      }
      expect(later).toBeGreaterThan(0);
      await check(at(name));
    },
    1_200_000,
  );
});

describe('a reorganisation', () => {
  it('of one to twelve blocks, and a tip that goes back as far, give the files of a full build', async () => {
    const random = randomFor('reorganisations');
    const chain = new Chain(at('in'));
    // The heights are near a multiple of 64, so that the first block of the newest level changes again and again
    // (src/format/levels.ts).
    for (let height = 8185; height < 8262; height += random() < 0.1 ? 3 : 1)
      chain.set(
        height,
        Array.from({ length: 1 + Math.floor(random() * 6) }, () => 1 + Math.floor(random() * 6)),
      );
    const options = { inputs: [at('in')], layout: 'archive', objectSize: 4096, pageSizes: [4] } as const;
    chain.write();
    await testBuild(at('grown'), options);
    for (const depth of [1, 2, 3, 5, 8, 12]) {
      for (const kind of ['reorganised', 'gone back', 'grown'] as const) {
        if (kind === 'reorganised') chain.reorganise(depth, depth);
        else if (kind === 'gone back') for (const height of chain.heights.slice(-depth)) chain.blocks.delete(height);
        else for (let i = 0; i < depth; i += 1) chain.set(chain.tip + (random() < 0.2 ? 4 : 1), [1, 2], { fork: 100 + depth });
        chain.write();
        expect(await testBuild(at('grown'), options)).toMatchObject({ wasFull: false });
        const fresh = at(`fresh-${depth}-${kind}`);
        await testBuild(fresh, options);
        expect([depth, kind, tree(at('grown'))]).toEqual([depth, kind, tree(fresh)]);
      }
      await check(at('grown'));
    }
  }, 600_000);
});

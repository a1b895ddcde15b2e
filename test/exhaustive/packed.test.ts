/** Layout `packed` over all of the recorded data and random windows, and with thousands of transactions. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../src/pages/lists.ts';
import { prefixDigitsFor, prefixes } from '../../src/pages/packed.ts';
import { type Files, type OpenFile, respond } from '../../src/pages/respond.ts';
import { siteOf } from '../../src/pages/site.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { activityPaths, list } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';
import { type Host, startServer } from '../support/server.ts';

describe('a request', () => {
  const work = temporaryFolder();
  const hosts: Host[] = [];
  let paths: string[] = [];
  const pageSizes = [3, 7, 20];

  beforeAll(async () => {
    for (const layout of ['files', 'packed'] as const) {
      await testBuild(join(work, layout), { inputs: CONFORMANCE_INPUTS, layout, pageSizes });
      hosts.push(await startServer(join(work, layout)));
    }
    paths = activityPaths(join(work, 'files'));
    // Ids that are not in the data, among them neighbours of those that are.
    paths.push(
      ...paths
        .slice(0, 200)
        .map((path) => path.replace(/[0-9a-f]\/activity$/, (last) => (last.startsWith('0') ? '1' : '0') + last.slice(1))),
    );
  });
  afterAll(() => Promise.all(hosts.map((host) => host.close())));

  it('is answered alike in both layouts: any list, any window, any operation', async () => {
    const [files, packed] = hosts;
    const windows = fc.record({
      at: fc.nat(1_000_000),
      limit: fc.option(fc.integer({ min: 0, max: 21 }), { nil: undefined }),
      offset: fc.option(fc.oneof(fc.nat(40), fc.nat(700), fc.constant(2 ** 53 - 1)), { nil: undefined }),
      operation: fc.option(fc.constantFrom(...OPERATIONS, 'other'), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(windows, async ({ at, limit, offset, operation }) => {
        const given = Object.entries({ limit, offset, operation_type: operation }).filter(([, value]) => value !== undefined);
        const query = given.map(([name, value]) => `${name}=${value}`).join('&');
        const target = `${paths[at % paths.length]}?${query}`;
        const [a, b] = [await files?.send('GET', target), await packed?.send('GET', target)];
        expect([target, b?.status, b?.headers['etag'], b?.body]).toEqual([target, a?.status, a?.headers['etag'], a?.body]);
      }),
      { numRuns: 1200 },
    );
  }, 600_000);

  it('is answered from the same bytes after a build of one layout became one of the other', async () => {
    for (const layout of ['packed', 'files', 'packed'] as const) {
      await testBuild(join(work, 'switched'), { inputs: CONFORMANCE_INPUTS, layout, pageSizes });
      expect(tree(join(work, 'switched'))).toEqual(tree(join(work, layout)));
    }
  });

  it('reads one file of the index or pointer, and at most two pages', async () => {
    const site = siteOf(JSON.parse(readFileSync(join(work, 'packed/runes/v1/manifest.json'), 'utf8')));
    let reads: string[] = [];
    const source: Files<OpenFile> = {
      open: async (path) => {
        reads.push(path);
        const file = join(work, 'packed', path);
        return existsSync(file) ? { text: async () => readFileSync(file, 'utf8') } : undefined;
      },
    };
    const seen = new Set<number>();
    for (const path of paths) {
      for (const query of ['', '?limit=20', '?limit=20&offset=13', '?offset=5000', '?limit=7&offset=7&operation_type=send']) {
        reads = [];
        await respond(path + query, site, source);
        const isIndex = (file: string) => /v1\/(pointers|transactions)\//.test(file);
        expect([path, reads.filter(isIndex).length]).toEqual([path, 1]);
        expect(reads.length).toBeLessThanOrEqual(3);
        seen.add(reads.length);
      }
    }
    expect([...seen].sort()).toEqual([1, 2, 3]);
  });
});

describe('a tree', () => {
  it('changes the length of its prefixes with the number of transactions, and leaves nothing of the old behind', async () => {
    const most = 640 * 16;
    expect([1, most, most + 1, most * 16, most * 16 + 1].map(prefixDigitsFor)).toEqual([1, 1, 2, 2, 3]);
    const work = temporaryFolder();
    const [input, out] = [join(work, 'in'), join(work, 'out')];
    writeFiles(input, { '1.ndjson': ndjson(Array.from({ length: most }, (_, i) => record(1, i))) });
    const build = async (name: string) => {
      const { manifest, wasFull } = await testBuild(join(work, name), { inputs: [input], layout: 'packed' });
      const names = readdirSync(join(work, name, 'runes/v1/transactions')).sort();
      expect(names).toEqual([...prefixes(manifest.transaction_prefix ?? 0)].map((prefix) => `${prefix}.json`));
      return [manifest.transaction_prefix, wasFull];
    };
    expect(await build('out')).toEqual([1, true]);
    writeFiles(input, { '2.ndjson': ndjson([record(2, 1)]) });
    expect(await build('out')).toEqual([2, false]);
    await build('fresh-2');
    expect(tree(out)).toEqual(tree(join(work, 'fresh-2')));
    expect(list(out, 'removed')).toEqual([...prefixes(1)].map((prefix) => `runes/v1/transactions/${prefix}.json`));
    rmSync(join(input, '2.ndjson'));
    expect(await build('out')).toEqual([1, false]);
    await build('fresh-1');
    expect(tree(out)).toEqual(tree(join(work, 'fresh-1')));
  });
});

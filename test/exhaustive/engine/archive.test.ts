/** Tests layout `archive`: random windows of all recorded data, and what incremental builds write. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATIONS } from '../../../src/pages/blockAndTransactionLists.ts';
import { ARCHIVE_FOLDER } from '../../../src/pages/filePaths.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer } from '../../support/archives.ts';
import { CONFORMANCE_INPUTS, failedBuild, type TestBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { Chain, fill } from '../../support/chain.ts';
import { activityPaths, addedTo, check } from '../../support/outputs.ts';
import { ndjson, record } from '../../support/records.ts';
import { randomFor } from '../../support/seed.ts';
import { type Host, startServer } from '../../support/server.ts';

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
});

describe('an incremental build', () => {
  it('gives the files of a full build after any change of the chain, and writes only the necessary files', async () => {
    const chain = new Chain(at('growing'));
    fill(chain, randomFor('growing'), { blocks: 36, large: 60 });
    const options = { inputs: [at('growing')], layout: 'archive', objectSize: 4096, pageSizes: [4] } as const;
    const some = (n: number) => chain.heights[n] ?? 0;
    let serial = 0;
    const steps: Record<string, () => void> = {
      'the first build': () => undefined,
      'a new block': () => chain.set(chain.tip + 1, [1, 2]),
      'new blocks after gaps, a changed old block, one that no longer fits into a file, and one that does again': () => {
        chain.set(chain.tip + 4, [3]);
        chain.set(chain.tip + 40, [1]);
        chain.set(some(3), [5], { amount: 2 });
        chain.set(
          some(5),
          Array.from({ length: 70 }, () => 1),
        );
        chain.set(some(20), [1, 1]);
      },
      'blocks that are gone, one between others, and a reorganisation of one block': () => {
        for (const n of [2, 11, 12]) chain.blocks.delete(some(n));
        chain.set(some(30) - 1, [2], { fork: 5 });
        chain.reorganise(1, 1);
      },
      'a reorganisation of nine': () => chain.reorganise(9, 2),
      'a tip that goes back': () => {
        for (const height of chain.heights.slice(-6)) chain.blocks.delete(height);
      },
    };
    for (const [name, change] of Object.entries(steps)) {
      change();
      chain.write();
      const { wasFull } = await testBuild(at('changed'), options);
      serial += 1;
      const fresh = at(`fresh-${serial}`);
      await testBuild(fresh, options);
      expect([name, wasFull, tree(at('changed'))]).toEqual([name, serial === 1, tree(fresh)]);
      await check(at('changed'));
      rmSync(fresh, { recursive: true });
    }
  });

  it('writes a few small files for a new block', async () => {
    const chain = new Chain(at('long'));
    for (let height = 5000; height < 5070; height += 1) chain.set(height, [1, 2]);
    const options = { inputs: [at('long')], layout: 'archive', pageSizes: [20] } as const;
    let before: Record<string, string> = {};
    for (let height = 5070; height < 5073; height += 1) {
      chain.write();
      await testBuild(at('long-out'), options);
      const now = tree(at('long-out'));
      // Each build adds three files: a segment of pages, the table of the newest level, and the root.
      if (height > 5070) expect(addedTo(before, now).filter((path) => path.startsWith(ARCHIVE_FOLDER)).length).toBe(3);
      before = now;
      chain.set(height, [1]);
    }
  });

  it.each([
    ['few new transactions', 400],
    ['many new transactions', 1],
  ])('refuses a transaction of an unchanged block, and accepts an id that only has the same ending: %s', async (_, old) => {
    const folder = at(`twice-${old}`);
    const id = (start: string) => `0x${start.repeat(52)}${'abcdef012345'}`;
    const of = (height: number, tx: number, txId: string) => record(height, tx, { location: { tx_id: txId, output: txId } });
    const others = Array.from({ length: old }, (_, i) => record(3, i + 1)).reverse();
    writeFiles(folder, { '1.ndjson': ndjson([of(1, 1, id('1'))]), '2.ndjson': ndjson([of(2, 1, id('2'))]), '3.ndjson': ndjson(others) });
    const options = { inputs: [folder], layout: 'archive' } as const;
    await testBuild(at(`once-${old}`), options);
    const before = tree(at(`once-${old}`));
    for (const start of ['1', '2']) {
      writeFiles(folder, { '4.ndjson': ndjson([of(4, 1, id(start))]) });
      const error = await failedBuild(at(`once-${old}`), options);
      expect([error.exitCode, error.details]).toEqual([
        2,
        [expect.stringContaining(`tx_id ${id(start).slice(2)} is in two blocks: ${start} and 4`)],
      ]);
      expect(tree(at(`once-${old}`))).toEqual(before);
    }
    writeFiles(folder, { '4.ndjson': ndjson([of(4, 1, id('3'))]) });
    expect(await testBuild(at(`once-${old}`), options)).toMatchObject({ wasFull: false });
    const mirror = new FetchMirror(fileServer(at(`once-${old}`)).fetchFile, 0);
    for (const [start, height] of Object.entries({ 1: 1, 2: 2, 3: 4 })) {
      const answer = await mirror.answer(new Request(`http://host/runes/v1/transactions/${id(start)}/activity`));
      expect(await answer?.text()).toContain(`"block_height":${height},"tx_id":"${id(start)}"`);
    }
    // The transaction may move to block 4 if block 1 is in the input without the transaction.
    writeFiles(folder, { '1.ndjson': ndjson([record(1, 1)]), '4.ndjson': ndjson([of(4, 1, id('1'))]) });
    expect(await testBuild(at(`once-${old}`), options)).toMatchObject({ wasFull: false });
    await check(at(`once-${old}`));
  });
});

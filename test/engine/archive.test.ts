/**
 * Tests that layout `archive` answers every request like layout `files`, with few reads, and that its files have the format of
 * docs/files.md.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { PartCache } from '../../src/format/partCache.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import { OPERATIONS } from '../../src/pages/blockAndTransactionLists.ts';
import type { OpenFile } from '../../src/pages/fileAccess.ts';
import { ARCHIVE_FOLDER } from '../../src/pages/filePaths.ts';
import { type BuiltSite, siteOf } from '../../src/pages/mirrorOptions.ts';
import { type Answer, respond } from '../../src/pages/respond.ts';
import { inflateText } from '../../src/serve/archiveParts.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { archiveFiles, diskFiles, fileServer, MANIFEST, readArchive } from '../support/archives.ts';
import { failedBuild, type TestBuild, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { Chain, fill } from '../support/chain.ts';
import { limitsWith } from '../support/limits.ts';
import { activityPaths, check } from '../support/outputs.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { readsOf } from '../support/rounds.ts';
import { randomFor } from '../support/seed.ts';
import { startServer } from '../support/server.ts';

const MB = 1024 * 1024;
const work = temporaryFolder();
const at = (name: string) => join(work, name);
/** Height of the block that has a file larger than the readers' limit `smallFile`. */
let large = 0;
const site = (name: string): BuiltSite => siteOf(JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')));

interface Body {
  readonly limit: number;
  readonly offset: number;
  readonly total: number;
  readonly results: readonly { readonly operation: string; readonly location: { readonly tx_id: string } }[];
}

/** Builds of one chain with different options. */
const BUILDS = {
  files: { layout: 'files' },
  'files-hiro': { layout: 'files', dialect: 'hiro', pageSizes: [20, 60] },
  /** Some blocks have several segments (files of pages), and some tables have several files. */
  small: { layout: 'archive', objectSize: 4096 },
  hiro: { layout: 'archive', dialect: 'hiro', pageSizes: [20, 60], objectSize: 20_000 },
  ranges: { layout: 'archive', objectSize: 2 * MB },
} as const satisfies Record<string, Partial<TestBuild>>;
const PAGE_SIZES = [2, 7, 20];

beforeAll(async () => {
  const chain = new Chain(at('in'));
  fill(chain, randomFor('archive'), { blocks: 40 });
  large = chain.heights[20] ?? 0;
  chain.write();
  const limits = limitsWith({ lookUpMember: 1000 });
  for (const [name, build] of Object.entries(BUILDS))
    await testBuild(at(name), { inputs: [at('in')], pageSizes: PAGE_SIZES, limits, ...build });
});

const bodyOf = async (answer: Answer<OpenFile>) =>
  answer.kind === 'page' ? answer.page.text() : answer.kind === 'window' ? answer.body : JSON.stringify(answer);

/** Windows of all kinds: exact pages, across two or more pages, at the end and past the end. */
const WINDOWS = [
  '',
  '?limit=20',
  '?limit=7&offset=5',
  '?limit=20&offset=13',
  '?offset=1000000',
  '?limit=1&offset=89',
  '?limit=20&offset=320',
];

describe('a request', () => {
  it.each([
    ['small', 'files'],
    ['hiro', 'files-hiro'],
    ['ranges', 'files'],
  ] as const)('is answered by archive %s as layout files answers it', async (name, plain) => {
    const cache = new PartCache();
    const [archived, files] = [diskFiles(at(name)), diskFiles(at(plain))];
    const [a, b] = [site(name), site(plain)];
    const paths = activityPaths(at(plain));
    // Unknown ids that sort next to known ids, or that end like known ids.
    const unknown = paths.filter((_, i) => i % 20 === 0).map((path) => path.replace(/(0x)?[0-9a-f]{64}/, (id) => `f0f0${id.slice(-60)}`));
    let [settled, answered] = [0, 0];
    for (const [i, path] of [...paths, ...unknown].entries()) {
      const operations = /blocks/.test(path)
        ? ['?operation_type=send', '?operation_type=mint&limit=7&offset=3', '?operation_type=etching']
        : [];
      // Requests each list with some of the windows. All lists together use all windows.
      for (const query of [...WINDOWS, ...operations].filter((_, n) => paths.length < 200 || (n + i) % 3 === 0)) {
        const answer = await respond(path + query, a, archived, answerFromLists, cache);
        const body = await bodyOf(answer);
        if (body !== (await bodyOf(await respond(path + query, b, files, answerFromLists))))
          expect(body, path + query).toBe('that of layout files');
        const heights = [...body.matchAll(/"block_height":([0-9]+)/g)].map(([, height]) => Number(height));
        if (answer.kind !== 'window' || answer.isSettled !== (heights.length > 0 && (heights[0] ?? 0) <= a.tip - 6))
          expect(answer, path + query).toBe('settled when its block is');
        if (answer.kind === 'window' && answer.isSettled) settled += 1;
        answered += 1;
      }
    }
    expect(answered).toBeGreaterThan(1000);
    expect([settled > 0, settled < answered]).toEqual([true, true]);
  });

  it('that matches a page of the archive also returns the compressed page', async () => {
    const target = `/runes/v1/blocks/${large}/activity?limit=20&offset=20`;
    const answer = await respond(target, site('small'), diskFiles(at('small')), answerFromLists);
    const gzip = answer.kind === 'window' ? (answer.gzip ?? Buffer.from('')) : Buffer.from('');
    expect(await inflateText(gzip, MB)).toBe(await bodyOf(answer));
    // The archive stores compressed pages only. A part of a page has no compressed form, so the answer must not have one.
    expect(
      await respond(target.replace('limit=20', 'limit=19'), site('small'), diskFiles(at('small')), answerFromLists),
    ).not.toHaveProperty('gzip');
  });

  it('requests ranges only of files larger than 1 MB, and nothing twice', async () => {
    for (const name of ['small', 'ranges', 'hiro'] as const) {
      const { fetchFile, asked } = fileServer(at(name));
      const mirror = new FetchMirror(fetchFile, Number.POSITIVE_INFINITY);
      const targets = activityPaths(at(name === 'hiro' ? 'files-hiro' : 'files')).filter((_, i) => i % 9 === 0);
      for (const target of targets) expect((await mirror.answer(new Request(`http://127.0.0.1${target}`)))?.status).toBe(200);
      const parts = asked.filter(({ range }) => range !== undefined);
      const root = site(name).archive?.root;
      expect(asked.slice(0, 2)).toEqual([
        { path: MANIFEST, range: undefined },
        { path: `${ARCHIVE_FOLDER}/${root}.bin`, range: undefined },
      ]);
      if (name === 'ranges') expect(parts.length).toBeGreaterThan(targets.length / 2);
      else {
        expect(parts).toEqual([]);
        expect(asked.length).toBe(new Set(asked.map(({ path }) => path)).size);
      }
    }
  });

  it('takes at most three rounds of reads after the manifest and the root, with some kilobytes', async () => {
    const { root } = readArchive(at('ranges'));
    const lengths = root.ids.map(({ files }) => files.flatMap(({ members = [] }) => members.map(([, length]) => length)));
    expect(lengths.some(({ length }) => length > 1)).toBe(true);
    const members = lengths.reduce((sum, some) => sum + Math.max(...some), 0);
    for (const path of activityPaths(at('files'))) {
      const { rounds, bytes } = await readsOf(`${path}?limit=20&offset=13`, site('ranges'), at('ranges'));
      expect(rounds).toBeLessThanOrEqual(3);
      // An answer reads at most one member of ids of each level, one directory, and the pages.
      expect(bytes).toBeLessThanOrEqual(members + Math.max(...root.segments.map(({ directory }) => directory)) + 8192);
    }
  });
});

describe('an archive', () => {
  it.each(['small', 'ranges'] as const)('%s matches docs/files.md, as read by code that shares nothing with this program', (name) => {
    const { root, blocks, levels } = readArchive(at(name));
    const manifest = JSON.parse(readFileSync(join(at(name), MANIFEST), 'utf8')) as Record<string, number>;
    expect([root.pageSize, root.objectSize]).toEqual([20, BUILDS[name].objectSize]);
    // Each record must occur once, in order, in pages of 20.
    const bodies = blocks.flatMap(({ pages }) => pages.map((page) => JSON.parse(page) as Body));
    expect(bodies.reduce((sum, { results }) => sum + results.length, 0)).toBe(manifest['records']);
    const byHeight = new Map<number, (typeof blocks)[number][]>();
    for (const block of blocks) byHeight.set(block.height, [...(byHeight.get(block.height) ?? []), block]);
    expect(byHeight.size).toBe(manifest['blocks']);
    const ids = new Map<string, { height: number; first: number; count: number }>();
    for (const [height, parts] of byHeight) {
      const pages = parts.flatMap((part) => part.pages.map((page) => JSON.parse(page) as Body));
      const results = pages.flatMap((page) => page.results);
      const [{ hash, records } = { hash: '', records: 0 }] = parts;
      expect(pages.map(({ limit, offset, total }) => [limit, offset, total])).toEqual(pages.map((_, i) => [20, i * 20, records]));
      expect(results.length).toBe(records);
      for (const part of parts) {
        expect([part.hash, part.records, part.segment.part?.page ?? 0]).toEqual([hash, records, part.page]);
        for (const [operation, counts] of Object.entries(part.operations)) {
          const found = part.pages.map((page) => page.split(`"operation":"${operation}"`).length - 1);
          expect(counts).toEqual(found);
          if (part.segment.part !== undefined) expect(part.segment.part.operations[operation]).toBe(counts.reduce((a, b) => a + b));
        }
      }
      ids.set(`0x${hash}`, { height, first: 0, count: 0 });
      for (const [first, { location }] of results.entries()) {
        const known = ids.get(location.tx_id) ?? { height, first, count: 0 };
        ids.set(location.tx_id, { ...known, count: known.count + 1 });
      }
    }
    // Each transaction and each block must have an entry in the level that contains its height.
    const expected = [...ids].map(([id, place]) => `${id.slice(-12)} ${JSON.stringify(place)}`);
    const entries = levels.flatMap((level) => level.map(({ key, ...place }) => `${key} ${JSON.stringify(place)}`));
    expect(entries.sort()).toEqual(expected.sort());
    for (const [i, { first, last }] of root.ids.entries()) {
      const keys = levels[i]?.map(({ key }) => key) ?? [];
      expect(keys).toEqual([...keys].sort());
      expect(levels[i]?.every(({ height }) => height >= first && height <= last)).toBe(true);
    }
    expect(levels.length).toBe(3);
  });

  it('has files of at most the size that the build names, except for single large pages, and file names that follow from the content', async () => {
    for (const name of ['small', 'hiro', 'ranges'] as const) {
      const { root, blocks } = readArchive(at(name));
      for (const segment of root.segments) {
        const pages = blocks.filter((one) => one.segment === segment).reduce((sum, block) => sum + block.pages.length, 0);
        if (pages > 1) expect(segment.bytes - segment.directory).toBeLessThanOrEqual(root.objectSize);
      }
      const { manifest } = await check(at(name));
      expect(archiveFiles(at(name)).length).toBe(manifest.files);
      expect(manifest.bytes).toBe(archiveFiles(at(name)).reduce((sum, path) => sum + readFileSync(join(at(name), path)).length, 0));
    }
    const { root } = readArchive(at('small'));
    expect(root.segments.filter(({ part }) => part !== undefined).length).toBeGreaterThan(1);
    expect(root.ids.some(({ files }) => files.length > 1)).toBe(true);
  });

  it('has one file per page if all pages are larger than the file size', async () => {
    const out = at('tiny');
    const chain = new Chain(at('in-tiny'));
    chain.set(7, [400]);
    chain.set(8, [150]);
    chain.set(9, [1]);
    chain.write();
    await testBuild(out, { inputs: [at('in-tiny')], layout: 'archive', objectSize: 4096, pageSizes: [200] });
    const { root } = readArchive(out);
    expect(root.segments.map(({ first, last, part }) => [first, last, part?.page])).toEqual([
      [7, 7, 0],
      [7, 7, 1],
      [8, 8, undefined],
      [9, 9, undefined],
    ]);
    await check(out);
    const { fetchFile } = fileServer(out);
    const mirror = new FetchMirror(fetchFile, 0);
    const ask = async (query: string) => {
      const response = await mirror.answer(new Request(`http://a/runes/v1/blocks/7/activity?limit=200&${query}`));
      const { total, results } = JSON.parse((await response?.text()) ?? '') as Body;
      return [total, results] as const;
    };
    const all = [...(await ask(''))[1], ...(await ask('offset=200'))[1]];
    expect(await ask('offset=130')).toEqual([400, all.slice(130, 330)]);
    for (const name of OPERATIONS) {
      const some = all.filter(({ operation }) => operation === name);
      for (const offset of [0, 1, Math.floor(some.length / 2), some.length]) {
        expect(await ask(`operation_type=${name}&offset=${offset}`)).toEqual([some.length, some.slice(offset, offset + 200)]);
      }
    }
  });

  it('keeps all files of a block or replaces all of them', async () => {
    const [out, inputs] = [at('parts'), [at('in-parts')]];
    const chain = new Chain(at('in-parts'));
    const build = async (name: string) => {
      chain.write();
      await testBuild(at(name), { inputs, layout: 'archive', objectSize: 4096, pageSizes: [200] });
    };
    for (const height of [2, 3, 8]) chain.set(height, [1]);
    chain.set(7, [500]);
    await build('parts');
    for (const [step, sizes] of [[1], [500, 1], [3]].entries()) {
      // Heights must sort as numbers. As text, height 10 sorts before height 3.
      if (step === 0) for (const height of [3, 10]) chain.set(height, sizes, { fork: 1 });
      else chain.set(7, sizes, { fork: step });
      await build('parts');
      await build(`parts-${step}`);
      expect(tree(out)).toEqual(tree(at(`parts-${step}`)));
      expect(readArchive(out).root.segments.filter(({ part }) => part !== undefined).length).toBe(step === 2 ? 0 : 3);
    }
  });

  it('is refused before anything is written if a block does not fit its tables', async () => {
    for (const [height, isRefused] of [
      [2 ** 24 - 2, false],
      [2 ** 24 - 1, true],
    ] as const) {
      writeFiles(at(`high-${height}`), { 'a.ndjson': ndjson([record(height, 1)]) });
      const options = { inputs: [at(`high-${height}`)], layout: 'archive' } as const;
      if (isRefused) expect((await failedBuild(at(`out-${height}`), options)).message).toContain('is too high for layout archive');
      else {
        await testBuild(at(`out-${height}`), options);
        await check(at(`out-${height}`));
      }
    }
  });

  it('that changes its layout equals a new build byte for byte', async () => {
    const build = { inputs: [at('in')], pageSizes: PAGE_SIZES, limits: limitsWith({ lookUpMember: 1000 }) };
    for (const name of ['small', 'files', 'ranges', 'small'] as const) {
      const { wasFull } = await testBuild(at('switched'), { ...build, ...BUILDS[name] });
      expect(wasFull).toBe(true);
      expect(tree(at('switched'))).toEqual(tree(at(name)));
    }
  });
});

describe('without lists by operation', () => {
  it('the parameter `operation` is refused after all other faults, in both layouts', async () => {
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1), record(5, 2, { operation: 'send' })].reverse()) });
    for (const layout of ['files', 'archive'] as const) {
      await testBuild(at(`bare-${layout}`), { inputs: [at('a.ndjson')], layout, operationPages: false });
      const host = await startServer(at(`bare-${layout}`));
      const messageOf = async (query: string) => {
        const { status, body } = await host.send('GET', `/runes/v1/blocks/5/activity?${query}`);
        return [status, (JSON.parse(body) as { message: string }).message];
      };
      expect(await messageOf('operation_type=send')).toEqual([
        400,
        'querystring/operation_type is not available: this mirror was built without lists by operation',
      ]);
      expect(await messageOf('operation_type=send&limit=0')).toEqual([400, 'querystring/limit must be >= 1']);
      expect(await messageOf('operation_type=x')).toEqual([400, expect.stringContaining('must be equal to constant')]);
      expect((await host.send('GET', `/runes/v1/transactions/${hex('tx 5 1')}/activity?operation_type=send`)).status).toBe(200);
      await host.close();
    }
  });
});

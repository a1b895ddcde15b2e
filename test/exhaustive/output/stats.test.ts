/**
 * Tests the stats of a build, and the documents that contain stats. For every kind of build, the stats must equal counts of the records on
 * the served pages.
 */
import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseSiteUrl } from '../../../src/contract/plainUrl.ts';
import { feed, latestBlocks, stats, statsFile } from '../../../src/contract/statsSchemas.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { BLOCK_RUNES, RUNE_COUNTS } from '../../../src/engine/state/countBlocks.ts';
import { BLOCKS } from '../../../src/engine/state/state.ts';
import { readChart, statsDocuments } from '../../../src/output/stats/statsDocuments.ts';
import { DIALECTS } from '../../../src/pages/mirrorOptions.ts';
import { readArchive } from '../../support/archives.ts';
import {
  CONFORMANCE_INPUTS,
  failedBuild,
  filesBelow,
  type TestBuild,
  temporaryFolder,
  testBuild,
  tree,
  writeFiles,
} from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { ROOT } from '../../support/cli.ts';
import { check } from '../../support/outputs.ts';
import { type Activity, hex, ndjson, record } from '../../support/records.ts';

const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive'] as const;
const read = (out: string, path: string): unknown => JSON.parse(readFileSync(join(out, 'runes/v1', path), 'utf8'));
const statsOf = (out: string) => stats.parse(read(out, 'stats.json'));
const blocksOf = (out: string) => latestBlocks.parse(read(out, 'blocks.json'));
const feedOf = (out: string) => feed.parse(read(out, 'feed.json'));
const filesOf = (out: string) =>
  Object.fromEntries(filesBelow(join(out, 'runes/v1/stats')).map((name) => [name, statsFile.parse(read(out, `stats/${name}`))]));

/** Returns all records of an output in any layout, each record once. Reads the largest pages of the blocks. */
function recordsOf(out: string): Activity[] {
  if (!existsSync(join(out, 'runes/v1/blocks'))) {
    const pages = readArchive(out).blocks.flatMap((block) => block.pages);
    return pages.flatMap((page) => (JSON.parse(page) as { results: Activity[] }).results);
  }
  const blocks = new Map<string, { total: number; pages: Map<number, Activity[]> }>();
  for (const path of filesBelow(join(out, 'runes/v1/blocks'))) {
    // Skips lists by operation, and the lists of blocks by hash, which repeat those by height.
    const [, height] = /^([0-9]{1,15})(?:[.]json|[/][0-9]+[/][0-9]+[.]json)$/.exec(path) ?? [];
    if (height === undefined) continue;
    const page = read(out, `blocks/${path}`) as { total: number; limit: number; offset: number; results: Activity[] };
    const block = blocks.get(height) ?? { total: page.total, pages: new Map() };
    for (const [i, record] of page.results.entries()) block.pages.set(page.offset + i, [record]);
    blocks.set(height, block);
  }
  return [...blocks.values()].flatMap(({ total, pages }) => {
    expect(pages.size).toBe(total);
    return [...pages.entries()].sort(([a], [b]) => a - b).flatMap(([, records]) => records);
  });
}

const tally = (records: readonly Activity[]) =>
  Object.fromEntries(OPERATIONS.map((name) => [name, records.filter(({ operation }) => operation === name).length]));

const groupBy = <T, K>(records: readonly T[], key: (record: T) => K): [K, T[]][] => {
  const groups = new Map<K, T[]>();
  for (const record of records) {
    const group = groups.get(key(record));
    if (group === undefined) groups.set(key(record), [record]);
    else group.push(record);
  }
  return [...groups];
};

const idOf = (id: string) => id.split(':').map(Number) as [number, number];
const byId = (a: { id: string }, b: { id: string }) => idOf(a.id)[0] - idOf(b.id)[0] || idOf(a.id)[1] - idOf(b.id)[1];

const blockStats = (records: readonly Activity[]) =>
  groupBy(records, ({ location }) => location.block_height)
    .sort(([a], [b]) => a - b)
    .map(([height, of]) => ({
      height,
      hash: of[0]?.location.block_hash,
      timestamp: of[0]?.location.timestamp,
      transactions: new Set(of.map(({ location }) => location.tx_id)).size,
      records: of.length,
      ...tally(of),
    }));
const runeStats = (records: readonly Activity[]) =>
  groupBy(records, ({ rune }) => rune.id)
    .map(([, of]) => ({ ...(of[0] as Activity).rune, records: of.length, ...tally(of) }))
    .sort(byId);

const mostActive = (runes: ReturnType<typeof runeStats>) => [...runes].sort((a, b) => b.records - a.records || byId(a, b)).slice(0, 20);

describe.each(DIALECTS)('in dialect %s', (dialect) => {
  // Tests each layout with one dialect only, because stats do not depend on the layout.
  const layout = dialect === 'contract' ? 'files' : 'archive';
  it(`and layout ${layout} stats match the served records`, async () => {
    // The build of the 8,771 recorded records has large pages, because the test reads all pages.
    for (const options of [{ inputs: [SAMPLE_INPUT] }, { inputs: CONFORMANCE_INPUTS, pageSizes: [1000], operationPages: false }]) {
      const out = join(temporaryFolder(), 'out');
      await testBuild(out, { ...options, dialect, layout });
      const records = recordsOf(out);
      expect(records.length).toBeGreaterThan(100);
      const [blocks, runes] = [blockStats(records), runeStats(records)];
      const firstOf = (height: number) => height - (height % 100);
      const expected = Object.fromEntries(
        groupBy(records, ({ location }) => firstOf(location.block_height)).map(([first, of]) => [
          `${first}.json`,
          { blocks: blocks.filter(({ height }) => firstOf(height) === first), runes: runeStats(of) },
        ]),
      );
      expect(filesOf(out)).toEqual(expected);

      expect(statsOf(out)).toEqual({
        first: blocks[0]?.height,
        last: blocks.at(-1)?.height,
        blocks: blocks.length,
        transactions: new Set(records.map(({ location }) => location.tx_id)).size,
        records: records.length,
        operations: tally(records),
        bucket: 1,
        activity: blocks.map(({ hash: _hash, records: _records, transactions: _transactions, ...entry }) => ({ ...entry, blocks: 1 })),
        runes: mostActive(runes),
        recent: [144, 1008].map((heights) => {
          const [lowest = 0, last = 0] = [blocks[0]?.height, blocks.at(-1)?.height];
          const first = Math.max(lowest, last - heights + 1);
          const of = records.filter(({ location }) => location.block_height >= first);
          return { first, last, runes: mostActive(runeStats(of)) };
        }),
      });
      const newest = [...blocks].reverse();
      expect(blocksOf(out)).toEqual({
        tip: newest[0]?.height,
        blocks: newest.slice(0, 100).map(({ height, hash, timestamp, records: count, transactions }) => {
          const of = records.filter(({ location }) => location.block_height === height);
          return { height, hash, timestamp, records: count, transactions, operations: tally(of) };
        }),
      });
      expect(feedOf(out).items.map(({ id }) => id)).toEqual(newest.slice(0, 30).map(({ hash }) => hash?.slice(-64)));
    }
  });
});

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
});
afterAll(() => store.close());

/** Returns the documents of blocks and runes, each SQL of rows of the state's tables. */
async function documentsOf(blocks: string, runes: string): Promise<Map<string, Buffer>> {
  const tables = {
    blocks: await store.table('blocks', BLOCKS),
    blockRunes: await store.table('block_runes', BLOCK_RUNES),
    runeCounts: await store.table('rune_counts', RUNE_COUNTS),
  };
  await store.run(`INSERT INTO ${tables.blocks} BY NAME ${blocks}; INSERT INTO ${tables.runeCounts} BY NAME ${runes};
    INSERT INTO ${tables.blockRunes} BY NAME SELECT (SELECT max(block_height) FROM ${tables.blocks}) AS block_height, rune_id, number, name, spaced_name,
      ${OPERATIONS.map((name) => `least(${name}, 2e9)::INTEGER AS ${name}`).join(', ')} FROM ${tables.runeCounts}`);
  return new Map((await statsDocuments('contract', undefined, tables, store)).map(([path, content]) => [path, Buffer.from(content)]));
}

/** Builds these records in a new folder. */
async function built(records: readonly unknown[], options: Partial<TestBuild> = {}) {
  const work = temporaryFolder();
  writeFiles(work, { 'in/a.ndjson': ndjson(records) });
  const out = join(work, 'out');
  const build = (more: Partial<TestBuild> = {}) => testBuild(out, { ...options, inputs: [join(work, 'in')], ...more });
  await build();
  return { work, out, build };
}

const rune = (id: string, name = `RUNE${id}`) => ({ id, number: 1, name, spaced_name: name });

it('docs/files.md shows values of the sample', async () => {
  const out = join(temporaryFolder(), 'out');
  await testBuild(out, { inputs: [join(ROOT, 'sample')] });
  const page = readFileSync(join(ROOT, 'docs/files.md'), 'utf8');
  expect(page).toContain(readFileSync(join(out, 'runes/v1/stats/840000.json'), 'utf8'));
  const { activity, runes, recent: _recent, ...totals } = statsOf(out);
  const spelled = (value: object) => JSON.stringify(value).slice(1, -1);
  for (const part of [activity[0], runes[0], blocksOf(out).blocks[0], totals.operations]) expect(page).toContain(spelled(part ?? {}));
});

describe('the documents about all blocks', () => {
  it('have the last 100 blocks, the last 30 in the feed, and charts of all blocks', async () => {
    const heights = Array.from({ length: 130 }, (_, i) => 5 + 2 * i);
    const { out } = await built(heights.map((height) => record(height, 1)));
    const newest = [...heights].reverse();
    expect(blocksOf(out).tip).toBe(263);
    expect(blocksOf(out).blocks.map(({ height }) => height)).toEqual(newest.slice(0, 100));
    expect(feedOf(out).items.map(({ url }) => url)).toEqual(newest.slice(0, 30).map((height) => `../../?block=${height}`));
    expect(statsOf(out)).toMatchObject({ first: 5, last: 263, blocks: 130, bucket: 1 });
    expect(Object.keys(filesOf(out)).sort()).toEqual(['0.json', '100.json', '200.json']);
    await check(out);
  });

  it('name the 20 most active runes, and sort equally active ones by block and transaction', async () => {
    const ids = [...Array.from({ length: 12 }, (_, i) => `9:${i}`), ...Array.from({ length: 12 }, (_, i) => `10:${i}`)];
    const odd = ['😀', '\uffff', '"a\\\n\u0001', '10:x', '9999999999999999:1', '09:3', ''];
    const records = [...ids, ...odd].reverse().map((id, i) => record(7, 100 - i, { rune: rune(id) }));
    const { out } = await built([...records, record(8, 1, { rune: rune('10:11') }), record(8, 2, { rune: rune(odd[0] ?? '') })]);
    expect(statsOf(out).runes.map(({ id, records: n }) => [id, n])).toEqual([
      ['10:11', 2],
      ['😀', 2],
      ...[0, 1, 2].map((i) => [`9:${i}`, 1]),
      // Runes with equal numbers of records are sorted by their text.
      ['09:3', 1],
      ...[3, 4, 5, 6, 7, 8, 9, 10, 11].map((i) => [`9:${i}`, 1]),
      ...[0, 1, 2, 3, 4].map((i) => [`10:${i}`, 1]),
    ]);
    // Texts are sorted by their UTF-8 bytes. In UTF-16, the emoji would come before U+FFFF.
    const rest = ['', '"a\\\n\u0001', '10:x', '9999999999999999:1', '\uffff', '😀'];
    expect(
      filesOf(out)
        ['0.json']?.runes.map(({ id }) => id)
        .slice(-6),
    ).toEqual(rest);
    await check(out);
  });

  it('use the smaller of two names of a rune and the first of two times of a block', async () => {
    const records = [
      record(7, 2, { rune: { id: '1:1', number: 9, name: 'B', spaced_name: '\uffff' }, location: { timestamp: 20 } }),
      record(7, 1, { rune: { id: '1:1', number: 8, name: 'C', spaced_name: '😀' }, location: { timestamp: 10 } }),
      record(150, 1, { rune: { id: '1:1', number: 10, name: 'A', spaced_name: '😀' } }),
    ];
    const { out } = await built(records);
    expect(statsOf(out).runes).toMatchObject([{ number: 8, name: 'A', spaced_name: '\uffff', records: 3 }]);
    expect(filesOf(out)['0.json']?.runes).toMatchObject([{ number: 8, name: 'B', spaced_name: '\uffff', records: 2 }]);
    expect(blocksOf(out).blocks[1]).toMatchObject({ height: 7, timestamp: 10 });
    const other = await built([...records].reverse(), { threads: 1 });
    expect(tree(join(other.out, 'runes/v1/stats'))).toEqual(tree(join(out, 'runes/v1/stats')));
    await check(out);
  });

  it('of no blocks are valid', async () => {
    const documents = await documentsOf('SELECT 1 AS block_height WHERE false', `SELECT '' AS rune_id WHERE false`);
    const parsed = (path: string): unknown => JSON.parse(`${documents.get(`runes/v1/${path}`)}`);
    expect(stats.parse(parsed('stats.json'))).toMatchObject({
      first: null,
      last: null,
      blocks: 0,
      records: 0,
      activity: [],
      runes: [],
      recent: [],
    });
    expect(latestBlocks.parse(parsed('blocks.json'))).toEqual({ tip: null, blocks: [] });
    expect(feed.parse(parsed('feed.json')).items).toEqual([]);
  });

  it('stay below 60 KB for any data, with the longest names', async () => {
    const many = 10 ** 9;
    const name = 'ABCDEFGHIJKLMNOPQRSTUVWXYZAB';
    const documents = await documentsOf(
      `SELECT 840000 + 1000 * i AS block_height, md5(i::VARCHAR) || md5(i::VARCHAR) AS block_hash, 1713571767 + i AS "timestamp",
         ${many} AS transactions, ${5 * many} AS records, '${OPERATIONS.map(() => many)}' AS operations FROM range(5000) r(i)`,
      `SELECT '84000' || i || ':' || (1000 + i) AS rune_id, ${many} AS number, '${name}' AS name, '${name.split('').join('•')}' AS spaced_name,
         ${OPERATIONS.map((operation) => `${many} AS ${operation}`)} FROM range(20) r(i)`,
    );
    const content = documents.get('runes/v1/stats.json') ?? Buffer.alloc(60_000);
    expect(content.length).toBeLessThan(60_000);
    const { activity, runes, recent } = stats.parse(JSON.parse(content.toString()));
    expect([activity.length > 60, runes.length, ...recent.map((part) => part.runes.length)]).toEqual([true, 20, 20, 20]);
  });
});

describe('the entries of charts', () => {
  const sizes = Array.from({ length: 16 }, (_, i) => 10 ** i).flatMap((power) => [power, 2 * power, 5 * power]);
  const countWith = (heights: readonly number[], size: number) => new Set(heights.map((height) => Math.floor(height / size))).size;

  it('are aligned, at most 150, and contain every block once', async () => {
    const near = fc.tuple(
      fc.integer({ min: 0, max: 3_000_000 }),
      fc.uniqueArray(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 900 }),
    );
    const far = fc.uniqueArray(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), { maxLength: 700 });
    const heights = fc.oneof(
      near.map(([first, offsets]) => offsets.map((offset) => first + offset)),
      far,
      // Some blocks are near each other, and others are distant.
      fc.tuple(near, far).map(([[first, offsets], others]) => [...new Set([...offsets.map((offset) => first + offset), ...others])]),
    );
    await fc.assert(
      fc.asyncProperty(heights, async (unsorted) => {
        const sorted = [...unsorted].sort((a, b) => a - b);
        const { bucket, activity } = await chartOf(sorted);
        expect(bucket).toBe(sizes.find((size) => countWith(sorted, size) <= 150));
        expect(activity).toEqual(
          groupBy(sorted, (height) => height - (height % bucket)).map(([height, of]) => {
            const first = sorted.indexOf(of[0] ?? 0);
            const mint = of.reduce((sum, _, i) => sum + first + i, 0);
            return { height, blocks: of.length, timestamp: 7 * first, etching: of.length, mint, burn: 0, send: 2 * of.length, receive: 0 };
          }),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('of 150 blocks are single blocks, of 151 blocks pairs', async () => {
    const heights = (n: number) => Array.from({ length: n }, (_, i) => 840_000 + i);
    expect((await chartOf(heights(150))).bucket).toBe(1);
    const { bucket, activity } = await chartOf(heights(151));
    expect([bucket, activity.length]).toEqual([2, 76]);
    // If blocks are far apart, the number of entries decides the size of a bucket, not the range of heights.
    expect((await chartOf([...heights(149), 2_000_000])).bucket).toBe(1);
  });
});

/** Returns the chart of blocks at these heights, which ascend. Block number i has the time 7 * i. */
async function chartOf(heights: readonly number[]) {
  const rows = heights.map((height, i) => [height, 7 * i, `1,${i},0,2,0`] as const);
  const columns = { block_height: 'BIGINT', timestamp: 'BIGINT', operations: 'VARCHAR' } as const;
  return readChart({ blocks: await store.append('charted', columns, rows) }, store);
}

describe('the feed', () => {
  const records = [
    record(7, 2, { operation: 'mint', location: { timestamp: 1_713_571_767 } }),
    record(7, 1, { operation: 'send', location: { timestamp: 1_713_571_767 } }),
    record(7, 1, { operation: 'send', location: { timestamp: 1_713_571_767 } }),
    record(8, 1, { location: { timestamp: 253_402_300_799 } }),
    record(9, 1, { location: { timestamp: Number.MAX_SAFE_INTEGER } }),
  ];

  it('describes blocks in words, with valid dates', async () => {
    const { out } = await built(records);
    expect(feedOf(out)).toEqual({
      version: 'https://jsonfeed.org/version/1.1',
      title: expect.any(String),
      description: expect.any(String),
      language: 'en',
      items: [
        expect.not.objectContaining({ date_published: expect.anything() }),
        expect.objectContaining({ date_published: '9999-12-31T23:59:59Z', content_text: `1 receive. Block hash 0x${hex('block 8')}.` }),
        {
          id: hex('block 7'),
          url: '../../?block=7',
          title: 'Block 7: 3 records in 2 transactions',
          content_text: `1 mint and 2 sends. Block hash 0x${hex('block 7')}.`,
          date_published: '2024-04-20T00:09:27Z',
        },
      ],
    });
    expect(new URL(feedOf(out).items[2]?.url ?? '', 'http://host/base/runes/v1/feed.json').href).toBe('http://host/base/?block=7');
  });

  it('links to --site-url, and another URL changes only feed, error page and manifest', async () => {
    const siteUrl = 'https://example.org/mirror/';
    const { out, build, work } = await built(records);
    const old = new Date('2001-01-01');
    for (const path of filesBelow(out)) utimesSync(join(out, path), old, old);
    expect(await build({ siteUrl })).toMatchObject({ wasFull: false, blocks: { written: 0, gone: 0 } });
    expect(feedOf(out)).toMatchObject({ home_page_url: siteUrl, feed_url: `${siteUrl}runes/v1/feed.json` });
    expect(feedOf(out).items[2]?.url).toBe(`${siteUrl}?block=7`);
    expect(readFileSync(join(out, '404.html'), 'utf8')).toContain('<a href="/mirror/">');
    const young = filesBelow(out).filter((path) => statSync(join(out, path)).mtime > old);
    expect(young.sort()).toEqual(['.rune-activity-mirror', '404.html', 'runes/v1/feed.json', 'runes/v1/manifest.json']);
    await check(out);
    await testBuild(join(work, 'full'), { inputs: [join(work, 'in')], siteUrl });
    expect(tree(out)).toEqual(tree(join(work, 'full')));
    const before = tree(out);
    for (const path of filesBelow(out)) utimesSync(join(out, path), old, old);
    await build({ siteUrl });
    expect(filesBelow(out).filter((path) => statSync(join(out, path)).mtime > old)).toEqual([]);
    await build();
    expect(tree(out)).not.toEqual(before);
    expect(feedOf(out)).not.toHaveProperty('feed_url');
  });

  it.each([
    ['https://example.org', 'https://example.org/'],
    ['HTTP://Example.org:80/a/b', 'http://example.org/a/b/'],
    ['https://münchen.example/ä/', 'https://xn--mnchen-3ya.example/%C3%A4/'],
    ['example.org', undefined],
    ['//example.org/', undefined],
    ['', undefined],
    ['ftp://example.org/', undefined],
    ['javascript:alert(1)', undefined],
    ['https://user@example.org/', undefined],
    ['https://example.org/?', undefined],
    ['https://example.org/#a', undefined],
  ])('with the URL %j links to %j', (given, taken) => {
    expect(parseSiteUrl(given)).toBe(taken);
  });
});

describe('stats of incremental builds', () => {
  it('files are removed with their blocks, and files of other heights stay', async () => {
    const { out, build, work } = await built([record(5, 1), record(99, 1)]);
    writeFiles(work, { 'in/b.ndjson': ndjson([record(100, 1), record(250, 1)]) });
    await build();
    expect(Object.keys(filesOf(out)).sort()).toEqual(['0.json', '100.json', '200.json']);
    const madeAt = () => [0, 100].map((first) => `${statSync(join(out, `runes/v1/stats/${first}.json`), { bigint: true }).ctimeNs}`);
    const times = madeAt();
    writeFiles(work, { 'in/b.ndjson': ndjson([record(100, 1), record(101, 1)]) });
    expect(await build()).toMatchObject({ wasFull: false });
    expect(Object.keys(filesOf(out)).sort()).toEqual(['0.json', '100.json']);
    expect(madeAt()).toEqual([times[0], expect.not.stringMatching(`^${times[1]}$`)]);
    writeFiles(out, { 'runes/v1/stats/900.json': '{}', 'runes/v1/stats/x/y': '' });
    await build({ full: true });
    expect(Object.keys(filesOf(out)).sort()).toEqual(['0.json', '100.json']);
    await check(out);
  });

  it('bad input does not change them', async () => {
    const { out, work } = await built([record(5, 1)]);
    const before = tree(out);
    writeFiles(work, { 'in/a.ndjson': ndjson([record(5, 1), { operation: 'x' }]) });
    await failedBuild(out, { inputs: [join(work, 'in')] });
    expect(tree(out)).toEqual(before);
  });
});

/** Tests that `Mirror.all` returns complete lists, in order, from a single build. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import type { Page, WindowQuery } from '../../src/serve/client/mirrorClient.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { Mirror, MirrorError } from '../support/bundledClient.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { type PlainFiles, startPlainFiles } from '../support/plainFiles.ts';
import { ndjson, record } from '../support/records.ts';

const work = temporaryFolder();
const BLOCK = 2000007;
const TX_321 = '0fec8c48716402342396d2ce55e470cd7430e29f04c5145470e073124460d2a8';

let host: PlainFiles;

beforeAll(async () => {
  for (const layout of LAYOUTS) await testBuild(join(work, layout), { inputs: [SAMPLE_INPUT], layout, lists: true });
  host = await startPlainFiles(work);
});
afterAll(() => host.close());

async function collect<Entry>(entries: AsyncIterable<Entry>): Promise<Entry[]> {
  const found: Entry[] = [];
  for await (const entry of entries) found.push(entry);
  return found;
}

it.each(LAYOUTS)('yields every entry of every list of layout %s, once and in order', async (layout) => {
  host.folder = join(work, layout);
  const mirror = new Mirror(host.base);
  const [send] = (await mirror.activity({ block: BLOCK, operation: 'send' })).results;
  const address = send?.address ?? '';
  const rune = send?.rune.id ?? '';
  const lists: readonly ((window: WindowQuery) => Promise<Page<unknown>>)[] = [
    (window) => mirror.activity({ block: BLOCK, ...window }),
    (window) => mirror.activity({ block: BLOCK, operation: 'mint', ...window }),
    (window) => mirror.activity({ transaction: TX_321, ...window }),
    (window) => mirror.activity({ transaction: 'ff'.repeat(32), ...window }),
    (window) => mirror.runeActivity(rune, window),
    (window) => mirror.runeActivity(rune, { address, ...window }),
    (window) => mirror.addressActivity(address, window),
    (window) => mirror.etchings(window),
  ];
  const lengths: number[] = [];
  for (const list of lists.slice(0, (await mirror.manifest()).lists?.etchings === undefined ? 7 : 8)) {
    const expected: unknown[] = [];
    for (let total = 1; expected.length < total; ) {
      const page = await list({ offset: expected.length, limit: 7 });
      total = page.total;
      expected.push(...page.results);
      if (total === 0) break;
    }
    expect(await collect(mirror.all(list))).toEqual(expected);
    lengths.push(expected.length);
  }
  expect(lengths.slice(0, 4)).toEqual([437, expect.any(Number), 321, 0]);
  expect(Math.max(...lengths.slice(4))).toBeGreaterThan(60);
});

it('reads only the necessary windows, and stops when it is aborted', async () => {
  host.folder = join(work, 'archive');
  const mirror = new Mirror(host.base);
  let windows = 0;
  const list = (window: WindowQuery) => {
    windows += 1;
    return mirror.activity({ block: BLOCK, ...window });
  };
  for await (const { rune } of mirror.all(list)) if (rune !== undefined) break;
  expect(windows).toBe(1);
  const stop = new AbortController();
  const entries = mirror.all(list, { signal: stop.signal });
  await entries.next();
  stop.abort(new Error('enough'));
  await expect(collect(entries)).rejects.toThrow('enough');
});

it.each(LAYOUTS)('rejects when the mirror in layout %s changes while a list is read', async (layout) => {
  // Each block has 100 records, which two windows return. The newer build has one block more.
  const blockOf = (height: number) => Array.from({ length: 100 }, (_, i) => record(height, i));
  const folders = [1, 2].map((heights) => {
    const folder = join(work, `${layout}-${heights}`);
    writeFiles(join(folder, 'in'), { 'a.ndjson': ndjson(Array.from({ length: heights }, (_, i) => blockOf(5 + i)).flat()) });
    return folder;
  });
  for (const folder of folders) await testBuild(join(folder, 'out'), { inputs: [join(folder, 'in')], layout });
  const [before = '', after = ''] = folders.map((folder) => join(folder, 'out'));
  host.folder = before;
  const read = async (replaceAfter: number) => {
    const mirror = new Mirror(host.base, { freshMs: 0 });
    let windows = 0;
    const list = async (window: WindowQuery) => {
      const page = await mirror.activity({ block: 5, ...window });
      windows += 1;
      if (windows === replaceAfter) host.folder = after;
      return page;
    };
    return (await collect(mirror.all(list))).length;
  };
  expect(await read(0)).toBe(100);
  // The build is replaced after the first of the two windows, or after the second one.
  for (const windows of [1, 2]) {
    host.folder = before;
    const failure = await read(windows).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MirrorError);
    expect(failure).toMatchObject({ statusCode: 503, message: 'the mirror changed while the list was read; read it again' });
  }
});

/** Merging: outputs of builds of different blocks become what one build of all would have made, byte for byte, and nothing else is touched. */
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FetchMirror } from '../src/hosts/fetch.ts';
import { DIALECTS, ENCODINGS, LAYOUTS, type Layout } from '../src/pages/lists.ts';
import { filesBelow, temporaryFolder, testBuild, tree, writeFiles } from './support/build.ts';
import { start } from './support/cli.ts';
import { CHANGES, History } from './support/history.ts';
import { blockOf, buildParts, check, contents, list, testMerge } from './support/merge.ts';
import { hex, ndjson, record } from './support/records.ts';

/** Does to a copy of the output what an uploader would do with the lists of changes. */
function upload(out: string, remote: string): void {
  for (const path of list(out, 'added')) {
    mkdirSync(dirname(join(remote, path)), { recursive: true });
    cpSync(join(out, path), join(remote, path));
  }
  for (const path of list(out, 'removed')) rmSync(join(remote, path), { force: true });
}

/** Writes the history's blocks into a folder for each part; `partOf` says which. Returns the numbers of the parts that have any. */
function split(
  history: History,
  folder: (part: number) => string,
  partOf: (height: number) => number,
  written: Map<string, string>[],
): number[] {
  const whole = [...history.files];
  const heights = [...new Set(whole.flatMap(([, file]) => file.heights))].filter((height) => history.blocks.has(height));
  const places = new Map(heights.map((height) => [height, partOf(height)]));
  const parts = written.map((_, part) => heights.filter((height) => places.get(height) === part));
  for (const [part, own] of parts.entries()) {
    history.files.clear();
    if (own.length > 0) history.files.set('blocks', { form: 'ndjson', heights: own });
    mkdirSync(folder(part), { recursive: true });
    history.write(folder(part), written[part] ?? new Map());
  }
  history.files.clear();
  for (const [name, file] of whole) history.files.set(name, file);
  return [...parts.keys()].filter((part) => (parts[part]?.length ?? 0) > 0);
}

describe('a merge of any parts, and another after any change', () => {
  const sites = LAYOUTS.flatMap((layout) => DIALECTS.map((dialect) => [layout, dialect] as const));
  it.each(sites)(
    'in layout %s and dialect %s equals one build, verifies, touches what differs, and lists it for uploaders',
    async (layout, dialect) => {
      await fc.assert(
        fc.asyncProperty(
          fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
          fc.array(fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
          fc.record({
            operationPages: fc.boolean(),
            compress: fc.constantFrom([], ['br'] as const, ENCODINGS),
            parquet: fc.boolean(),
            pageSizes: fc.constantFrom([2, 4], [1], [3, 5, 100]),
          }),
          fc.integer({ min: 1, max: 3 }),
          async (numbers, steps, choices, count) => {
            const site = { layout, dialect, ...choices };
            const work = temporaryFolder();
            const [out, remote] = [join(work, 'out'), join(work, 'remote')];
            const folder = (part: number) => join(work, `in-${part}`);
            const random = () => numbers.next().value;
            const history = new History(random);
            const written = Array.from({ length: count }, () => new Map<string, string>());
            const places = new Map<number, number>();
            // Some blocks change their part between merges.
            const partOf = (height: number) => {
              const old = places.get(height);
              const place = old === undefined || random() < 0.1 ? Math.floor(random() * count) : old;
              places.set(height, place);
              return place;
            };
            for (const [i, changes] of [[], ...steps].entries()) {
              for (const change of changes) history[change]();
              const parts = split(history, folder, partOf, written);
              for (const part of parts) await testBuild(join(work, `part-${part}`), { inputs: [folder(part)], ...site });
              const whole = join(work, `whole-${i}`);
              await testBuild(whole, { inputs: parts.map(folder), ...site });
              const before = contents(out);
              await testMerge(
                out,
                parts.map((part) => join(work, `part-${part}`)),
              );
              expect(tree(out)).toEqual(tree(whole));
              await check(out);
              const after = contents(out);
              const changed = Object.keys(after).filter((path) => before[path] !== after[path]);
              const gone = Object.keys(before).filter((path) => after[path] === undefined);
              if (changed.length + gone.length > 0) {
                expect(list(out, 'added').sort()).toEqual(changed.sort());
                expect(list(out, 'removed').sort()).toEqual(gone.sort());
              }
              upload(out, remote);
              expect(contents(remote)).toEqual(after);
            }
          },
        ),
        // A run is some ten builds. More: FC_RUNS=200 npx vitest run test/merge.test.ts
        { numRuns: Math.ceil(Number(process.env['FC_RUNS'] ?? 12) / 4), endOnFailure: true },
      );
    },
    3_600_000,
  );
});

describe('parts', () => {
  it('whose prefixes are shorter than those of the whole make an index of the longer ones, and the other way round', async () => {
    const work = temporaryFolder();
    const most = Array.from({ length: 640 * 16 }, (_, i) => record(1, i));
    const all = await buildParts(work, { a: most, b: [record(2, 1)], whole: [...most, record(2, 1)] }, { layout: 'packed' });
    const [a = '', b = '', whole = ''] = all;
    const digits = async (parts: string[]) => (await testMerge(join(work, 'out'), parts)).manifest.transaction_prefix;
    expect(await digits([b])).toBe(1);
    expect(await digits([a, b])).toBe(2);
    expect(tree(join(work, 'out'))).toEqual(tree(whole));
    // A part with prefixes as long as the whole's, and one with shorter ones.
    const [long = '', everything = ''] = await buildParts(
      work,
      { long: [...most, record(2, 1)], everything: [...most, record(2, 1), record(3, 1)] },
      { layout: 'packed' },
    );
    const [short = ''] = await buildParts(work, { short: [record(3, 1)] }, { layout: 'packed' });
    expect(await digits([short, long])).toBe(2);
    expect(tree(join(work, 'out'))).toEqual(tree(everything));
    expect(await digits([a])).toBe(1);
    expect(tree(join(work, 'out'))).toEqual(tree(a));
  });

  it.each(LAYOUTS)('in layout %s: three that share thousands of heights, in any order', async (layout) => {
    const work = temporaryFolder();
    const heights = { a: [999, 1000, 1999, 5000], b: [1001, 3000], c: [0, 1500, 5999] };
    const records = Object.fromEntries(Object.entries(heights).map(([name, own]) => [name, own.flatMap((h) => blockOf(h))]));
    const parts = await buildParts(work, records, { layout });
    const [whole = ''] = await buildParts(
      work,
      { whole: Object.values(heights).flatMap((own) => own.flatMap((h) => blockOf(h))) },
      { layout },
    );
    for (const [i, order] of [parts, [...parts].reverse()].entries()) {
      const out = join(work, `out-${i}`);
      const { kept, copied, removed } = await testMerge(out, order);
      expect([tree(out), kept, copied, removed]).toEqual([tree(whole), 0, 0, 0]);
      await check(out);
    }
  });

  it.each(LAYOUTS)('in layout %s are linked, stay as they are, and do not change when the output is built over', async (layout) => {
    const work = temporaryFolder();
    const parts = await buildParts(work, { a: blockOf(1), b: blockOf(2) }, { layout });
    const before = parts.map(tree);
    const out = join(work, 'out');
    await testMerge(out, parts);
    const inode = (folder: string, path: string) => statSync(join(folder, 'runes/v1', path)).ino;
    const [folder, first] = layout === 'files' ? ['blocks', 'transactions'] : ['pointers', 'blocks'];
    const page = filesBelow(join(parts[0] ?? '', 'runes/v1', first ?? '')).find((path) => path.endsWith('.json')) ?? '';
    expect(inode(out, `${first}/${page}`)).toBe(inode(parts[0] ?? '', `${first}/${page}`));
    expect(inode(out, `${folder}/0x${hex('block 1')}.json`)).toBe(inode(out, `${folder}/1.json`));
    // A build replaces files and never writes into them.
    writeFiles(work, { 'other/a.ndjson': ndjson([...blockOf(1, '7'), ...blockOf(2, '7')]) });
    await testBuild(out, { inputs: [join(work, 'other')], layout });
    await check(out);
    expect(parts.map(tree)).toEqual(before);
    // And the merge brings the parts' bytes back.
    const [whole = ''] = await buildParts(work, { whole: [...blockOf(1), ...blockOf(2)] }, { layout });
    await testMerge(out, parts);
    expect(tree(out)).toEqual(tree(whole));
  });

  it('are merged into what was an output of another layout and dialect, with strangers in it', async () => {
    const work = temporaryFolder();
    const out = join(work, 'out');
    for (const [i, layout] of (['files', 'packed', 'files'] as const).entries()) {
      const dialect = DIALECTS[i % 2] ?? 'contract';
      const options = { layout, dialect };
      const parts = await buildParts(work, { [`a${i}`]: blockOf(1), [`b${i}`]: [...blockOf(2), ...blockOf(1005)] }, options);
      const [whole = ''] = await buildParts(work, { [`whole${i}`]: [...blockOf(1), ...blockOf(2), ...blockOf(1005)] }, options);
      if (i > 0) {
        writeFiles(out, {
          'runes/v1/transactions/stranger.json': '{}',
          'runes/v1/transactions/stranger/x/y.json': '{}',
          'runes/v1/digests/9000.json': '{}',
          'runes/v1/blocks/1.json.tmp': 'half',
          'runes/v1/blocks/77/60/0.json': '{}',
        });
        // One among the pages of a block.
        const page = filesBelow(join(whole, 'runes/v1/blocks')).find((path) => /^1005.*[/].*[/]/.test(path)) ?? '';
        writeFiles(out, { [`runes/v1/blocks/${dirname(page)}/999.json`]: '{}' });
        // A folder where a file belongs, a file where a folder belongs, and other bytes.
        const [first = ''] = filesBelow(join(whole, 'runes/v1/blocks'));
        rmSync(join(out, 'runes/v1/blocks', first.split('/')[0] ?? ''), { recursive: true, force: true });
        writeFiles(out, { [`runes/v1/blocks/${first}/inside.json`]: '{}' });
        if (layout === 'packed') writeFiles(out, { 'runes/v1/pointers/1.json': '{}' });
        else rmSync(join(out, 'runes/v1/blocks/2'), { recursive: true, force: true });
        if (layout === 'files') writeFiles(out, { 'runes/v1/blocks/2': 'a file' });
      }
      await testMerge(out, parts);
      expect(tree(out)).toEqual(tree(whole));
      await check(out);
    }
  });
});

/** Another file system than that of temporary folders, where there is one. */
const MEMORY = '/dev/shm';
const isApart = existsSync(MEMORY) && statSync(MEMORY).dev !== statSync(temporaryFolder()).dev;

describe.skipIf(!isApart)('parts on another file system (skipped where /dev/shm is none)', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(MEMORY, 'rune-activity-mirror-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(LAYOUTS)('are copied in layout %s, and paths that were links of each other are again', async (layout) => {
    const work = join(folder, layout);
    const out = join(temporaryFolder(), 'out');
    const [a = '', b = '', whole = ''] = await buildParts(
      work,
      { a: blockOf(1), b: blockOf(2), whole: [...blockOf(1), ...blockOf(2)] },
      { layout },
    );
    const first = await testMerge(out, [a, b]);
    expect(first.copied).toBeGreaterThan(0);
    const hashes = filesBelow(out).filter((path) => /(?:blocks|pointers)\/0x/.test(path));
    expect(first.copied).toBe(first.manifest.files - hashes.length);
    for (const path of hashes) expect(statSync(join(out, path)).nlink).toBe(2);
    expect(tree(out)).toEqual(tree(whole));
    await check(out);
    const again = await testMerge(out, [a, b]);
    expect([again.copied, again.kept]).toEqual([0, Object.keys(contents(out)).length]);
    // A block changes: its height and its hash are one file again.
    await buildParts(work, { a: blockOf(1, '9'), fresh: [...blockOf(1, '9'), ...blockOf(2)] }, { layout });
    await testMerge(out, [a, b]);
    expect(tree(out)).toEqual(tree(join(work, 'fresh')));
    for (const path of hashes) expect(statSync(join(out, path)).nlink).toBe(2);
  });
});

const KILLS = Math.ceil(Number(process.env['KILLS'] ?? 12) / 4);

describe.each(LAYOUTS)('a merge in layout %s that is killed', (layout: Layout) => {
  it(`leaves old or new bytes at every path and right answers, and the next merge makes all whole (${KILLS} times)`, async () => {
    const work = temporaryFolder();
    const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
    // Some blocks are replaced, some are gone, some are new, and transactions with them.
    const block = (height: number, fork: string) =>
      range(1, 60).flatMap((tx) =>
        range(1, tx % 15 === 0 ? 45 : 1 + (tx % 3)).map((i) =>
          record(height, tx, {
            amount: `${i}`,
            location: { block_hash: `0x${hex(`${height} ${fork}`)}`, tx_id: `0x${hex(`${height} ${tx} ${tx % 2 === 0 ? '' : fork}`)}` },
          }),
        ),
      );
    const before = range(1, 24).map((height) => [height, block(height, 'a')] as const);
    const after = [...range(1, 20), ...range(25, 30)].map((height) => [height, block(height, height > 12 ? 'b' : 'a')] as const);
    const trees: Record<string, string>[] = [];
    for (const [name, blocks] of Object.entries({ before, after })) {
      const half = (odd: number) => blocks.filter(([height]) => height % 2 === odd).flatMap(([, records]) => records);
      await buildParts(work, { [`${name}-0`]: half(0), [`${name}-1`]: half(1) }, { layout });
      const [whole = ''] = await buildParts(work, { [`${name}-whole`]: blocks.flatMap(([, records]) => records) }, { layout });
      trees.push(contents(whole));
    }
    const [old = {}, fresh = {}] = trees;
    const parts = (name: string) => [join(work, `${name}-0`), join(work, `${name}-1`)];
    const targets = range(1, 30).flatMap((height) => [
      `/runes/v1/blocks/${height}/activity?limit=30&offset=70`,
      ...['', 'a', 'b'].map((fork) => `/runes/v1/transactions/${hex(`${height} ${fork === '' ? 30 : 15} ${fork}`)}/activity?limit=60`),
    ]);
    const answers = (folder: string) => {
      const mirror = new FetchMirror((path) => {
        const file = join(folder, path);
        return Promise.resolve(existsSync(file) ? new Response(readFileSync(file)) : new Response(null, { status: 404 }));
      }, 0);
      return Promise.all(targets.map(async (target) => (await mirror.answer(new Request(`http://127.0.0.1${target}`)))?.text()));
    };
    const [oldAnswers, freshAnswers] = [await answers(join(work, 'before-whole')), await answers(join(work, 'after-whole'))];

    let usual = 0;
    let killed = 0;
    for (let i = 0; killed < KILLS; i += 1) {
      expect(i, 'too many merges end before they are killed').toBeLessThan(KILLS * 20);
      const out = join(work, `out-${i}`);
      await testMerge(out, parts('before'));
      const child = start('merge', [out, ...parts('after'), '--cache', `${out}.cache`], work);
      const exit = once(child, 'exit');
      const isMarked = () => readFileSync(join(out, '.rune-activity-mirror'), 'utf8').includes('at work');
      while (child.exitCode === null && !isMarked()) await new Promise((resolve) => setImmediate(resolve));
      const marked = performance.now();
      // The first one is let through, to see how long it takes.
      if (i > 0) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * usual));
        child.kill('SIGKILL');
      }
      const [code] = (await exit) as [number | null];
      if (i === 0) usual = performance.now() - marked;
      if (code !== null) continue;
      killed += 1;
      const left = contents(out);
      for (const [path, bytes] of Object.entries(old)) expect([bytes, fresh[path]], path).toContain(left[path]);
      for (const [n, answer] of (await answers(out)).entries()) {
        const right = [oldAnswers[n], freshAnswers[n]];
        // In layout packed every answer is of one time, or the client is to try again.
        if (layout === 'packed' && !answer?.includes('"statusCode":503')) expect(right, targets[n]).toContain(answer);
      }
      await testMerge(out, parts('after'));
      expect(contents(out)).toEqual(fresh);
      await check(out);
      const [added, removed] = [new Set(list(out, 'added')), new Set(list(out, 'removed'))];
      expect(Object.keys(fresh).filter((path) => old[path] !== fresh[path] && !added.has(path))).toEqual([]);
      expect(Object.keys(old).filter((path) => fresh[path] === undefined && !removed.has(path))).toEqual([]);
    }
  }, 3_600_000);
});

/**
 * Makes random histories of a chain and of its input files. After every change, an incremental build equals a full
 * build. The variable SEED repeats a run, and FC_RUNS sets the number of histories: FC_RUNS=200 npm run test:exhaustive
 * -- histories
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { type TestBuild, temporaryFolder, testBuild, tree } from '../support/build.ts';
import { CHANGES, History } from '../support/history.ts';
import { activityPaths, check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 5);
/** Number of kinds of changes that each history must contain. The histories take all kinds in turn. */
const IN_TURN = 2;
/** The tests of block ranges and of uploads run fewer histories, because the first test already finds most faults. */
const [RANGES, UPLOADS] = [Math.ceil((HISTORIES * 2) / 5), Math.max(6, Math.ceil(HISTORIES / 5))];

describe('after any change of the input', () => {
  it('an incremental build equals a full build, and verifies', async () => {
    const kinds = new Set<string>();
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.array(fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 5 }),
        fc.record({
          layout: fc.constantFrom(...LAYOUTS),
          dialect: fc.constantFrom(...DIALECTS),
          operationPages: fc.boolean(),
          parquet: fc.boolean(),
          lists: fc.boolean(),
          // With the small size, most blocks have a segment (a file of pages) of their own, and some blocks have
          // several. With the large size, all blocks share a few segments.
          objectSize: fc.constantFrom(4096, 8 * 1024 * 1024),
        }),
        async (number, steps, site) => {
          const work = temporaryFolder();
          const [out, input] = [join(work, 'out'), join(work, 'in')];
          const history = new History(randomFor(`histories ${number}`));
          const written = new Map<string, string>();
          const options: TestBuild = { inputs: [input], ...site, pageSizes: [2, 4] };
          // The first step of each history makes the changes whose turn it is, so that a few histories cover all kinds.
          const inTurn = Array.from({ length: IN_TURN }, (_, i) => CHANGES[(runs * IN_TURN + i) % CHANGES.length] ?? 'reorg');
          runs += 1;
          for (const [i, changes] of [[], inTurn, ...steps.slice(1)].entries()) {
            for (const change of changes) history[change]();
            history.write(input, written);
            const result = await testBuild(out, options);
            if (i > 0) for (const change of changes) kinds.add(change);
            expect(result.wasFull).toBe(i === 0);
            // The full build has two threads, because most other builds of tests have one. The number of threads must
            // not change the files.
            await testBuild(join(work, `full-${i}`), { ...options, threads: 2 });
            expect(tree(out)).toEqual(tree(join(work, `full-${i}`)));
            await check(out);
          }
        },
      ),
      // A history has about ten builds. A failure prints its seed, but fast-check does not shrink it, because that
      // would take hundreds of builds.
      { numRuns: HISTORIES, endOnFailure: true },
    );
    // A low number of histories need not cover every kind.
    if (HISTORIES * IN_TURN >= CHANGES.length) expect([...kinds].sort()).toEqual([...CHANGES].sort());
  }, 3_600_000);
});

describe('a build of a range', () => {
  it('equals a build of input with only these blocks, also after changes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 2, maxLength: 6 }),
        fc.constantFrom(...LAYOUTS),
        async (number, changes, layout) => {
          const work = temporaryFolder();
          const random = randomFor(`histories ${number}`);
          const history = new History(random);
          const written = new Map<string, string>();
          for (const [i, step] of [[], changes].entries()) {
            for (const change of step) history[change]();
            history.write(join(work, 'in'), written);
            const heights = [...history.blocks.keys()].sort((a, b) => a - b);
            const pick = () => heights[Math.floor(random() * heights.length)] ?? 0;
            const [a, b] = [pick(), pick()];
            const blocks = { from: Math.min(a, b), to: Math.max(a, b) };
            history.write(join(work, `only-${i}`), new Map(), (height) => height >= blocks.from && height <= blocks.to);
            const options = { layout, pageSizes: [2, 4] };
            await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
            await testBuild(join(work, `expected-${i}`), { inputs: [join(work, `only-${i}`)], ...options });
            expect(tree(join(work, 'out'))).toEqual(tree(join(work, `expected-${i}`)));
            // Builds once more, from the state of the last build.
            const { wasFull } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
            expect(wasFull).toBe(false);
          }
        },
      ),
      { numRuns: RANGES, endOnFailure: true },
    );
  }, 3_600_000);
});

/** Copies or removes one file of an uploaded copy, as an uploader does. */
function apply(from: string, to: string, path: string): void {
  if (!existsSync(join(from, path))) {
    rmSync(join(to, path), { force: true });
    return;
  }
  mkdirSync(dirname(join(to, path)), { recursive: true });
  cpSync(join(from, path), join(to, path));
}

describe('while an upload replaces older files', () => {
  const fetchFrom = (folder: string) => (path: string) => {
    const file = join(folder, path);
    const isFile = existsSync(file) && statSync(file).isFile();
    return Promise.resolve(isFile ? new Response(readFileSync(file)) : new Response(null, { status: 404 }));
  };
  const ask = async (mirror: FetchMirror, target: string) => {
    const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
    return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
  };

  it('every answer is the old one, the new one, or a 503, in any order of uploads and with any age of data in memory', async () => {
    const outcomes = { old: 0, new: 0, later: 0 };
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.nat(),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 1, maxLength: 4 }).map((more) => ['reorg' as const, ...more]),
        async (number, changes) => {
          const isOrdered = runs % 2 === 0;
          runs += 1;
          const work = temporaryFolder();
          const random = randomFor(`histories ${number}`);
          const history = new History(random);
          const written = new Map<string, string>();
          const trees: string[] = [];
          for (const [i, step] of [[], changes].entries()) {
            for (const change of step) history[change]();
            history.write(join(work, 'in'), written);
            for (const layout of ['archive', 'files'] as const) {
              await testBuild(join(work, layout), { inputs: [join(work, 'in')], layout, pageSizes: [2, 4] });
              trees.push(join(work, `${layout}-${i}`));
              cpSync(join(work, layout), join(work, `${layout}-${i}`), { recursive: true });
            }
          }
          const [before = '', beforeFiles = '', after = '', afterFiles = ''] = trees;
          const targets = [...new Set([...activityPaths(beforeFiles), ...activityPaths(afterFiles)])].flatMap((path) =>
            ['', '?limit=3&offset=1', '?limit=4&offset=2', '?operation_type=send&limit=4'].map((query) => path + query),
          );
          const answers = async (folder: string) => {
            const mirror = new FetchMirror(fetchFrom(folder), 0);
            return Promise.all(targets.map((target) => ask(mirror, target)));
          };
          const [old, fresh] = [await answers(before), await answers(after)];

          const remote = join(work, 'remote');
          cpSync(before, remote, { recursive: true });
          const [a, b] = [tree(before), tree(after)];
          const changed = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((path) => a[path] !== b[path]);
          // Uses either the documented order (the archive, then the manifest, then removals) or a random order.
          const rank = (path: string) => (b[path] === undefined ? 3 : path.endsWith('manifest.json') ? 2 : 1);
          const order = changed.map((path) => ({ path, at: isOrdered ? rank(path) + random() / 2 : random() })).sort((x, y) => x.at - y.at);
          // The mirror `remembering` has all old files in memory. The other mirror reads everything anew.
          const mirrors = [new FetchMirror(fetchFrom(remote), 3_600_000), new FetchMirror(fetchFrom(remote), 0)];
          const [remembering] = mirrors;
          if (remembering !== undefined) for (const target of targets) await ask(remembering, target);
          for (const { path } of order) {
            apply(after, remote, path);
            for (const mirror of mirrors) {
              const at = Math.floor(random() * targets.length);
              for (let i = 0; i < Math.min(targets.length, 24); i += 1) {
                const n = (at + i) % targets.length;
                const answer = await ask(mirror, targets[n] ?? '');
                expect([old[n], fresh[n], '503'], `${targets[n]} after ${path}`).toContain(answer);
                outcomes[answer === '503' ? 'later' : answer === old[n] ? 'old' : 'new'] += 1;
                // In the documented order, files are uploaded before the manifest that names them, so clients get no
                // 503 before old files are removed.
                if (isOrdered && b[path] !== undefined) expect(answer).not.toBe('503');
              }
            }
          }
          expect(await answers(remote)).toEqual(fresh);
        },
      ),
      { numRuns: UPLOADS, endOnFailure: true },
    );
    // All three outcomes must occur, so that the test covers each of them.
    for (const [outcome, times] of Object.entries(outcomes))
      expect([outcome, times]).toEqual([outcome, expect.toSatisfy((n: number) => n > 0)]);
  }, 3_600_000);
});

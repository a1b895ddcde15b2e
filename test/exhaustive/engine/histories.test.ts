/**
 * Makes random histories of an invented chain and of its input files (test/support/modelHistory.ts). After every change, an incremental
 * build equals a full build, verifies, and gives the answers of the model. The variable SEED repeats a run, and FC_RUNS sets the number of
 * histories: FC_RUNS=200 npm run test:exhaustive -- histories
 */
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { documentsOf, StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import { crossings, LIMITS, publishedLimits } from '../../../src/limits.ts';
import { DIALECTS, LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { allCandidates, compareAll, compareRandom, Differences, inContract, unescaped } from '../../rehearsal/compare.ts';
import { FolderMirror } from '../../rehearsal/folderFiles.ts';
import { CountedRows } from '../../rehearsal/model/countedRows.ts';
import { RowStore } from '../../rehearsal/rows.ts';
import { fileServer } from '../../support/archives.ts';
import { type TestBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { CROSSED, limitsWith, TINY } from '../../support/limits.ts';
import { CHANGES, type Change, ModelHistory, OF_CHAIN } from '../../support/modelHistory.ts';
import { check } from '../../support/outputs.ts';
import { randomFor } from '../../support/seed.ts';

const HISTORIES = Number(process.env['HISTORIES'] ?? process.env['FC_RUNS'] ?? 4);
const STEPS = 6;
/** The tests of block ranges and of uploads run fewer histories, because the first test already finds most faults. */
const FEW = Math.max(2, Math.ceil(HISTORIES / 4));

/** Copies or removes one file of an uploaded copy, as an uploader does. */
function upload(from: string, to: string, path: string): void {
  if (existsSync(join(from, path))) cpSync(join(from, path), join(to, path));
  else rmSync(join(to, path), { force: true });
}

/** Returns the keys of the documents about addresses with outputs. */
function outputKeys(out: string): string[] {
  const archive = StoredArchive.in(out);
  return archive.root.lists?.outputs?.addresses.flatMap((level) => [...documentsOf(archive, level)].map(({ key }) => key)) ?? [];
}

/** Limits of histories. In the second, levels end at 4,032 and at multiples of 144 and 16. */
const SMALL = { ...TINY, sortedAtOnce: 150, batchRecords: 50, listedAtOnce: 50 };
const SETS = [
  limitsWith(SMALL),
  limitsWith({ listPage: 3 }),
  limitsWith({ ...SMALL, listPage: 1, listLevels: { steps: [16, 4, 2], unsettled: 3 } }),
  limitsWith({ ...SMALL, listPage: 5, documentMember: 1000, listLevels: { steps: [64, 16, 4], unsettled: 3 } }),
];

describe('after any change of the input', () => {
  it('an incremental build equals a full build, verifies, and gives the answers of the model', async () => {
    crossings.clear();
    const seen = { unbalanced: 0, ranked: 0, lists: 0, pages: 0, removals: 0 };
    const kinds = new Set<string>();
    const unseen = () => [
      ...Object.entries(seen).flatMap(([what, times]) => (times > 0 ? [] : [what])),
      ...[...CHANGES.files, ...CHANGES.node].filter((change) => !kinds.has(change)),
      ...(CROSSED['histories'] ?? []).filter((limit) => !crossings.has(limit)),
    ];
    // A seed may give histories in which something never happens, so others follow.
    const most = HISTORIES < 4 ? HISTORIES : 4 * HISTORIES;
    for (let number = 0; number < HISTORIES || (number < most && unseen().length > 0); number += 1) {
      const random = randomFor(`histories ${number}`);
      const kind = number % 2 === 0 ? 'files' : 'node';
      const history = new ModelHistory(random, { kind, blocks: 26 });
      const limits = SETS[number % SETS.length] ?? LIMITS;
      const layout = LAYOUTS[Math.floor(number / 2) % 2] ?? 'archive';
      const dialect = DIALECTS[history.upTo(2)] ?? 'contract';
      const work = temporaryFolder();
      const [out, input] = [join(work, 'out'), join(work, 'in')];
      const options: TestBuild = {
        ...{ inputs: [input], layout, dialect, lists: true, limits, pageSizes: [7, 60], operationPages: history.upTo(2) === 0 },
        ...{ parquet: history.upTo(3) === 0 },
        // With the small size, most blocks have a segment (a file of pages) of their own.
        objectSize: history.upTo(2) === 0 ? 4096 : 8 * 1024 * 1024,
      };
      for (let step = 0; step <= STEPS; step += 1) {
        // Two changes of each step take turns, so that a few histories have changes of all kinds. Some steps also change the chain.
        const all: readonly Change[] = CHANGES[kind];
        const turn = (Math.floor(number / 2) * (STEPS - 1) + step - 1) * 2;
        const picks = step === 0 ? [] : [turn, turn + 1, ...(history.upTo(2) === 0 ? [history.upTo(OF_CHAIN.length)] : [])];
        const drawn = picks
          .map((at) => at % all.length)
          .sort((x, y) => x - y)
          .map((at) => all[at] ?? 'append');
        // At last, the tip only goes back, to a block that it had before.
        const changes: readonly Change[] = step === STEPS ? ['shorten'] : drawn;
        for (const change of changes) history.change(change);
        for (const change of changes) kinds.add(change);
        history.write(input);
        const { wasFull, manifest } = await testBuild(out, options);
        const name = `history ${number}, ${kind}, ${layout}, step ${step}: ${changes.join()}`;
        if (step === 0) expect(wasFull).toBe(true);
        // Both checks build everything again, so they take turns. The full build has two threads, and limits that must not change the
        // files.
        if (step % 2 === 0 && step > 0) {
          const others = { ...LIMITS, ...publishedLimits(limits), sortedAtOnce: 200 };
          await testBuild(join(work, `full-${step}`), { ...options, threads: 2, limits: others });
          expect(tree(out), name).toEqual(tree(join(work, `full-${step}`)));
        }
        if (history.isWrong) {
          history.mend();
          continue;
        }
        if (step % 2 === 1) await check(out);

        const rows = new RowStore(join(work, `rows-${step}`));
        for (const transaction of history.transactions) rows.add(transaction);
        const { answers } = history;
        const differences = new Differences();
        const files = new FolderMirror(out);
        const compared = {
          ...{ model: answers, rows, differences, mirror: dialect === 'hiro' ? inContract(files) : unescaped(files) },
          lacks: [
            ...(options.operationPages === true ? [] : ['operations' as const]),
            ...(kind === 'node' ? [] : ['outputs' as const]),
            ...(history.isWhole ? [] : ['balances' as const]),
          ],
          rankedAt: (rune: Parameters<ModelHistory['rankedAt']>[0]) => {
            const height = history.rankedAt(rune, limits, layout);
            if (height !== undefined) seen.ranked += 1;
            return height;
          },
        };
        await compareRandom(compared, allCandidates(answers, rows), 300, step);
        if (step === STEPS) await compareAll(compared, true);
        files.close();
        rows.close();
        expect([name, ...differences.first]).toEqual([name]);
        if (kind === 'node')
          for (const key of outputKeys(out)) seen[key.includes(' ~') ? 'removals' : key.includes(' ') ? 'pages' : 'lists'] += 1;
        const sums = answers instanceof CountedRows && history.isWhole ? answers.sums() : new Map<string, Map<string, bigint>>();
        const wrong = answers.runes.filter(({ id }) => [...(sums.get(id)?.values() ?? [])].some((units) => units < 0n));
        if (wrong.length > 0) seen.unbalanced += 1;
        expect(manifest.lists?.balances?.unbalanced?.runes ?? []).toEqual(wrong.slice(0, 20).map(({ id }) => id));
      }
    }
    if (HISTORIES >= 4) expect(unseen()).toEqual([]);
  }, 3_600_000);
});

describe('a build of a range', () => {
  it('equals a build of input with only these blocks, also after changes', async () => {
    for (let number = 0; number < FEW; number += 1) {
      const history = new ModelHistory(randomFor(`ranges ${number}`), { kind: 'files', blocks: 20 });
      const work = temporaryFolder();
      const options = { layout: LAYOUTS[number % 2] ?? 'archive', pageSizes: [7, 60] };
      for (const step of [0, 1]) {
        for (let i = 0; step > 0 && i < 4; i += 1) history.change(history.pick(CHANGES.files) ?? 'append');
        history.write(join(work, 'in'));
        const [a = 0, b = 0] = [history.pick(history.heights), history.pick(history.heights)];
        const blocks = { from: Math.min(a, b), to: Math.max(a, b) };
        const only = Object.fromEntries(history.files((height) => height >= blocks.from && height <= blocks.to));
        writeFiles(join(work, `only-${step}`), only);
        await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
        await testBuild(join(work, `expected-${step}`), { inputs: [join(work, `only-${step}`)], ...options });
        expect(tree(join(work, 'out'))).toEqual(tree(join(work, `expected-${step}`)));
        if (step === 0) continue;
        // Builds once more, from the state of the last build.
        const { wasFull } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
        expect(wasFull).toBe(false);
      }
    }
  }, 3_600_000);
});

describe('while an upload replaces older files', () => {
  const ask = async (mirror: FetchMirror, target: string) => {
    const response = await mirror.answer(new Request(`http://127.0.0.1/runes/v1/${target}`));
    return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
  };
  /** Returns requests for what the blocks of a history have. Pages of layout `files` are no part of them. */
  const targetsOf = (history: ModelHistory, layout: string) => [
    ...history.answers.runes.flatMap(({ id, number, letters }) => [id, number, letters].map((name) => `etchings/${name}`)),
    ...(layout === 'files'
      ? []
      : history.transactions.flatMap(({ height, txid, rows }) => [
          ...[`blocks/${height}/activity?limit=3&offset=1`, `blocks/${height}/activity?operation_type=send&limit=4`],
          ...[`transactions/${txid}/activity`, `addresses/${encodeURIComponent(rows.at(-1)?.address ?? '')}/balances?limit=3`],
        ])),
  ];

  it.each(LAYOUTS)(
    'in layout %s, every answer is the old one, the new one, or a 503, in any order of uploads and with any age of data in memory',
    async (layout) => {
      const outcomes = { old: 0, new: 0, later: 0 };
      for (let number = 0; number < FEW; number += 1) {
        const isOrdered = number % 2 === 0;
        const work = temporaryFolder();
        const random = randomFor(`uploads ${layout} ${number}`);
        const history = new ModelHistory(random, { kind: 'files', blocks: 12, rows: 6 });
        const targets = new Set<string>();
        const [before, after] = [join(work, 'before'), join(work, 'after')];
        for (const folder of [before, after]) {
          if (folder === after) for (const change of ['reorg', 'append', 'moveTransaction', 'dropRow'] as const) history.change(change);
          history.write(join(work, 'in'));
          await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout, lists: layout === 'archive', pageSizes: [7, 60] });
          cpSync(join(work, 'out'), folder, { recursive: true });
          for (const target of targetsOf(history, layout)) targets.add(target);
        }
        const asked = [...targets].sort(() => random() - 0.5).slice(0, 150);
        const answers = async (folder: string) => {
          const mirror = new FetchMirror(fileServer(folder).fetchFile, 0);
          return Promise.all(asked.map((target) => ask(mirror, target)));
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
        const remembering = new FetchMirror(fileServer(remote).fetchFile, 3_600_000);
        for (const target of asked) await ask(remembering, target);
        for (const { path } of order) {
          upload(after, remote, path);
          // Pages of layout `files` are no part of the requests.
          if (/^runes\/v1\/(?:blocks|transactions)\//.test(path)) continue;
          for (const mirror of [remembering, new FetchMirror(fileServer(remote).fetchFile, 0)]) {
            const at = history.upTo(asked.length);
            for (let i = 0; i < 5; i += 1) {
              const n = (at + i) % asked.length;
              const answer = await ask(mirror, asked[n] ?? '');
              expect([old[n], fresh[n], '503'], `${asked[n]} after ${path}`).toContain(answer);
              outcomes[answer === '503' ? 'later' : answer === old[n] ? 'old' : 'new'] += 1;
              // In the documented order, files are uploaded before the manifest that names them, so clients get no 503 before old files are
              // removed.
              if (isOrdered && b[path] !== undefined) expect(answer).not.toBe('503');
            }
          }
        }
        expect(await answers(remote)).toEqual(fresh);
      }
      for (const [outcome, times] of Object.entries(outcomes))
        expect([outcome, times]).toEqual([outcome, expect.toSatisfy((n: number) => n > 0)]);
    },
    3_600_000,
  );
});

/**
 * Compares every output of random chains, at several tips, with an independent model. Compares the runes that the API reports for the
 * output, and the class (`runes`, `none`, `spent` or `unknown`) that a client reports. Also checks that wrong files on the host never
 * change a class except to `unknown`. The variable CHAINS sets the number of chains, LIES sets the number of wrong files, and SEED repeats
 * a run.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ClassifiedOutput, MirrorOptions, OutputToClassify } from '../../../src/serve/client/client.d.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer } from '../../support/archives.ts';
import { filesBelow, temporaryFolder, testBuild } from '../../support/build.ts';
import { classify, Mirror } from '../../support/bundledClient.ts';
import { limitsWith } from '../../support/limits.ts';
import { fetchOver, KEY, signedFiles } from '../../support/lyingHost.ts';
import { writeRows } from '../../support/nodeRows.ts';
import {
  airdrop,
  answerAbout,
  classAbout,
  extendedBy,
  grown,
  type MadeOutput,
  modelOf,
  NO_HEIGHTS,
  outputsMade,
} from '../../support/outputStates.ts';
import { memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const LIES = Number(process.env['LIES'] ?? 60);
const CHAINS = Number(process.env['CHAINS'] ?? 1);
const BASE = 'https://mirror.example.org/';
const LAYOUTS = ['archive', 'files'] as const;
type Layout = (typeof LAYOUTS)[number];

/** Builds a chain. Returns the folder of the output, and the mirror's tip, which is the last block with records. */
async function built(work: string, chain: ReturnType<typeof grown>, layout: Layout, objectSize = 4096) {
  const memory = memoryOf(chain);
  const limits = limitsWith({
    documentMember: 200,
    listLevels: { steps: [12, 4, 2], unsettled: 1 },
    tableLevels: { steps: [12, 4], unsettled: 1 },
  });
  writeRows(memory, join(work, 'in'));
  const out = join(work, layout);
  await testBuild(out, { inputs: [join(work, 'in')], dialect: 'hiro', layout, pageSizes: [3, 6], lists: true, objectSize, limits });
  const withRows = new Set(memory.rows.map((row) => row.block_height));
  return { out, tip: memory.rows.at(-1)?.block_height ?? -1, hasRows: (height: number) => withRows.has(height) };
}

const filesOf = (out: string) => new Map(filesBelow(out).map((path) => [path, readFileSync(join(out, path))]));
const signed = (out: string) => signedFiles(filesOf(out), '2026-11-24T00:00:00Z');

const mirrorOver = (files: ReadonlyMap<string, Buffer>, options: MirrorOptions = {}) =>
  new Mirror(BASE, { fetch: fetchOver((path) => files.get(path)), ...options });

/** Removes the reasons from classified outputs, after a check that each unknown output has a reason. */
const withoutReasons = (classes: readonly ClassifiedOutput[]) =>
  classes.map((one) => {
    if (one.kind !== 'unknown') return one;
    expect(one.reason.length).toBeGreaterThan(10);
    return { outpoint: one.outpoint, kind: one.kind };
  });

it(`${CHAINS} random chains: every output is what the model says`, async () => {
  const seen = { answers: { held: 0, spent: 0, 'spent in its block': 0, never: 0 }, classes: { runes: 0, none: 0, spent: 0, unknown: 0 } };
  const counts = () => [...Object.values(seen.answers), ...Object.values(seen.classes)];
  // A chain may by chance have few outputs of a kind. Then another chain follows.
  for (let number = 0; number < CHAINS || (number < CHAINS + 3 && Math.min(...counts()) <= 10); number += 1) {
    const draw = integersFor(`output states ${number}`);
    const work = temporaryFolder();
    const old = grown([], 40, draw);
    const chains = [old, grown(old.slice(0, 37), 4 + draw(5), draw)];
    const made = new Map(chains.flatMap(outputsMade).map((output) => [`${output.outpoint} ${output.blockHash}`, output]));
    for (const chain of chains) {
      for (const layout of LAYOUTS) {
        const { out, tip, hasRows } = await built(work, chain, layout, draw(2) === 0 ? 4096 : 2 * 1024 * 1024);
        const model = modelOf(chain.slice(0, tip + 1));
        const host = new FetchMirror(fileServer(out).fetchFile, 0);
        for (const outpoint of new Set([...made.values()].map((one) => one.outpoint))) {
          const response = await host.answer(new Request(`http://host/runes/v1/outputs/${outpoint}`));
          const expected = answerAbout(outpoint, model) as { readonly spent: boolean | null };
          const asOf = { block_height: tip, block_hash: model.block(tip).hash };
          expect(await response?.json(), outpoint).toEqual({ ...asOf, ...expected });
          const known = model.output(outpoint);
          const when = known?.spentHeight === known?.location.height ? 'spent in its block' : 'spent';
          seen.answers[expected.spent === null ? 'never' : expected.spent ? when : 'held'] += 1;
        }
        const asked = [...made.values()].slice(-900).map((output) => distorted(output, draw));
        const expected = asked.map((one) => classAbout(one, model, tip, hasRows));
        const options = [{}, ...(layout === 'archive' ? [{ keys: [KEY.publicText] }] : [])];
        for (const each of options) expect(withoutReasons(await mirrorOver(signed(out), each).classify(asked))).toEqual(expected);
        for (const { kind } of expected as ClassifiedOutput[]) seen.classes[kind] += 1;
      }
    }
  }
  expect(Math.min(...counts()), JSON.stringify(seen)).toBeGreaterThan(10);
});

/**
 * Returns an output as a wallet may describe it to a client. Most descriptions are right, with or without the block hash, and some are
 * wrong.
 */
function distorted({ outpoint, height, blockHash }: MadeOutput, draw: (below: number) => number): OutputToClassify {
  const kind = draw(12);
  if (kind === 0) return { outpoint };
  if (kind === 1) return { outpoint, height: height + 1 + draw(2) };
  if (kind === 2) return { outpoint, height, blockHash: 'ab'.repeat(32) };
  if (kind === 3) return { outpoint, height: NO_HEIGHTS[draw(NO_HEIGHTS.length)] };
  return draw(2) === 0 ? { outpoint, height } : { outpoint, height, blockHash };
}

describe('a transaction with many records', () => {
  const random = integersFor('airdrops');
  // A page has 6 records, and an answer reads at most 25 pages. With 149 outputs an airdrop has 150 records, which is the most that one
  // answer can read.
  const chain = extendedBy(extendedBy(grown([], 3, random), [airdrop(149), airdrop(150)], random), [airdrop(2)], random);
  const [readable, tooLong] = [149, 150].map((count) => {
    const [one] = outputsMade(chain).filter(({ outpoint, height }) => height === 3 && outpoint.endsWith(`:${count}`));
    return one?.outpoint.split(':')[0] ?? '';
  });

  it.each(LAYOUTS)(
    'layout %s: reports what outputs held if their transaction has up to 25 pages, else only that they hold nothing',
    async (layout) => {
      const { out, tip } = await built(temporaryFolder(), chain, layout);
      const model = modelOf(chain.slice(0, tip + 1));
      const server = fileServer(out);
      const host = new FetchMirror(server.fetchFile, Number.POSITIVE_INFINITY);
      const ask = async (outpoint: string) => host.answer(new Request(`http://host/runes/v1/outputs/${outpoint}`));
      // The last output of an airdrop is its message, which never has runes.
      const never = [`${readable}:149`, `${tooLong}:150`];
      expect(await (await ask(never[0] ?? ''))?.json()).toMatchObject(answerAbout(never[0] ?? '', model));
      for (const vout of [0, 148])
        expect(await (await ask(`${tooLong}:${vout}`))?.json()).toMatchObject(answerAbout(`${tooLong}:${vout}`, model));
      const unread = await ask(never[1] ?? '');
      const asOf = { block_height: tip, block_hash: model.block(tip).hash };
      expect([unread?.status, await unread?.json()]).toEqual([200, { ...asOf, ...answerAbout(never[1] ?? '', model), held: null }]);
      const asked = never.map((outpoint) => ({ outpoint, height: 3 }));
      expect(await mirrorOver(filesOf(out)).classify(asked)).toEqual(never.map((outpoint) => ({ outpoint, kind: 'none' })));
    },
  );
});

describe('a mirror with wrong files', () => {
  const draw = integersFor('wrong files');
  const pick = <T>(items: readonly T[]): T => items[draw(items.length)] as T;

  it('gives a client with keys the right class or none, if a file is changed, swapped, cut or missing', async () => {
    const chain = grown([], 30, draw);
    const { out } = await built(temporaryFolder(), chain, 'archive');
    const files = signed(out);
    const asked = outputsMade(chain).slice(-120);
    const truth = withoutReasons(await mirrorOver(files, { keys: [KEY.publicText] }).classify(asked));
    const archive = [...files.keys()].filter((path) => path.startsWith('archive/'));
    const seen = { right: 0, unknown: 0 };
    for (let i = 0; i < LIES; i += 1) {
      const path = pick(archive);
      const content = Buffer.from(files.get(path) ?? '');
      const at = draw(content.length);
      content[at] = (content[at] ?? 0) ^ (1 + draw(255));
      const wrong = pick([content, content.subarray(0, at), files.get(pick(archive)), undefined]);
      const mirror = new Mirror(BASE, { fetch: fetchOver((one) => (one === path ? wrong : files.get(one))), keys: [KEY.publicText] });
      for (const [j, one] of withoutReasons(await mirror.classify(asked)).entries()) {
        if (one.kind === 'unknown') seen.unknown += 1;
        else expect(one).toEqual(truth[j]);
        if (one.kind !== 'unknown') seen.right += 1;
      }
    }
    expect(seen.right).toBeGreaterThan(LIES);
    expect(seen.unknown).toBeGreaterThan(LIES);
  });

  it('in layout files, while a build replaces pages, answers come from one build or are a 503', async () => {
    const old = grown([], 30, draw);
    const newer = grown(old.slice(0, 27), 6, draw);
    const [before, after] = [await built(temporaryFolder(), old, 'files'), await built(temporaryFolder(), newer, 'files')];
    // The manifest and the lists still come from the older build. Only pages are new.
    const isPage = (path: string) => /^runes\/v1\/(?:transactions|blocks)\//.test(path);
    const mixed = new Map([
      ...[...filesOf(before.out)].filter(([path]) => !isPage(path)),
      ...[...filesOf(after.out)].filter(([path]) => isPage(path)),
    ]);
    const fetch = fetchOver((path) => mixed.get(path));
    const host = new FetchMirror((path, range) => fetch(`${BASE}${path}`, range === undefined ? {} : { headers: { range } }), 0);
    const model = modelOf(old.slice(0, before.tip + 1));
    const statuses = { right: 0, 503: 0 };
    for (const { outpoint, height } of outputsMade([...old, ...newer.slice(27)])) {
      const response = await host.answer(new Request(`http://host/runes/v1/outputs/${outpoint}`));
      // To answer for a spent output, the host needs the pages of the output's block. These pages are gone if the block was replaced, so
      // the test accepts any answer.
      const isGone = height >= 27 && model.output(outpoint)?.spent === true;
      if (response?.status === 503) statuses[503] += 1;
      else if (!isGone) expect(await response?.json(), outpoint).toMatchObject(answerAbout(outpoint, model));
      if (response?.status === 200) statuses.right += 1;
    }
    expect(statuses.right).toBeGreaterThan(100);
    expect(statuses[503]).toBeGreaterThan(0);
  });
});

describe('several mirrors', () => {
  const draw = integersFor('several mirrors');

  it('classify an output only if all mirrors agree', async () => {
    const chain = grown([], 30, draw);
    const [older, newer] = await Promise.all([
      built(temporaryFolder(), chain.slice(0, 24), 'archive'),
      built(temporaryFolder(), chain, 'archive'),
    ]);
    const mirrors = [newer, older].map(({ out }) => mirrorOver(signed(out), { keys: [KEY.publicText] }));
    const asked = outputsMade(chain).map(({ outpoint, height }) => ({ outpoint, height }));
    const [now, before] = [newer, older].map(({ tip, hasRows }) => {
      const model = modelOf(chain.slice(0, tip + 1));
      return asked.map((one) => classAbout(one, model, tip, hasRows) as ClassifiedOutput);
    });
    const expected = asked.map(({ outpoint }, i) =>
      JSON.stringify(now?.[i]) === JSON.stringify(before?.[i]) ? now?.[i] : { outpoint, kind: 'unknown' },
    );
    const classes = await classify(mirrors, asked);
    expect(withoutReasons(classes)).toEqual(expected);
    expect(new Set(classes.map(({ kind }) => kind)).size).toBe(4);
    expect(classes).toContainEqual(expect.objectContaining({ reason: expect.stringContaining(`blocks up to ${older?.tip}`) }));
    // The newer mirror reports that some of these outputs are spent. The older mirror reports that they have runes.
    expect(classes).toContainEqual(expect.objectContaining({ reason: 'the mirrors do not agree: spent, runes' }));
  });

  it('are all needed: if one fails, all outputs are unknown', async () => {
    await expect(classify([], [])).rejects.toThrow(new TypeError('classify needs at least one mirror'));
    const asked = [{ outpoint: `${'ab'.repeat(32)}:0`, height: 5 }];
    const gone = mirrorOver(new Map());
    expect(await classify([gone], asked)).toEqual([
      { outpoint: asked[0]?.outpoint, kind: 'unknown', reason: expect.stringContaining('no mirror found') },
    ]);
    await expect(gone.classify(Array.from({ length: 1001 }, () => ({ outpoint: '' })))).rejects.toThrow(
      new TypeError('classify takes up to 1000 outputs, but got 1001'),
    );
    await expect(gone.classify(asked, { signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop');
  });
});

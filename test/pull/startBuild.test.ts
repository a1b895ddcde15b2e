/** Builds of pulls that start at a mirror. The exhaustive tests have more starts, chains and requests. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoredArchive } from '../../src/engine/archive/storedArchive.ts';
import { temporaryFolder, tree } from '../support/build.ts';
import { check } from '../support/outputs.ts';
import { extended } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';
import { expectSame, pointsOf } from '../support/startedMirrors.ts';
import { StartedPulls } from '../support/startedPulls.ts';

const next = randomFor('start builds');
const random = (below: number) => Math.floor(next() * below);
const LENGTH = 70;
const CHAIN = extended([], LENGTH + 40, random, 6);

let pulls: StartedPulls;
/** Input with a start, and its block. */
const to = temporaryFolder();
let start: { height: number; digest: string };
beforeAll(async () => {
  pulls = await StartedPulls.begin(CHAIN.slice(0, LENGTH));
  start = await pulls.start(to, 62);
});
afterAll(() => pulls.node.close());

const startOf = (out: string) => StoredArchive.find(out)?.root.lists?.start;

it('has the lists of a mirror with all of history, through new blocks and a reorganisation', async () => {
  const out = join(temporaryFolder(), 'dist');
  const fork = extended(CHAIN.slice(0, LENGTH - 2), 30, random, 6);
  for (const chain of [CHAIN.slice(0, LENGTH), fork]) {
    pulls.node.replace(chain);
    await pulls.pull(to);
    const expected = await pulls.follow();
    const { manifest } = await pulls.build(out, join(to, 'pulled'));
    expect(startOf(out)).toMatchObject({ height: start.height, digest: start.digest });
    expect(manifest.heights[0]?.[0]).toBeGreaterThan(start.height);
    expect(Object.keys(manifest.lists ?? {}).sort()).toEqual(Object.keys(expected.lists ?? {}).sort());
    expect(pointsOf(manifest)).toEqual(pointsOf(expected).filter((one) => one.height >= start.height));
    await check(out);
    await expectSame(out, start.height, pulls.all, pulls.complete, () => random(8) === 0);
  }
  const full = join(temporaryFolder(), 'full');
  await pulls.build(full, join(to, 'pulled'));
  expect(tree(out)).toEqual(tree(full));
});

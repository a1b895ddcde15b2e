/**
 * Tests mirrors that start from the ledger after several blocks, through reorganisations. Every answer equals that of a
 * mirror with all history.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import { temporaryFolder, tree } from '../../support/build.ts';
import type { FakeBlock } from '../../support/fakeNode.ts';
import { check } from '../../support/outputs.ts';
import { extended } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { expectSame, pointsOf } from '../../support/startedMirrors.ts';
import { StartedPulls } from '../../support/startedPulls.ts';

const next = randomFor('start builds');
const random = (below: number) => Math.floor(next() * below);
const LENGTH = 146;
const CHAIN = extended([], LENGTH + 20, random, 6);

let pulls: StartedPulls;
beforeAll(async () => {
  pulls = await StartedPulls.begin(CHAIN);
});
afterAll(() => pulls.node.close());

it.each([
  ['archive', 45],
  ['files', 145],
] as const)('a build in layout %s that starts from a mirror up to block %d', { timeout: 600_000 }, async (layout, last) => {
  pulls.node.replace(CHAIN.slice(0, LENGTH));
  const [to, out] = [temporaryFolder(), join(temporaryFolder(), 'dist')];
  const { height, digest } = await pulls.start(to, last);
  const fork = extended(CHAIN.slice(0, LENGTH - 2), 20, random, 6);
  const base: readonly FakeBlock[] = CHAIN.slice(0, LENGTH);
  const [reorganised, longer] = [fork.slice(0, LENGTH + 3), extended(fork, 30, random, 6)];
  for (const chain of layout === 'archive' ? [base, longer] : [base, reorganised]) {
    pulls.node.replace(chain);
    await pulls.pull(to);
    const expected = await pulls.follow();
    const { manifest } = await pulls.build(out, join(to, 'pulled'), { layout });
    expect(StoredArchive.find(out)?.root.lists?.start).toMatchObject({ height, digest });
    expect(Object.keys(manifest.lists ?? {}).sort()).toEqual(Object.keys(expected.lists ?? {}).sort());
    expect([manifest.tip, manifest.lists?.etchings]).toEqual([expected.tip, expected.lists?.etchings]);
    expect(pointsOf(manifest)).toEqual(pointsOf(expected).filter((one) => one.height >= height));
    await check(out);
    await expectSame(out, height, pulls.all, pulls.complete, () => random(4) === 0);
  }
  const full = join(temporaryFolder(), 'full');
  await pulls.build(full, join(to, 'pulled'), { layout });
  expect(tree(out)).toEqual(tree(full));
});

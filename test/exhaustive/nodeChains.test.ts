/** All chains of the fixtures through pull, build and API; and reorganisations at every depth that is followed. */
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/build.ts';
import { FakeNode } from '../support/fakeNode.ts';
import { checkFixture, memoryRows, pulledRows, pulledTree } from '../support/nodePulls.ts';
import { testPull } from '../support/pull.ts';
import { extended, type FixtureChain, fixtureLines, memoryOf } from '../support/runeChains.ts';
import { randomFor } from '../support/seed.ts';

describe('chains of the fixtures', () => {
  it.each(fixtureLines<FixtureChain>('blocks.ndjson').map((chain) => [chain.test, chain] as const))(
    '%s: answers carry the state of ord',
    (_, chain) => checkFixture(chain),
  );
});

it('follows reorganisations of 1 to 100 blocks, one after the other, as if the old ones never were', async () => {
  const next = randomFor('reorganisations');
  const random = (below: number) => Math.floor(next() * below);
  const options = { confirmations: 100 };
  let chain = extended([], 130, random);
  const node = await FakeNode.start(chain, { network: 'regtest' });
  const to = temporaryFolder();
  try {
    await testPull(`core:${node.url}`, to, options);
    for (const depth of [100, 1, 2, 3, ...Array.from({ length: 12 }, () => 1 + random(100)), 100]) {
      chain = extended(chain.slice(0, chain.length - depth), depth + random(3), random);
      node.replace(chain);
      // A chain of the same length has another tip, so it is followed too.
      expect(await testPull(`core:${node.url}`, to, options)).toMatchObject({ replaced: depth });
      expect(await pulledRows(to)).toEqual(memoryRows(memoryOf(chain)));
    }
    const fresh = temporaryFolder();
    await testPull(`core:${node.url}`, fresh, options);
    expect(pulledTree(to)).toEqual(pulledTree(fresh));
  } finally {
    await node.close();
  }
});

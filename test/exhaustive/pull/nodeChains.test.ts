/**
 * Pulls and builds some chains of the fixtures, and requests answers of the API: test/runes/runes.test.ts has all of them. Also tests
 * reorganisations of every supported depth.
 */
import { describe, expect, it } from 'vitest';
import { hashText } from '../../../src/runes/bytes.ts';
import { NETWORKS } from '../../../src/runes/networks.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { temporaryFolder } from '../../support/build.ts';
import { chainOf, FakeNode } from '../../support/fakeNode.ts';
import { hash256, MemoryChain, outpointOf } from '../../support/memoryLedger.ts';
import { checkFixture, memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { testPull } from '../../support/pull.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, type FixtureChain, fixtureLines, memoryOf } from '../../support/runeChains.ts';
import { integersFor, randomFor } from '../../support/seed.ts';

describe('chains of the fixtures', () => {
  const chains = fixtureLines<FixtureChain>('blocks.ndjson');
  const [every, first] = [5, Math.floor(randomFor('built chains of the fixtures')() * 5)];
  it.each(chains.filter((_, i) => i % every === first).map((chain) => [chain.test, chain] as const))(
    '%s: rows and answers match the state of ord',
    (_, chain) => checkFixture(chain),
  );
});

it('spends many outputs of one transaction in one block, in time proportional to their number', () => {
  // If the indexer scanned all outputs for each input, the test would take minutes and time out.
  const [outputs, inputs] = [40_000, 12_000];
  const etching = {
    inputs: [{ outpoint: outpointOf('ab'.repeat(32), 1) }],
    outputs: [messageScript([2, 1, 6, outputs, 0, 0, 0, 1, outputs + 1]), ...Array.from({ length: outputs }, () => Uint8Array.of(0x51))],
  };
  const [first] = chainOf(1, [[etching]]);
  const txid = hashText(readBlock(first?.bytes ?? new Uint8Array(), hash256).txids, 32);
  const spending = {
    inputs: Array.from({ length: inputs }, (_, i) => ({ outpoint: outpointOf(txid, outputs - i) })),
    outputs: [taproot(1)],
  };
  const memory = new MemoryChain(NETWORKS.regtest);
  const { changes } = memory.add(chainOf(1, [[etching, spending]])[0]?.bytes ?? new Uint8Array(), 1);
  expect([changes.created.length, changes.spent.length]).toEqual([outputs - inputs + 1, 0]);
}, 600_000);

it('follows reorganisations of 1 to 100 blocks, one after the other, without a trace of the replaced blocks', async () => {
  const random = integersFor('reorganisations');
  const options = { confirmations: 100 };
  let chain = extended([], 130, random);
  const node = await FakeNode.start(chain, { network: 'regtest' });
  const to = temporaryFolder();
  try {
    await testPull(`core:${node.url}`, to, options);
    for (const depth of [100, 1, 2, ...Array.from({ length: 3 }, () => 1 + random(100)), 100]) {
      chain = extended(chain.slice(0, chain.length - depth), depth + random(3), random);
      node.replace(chain);
      // A branch may be as long as the blocks that it replaces. The pull follows such a branch too, because the hash of the last block has
      // changed.
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

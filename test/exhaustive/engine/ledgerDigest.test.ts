/**
 * Compares the ledger digests of builds with an independent model, for every layout, for every dialect, and after
 * several incremental builds.
 */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Manifest } from '../../../src/contract/schemas.ts';
import { ledgerDigest, ledgerText } from '../../rehearsal/model/ledger.ts';
import { Model } from '../../rehearsal/model/model.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { outpointOf } from '../../support/memoryLedger.ts';
import { writeChain } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const limits = limitsWith({ listLevels: { steps: [24, 8, 4], unsettled: 2 } });

function modelOf(chain: readonly FakeBlock[]): Model {
  const model = new Model('regtest');
  for (const { bytes, height } of chain) model.apply(bytes, height);
  return model;
}

const expectedOf = (chain: readonly FakeBlock[]) => {
  const model = modelOf(chain);
  const ends = [...new Set([8, 24].map((step) => Math.floor((chain.length - 2) / step) * step - 1))];
  const point = (height: number) => ({ height, hash: chain[height]!.hash, digest: ledgerDigest(model, 'regtest', height) });
  const [newest, lower] = ends.map(point);
  return { network: 'regtest', ...newest, ...(lower === undefined ? {} : { lower }) };
};

it('the manifest has the digests that the model computes, after new blocks, reorganisations and full builds', async () => {
  const random = integersFor('ledger digests');
  // A transaction with more than ten outputs, which must sort as numbers: as text, output 10 sorts before output 2. Few
  // of these outputs are spent.
  const wide = {
    inputs: [{ outpoint: outpointOf('ab'.repeat(32), 1) }],
    outputs: [messageScript([2, 1, 6, 12, 0, 0, 0, 1, 13]), ...Array.from({ length: 12 }, (_, i) => taproot(i % 4))],
  };
  let chain = extended(chainOf(0, [[], [wide]]), 60, random, 200);
  const node = await FakeNode.start(chain, { network: 'regtest' });
  const work = temporaryFolder();
  const pulled = join(work, 'in');
  try {
    for (const depth of [0, 6]) {
      chain = extended(chain.slice(0, chain.length - depth), depth + 1 + random(9), random, 200);
      node.replace(chain);
      await testPull(`core:${node.url}`, pulled, { limits });
      const manifests: Manifest[] = [];
      for (const [layout, dialect] of [
        ['archive', 'contract'],
        ['files', 'hiro'],
      ] as const) {
        // One mirror computes digests in threads, and the other does not. The digests must be equal.
        const out = join(work, layout);
        manifests.push(
          (
            await testBuild(out, {
              inputs: [pulled],
              layout,
              dialect,
              lists: true,
              limits: { ...limits, ...(layout === 'files' ? { threadBytes: 1 } : {}) },
            })
          ).manifest,
        );
        if (depth > 0) await check(out);
      }
      manifests.push(
        (await testBuild(join(work, `full-${chain.length}`), { inputs: [pulled], layout: 'archive', limits, lists: true })).manifest,
      );
      for (const { ledger } of manifests) expect(ledger).toEqual(expectedOf(chain));
    }
    expect(ledgerText(modelOf(chain), 'regtest', chain.length - 1)).toMatch(/\noutput\t[0-9a-f]{64}:[0-9]+\t[0-9]+\t[0-9]+\t(bcrt|-)/);
  } finally {
    await node.close();
  }
});

it('no digest is kept of a block whose hash has changed, though neither block has records', async () => {
  const next = integersFor('empty blocks with digests');
  const base = extended([], 20, next, 3);
  const other = { inputs: [{ outpoint: outpointOf('cd'.repeat(32), 1) }], outputs: [taproot(1)] };
  const work = temporaryFolder();
  for (const first of [[], [other]]) {
    const chain = [...base, ...chainOf(20, [first, ...Array.from({ length: 14 }, () => [])], base.at(-1)?.hash)];
    writeChain(chain, join(work, 'in'));
    const options = { inputs: [join(work, 'in')], layout: 'archive', limits, lists: true } as const;
    expect((await testBuild(join(work, 'out'), options)).manifest.ledger).toEqual(expectedOf(chain));
  }
});

/**
 * Tests the height that a mirror reports: the last block that its pull has read from the node, even if this block has
 * no runes.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Layout } from '../../src/pages/mirrorOptions.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../support/fakeNode.ts';
import { outpointOf } from '../support/memoryLedger.ts';
import { check } from '../support/outputs.ts';
import { testPull } from '../support/pull.ts';
import { messageScript, type Transaction, taproot } from '../support/runeBlocks.ts';
import { startServer } from '../support/server.ts';

const spending = (name: string): Transaction['inputs'] => [{ outpoint: outpointOf(name.repeat(32), 0) }];

/** Etches a rune that can be minted below height 34. */
const ETCHING: Transaction = { inputs: spending('aa'), outputs: [messageScript([2, 3, 6, 1000, 8, 5, 10, 7, 14, 34, 22, 1]), taproot(1)] };
const MINT: Transaction = { inputs: spending('bb'), outputs: [messageScript([20, 3, 20, 1, 22, 1]), taproot(2)] };

const empty = (count: number): Transaction[][] => Array.from({ length: count }, () => []);
const grown = (chain: readonly FakeBlock[], more: readonly (readonly Transaction[])[]): FakeBlock[] => [
  ...chain,
  ...chainOf(chain.length, more, chain.at(-1)?.hash),
];

const CHAIN = grown([], [...empty(3), [ETCHING], ...empty(46)]);
/** In CHAIN, BRANCH and LONGER, block 40 has no runes, but three different hashes. */
const BRANCH = grown(CHAIN.slice(0, 38), [[{ inputs: spending('cc'), outputs: [taproot(9)] }], ...empty(2)]);
const LONGER = grown(BRANCH.slice(0, 39), [[MINT], ...empty(3)]);

/** Chains that replace each other in the node, in this order. */
const STEPS: readonly [what: string, chain: readonly FakeBlock[]][] = [
  ['the etching', CHAIN.slice(0, 4)],
  ['a block without runes', CHAIN.slice(0, 5)],
  ['the last block that may mint', CHAIN.slice(0, 33)],
  ['the block before the end of the mints', CHAIN.slice(0, 34)],
  ['more blocks without runes', CHAIN.slice(0, 41)],
  ['other blocks without runes at the same heights', BRANCH],
  ['a mint below the last block', LONGER],
  ['a reorganisation that removes the mint', CHAIN.slice(0, 45)],
  ['a hundred more', grown(CHAIN, empty(100))],
];

interface Answer {
  readonly block_height: number;
  readonly block_hash: string;
}

describe.each<Layout>(['archive', 'files'])('layout %s', (layout) => {
  let node: FakeNode;
  const [to, copy, out] = [temporaryFolder(), temporaryFolder(), join(temporaryFolder(), 'dist')];
  const options = { inputs: [to], layout, dialect: 'hiro', lists: true } as const;
  beforeAll(async () => {
    node = await FakeNode.start(CHAIN, { network: 'regtest' });
  });
  afterAll(() => node.close());

  // Layout `files` shares all code with layout `archive` except the lists of outputs, so it runs fewer steps.
  it.each(STEPS.filter((_, i) => layout === 'archive' || i % 4 === 1))('reports the last block that was read: %s', async (what, chain) => {
    node.replace(chain);
    await testPull(`core:${node.url}`, to);
    const { manifest } = await testBuild(out, options);
    const { height = 0, hash = '' } = chain.at(-1) ?? {};
    expect(manifest.tip).toEqual({ height, hash });

    const full = join(temporaryFolder(), 'dist');
    await testBuild(full, { ...options, full: true });
    expect(tree(out)).toEqual(tree(full));
    await check(out);

    const server = await startServer(out);
    try {
      const ask = async (path: string) => JSON.parse((await server.send('GET', `/runes/v1${path}`)).body);
      expect((await ask('')).block_height).toBe(height);
      // The rune can be minted if the block after the reported one is below height 34.
      expect((await ask('/etchings/3:1')).supply.mintable).toBe(height + 1 < 34);
      if (layout === 'archive') {
        for (const path of [`/outputs/${'12'.repeat(32)}:0`, '/addresses/bc1qnone/outputs']) {
          expect((await ask(path)) as Answer).toMatchObject({ block_height: height, block_hash: hash });
        }
      }
      // A mirror that pulls from the first mirror reports the same last block.
      if (!what.includes('without runes')) return;
      await testPull(`http://127.0.0.1:${server.port}`, copy);
      expect((await testBuild(join(copy, 'dist'), { ...options, inputs: [join(copy, 'pulled')] })).manifest.tip).toEqual({ height, hash });
    } finally {
      await server.close();
    }
  });

  it('reports the highest block with runes if a range of blocks excludes the last block', async () => {
    const { manifest } = await testBuild(join(temporaryFolder(), 'dist'), { ...options, blocks: { from: 0, to: 20 } });
    expect(manifest.tip).toEqual({ height: 3, hash: CHAIN[3]?.hash });
  });
});

/** Tests the height that a mirror reports: the last block that its pull has read from the node, even if this block has no runes. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Layout } from '../../../src/pages/mirrorOptions.ts';
import { Mirror } from '../../../src/serve/client/mirrorClient.ts';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { outpointOf } from '../../support/memoryLedger.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { messageScript, type Transaction, taproot, transactionBytes } from '../../support/runeBlocks.ts';
import { startServer } from '../../support/server.ts';

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

/** Verifies a build, or compares it with a full one. Both make all files again, so tests take turns. */
async function checkBuild(out: string, options: Parameters<typeof testBuild>[1], isVerified: boolean): Promise<void> {
  if (isVerified) return void (await check(out));
  const full = join(temporaryFolder(), 'dist');
  await testBuild(full, options);
  expect(tree(out)).toEqual(tree(full));
}

describe.each<Layout>(['archive', 'files'])('layout %s', (layout) => {
  let node: FakeNode;
  const [to, copy, out] = [temporaryFolder(), temporaryFolder(), join(temporaryFolder(), 'dist')];
  const options = { inputs: [to], layout, dialect: 'hiro', lists: true, parquet: true } as const;
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

    await checkBuild(out, options, STEPS.findIndex(([name]) => name === what) % 2 === 0);

    const server = await startServer(out);
    try {
      const ask = async (path: string) => JSON.parse((await server.send('GET', `/runes/v1${path}`)).body);
      expect((await ask('')).block_height).toBe(height);
      // The rune can be minted if the block after the reported one is below height 34.
      expect((await ask('/etchings/3:1')).supply.mintable).toBe(height + 1 < 34);
      if (layout === 'archive') {
        for (const path of [`/outputs/${'12'.repeat(32)}:0`, '/addresses/bc1qnone/outputs'])
          expect(await ask(path)).toMatchObject({ block_height: height, block_hash: hash });
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

describe.each<Layout>(['archive', 'files'])('a chain without runes, layout %s', (layout) => {
  const RUNELESS = grown([], empty(5));
  const asOf = ({ height, hash }: FakeBlock) => ({ block_height: height, block_hash: hash });
  const page = { limit: 20, offset: 0, total: 0, results: [] };

  it('is known to have none, before its first rune and after a reorganisation removes it', async () => {
    const node = await FakeNode.start(RUNELESS, { network: 'regtest' });
    const [to, out] = [temporaryFolder(), join(temporaryFolder(), 'dist')];
    const options = { inputs: [to], layout, dialect: 'hiro', lists: true, parquet: true } as const;
    const before = CHAIN.slice(0, 3);
    try {
      for (const chain of [before, CHAIN.slice(0, 4), RUNELESS]) {
        node.replace(chain);
        await testPull(`core:${node.url}`, to);
        await testBuild(out, options);
        if (chain.length === 4) continue;
        await checkBuild(out, options, chain === before);
        const server = await startServer(out);
        try {
          const last = chain.at(-1) as FakeBlock;
          const ask = async (path: string) => {
            const { status, body } = await server.send('GET', `/runes/v1/${path}`);
            return [path, status, status === 200 ? JSON.parse(body) : undefined];
          };
          for (const list of ['etchings', 'etchings/1:1/activity', 'etchings/1:1/holders', 'addresses/a/balances', 'addresses/a/activity'])
            expect(await ask(list)).toEqual([list, 200, page]);
          for (const one of ['etchings/1:1', 'etchings/1:1/holders/a', 'etchings/0', 'etchings/AAA'])
            expect(await ask(one)).toEqual([one, 404, undefined]);
          expect(await ask('addresses/a/outputs')).toEqual(['addresses/a/outputs', 200, { ...asOf(last), ...page }]);
          const outpoint = `${'12'.repeat(32)}:0`;
          const path = `outputs/${outpoint}`;
          expect(await ask(path)).toEqual([path, 200, { ...asOf(last), output: outpoint, runes: [], spent: null }]);
          const mirror = new Mirror(`http://127.0.0.1:${server.port}`);
          expect(await mirror.classify([{ outpoint, height: last.height }])).toEqual([{ outpoint, kind: 'none' }]);
          // Its input has no runes, and its message mints a rune that does not exist.
          const hex = Buffer.from(transactionBytes({ ...MINT, outputs: [messageScript([20, 1, 20, 1])] })).toString('hex');
          const { transactions } = await mirror.pending({ transactions: [{ hex, inputs: [{ height: 1 }] }], network: 'regtest' });
          expect(transactions).toMatchObject([{ result: 'none', unknown: [] }]);
        } finally {
          await server.close();
        }
      }
    } finally {
      node.close();
    }
  });
});

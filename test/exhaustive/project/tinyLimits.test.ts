/**
 * Tests complete pulls and builds with tiny limits, which even a short chain exceeds. The files must equal those with default limits, and
 * every limit must be exceeded.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { crossings, LIMITS, type Limits, type PublishedLimits, publishedLimits } from '../../../src/limits.ts';
import { hashText } from '../../../src/runes/bytes.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { RecordingLog, temporaryFolder, testBuild } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { limitsWith, TINY as TINY_LIMITS } from '../../support/limits.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { messageScript, type Transaction } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';

const random = (name: string) => {
  const next = randomFor(name);
  return (below: number) => Math.floor(next() * below);
};

/** Returns a script whose address is different for each name. */
const scriptOf = (name: string) => Buffer.concat([Uint8Array.of(0x51, 32), createHash('sha256').update(name).digest()]);

/**
 * Makes a chain that first creates outputs of many addresses, and much later spends several of them in one transaction. By then these
 * outputs are on different pages of the ledger's sorted files. Random blocks follow.
 */
function chainOfOldOutputs(): FakeBlock[] {
  const next = random('old outputs');
  const unknown = () => ({ outpoint: Uint8Array.from({ length: 36 }, () => next(256)) });
  const all = extended([], 20, random('a chain for tiny limits'));
  const append = (transactions: readonly Transaction[]) => all.push(...chainOf(all.length, [transactions], all.at(-1)?.hash));
  const old: Uint8Array[] = [];
  while (all.length < 140) {
    // Etches a rune without a name. The eight outputs share its premine.
    const scripts = Array.from({ length: 8 }, (_, i) => scriptOf(`${all.length} ${i}`));
    append([{ inputs: [unknown()], outputs: [messageScript([2, 1, 6, 800, 0, 0, 0, 0, 9]), ...scripts] }]);
    const block = readBlock(all.at(-1)?.bytes ?? Buffer.alloc(0), hash256);
    for (let i = 1; i <= 8; i++) old.push(outpointOf(hashText(block.txids, 32), i));
  }
  while (all.length < 220) append([]);
  while (old.length > 400) {
    const inputs = Array.from({ length: 2 + next(6) }, () => ({ outpoint: old.splice(next(old.length), 1)[0] ?? Buffer.alloc(36) }));
    append([{ inputs, outputs: [scriptOf(`${all.length}`)] }]);
  }
  return extended(all, 360 - all.length, random('the end of a chain for tiny limits'));
}

const CHAIN = chainOfOldOutputs();

/** Limits of pulls from a node, so low that every chain exceeds them. */
const TINY = limitsWith({ changesBytes: 1024, sortedPageBytes: 200, blocksPerCommit: 2 });

describe('limits', () => {
  const levels = { steps: [8, 4, 2], unsettled: 2 };
  it.each([
    ['listLevels', { listLevels: { steps: [8, 3], unsettled: 2 } }],
    ['tableLevels', { tableLevels: { steps: [4, 8], unsettled: 2 } }],
    ['listPage', { listPage: 0 }],
  ])('that contradict each other are refused: %s', (name, changes) => {
    expect(() => limitsWith(changes)).toThrow(`the limit ${name} is`);
  });

  it('are returned with the changes if they agree', () => {
    expect(limitsWith({ listLevels: levels, listPage: 6 })).toEqual({ ...LIMITS, listLevels: levels, listPage: 6 });
  });
});

describe('a build with other limits than the last build', () => {
  it('is a full build if the limits change published bytes, and verifies', async () => {
    const out = join(temporaryFolder(), 'out');
    const whyFull = async (limits: Partial<Limits>) => {
      const log = new RecordingLog();
      await testBuild(out, { inputs: [SAMPLE_INPUT], layout: 'archive', lists: true, limits: limitsWith(limits), log });
      await check(out);
      return log.infos.find(({ event }) => event === 'loaded')?.figures?.['full'];
    };
    await whyFull({});
    const published = publishedLimits(limitsWith(TINY_LIMITS));
    for (const name of Object.keys(published) as (keyof PublishedLimits)[])
      expect([name, await whyFull({ [name]: published[name] })]).toEqual([name, expect.any(String)]);
    const { listLevels } = published;
    expect(await whyFull({ ...TINY_LIMITS, ...publishedLimits(LIMITS), listLevels })).toBe(false);
  });
});

describe('a pull from a node with tiny limits', () => {
  let node: FakeNode;
  beforeAll(async () => {
    node = await FakeNode.start(CHAIN, { network: 'regtest' });
  });
  afterAll(() => node.close());
  beforeEach(() => crossings.clear());

  /** Pulls the chain in several steps. `limits` returns the limits of a step. */
  async function pulled(limits: (step: number) => typeof LIMITS): Promise<string> {
    const to = temporaryFolder();
    for (const [step, last] of [120, 210, 230, CHAIN.length - 1].entries())
      await testPull(`core:${node.url}`, to, { confirmations: 12, limits: limits(step), wanted: { from: undefined, to: last } });
    return to;
  }

  it('writes the rows of the protocol from sorted files, and the same bytes as with any other limits', async () => {
    const tiny = await pulled(() => TINY);
    expect(await pulledRows(tiny)).toEqual(memoryRows(memoryOf(CHAIN)));
    for (const name of ['changesBytes', 'sortedPageBytes', 'mergeBelow', 'blocksPerCommit'] as const)
      expect([name, crossings.has(name)]).toEqual([name, true]);
    crossings.clear();
    const usual = await pulled(() => LIMITS);
    expect([...crossings.keys()]).toEqual(['sortedPageBytes', 'mergeBelow']);
    expect(pulledTree(tiny)).toEqual(pulledTree(usual));
    const changing = await pulled((step) => (step % 2 === 0 ? TINY : LIMITS));
    expect(pulledTree(changing)).toEqual(pulledTree(usual));
  });
});

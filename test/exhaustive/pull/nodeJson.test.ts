/**
 * Tests answers of a node that are longer than the longest JavaScript string. They contain scripts of 10,000 bytes,
 * both in hex and as names of opcodes.
 */
import { expect, it } from 'vitest';
import { BitcoinNode } from '../../../src/pull/node/coreNode.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { chainOf, FakeNode } from '../../support/fakeNode.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { taproot } from '../../support/runeBlocks.ts';

const FIRST = 840_000;
const SECRET = 'miner:correct-horse';
const ENVIRONMENT = { CORE_RPC_USER: 'miner', CORE_RPC_PASSWORD: 'correct-horse' };
const OPTIONS = {
  cookie: undefined,
  home: '/nonexistent',
  concurrency: 4,
  retries: 0,
  timeoutMs: 60_000,
  pauseMs: 1,
  signal: new AbortController().signal,
  onNotice: () => undefined,
};

it('reads spent outputs from JSON of more than 128 MiB', async () => {
  const inputs = Array.from({ length: 3500 }, (_, i) => ({ outpoint: outpointOf('77'.repeat(32), i) }));
  const blocks = chainOf(FIRST, [[{ inputs, outputs: [taproot(1)] }]]);
  const script = (index: number) => Buffer.alloc(10_000, 0x61).fill(index, 0, 1);
  const outputs = (outpoint: string) => ({ script: script(Number(outpoint.slice(65)) % 256), height: FIRST - 7 });
  const fake = await FakeNode.start(blocks, { version: 290_000, credentials: SECRET, outputs });
  const block = readBlock(blocks[0]?.bytes ?? new Uint8Array(), hash256);
  const wanted = [3499, 0].map((input) => ({ transaction: 1, input }));
  for (const environment of [{}, ENVIRONMENT]) {
    fake.largest = 0;
    const node = await BitcoinNode.open({ ...OPTIONS, url: new URL(fake.url), environment });
    const found = await node.previousOutputs(block, FIRST, wanted, async () => undefined);
    expect(fake.largest).toBeGreaterThan(128 * 1024 * 1024);
    expect(found.map(({ height }) => height)).toEqual([FIRST - 7, FIRST - 7]);
    expect(found.map((output) => script(3499 % 256).equals(output.script))).toEqual([true, false]);
    expect(found.map((output) => script(0).equals(output.script))).toEqual([false, true]);
    node.close();
  }
  expect(fake.calls.slice(-1)).toEqual(['getrawtransaction']);
  await fake.close();
});

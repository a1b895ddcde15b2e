/** Makes chains of raw blocks with runes, from the fixtures or with random transactions. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashText } from '../../src/runes/bytes.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { ROOT } from './cli.ts';
import type { FakeBlock } from './fakeNode.ts';
import { hash256, MemoryChain, outpointOf, sealed } from './memoryLedger.ts';
import { blockBytes, type Input, messageScript, type Transaction, taproot } from './runeBlocks.ts';

/** A chain of test/fixtures/indexing, which comes from the tests of ord. */
export interface FixtureChain {
  readonly test: string;
  readonly chain: 'regtest' | 'mainnet';
  readonly index_runes: boolean;
  /** Raw blocks in hex, from the first height of the network on. */
  readonly blocks: readonly string[];
  /** Expected state after the block with this index. Balances: outpoint, then rune and amount. */
  readonly asserts: readonly {
    readonly height: number;
    readonly runes: readonly ({ id: string; burned: string; mints: string; divisibility: number } & Record<string, unknown>)[];
    readonly balances: readonly [string, [string, string][]][];
  }[];
}

export const fixtureLines = <T>(name: string): T[] =>
  readFileSync(join(ROOT, 'test/fixtures/indexing', name), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

export const networkOf = ({ chain }: FixtureChain): 'main' | 'regtest' => (chain === 'mainnet' ? 'main' : 'regtest');

/** Returns the blocks of a fixture in the form of a node. */
export function blocksOf(fixture: FixtureChain): FakeBlock[] {
  let previous: Uint8Array | undefined;
  return fixture.blocks.map((hex, index) => {
    const bytes = sealed(Buffer.from(hex, 'hex'), previous);
    previous = hash256(bytes.subarray(0, 80));
    return { hash: hashText(previous), height: NETWORKS[networkOf(fixture)].firstHeight + index, bytes };
  });
}

/** Returns the ledger and rows of regtest blocks, from the first block on. */
export function memoryOf(blocks: readonly FakeBlock[]): MemoryChain {
  const memory = new MemoryChain(NETWORKS.regtest);
  for (const { bytes, height } of blocks) memory.add(bytes, height);
  return memory;
}

/**
 * Returns these blocks and `count` more blocks with random transactions. `random` returns an integer below its argument. Each block may
 * spend about one in `thrift` unspent outputs (1: all), and has fewer than `busy` transactions besides its coinbase.
 */
export function extended(
  blocks: readonly FakeBlock[],
  count: number,
  random: (below: number) => number,
  thrift = 1,
  busy = 4,
): FakeBlock[] {
  const memory = memoryOf(blocks);
  const all = [...blocks];
  for (let i = 0; i < count; i++) {
    const outputs = [...memory.ledger.outputs.keys()];
    const unspent = thrift === 1 ? outputs : outputs.filter(() => random(thrift) === 0);
    const ids = [...memory.ledger.byId.values()].map(({ row }) => row.id);
    // Some blocks are empty, among them block 0, because an edict cannot name a rune of block 0.
    const transactions = Array.from({ length: all.length === 0 ? 0 : random(busy) }, () => generateTransaction(random, unspent, ids));
    const before = all.at(-1)?.hash ?? '00'.repeat(32);
    // The time is random, so no two branches have the same block.
    const made = Buffer.from(blockBytes(all.length, transactions));
    made.writeUInt32LE(1_600_000_000 + random(1e8), 68);
    const bytes = sealed(made, Buffer.from(before, 'hex').reverse());
    all.push({ hash: hashText(hash256(bytes.subarray(0, 80))), height: all.length, bytes });
    memory.add(bytes, all.length - 1);
  }
  return all;
}

/** Returns a transaction with a random message that spends some outputs of `unspent`. Removes these outputs from the list. */
export function generateTransaction(random: (below: number) => number, unspent: string[], ids: readonly string[]): Transaction {
  const inputs: Input[] = [{ outpoint: Uint8Array.from({ length: 36 }, () => random(256)) }];
  for (let count = random(4); count > 0 && unspent.length > 0; count--) {
    const [[txid = '', index] = []] = unspent.splice(random(unspent.length), 1).map((outpoint) => outpoint.split(':'));
    inputs.push({ outpoint: outpointOf(txid, Number(index)) });
  }
  const kinds = [taproot(random(4)), Uint8Array.of(0x51), Uint8Array.of(0x6a)];
  const outputs = Array.from({ length: 1 + random(3) }, () => kinds[random(3)] ?? taproot(9));
  const integers = [[], [2, 1, 6, random(1000)], [2, 3, 6, random(99), 8, random(5), 10, random(50)]][random(3)] ?? [];
  const [block = 1, tx = 0] = (ids[random(ids.length)] ?? '').split(':').map(Number);
  if (ids.length > 0 && random(2) === 0) integers.push(20, block, 20, tx);
  if (random(4) === 0) integers.push(22, random(outputs.length + 1));
  if (random(12) === 0) integers.push(126, 0);
  integers.push(0);
  // Adds edicts of the rune that this transaction etches, then an edict of another rune.
  for (let edicts = random(3); edicts > 0; edicts--) integers.push(0, 0, random(300), random(outputs.length + 2));
  if (ids.length > 0) integers.push(block, tx, random(300), random(outputs.length + 2));
  for (let edicts = random(3); edicts > 0; edicts--) integers.push(0, 0, random(300), random(outputs.length + 2));
  return { inputs, outputs: random(8) === 0 ? outputs : [messageScript(integers), ...outputs] };
}

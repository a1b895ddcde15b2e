/**
 * Tests generated transactions. Compares their rows with a simple step-by-step model, the supply with premine and
 * mints, and messages with ord's decoder.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { Allocation, NOWHERE } from '../../src/runes/allocation.ts';
import { hashText, outpointText } from '../../src/runes/bytes.ts';
import { emitMoves } from '../../src/runes/ledgerRows.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { type Block, readBlock, scriptOf } from '../../src/runes/parseBlock.ts';
import { runeIdText } from '../../src/runes/runeId.ts';
import type { RuneOutput } from '../../src/runes/unspentLedger.ts';
import { ROOT } from '../support/cli.ts';
import { balancesByRows, balancesOf, hash256, MemoryChain } from '../support/memoryLedger.ts';
import { decodedByOrd, decodedHere, generateOutputs, randomIntegers } from '../support/ordDecoder.ts';
import { blockBytes } from '../support/runeBlocks.ts';
import { generateTransaction } from '../support/runeChains.ts';

const SEED = Number(process.env['SEED']);

/** Rows of a transaction. A key has the operation, the rune, the sender, and the receiving output. */
type Told = [key: string, amount: bigint][];

interface Plan {
  readonly burns: boolean[];
  /** Units that the transaction distributes. `sender` 0 has no address. 3 means a premine or mint. */
  readonly entries: { rune: number; amount: number; sender: number }[];
  readonly edicts: { rune: number; amount: number; output: number }[];
  readonly pointer: number | undefined;
  readonly cenotaph: boolean;
}

const plans: fc.Arbitrary<Plan> = fc.record({
  burns: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  entries: fc
    .array(fc.record({ rune: fc.integer({ min: 1, max: 2 }), amount: fc.nat(40), sender: fc.nat(3) }), { maxLength: 6 })
    .map((entries) => entries.sort((a, b) => Number(a.sender === 3) - Number(b.sender === 3))),
  edicts: fc.array(fc.record({ rune: fc.integer({ min: 1, max: 3 }), amount: fc.nat(12), output: fc.nat(5) }), { maxLength: 6 }),
  pointer: fc.option(fc.nat(4), { nil: undefined }),
  cenotaph: fc.boolean(),
});

/** Returns the rows of a plan by the written rules: units are taken from the front of the queue of their rune. */
function model({ burns, entries, edicts, pointer, cenotaph }: Plan): Told {
  const told: Told = [];
  const queues = new Map<number, { amount: bigint; sender: number }[]>();
  for (const { rune, amount, sender } of entries) queues.set(rune, [...(queues.get(rune) ?? []), { amount: BigInt(amount), sender }]);
  const left = (rune: number) => (queues.get(rune) ?? []).reduce((sum, { amount }) => sum + amount, 0n);
  const move = (rune: number, asked: bigint, output: number | undefined) => {
    let missing = asked < left(rune) ? asked : left(rune);
    if (missing === 0n) return;
    const burned = output === undefined || burns[output];
    if (!burned) told.push([`receive ${rune} ${output}`, missing]);
    for (const entry of queues.get(rune) ?? []) {
      const taken = entry.amount < missing ? entry.amount : missing;
      entry.amount -= taken;
      missing -= taken;
      if (taken > 0n && (burned || entry.sender !== 3)) {
        told.push([`${burned ? 'burn' : 'send'} ${rune} from ${entry.sender === 3 && burned ? 0 : entry.sender} ${output}`, taken]);
      }
    }
  };
  const eligible = burns.flatMap((burned, output) => (burned ? [] : [output]));
  const runes = [...queues.keys()].sort();
  if (cenotaph) {
    for (const rune of runes) for (const { amount } of [...(queues.get(rune) ?? [])]) move(rune, amount, undefined);
    return told;
  }
  for (const { rune, amount, output } of edicts) {
    if (output < burns.length) move(rune, amount === 0 ? left(rune) : BigInt(amount), output);
    else if (amount > 0) for (const one of eligible) move(rune, BigInt(amount), one);
    else if (eligible.length > 0) {
      const [share, rest] = [left(rune) / BigInt(eligible.length), left(rune) % BigInt(eligible.length)];
      eligible.forEach((one, i) => {
        move(rune, share + (BigInt(i) < rest ? 1n : 0n), one);
      });
    }
  }
  for (const rune of runes) move(rune, left(rune), pointer ?? eligible[0]);
  return told;
}

/**
 * Returns the rows that the program makes for a plan. If there are more than `limit` rows, the program makes sums
 * instead.
 */
function emitted({ burns, entries, edicts, pointer, cenotaph }: Plan, limit: number): Told {
  const told: Told = [];
  const allocation = new Allocation(burns);
  for (const { rune, amount, sender } of entries) {
    allocation.add(rune, BigInt(amount), sender === 3 ? undefined : Uint8Array.from(sender === 0 ? [] : [sender]));
  }
  if (cenotaph) allocation.burn();
  else {
    for (const { rune, amount, output } of edicts) allocation.edict(rune, BigInt(amount), output);
    allocation.rest(pointer ?? allocation.destinations[0] ?? NOWHERE);
  }
  const target = {
    addressOf: ([sender]: Uint8Array) => (sender === undefined ? null : String(sender)),
    receiver: (output: number) => String(output),
    emit: ({ operation, rune, address, output, receiver, amount = 0n }: Parameters<Parameters<typeof emitMoves>[1]['emit']>[0]) => {
      if (operation === 'send') expect(receiver).toBe(String(output));
      told.push([
        operation === 'receive' ? `receive ${rune} ${output}` : `${operation} ${rune} from ${address ?? 0} ${output ?? undefined}`,
        amount,
      ]);
    },
  };
  emitMoves(allocation, target, 0, limit);
  return told;
}

const summed = (told: Told): Told => {
  const sums = new Map<string, bigint>();
  for (const [key, amount] of told) sums.set(key, (sums.get(key) ?? 0n) + amount);
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
};

describe('moves', () => {
  const valid = plans.map((plan) => ({
    ...plan,
    edicts: plan.edicts.map((edict) => ({ ...edict, output: Math.min(edict.output, plan.burns.length) })),
    pointer: plan.pointer === undefined ? undefined : plan.pointer % plan.burns.length,
  }));

  it('give the rows of a model that moves units one by one', () => {
    fc.assert(
      fc.property(valid, (plan) => {
        expect(emitted(plan, 1e9)).toEqual(model(plan));
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  it('give the same amounts if rows are summed, each row once', () => {
    fc.assert(
      fc.property(valid, (plan) => {
        const sums = emitted(plan, -1);
        expect(summed(sums)).toEqual(summed(model(plan)));
        expect(new Set(sums.map(([key]) => key)).size).toBe(sums.length);
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });
});

describe('chains of generated blocks', () => {
  it('keep the supply: premine and mints equal the outputs', () => {
    let mints = 0;
    let burns = 0;
    for (let round = 0; round < 20; round++) {
      const random = randomIntegers(SEED + round);
      const chain = new MemoryChain(NETWORKS.regtest);
      for (let height = 1; height < 12; height++) {
        const unspent = [...chain.ledger.outputs.keys()];
        const ids = [...chain.ledger.byId.values()].map(({ row }) => row.id);
        const transactions = Array.from({ length: 1 + random(4) }, () => generateTransaction(random, unspent, ids));
        const before = new Map(chain.ledger.outputs);
        const { block, rows } = chain.add(blockBytes(height, transactions), height);
        checkTransactions(chain, rows, spentBy(block, before));
        expect(balancesByRows(chain)).toEqual(balancesOf(chain));
      }
      for (const { row, mints: count, terms } of chain.ledger.byId.values()) {
        const sum = (operation: string) =>
          chain.rows.reduce(
            (total, other) => total + (other.rune_id === row.id && other.operation === operation ? (other.amount ?? 0n) : 0n),
            0n,
          );
        const unspent = [...chain.ledger.outputs.values()].flatMap(({ balances }) =>
          balances.filter(({ rune }) => chain.ledger.byId.get(rune)?.row === row),
        );
        const held = unspent.reduce((total, { amount }) => total + amount, 0n);
        expect(held + sum('burn')).toBe(row.premine + BigInt(count) * (terms?.amount ?? 0n));
        mints += count;
        burns += Number(sum('burn') > 0n);
      }
    }
    // The transactions must contain enough mints and burns. Otherwise the checks above would prove little.
    expect(mints).toBeGreaterThan(20);
    expect(burns).toBeGreaterThan(20);
  });
});

/**
 * Returns the units that each transaction of a block spends, by `txid rune`. No transaction here spends outputs of the
 * same block.
 */
function spentBy(block: Block, outputs: ReadonlyMap<string, RuneOutput>): Map<string, bigint> {
  const spent = new Map<string, bigint>();
  block.transactions.forEach(({ firstInput, inputs }, index) => {
    for (const at of block.inputs.slice(firstInput, firstInput + inputs)) {
      for (const { rune, amount } of outputs.get(outpointText(block.bytes, at))?.balances ?? []) {
        const key = `${hashText(block.txids, 32 * index)} ${runeIdText(rune)}`;
        spent.set(key, (spent.get(key) ?? 0n) + amount);
      }
    }
  });
  return spent;
}

/** Checks that each transaction receives and burns exactly the runes that it spends, mints and etches. */
function checkTransactions({ ledger }: MemoryChain, rows: MemoryChain['rows'], spent: ReadonlyMap<string, bigint>): void {
  for (const tx of new Set(rows.map(({ tx_id }) => tx_id))) {
    const own = rows.filter(({ tx_id }) => tx_id === tx);
    expect(own.map(({ event_index }) => event_index)).toEqual(own.map((_, i) => i));
    for (const rune of new Set(own.map(({ rune_id }) => rune_id))) {
      const sum = (...operations: string[]) =>
        own.reduce((total, row) => total + (row.rune_id === rune && operations.includes(row.operation) ? (row.amount ?? 0n) : 0n), 0n);
      const etched = own.some((row) => row.rune_id === rune && row.operation === 'etching');
      const premine = etched ? ([...ledger.byId.values()].find(({ row }) => row.id === rune)?.row.premine ?? 0n) : 0n;
      expect(sum('receive', 'burn')).toBe((spent.get(`${tx} ${rune}`) ?? 0n) + sum('mint') + premine);
    }
  }
}

describe("ord's decoder", () => {
  it('decodes generated messages like this program', () => {
    const random = randomIntegers(SEED);
    let messages = 0;
    for (let i = 0; i < 5000; i++) {
      const outputs = generateOutputs(random);
      const here = decodedHere(outputs);
      expect(here, outputs.map((script) => Buffer.from(script).toString('hex')).join(' ')).toEqual(decodedByOrd(outputs));
      messages += here ? 1 : 0;
    }
    expect(messages).toBeGreaterThan(1000);
  });

  it.each([
    [
      849_236,
      '0000000000000000000237152a8a45b8285ea4ce2f2d5358e909bfe8d400220f',
      1813,
      'd2b51b443b77c07f389836ad9be8972eb70b4b0442d385c14be250f00eeb6d68',
    ],
    [
      866_342,
      '000000000000000000014ce9ba7c6760053c3c82ce6ab43d60afb101d3c8f1f1',
      3949,
      '4966277e6e7064c62483858bfc985c10241c843ea0eb7dbc60f496b9eaaff25d',
    ],
  ])('decodes the messages of block %d like this program', (height, hash, count, digest) => {
    const block = readBlock(decompress(readFileSync(join(ROOT, `test/fixtures/indexing/blocks/${height}.bin.zst`))), hash256);
    const read = block.transactions.flatMap((transaction) => {
      if (!transaction.message) return [];
      const outputs = Array.from({ length: transaction.outputs }, (_, output) => scriptOf(block, transaction, output));
      const here = decodedHere(outputs);
      expect(here).toEqual(decodedByOrd(outputs));
      return [here];
    });
    const text = JSON.stringify(read, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect([block.hash, read.length, createHash('sha256').update(text).digest('hex')]).toEqual([hash, count, digest]);
  });
});

/** Compares the rows of invented chains with an independent model, and generated messages with ord's decoder. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { NETWORKS } from '../../src/runes/networks.ts';
import { readBlock, scriptOf } from '../../src/runes/parseBlock.ts';
import { ChainMaker } from '../rehearsal/chain.ts';
import { Model, type TransactionRows } from '../rehearsal/model/model.ts';
import { ROOT } from '../support/cli.ts';
import { balancesOf, hash256, MemoryChain } from '../support/memoryLedger.ts';
import { ledgerRows, runeRow } from '../support/modelRows.ts';
import { decodedByOrd, decodedHere, generateOutputs } from '../support/ordDecoder.ts';
import { extended } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';

const SEED = Number(process.env['SEED']);

/** Blocks of chains that are drawn in two ways. */
const CHAINS: Readonly<Record<string, () => Iterable<Uint8Array>>> = {
  *'with the shape of mainnet'() {
    const maker = new ChainMaker({ seed: SEED, blocks: 120, rows: 24 });
    for (let height = 0; height < 120; height += 1) yield maker.next().bytes;
  },
  *'with any mix of fields in a message'() {
    for (const { bytes } of extended([], 300, integersFor('chains'), 1, 8)) yield bytes;
  },
};

describe('invented chains', () => {
  it.each(Object.entries(CHAINS))('%s have the rows, runes and unspent outputs of the model', (_, blocks) => {
    const memory = new MemoryChain(NETWORKS.regtest);
    let expected: TransactionRows[] = [];
    const model = new Model('regtest', { onRows: (transaction) => expected.push(transaction) });
    let height = 0;
    for (const bytes of blocks()) {
      expected = [];
      model.apply(bytes, height);
      const { rows } = memory.add(bytes, height);
      const of = (txIndex: number) => rows.filter((row) => row.tx_index === txIndex);
      // The order of sums is not defined.
      for (const one of expected.filter(({ folded }) => folded)) {
        const told = (all: readonly object[]) => new Set(all.map((row) => telling({ ...row, event_index: 0, spent: '' })));
        expect(told(of(one.txIndex))).toEqual(told(ledgerRows(one, true)));
      }
      const isExact = new Set(expected.filter(({ folded }) => !folded).map(({ txIndex }) => txIndex));
      const exact = expected.filter(({ folded }) => !folded).flatMap((one) => ledgerRows(one, true));
      expect(rows.filter((row) => isExact.has(row.tx_index))).toEqual(exact);
      expect(new Set(rows.map((row) => row.tx_index))).toEqual(new Set(expected.map(({ txIndex }) => txIndex)));
      height += 1;
    }
    const runes = [...memory.ledger.byId.values()];
    expect(runes.map(({ row }) => row)).toEqual(model.runes.map((rune) => runeRow(rune, model.block(rune.height).hash)));
    expect(runes.map(({ mints }) => mints)).toEqual(model.runes.map(({ counts }) => counts.mints));
    const unspent = [...model.outputs()].filter(({ spent }) => !spent);
    expect(balancesOf(memory)).toEqual(
      unspent.map(({ outpoint, held }) => [outpoint, held.map(({ rune, amount }) => [rune.id, String(amount)])]).sort(),
    );
    for (const operation of ['etching', 'mint', 'burn', 'send', 'receive'])
      expect(memory.rows.filter((row) => row.operation === operation).length, operation).toBeGreaterThan(20);
  });
});

const telling = (value: object): string => JSON.stringify(value, (_, field) => (typeof field === 'bigint' ? String(field) : field));

describe("ord's decoder", () => {
  it('decodes generated messages like this program', () => {
    const random = integersFor('messages');
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

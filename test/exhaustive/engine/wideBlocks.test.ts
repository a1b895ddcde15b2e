/**
 * Tests the widest possible blocks through pull, build, answers and verification: a transaction with all inputs of a block, a transaction
 * with many rows, many outputs, and many records in a block. The variables OUTPUTS and RECORDS set the last two numbers: OUTPUTS=300000
 * RECORDS=500000 npm run test:exhaustive -- wideBlocks
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../../src/runes/address.ts';
import { hashText } from '../../../src/runes/bytes.ts';
import { NETWORKS } from '../../../src/runes/networks.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer } from '../../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { hash256, MemoryChain, outpointOf } from '../../support/memoryLedger.ts';
import { memoryRows, pulledRows } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { messageScript, type Transaction, taproot } from '../../support/runeBlocks.ts';

/** Number of inputs of 167 weight units that fit into a block. */
const INPUTS = 23_900;
/** Maximum number of rows of a transaction. A transaction that needs more rows gets sums instead (docs/files.md). */
const MOST_ROWS = 10_000;
const OUTPUTS = Number(env['OUTPUTS'] ?? 8_000);
const RECORDS = Number(env['RECORDS'] ?? 16_000);
/** Number of outputs per block. An output has 31 bytes, so 30,000 fit into a block. */
const OUTPUTS_EACH = Math.min(OUTPUTS, 30_000);
const RUNES = 16;
/** Number of outputs that receive each rune. Each rune in each output gives a `receive` and a `send`. */
const RECEIVERS = RECORDS / RUNES / 2;

/** Returns a script of 22 bytes. All scripts belong to a few addresses. */
const keyHash = (number: number): Uint8Array => Buffer.concat([Uint8Array.of(0, 20, number), new Uint8Array(19)]);
const address = (script: Uint8Array): string => addressOf(script, NETWORKS.regtest, hash256) ?? '';
/** Returns a transaction that etches a rune and divides the premine equally among these outputs. */
const etching = (premine: number, outputs: readonly Uint8Array[], input = 0): Transaction => ({
  inputs: [{ outpoint: outpointOf('11'.repeat(32), input) }],
  outputs: [messageScript([2, 1, 6, premine, 0, 0, 0, 0, outputs.length + 1]), ...outputs],
});
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

/** Adds a block of these transactions. Returns the ids of the transactions. */
function extend(chain: FakeBlock[], memory: MemoryChain, transactions: readonly Transaction[]): string[] {
  const [block] = chainOf(chain.length, [transactions], chain.at(-1)?.hash);
  if (block === undefined) throw new Error('no block');
  chain.push(block);
  const { txids } = memory.add(block.bytes, block.height).block;
  return transactions.map((_, i) => hashText(txids, 32 * (i + 1)));
}

describe('wide blocks from a node', () => {
  const chain: FakeBlock[] = [];
  const memory = new MemoryChain(NETWORKS.regtest);
  const work = temporaryFolder();
  const [to, out] = [join(work, 'in'), join(work, 'out')];
  const options = { inputs: [to], layout: 'archive', lists: true, memoryLimit: '2GB' } as const;
  let node: FakeNode;
  let mirror: FetchMirror;
  const ask = async (path: string) => {
    const answer = await mirror.answer(new Request(`http://host/runes/v1/${path}`));
    expect([path, answer?.status]).toEqual([path, 200]);
    return (await answer?.json()) as { total: number; results: { operation: string; address?: string; balance?: string }[] };
  };
  const ids = { wide: '', narrow: '', sums: '' };
  /** Heights of the widest block of each kind. */
  const at = { inputs: 0, rows: 0, records: 0 };

  beforeAll(async () => {
    extend(chain, memory, []);
    const [made = ''] = extend(chain, memory, [
      etching(
        INPUTS * 3,
        many(INPUTS, () => taproot(1)),
      ),
    ]);
    const inputs = many(INPUTS, (i) => ({ outpoint: outpointOf(made, i + 1) }));
    at.inputs = chain.length;
    [ids.wide = ''] = extend(chain, memory, [{ inputs, outputs: [taproot(2)] }]);
    at.rows = chain.length;
    [ids.narrow = ''] = extend(chain, memory, [
      etching(
        MOST_ROWS - 1,
        many(MOST_ROWS - 1, (i) => keyHash(i % 9)),
        2 ** 29,
      ),
    ]);
    for (let left = OUTPUTS; left > 0; left -= OUTPUTS_EACH)
      extend(chain, memory, [
        etching(
          OUTPUTS_EACH,
          many(OUTPUTS_EACH, (i) => keyHash(i % 5)),
          left,
        ),
      ]);
    const etched = extend(
      chain,
      memory,
      many(RUNES, (i) => etching(RECEIVERS * 7, [taproot(4)], 2 ** 30 + i)),
    );
    at.records = chain.length;
    const block = chain.length - 1;
    // Edicts encode an id as the difference to the id before. The first id is a block and a transaction. Each later id is that of the next
    // transaction in the block.
    const edicts = many(RUNES, (i) => [i === 0 ? block : 0, 1, 0, RECEIVERS + 1]).flat();
    [ids.sums = ''] = extend(chain, memory, [
      {
        inputs: etched.map((id) => ({ outpoint: outpointOf(id, 1) })),
        outputs: [messageScript([0, ...edicts]), ...many(RECEIVERS, (i) => keyHash(i % 7))],
      },
    ]);
    // Adds a last block, which spends some outputs of the wide blocks.
    extend(chain, memory, [{ inputs: many(3, (i) => ({ outpoint: outpointOf(ids.sums, i + 1) })), outputs: [taproot(5)] }]);
    node = await FakeNode.start(chain, { network: 'regtest' });
    mirror = new FetchMirror(fileServer(out).fetchFile, 0);
  }, 600_000);
  afterAll(() => node.close());

  it('are pulled with all rows, in steps that builds can follow', async () => {
    const widest = memory.rows.reduce((most, { spent }) => Math.max(most, spent?.length ?? 0), 0);
    expect(widest).toBeGreaterThan(3_000_000);
    const rowsOf = (height: number) => memory.rows.filter((row) => row.block_height === height).length;
    expect([at.inputs, at.rows, at.records].map(rowsOf)).toEqual([2, MOST_ROWS, RECORDS]);
    for (const last of [1, at.inputs, at.records - 1, at.records, chain.length - 1]) {
      await testPull(`core:${node.url}`, to, { wanted: { from: undefined, to: last }, confirmations: 2 });
      await testBuild(out, options);
    }
    const [found, expected] = [await pulledRows(to), memoryRows(memory)];
    expect(found.length).toBe(expected.length);
    expect(found.findIndex((row, i) => row !== expected[i])).toBe(-1);
  }, 1_200_000);

  it('are the same after a full build, and pass verification', async () => {
    const full = join(work, 'full');
    const { manifest } = await testBuild(full, options);
    expect(manifest.lists?.outputs).toEqual({});
    expect(tree(out)).toEqual(tree(full));
    await check(out);
  }, 1_200_000);

  it('can be built as files of whole blocks too', async () => {
    const files = join(work, 'files');
    await testBuild(files, { inputs: [to], pageSizes: [100_000], operationPages: false, memoryLimit: '2GB' });
    await check(files);
    const archive = JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')) as { digest: string };
    expect(JSON.parse(readFileSync(join(files, 'runes/v1/manifest.json'), 'utf8'))).toMatchObject({ digest: archive.digest });
  }, 1_200_000);

  it('give right answers for every list', async () => {
    expect(await ask(`transactions/${ids.wide}/activity`)).toMatchObject({
      total: 2,
      results: [{ operation: 'send', address: address(taproot(1)) }, { operation: 'receive' }],
    });
    expect((await ask(`transactions/${ids.narrow}/activity?offset=${MOST_ROWS - 1}`)).results).toMatchObject([{ operation: 'etching' }]);
    for (const offset of [0, 59, RECORDS / 2, RECORDS - 1]) {
      const { total, results } = await ask(`blocks/${at.records}/activity?limit=60&offset=${offset}`);
      expect([total, results.length]).toEqual([RECORDS, Math.min(60, RECORDS - offset)]);
    }
    expect(await ask(`addresses/${address(taproot(1))}/outputs`)).toMatchObject({ total: 0, results: [] });
    expect(await ask(`addresses/${address(taproot(2))}/outputs`)).toMatchObject({ total: 1 });
    const unspent = [...memory.ledger.outputs.values()].map(({ script }) => address(script));
    for (const script of [keyHash(0), keyHash(1), keyHash(6), taproot(5)]) {
      const total = unspent.filter((one) => one === address(script)).length;
      for (const offset of [0, Math.floor(total / 2)]) {
        expect(await ask(`addresses/${address(script)}/outputs?offset=${offset}`)).toMatchObject({ total, offset });
      }
    }
    const balances = await ask(`addresses/${address(taproot(5))}/balances`);
    expect(balances.total).toBe(RUNES);
  });
});

/** Tests pulls from a node that continue the rows of a mirror, or make a lost ledger again from their own rows. */
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type FolderIndex, indexText, rowsName } from '../../../src/contract/rowsSchemas.ts';
import { readFiles } from '../../../src/duckdb/readFilesSql.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { ChosenOutputs } from '../../../src/pull/node/checkOutputs.ts';
import { copyTable, NODE_LEDGER } from '../../../src/rows/rowsForm.ts';
import { readState } from '../../../src/unspent/diskLedger.ts';
import { RecordingLog, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { airdrop, extendedBy } from '../../support/outputStates.ts';
import { placeFile } from '../../support/placeFile.ts';
import { startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, type TestPull, testPull } from '../../support/pull.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const random = integersFor('continued rows');
/** Most outputs of two etchings stay unspent. */
const CHAIN = (() => {
  const more = (blocks: readonly FakeBlock[], count: number) => extended(blocks, count, random, 30, 5);
  const drop = (blocks: readonly FakeBlock[], count: number): FakeBlock[] => {
    const dropped = extendedBy(blocks, [airdrop(count)], random);
    // The block has a random time, so half of these blocks have a hash below the target of regtest, as valid ones must.
    return (dropped.at(-1)?.hash ?? '') < '7fffff' ? dropped : drop(blocks, count);
  };
  return more(drop(more(drop(more([], 40), 30), 80), 20), 138);
})();
/** Number of blocks of the mirror, and the block up to which pulls take its rows: the last that ends a file. */
const [LENGTH, BASE] = [230, 199];
const limits = limitsWith({ sortedAtOnce: 60, checkedOutputs: 9 });
const confirmations = 12;

let node: FakeNode;
/** Input folder of a mirror that read all blocks, and input folder of a pull of its rows. */
const [complete, rows] = [temporaryFolder(), temporaryFolder()];
let to: string;
beforeAll(async () => {
  node = await FakeNode.start(CHAIN.slice(0, LENGTH), { network: 'regtest' });
  await pull(complete);
  const out = join(temporaryFolder(), 'dist');
  await testBuild(out, { inputs: [complete], parquet: true });
  const host = await startPlainFiles(out);
  await testPull(host.base, rows);

  await host.close();
});
afterAll(() => node.close());
beforeEach(() => {
  to = temporaryFolder();
  cpSync(rows, to, { recursive: true });
  node.replace(CHAIN.slice(0, LENGTH));
  Object.assign(node.options, { prunedBelow: undefined, network: 'regtest' });
  node.onCall = undefined;
  node.calls.length = 0;
});

const pull = (folder: string, options: TestPull = {}) => testPull(`core:${node.url}`, folder, { limits, confirmations, ...options });
const failed = (options: TestPull = {}) => failedPull(`core:${node.url}`, to, { limits, confirmations, retries: 1, ...options });
const rowsOf = (chain: readonly FakeBlock[]) => memoryRows(memoryOf(chain));
const outputsAsked = () => node.calls.filter((call) => call.includes('getutxos')).flatMap((call) => call.match(/[0-9a-f]{64}-[0-9]+/g)!);
const ledger = () => join(to, 'pulled/.state');
const indexIn = (input: string): FolderIndex => JSON.parse(readFileSync(join(input, 'pulled/index.json'), 'utf8'));
const writeIndex = (index: FolderIndex) => writeFileSync(join(to, 'pulled/index.json'), indexText(index));
/** Returns the pulled files and the index without the names of mirrors. */
const filesOf = (input: string) => ({ ...pulledTree(input), 'index.json': { ...indexIn(input), mirrors: undefined } });

describe('a pull from a node that continues rows', () => {
  it('equals a pull that read all blocks, with a pruned node, through new blocks and reorganisations', async () => {
    node.options.prunedBelow = BASE + 1;
    const log = new RecordingLog();
    await pull(to, { log });
    expect(log.infos.map(({ event }) => event)).toEqual(expect.arrayContaining(['continued', 'checked']));
    const fork = extended(CHAIN.slice(0, LENGTH - 5), 20, random, 6);
    const all = temporaryFolder();
    cpSync(complete, all, { recursive: true });
    for (const chain of [CHAIN.slice(0, LENGTH), CHAIN, fork, extended(fork, 80, random, 6)]) {
      node.replace(chain);
      node.options.prunedBelow = BASE + 1;
      await pull(to, { confirmations: 100 });
      node.options.prunedBelow = undefined;
      await pull(all, { confirmations: 100 });
      expect(await pulledRows(to)).toEqual(rowsOf(chain));
    }
    expect(filesOf(to)).toEqual(filesOf(all));
    const builds = await Promise.all([to, all].map((input) => testBuild(join(input, 'dist'), { inputs: [join(input, 'pulled')] })));
    expect(builds[0]?.manifest).toEqual(builds[1]?.manifest);
    expect(tree(join(to, 'dist'))).toEqual(tree(join(all, 'dist')));
  });

  it('continues rows of a mirror that has all runes in one file', async () => {
    const out = join(temporaryFolder(), 'dist');
    await testBuild(out, { inputs: [complete], parquet: true, blocks: { from: 0, to: LENGTH - 1 } });
    const host = await startPlainFiles(out);
    rmSync(join(to, 'pulled'), { recursive: true });
    await testPull(host.base, to);
    await host.close();
    const [one, ...others] = indexIn(to).runes;
    expect([one!.first < 100, one!.last > BASE, others]).toEqual([true, true, []]);
    await pull(to);
    expect(filesOf(to)).toEqual(filesOf(complete));
  });

  it('chooses random outputs', () => {
    const chosen = new ChosenOutputs(to, 'sample', limits);
    for (let height = 0; height < 1000; height++) chosen.add({ name: 'x', height, address: '-' });
    chosen.end();
    const heights = [...readFileSync(join(to, 'unchecked.txt'), 'utf8').matchAll(/x ([0-9]+) -/g)].map(([, height]) => Number(height));
    expect([heights.length, new Set(heights).size, heights.some((height) => height > 100)]).toEqual([9, 9, true]);
  });

  it('asks the node for random outputs once, or for all', async () => {
    const log = new RecordingLog();
    await pull(to, { log });
    const asked = outputsAsked();
    const { figures } = log.infos.find(({ event }) => event === 'checked')!;
    expect([Number(figures?.['asked']), new Set(asked).size]).toEqual([asked.length, asked.length]);
    // Those that later blocks spent are left out.
    expect(asked.length + Number(figures?.['spent'])).toBe(9);
    node.calls.length = 0;
    await pull(to);
    expect(outputsAsked()).toEqual([]);
    rmSync(ledger(), { recursive: true });
    await pull(to, { check: 'all' });
    const before = [...memoryOf(CHAIN.slice(0, BASE + 1)).ledger.outputs.keys()];
    const after = new Set(memoryOf(CHAIN.slice(0, LENGTH)).ledger.outputs.keys());
    expect(outputsAsked().sort()).toEqual(
      before
        .filter((one) => after.has(one))
        .map((one) => one.replace(':', '-'))
        .sort(),
    );
    expect(node.calls.filter((call) => call.includes('getutxos')).every((call) => call.split('/').length <= 3 + 15)).toBe(true);
  });

  it('compares outputs only at the tip, asks again after new blocks and reorganisations, and leaves out spent outputs', async () => {
    await pull(to, { wanted: { from: undefined, to: BASE + 2 } });
    expect(outputsAsked()).toEqual([]);
    const fork = extended(CHAIN.slice(0, LENGTH - 2), 9, random, 10, 9);
    let changes = 0;
    node.onCall = () => {
      if (!node.calls.at(-1)!.includes('getutxos') || changes > 2) return;
      changes += 1;
      node.replace(changes === 1 ? CHAIN.slice(0, LENGTH + 3) : changes === 2 ? fork.slice(0, LENGTH + 5) : fork);
    };
    const log = new RecordingLog();
    await pull(to, { confirmations: 100, log });
    expect(await pulledRows(to)).toEqual(rowsOf(fork));
    const { figures } = log.infos.find(({ event }) => event === 'checked')!;
    expect(Number(figures?.['asked']) + Number(figures?.['spent'])).toBe(9);
  });

  it('ends if outputs are always of another block than the tip, and continues later', async () => {
    node.onCall = () => {
      if (node.calls.at(-1)!.includes('getutxos')) node.setTip(LENGTH);
      else if (node.calls.at(-1)!.includes('chaininfo')) node.setTip(LENGTH - 1);
    };
    node.replace(CHAIN);
    node.setTip(LENGTH - 1);
    const error = await failed();
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/answered 5 times with outputs of another block/)]);
    node.onCall = undefined;
    node.setTip(CHAIN.length - 1);
    await pull(to);
    expect(await pulledRows(to)).toEqual(rowsOf(CHAIN));
  });

  it('ends if the node has a new block that is not wanted, and asks later', async () => {
    node.onCall = () => {
      if (node.calls.at(-1)!.includes('getutxos')) node.replace(CHAIN);
    };
    const error = await failed({ check: 'all', wanted: { from: undefined, to: LENGTH - 1 } });
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/is not the last pulled block any more/)]);
    node.onCall = undefined;
    node.calls.length = 0;
    await pull(to);
    expect(outputsAsked()).not.toEqual([]);
  });

  it('refuses, before it changes a file, rows that the node cannot continue', async () => {
    const before = tree(to);
    const refused = async (change: () => void, message: RegExp) => {
      change();
      const error = await failed();
      expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(message)]);
      expect(tree(to)).toEqual(before);
      node.replace(CHAIN.slice(0, LENGTH));
      Object.assign(node.options, { prunedBelow: undefined, network: 'regtest' });
    };
    await refused(() => node.replace(CHAIN.slice(0, BASE)), /has blocks up to 198, but .* has rows up to 229/);
    await refused(
      () => Object.assign(node.options, { prunedBelow: BASE + 2 }),
      new RegExp(`has pruned block ${BASE + 1}, which is needed`),
    );
    await refused(() => Object.assign(node.options, { network: 'signet' }), /is on the network signet, but/);
    await refused(
      () => node.replace(extended(CHAIN.slice(0, 150), 80, random, 6)),
      /has rows of block 1[5-9][0-9] .*, which .* does not have/,
    );
    const index = indexIn(to);
    writeIndex({
      ...index,
      sources: [{ rules: 'ord', blocks: [[100, LENGTH - 1]] }],
      files: index.files.filter(({ first }) => first >= 100),
    });
    const error = await failed();
    expect([error.message, error.details.join()]).toEqual([
      expect.stringMatching(/has rows from block 100 on, but a node can continue only rows from block 0 on/),
      expect.stringContaining('have no balances, holders, outputs and counts of mints'),
    ]);
  });

  it.each([
    ['another owner', `address = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'`, /address bcrt1qw508.*; the node has height/],
    ['an invented output', `tx_id = repeat('ab', 32)`, /the node has no unspent output/],
    ['an address of another network', `address = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'`, /is not of this network/],
  ])('finds rows with %s', async (_, lie, message) => {
    const unspent = [...memoryOf(CHAIN.slice(0, LENGTH)).ledger.outputs.keys()];
    const [name = ''] = unspent.filter((one) => one && heightOf(one) < BASE);
    const [column = '', value = ''] = lie.split(' = ');
    const index = indexIn(to);
    const file = index.files.find(({ first, last }) => first <= heightOf(name) && heightOf(name) <= last)!;
    const path = join(to, 'pulled', rowsName('files', file));
    const isIt = `operation = 'receive' AND tx_id || ':' || "output" = '${name}'`;
    const store = await Store.open({ memoryLimit: '700MB', threads: 1, scratch: temporaryFolder() });
    const changed = `SELECT * REPLACE (CASE WHEN ${isIt} THEN ${value} ELSE ${column} END AS ${column}) FROM ${readFiles('parquet', [path])}`;
    await store.run(copyTable(changed, NODE_LEDGER.order, `${path}.new`));
    store.close();
    const lying = await placeFile(join(to, 'pulled'), `${path}.new`, 'files', file, file);
    writeIndex({ ...index, files: index.files.map((one) => (one === file ? lying : one)) });
    const error = await failed({ check: 'all' });
    expect([error.exitCode, `${error.message} ${error.details.join(' ')}`]).toEqual([2, expect.stringMatching(message)]);
    // A later pull finds it again.
    expect((await failed()).exitCode).toBe(2);
  });

  it('makes a lost or damaged ledger again, and says so', async () => {
    await pull(to);
    const before = pulledTree(to);
    const sorted = () => join(ledger(), readdirSync(ledger()).find((name) => name.endsWith('.sorted'))!);
    const damages: (() => void)[] = [
      () => rmSync(ledger(), { recursive: true }),
      () => writeFileSync(join(ledger(), 'state.json'), '{}'),
      () => writeFileSync(join(ledger(), 'state.json'), readFileSync(join(ledger(), 'state.json'), 'utf8').replace('4', '3')),
      () => rmSync(sorted()),
      // All pages of all files, so that any look-up reads a damaged one.
      () => {
        const { outputs } = readState(ledger())!;
        for (const { name, bytes } of outputs) writeFileSync(join(ledger(), name), readFileSync(join(ledger(), name)).fill(1, 0, bytes));
      },
    ];
    for (const damage of damages) {
      damage();
      const log = new RecordingLog();
      // The new blocks spend many outputs.
      const chain = extended(CHAIN.slice(0, LENGTH), 6, random, 1, 6);
      node.replace(chain);
      // A look-up finds a damaged page only while blocks are read.
      await pull(to, { log });
      expect(log.infos.map(({ event }) => event)).toContain('continued');
      expect(await pulledRows(to)).toEqual(rowsOf(chain));
    }
    expect(
      Object.keys(before)
        .filter((path) => /^(?:0-99|100-199)-/.test(path))
        .map((path) => pulledTree(to)[path] === before[path]),
    ).not.toContain(false);
  });
});

/** Height of the block that makes an output of the chain. */
function heightOf(outpoint: string): number {
  const { rows: all } = memoryOf(CHAIN.slice(0, LENGTH));
  return all.find((row) => row.operation === 'receive' && `${row.tx_id}:${row.output}` === outpoint)?.block_height ?? -1;
}

/** Tests pulls from a pruned node that get old blocks from another server, which may lie. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hashText } from '../../../src/runes/bytes.ts';
import { commitmentOf, nameNumber } from '../../../src/runes/name.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { temporaryFolder } from '../../support/build.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, type TestPull, testPull } from '../../support/pull.ts';
import { messageScript, type Transaction, taproot, transactionBytes } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';
import { committed } from '../../support/witnessBlocks.ts';

const random = integersFor('pruned blocks');

/** Heights of two blocks: the first commits to three names, and the second etches them. */
const [COMMITTED, ETCHED] = [20, 25];
/** Height of the lowest block that the pruned node has. */
const STORED = 32;
const NAMES = ['A', 'B', 'C'].map((letter) => nameNumber(letter.repeat(14)));
const FUNDS = [{ outpoint: outpointOf('11'.repeat(32), 0) }];
const push = (bytes: Uint8Array) => Buffer.concat([Uint8Array.of(bytes.length), bytes]);
const etchings = (from: Transaction, outputs: readonly number[]): Transaction[] => {
  const txid = hashText(hash256(transactionBytes(from)));
  return outputs.map((output) => {
    const name = NAMES[output] ?? 0n;
    const witness = [Uint8Array.of(1), push(commitmentOf(name)), Uint8Array.of(0xc0)];
    return { inputs: [{ outpoint: outpointOf(txid, output), witness }], outputs: [messageScript([2, 1, 4, name, 6, 9]), taproot(1)] };
  });
};
const CHAIN = (() => {
  // The second output is not a taproot output, so its commitment is invalid and its name is not etched.
  const commitment = { inputs: FUNDS, outputs: [taproot(1), Uint8Array.of(0x51), taproot(2)] };
  const young = { inputs: FUNDS, outputs: [taproot(3), taproot(4), taproot(5)] };
  const empty = (count: number): Transaction[][] => Array.from({ length: count }, () => []);
  const before = extended([], COMMITTED, random, 2);
  const more = [[commitment], ...empty(3), [young], [...etchings(commitment, [0, 1]), ...etchings(young, [2])]];
  return committed(extended([...before, ...chainOf(COMMITTED, more, before.at(-1)?.hash)], 30, random, 2));
})();

/** Writes the blocks and transactions of a chain to files, at the paths of an Esplora server or of Bitcoin Core. */
function filesOf(chain: readonly FakeBlock[], end: '/raw' | '.bin'): string {
  const folder = temporaryFolder();
  const write = (path: string, bytes: Uint8Array) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  };
  for (const { hash, bytes } of chain) {
    const { transactions, txids } = readBlock(bytes, hash256);
    write(`api/block/${hash}${end}`, bytes);
    for (const [i, { start }] of transactions.entries())
      write(`api/tx/${hashText(txids, 32 * i)}${end}`, bytes.subarray(start, transactions[i + 1]?.start));
  }
  return folder;
}

let node: FakeNode;
let server: PlainFiles;
/** Folder of a pull from a node that has all blocks. The other pulls must give the same files. */
const whole = temporaryFolder();
const folders = { esplora: filesOf(CHAIN, '/raw'), core: filesOf(CHAIN, '.bin') };
const pull = (to: string, options: TestPull = {}) =>
  testPull(`core:${node.url}`, to, { blockSource: new URL(`${server.base}/api`), ...options });
const failed = (to: string, options: TestPull = {}) =>
  failedPull(`core:${node.url}`, to, { blockSource: new URL(`${server.base}/api/`), retries: 1, ...options });

beforeAll(async () => {
  node = await FakeNode.start(CHAIN, { network: 'regtest' });
  server = await startPlainFiles(folders.esplora);
  await testPull(`core:${node.url}`, whole);
  node.options.prunedBelow = STORED;
});
afterEach(() => {
  server.folder = folders.esplora;
  server.intercept = () => false;
  server.asked.length = 0;
});
afterAll(async () => {
  await server.close();
  await node.close();
});

describe('a pull from a pruned node with a server of blocks', () => {
  it('has a chain where one of three names is etched', async () => {
    const rows = await pulledRows(whole);
    expect(rows).toEqual(memoryRows(memoryOf(CHAIN)));
    const etched = rows.filter((row) => row.includes(`"block_height":"${ETCHED}"`) || row.includes(`"block_height":${ETCHED},`));
    expect(etched.filter((row) => row.includes('"etching"'))).toHaveLength(1);
  });

  it('finds commitments that are too young in blocks of an earlier pull', async () => {
    const to = temporaryFolder();
    for (const last of [ETCHED - 1, undefined]) await pull(to, { wanted: { from: undefined, to: last } });
    expect(pulledTree(to)).toEqual(pulledTree(whole));
  });

  it.each([
    ['an Esplora server', 'esplora'],
    ['Bitcoin Core', 'core'],
  ] as const)('writes the same bytes as a pull from a node with all blocks: %s', async (_, kind) => {
    const to = temporaryFolder();
    server.folder = folders[kind];
    await pull(to);
    expect(pulledTree(to)).toEqual(pulledTree(whole));
    const old = new Set(CHAIN.slice(0, STORED).map(({ hash }) => hash));
    const blocks = server.asked.filter((path) => path.startsWith('api/block/'));
    // The pull must not request blocks from this server if the node has them.
    expect(blocks.filter((path) => !old.has(path.slice('api/block/'.length, -4)))).toEqual([]);
    expect(server.asked.filter((path) => path.startsWith('api/tx/')).length).toBeGreaterThan(2);
  });

  it('also reads blocks that a node started from a snapshot has not downloaded', async () => {
    const to = temporaryFolder();
    Object.assign(node.options, { prunedBelow: undefined, notDownloadedBelow: STORED });
    try {
      await pull(to);
    } finally {
      Object.assign(node.options, { prunedBelow: STORED, notDownloadedBelow: undefined });
    }
    expect(pulledTree(to)).toEqual(pulledTree(whole));
  });
});

describe('a server of blocks that lies', () => {
  const { hash, bytes } = CHAIN[ETCHED] as FakeBlock;
  const { transactions } = readBlock(bytes, hash256);
  const changed = (at: number) => {
    const copy = Buffer.from(bytes);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const path = `api/block/${hash}/raw`;
  const commitmentTx = hashText(readBlock(CHAIN[COMMITTED]?.bytes ?? bytes, hash256).txids, 32);
  const otherTx = readFileSync(join(folders.esplora, `api/tx/${hashText(readBlock(bytes, hash256).txids, 32)}/raw`));

  it.each<[what: string, path: string, body: Uint8Array | undefined, message: RegExp]>([
    // Changes a byte of an output's amount.
    ['a changed transaction', path, changed((transactions[2]?.start ?? 0) - 10 - 34), /do not match the merkle root in its header/],
    ['a changed witness', path, changed((transactions[1]?.witness ?? 0) + 6), /has other witnesses than its coinbase commits to/],
    ['another block', path, CHAIN[ETCHED - 1]?.bytes, new RegExp(`it is block ${CHAIN[ETCHED - 1]?.hash} instead of the requested`)],
    ['a cut block', path, bytes.subarray(0, -1), /the block ends inside of a lock time/],
    ['a missing block', path, undefined, /does not have block\//],
    ['a web page', path, Buffer.from('<!doctype html><title>Hello</title>'), /the block ends inside of its header/],
    [
      'another transaction',
      `api/tx/${commitmentTx}/raw`,
      otherTx,
      new RegExp(`tx/${commitmentTx}.*it is transaction [0-9a-f]{64} instead of`),
    ],
    ['a missing transaction', `api/tx/${commitmentTx}/raw`, undefined, new RegExp(`does not have tx/${commitmentTx}`)],
  ])('about %s is detected and named', async (_, wrong, body, message) => {
    const to = temporaryFolder();
    server.intercept = (asked, _file, response) => {
      if (asked !== wrong) return false;
      response.writeHead(body === undefined ? 404 : 200).end(body);
      return true;
    };
    const error = await failed(to);
    expect(error.message).toMatch(message);
    if (wrong === path) expect(error.message).toContain(hash);
    expect((await pulledRows(to)).filter((row) => row.includes(`"block_hash":"${hash}"`))).toEqual([]);
    server.intercept = () => false;
    await pull(to);
    expect(pulledTree(to)).toEqual(pulledTree(whole));
  });
});

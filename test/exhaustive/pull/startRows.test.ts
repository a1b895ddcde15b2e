/**
 * Tests pulls from a node that start from the ledger of a mirror, and that also copy the rows of older blocks from this
 * mirror.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { MANIFEST_PATH } from '../../../src/pages/filePaths.ts';
import { rowsFolder } from '../../../src/pull/node/rowsOfStart.ts';
import { copyTable, NODE_LEDGER } from '../../../src/rows/rowsForm.ts';
import { filesBelow, temporaryFolder, tree } from '../../support/build.ts';
import type { FakeBlock } from '../../support/fakeNode.ts';
import { memoryRows, pulledRows, pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { type PlainFiles, startPlainFiles } from '../../support/plainFiles.ts';
import { failedPull, testPull } from '../../support/pull.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { StartedPulls } from '../../support/startedPulls.ts';

const next = randomFor('rows of starts');
const random = (below: number) => Math.floor(next() * below);
const CHAIN = extended([], 260, random, 6, 5);
/**
 * LENGTH is the number of blocks of the mirror. A pull starts after block START, where a level of the mirror's lists
 * ends. This block is in the middle of a hundred.
 */
const [LENGTH, START] = [230, 219];

let pulls: StartedPulls;
let donor: PlainFiles;
const [input, out] = [temporaryFolder(), join(temporaryFolder(), 'donor')];

beforeAll(async () => {
  pulls = await StartedPulls.begin(CHAIN.slice(0, LENGTH));
  await pulls.pull(input);
  const { manifest } = await pulls.build(out, input, { parquet: true });
  expect(manifest.ledger?.height).toBe(START);
  donor = await startPlainFiles(out);
});
afterAll(async () => {
  await donor.close();
  await pulls.node.close();
});

const start = (to: string, from: number, options = {}) =>
  pulls.pull(to, { donors: [new URL(donor.base)], wanted: { from, to: undefined }, ...options });
const failed = (to: string, base: string, from = 0, options = {}) =>
  failedPull(`core:${pulls.node.url}`, to, {
    ...{ limits: pulls.limits, retries: 1, donors: [new URL(base)], wanted: { from, to: undefined }, confirmations: 100, ...options },
  });
const rowsFrom = (chain: readonly FakeBlock[], height: number) =>
  memoryRows({ rows: memoryOf(chain).rows.filter((row) => row.block_height >= height) });
const startOf = (to: string) => JSON.parse(readFileSync(join(to, 'pulled/blocks.json'), 'utf8')).start;
/**
 * Returns the files of rows, except those of blocks 200 to 299, which include START. Until these hundred blocks are
 * settled, one of the two pulls has a file for each of some of them.
 */
const settledRows = (to: string) =>
  Object.fromEntries(Object.entries(pulledTree(to)).filter(([path]) => /^[0-9]/.test(path) && !/\/2[0-9][0-9]-/.test(path)));

describe('a start with the rows of all blocks', () => {
  it('equals a pull that read all blocks, through new blocks and reorganisations', async () => {
    const [to, complete] = [temporaryFolder(), temporaryFolder()];
    const [built, all] = [join(temporaryFolder(), 'dist'), join(temporaryFolder(), 'all')];
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    pulls.node.options.prunedBelow = START - 4;
    await start(to, 0);
    pulls.node.options.prunedBelow = undefined;
    const fork = extended(CHAIN.slice(0, LENGTH - 5), 20, random, 6);
    const longer = extended(fork, 80, random, 6);
    for (const chain of [CHAIN.slice(0, LENGTH), fork, longer]) {
      pulls.node.replace(chain);
      await pulls.pull(to);
      await pulls.pull(complete);
      expect(await pulledRows(to)).toEqual(rowsFrom(chain, 0));
      const builds = [await pulls.build(built, to), await pulls.build(all, complete)];
      const [ours, theirs] = builds.map(({ manifest }) => manifest);
      expect(ours!.start).toEqual(startOf(to));
      expect({ ...ours, start: undefined }).toEqual({ ...theirs, start: undefined });
      // All lists have the same files in both builds, so both builds give the same answers.
      expect(tree(join(built, 'archive'))).toEqual(tree(join(all, 'archive')));
    }
    expect(settledRows(to)).toEqual(settledRows(complete));
    expect(Object.keys(settledRows(to))).toEqual(expect.arrayContaining(['0/0-99.parquet', '0/100-199.parquet']));
    await check(built);
    expect(readdirSync(join(to, 'pulled')).includes('start')).toBe(false);
    const names = (folder: string) => Object.keys(pulledTree(folder)).filter((path) => !/\/2[0-9][0-9]-/.test(path));
    expect(names(to)).toEqual(names(complete));
    expect(startOf(to)).toMatchObject({ class: 'located', height: START, donors: [donor.base] });
  });

  it('can take rows from a later block on, like a pull of all blocks that writes only these rows', async () => {
    const [to, complete] = [temporaryFolder(), temporaryFolder()];
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    await start(to, 137, { confirmations: 10 });
    await pulls.pull(complete, { wanted: { from: 137, to: undefined }, confirmations: 10 });
    expect(await pulledRows(to)).toEqual(rowsFrom(CHAIN.slice(0, LENGTH), 137));
    expect(settledRows(to)).toEqual(settledRows(complete));
    const [built, all] = [join(temporaryFolder(), 'dist'), join(temporaryFolder(), 'all')];
    const [ours, theirs] = [(await pulls.build(built, to)).manifest, (await pulls.build(all, complete)).manifest];
    expect({ ...ours, start: undefined }).toEqual({ ...theirs, start: undefined });
    await check(built);
  });

  it('continues with the rows that it has, also after a kill between its last steps', async () => {
    const [to, killed] = [temporaryFolder(), temporaryFolder()];
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    const { intercept } = donor;
    let files = 2;
    donor.asked.length = 0;
    donor.intercept = (path, file, response) => {
      if (!/^rows\/[0-9]/.test(path) || --files >= 0) return intercept(path, file, response);
      response.writeHead(503).end();
      return true;
    };
    expect((await failed(to, donor.base)).exitCode).toBe(3);
    donor.intercept = intercept;
    expect(filesBelow(join(to, 'pulled')).filter((path) => /^[0-9]/.test(path))).toEqual([]);
    const fetched = donor.asked.filter((path) => /^rows\/[0-9]/.test(path)).slice(0, 2);
    donor.asked.length = 0;
    await start(to, 0);
    expect(donor.asked.filter((path) => fetched.includes(path))).toEqual([]);
    expect(filesBelow(join(to, 'pulled')).filter((path) => path.includes('.start'))).toEqual([]);

    // Simulates a kill after the pull wrote the ledger. Some files of rows are still in the temporary folder.
    cpSync(to, killed, { recursive: true });
    const [pulled, rows] = [join(killed, 'pulled'), join(rowsFolder(join(killed, 'pulled'), 0, donor.base), 'pulled')];
    for (const path of ['0/0-99.parquet', '0/0-99.parquet.sha256', '0/100-199.parquet', 'runes.parquet', 'runes.parquet.sha256']) {
      mkdirSync(join(rows, '0'), { recursive: true });
      renameSync(join(pulled, path), join(rows, path));
    }
    await pulls.pull(killed);
    expect(pulledTree(killed)).toEqual(pulledTree(to));
  });

  it('needs a mirror that publishes the rows, and says so', async () => {
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    const plain = join(temporaryFolder(), 'plain');
    await pulls.build(plain, input);
    const host = await startPlainFiles(plain);
    try {
      const error = await failed(temporaryFolder(), host.base);
      expect([error.exitCode, error.message]).toEqual([
        2,
        `${host.base} does not have the rows of blocks 0..${START}: it publishes no rows`,
      ]);
    } finally {
      await host.close();
    }
    // Uses a mirror that started from another mirror, and so has no older rows.
    const [to, started] = [temporaryFolder(), join(temporaryFolder(), 'started')];
    await pulls.startAt(to, out);
    pulls.node.replace(CHAIN);
    await pulls.pull(to);
    await pulls.build(started, join(to, 'pulled'), { parquet: true });
    const other = await startPlainFiles(started);
    try {
      expect((await failed(temporaryFolder(), other.base)).message).toContain(`its rows begin at block ${START + 1}`);
    } finally {
      await other.close();
    }
  });
});

describe('a start is verified by a pull that read all blocks', () => {
  const history = (to: string) => ({ history: to });

  it('which the manifest then says, and later pulls keep', async () => {
    const to = temporaryFolder();
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    await start(to, 0, history(input));
    expect(startOf(to)).toMatchObject({ class: 'verified', height: START });
    pulls.node.replace(CHAIN);
    await pulls.pull(to);
    const { manifest } = await pulls.build(join(temporaryFolder(), 'dist'), to);
    expect(manifest.start).toMatchObject({ class: 'verified', height: START });
  });

  it.each([
    ['of fewer blocks', (other: string) => pulls.pull(other, { wanted: { from: undefined, to: START - 1 } })],
    ['of rows from a later block on', (other: string) => pulls.pull(other, { wanted: { from: 100, to: undefined } })],
    // The donor's list of blocks says that all rows come from a node. But `other` was pulled from the donor, so it must
    // be refused too.
    ['from the mirror', (other: string) => testPull(donor.base, other)],
  ])('but not by a pull %s, or by a pull that started from a mirror itself', async (_, pullOther) => {
    const [to, other] = [temporaryFolder(), temporaryFolder()];
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    await pullOther(other);
    await pulls.startAt(to, out);
    for (const folder of [other, to]) {
      const error = await failedPull(`core:${pulls.node.url}`, to, { limits: pulls.limits, confirmations: 100, ...history(folder) });
      expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining('is not a pull from a node of regtest that read all')]);
    }
    expect(startOf(to)).toMatchObject({ class: 'located' });
  });

  it('which is the only way to detect a mirror that lies about a symbol', async () => {
    const [copy, lying, to] = [temporaryFolder(), join(temporaryFolder(), 'lying'), temporaryFolder()];
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    cpSync(join(input, 'pulled'), join(copy, 'pulled'), { recursive: true });
    const runes = join(copy, 'pulled/runes.parquet');
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: temporaryFolder() });
    try {
      await store.run(`COPY (SELECT * REPLACE ('X' AS symbol) FROM '${runes}') TO '${runes}.new' (FORMAT parquet)`);
    } finally {
      store.close();
    }
    renameSync(`${runes}.new`, runes);
    rmSync(`${runes}.sha256`);
    await pulls.build(lying, copy);
    const { digest } = await pulls.startAt(to, lying);
    expect(startOf(to)).toMatchObject({ class: 'located', digest });
    const error = await failedPull(`core:${pulls.node.url}`, to, { limits: pulls.limits, confirmations: 100, ...history(input) });
    expect([error.exitCode, error.message]).toEqual([4, expect.stringContaining(`but the start has ${digest}`)]);
    expect(startOf(to)).toMatchObject({ class: 'located' });
  });
});

/**
 * Builds a mirror from the rows of the honest mirror, but changes a column in each row for which `where` holds. `value`
 * is `expression AS column`.
 */
async function rewritten(value: string, where: string): Promise<string> {
  const [copy, lying] = [temporaryFolder(), join(temporaryFolder(), 'lying')];
  cpSync(join(input, 'pulled'), join(copy, 'pulled'), { recursive: true });
  const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: temporaryFolder() });
  try {
    for (const path of filesBelow(join(copy, 'pulled')).filter((one) => /^[01]\/.*\.parquet$/.test(one))) {
      const file = join(copy, 'pulled', path);
      const [, column = ''] = /AS (\w+)$/.exec(value) ?? [];
      const cell = `CASE WHEN ${where} THEN ${value.replace(/ AS \w+$/, '')} ELSE ${column} END AS ${column}`;
      await store.run(copyTable(`SELECT * REPLACE (${cell}) FROM '${file}'`, NODE_LEDGER.order, `${file}.new`));
      renameSync(`${file}.new`, file);
      rmSync(`${file}.sha256`);
    }
  } finally {
    store.close();
  }
  await pulls.build(lying, copy, { parquet: true });
  return lying;
}

describe('a mirror whose rows lie', () => {
  const expectFound = async (mirror: string, message: RegExp) => {
    const [host, to] = [await startPlainFiles(mirror), temporaryFolder()];
    try {
      const error = await failed(to, host.base);
      expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(message)]);
      expect(filesBelow(join(to, 'pulled')).filter((path) => /[0-9]-[0-9]|blocks|state\.json/.test(path))).toEqual([]);
    } finally {
      await host.close();
    }
  };

  it('about spent outputs are detected, because the rows give another ledger', async () => {
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    const lying = await rewritten(`regexp_replace(spent, '^[^,]*,?', '') AS spent`, `spent LIKE '%,%'`);
    // Combines the honest ledger with the false rows. The mirror's records do not show the difference, because they do
    // not say what was spent.
    const liar = join(temporaryFolder(), 'liar');
    cpSync(out, liar, { recursive: true });
    cpSync(join(lying, 'rows'), join(liar, 'rows'), { recursive: true });
    const [path, other] = [liar, lying].map((folder) => join(folder, MANIFEST_PATH)) as [string, string];
    const { rows } = JSON.parse(readFileSync(other, 'utf8')) as { rows: object };
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), rows }));
    await expectFound(liar, /its rows add up to the digest [0-9a-f]{64} instead of/);
  });

  it.each(['block_hash', 'timestamp'])('about the %s of a block are detected in the headers of the node', async (column) => {
    pulls.node.replace(CHAIN.slice(0, LENGTH));
    const etched = new Set(
      memoryOf(CHAIN).rows.flatMap(({ operation, block_height: height }) => (operation === 'etching' ? [height] : [])),
    );
    const { block_height: height } = memoryOf(CHAIN).rows.find((row) => row.block_height > 20 && !etched.has(row.block_height))!;
    const value = column === 'timestamp' ? `timestamp + 1` : `'${'ab'.repeat(32)}'`;
    const lying = await rewritten(`${value} AS ${column}`, `block_height = ${height}`);
    await expectFound(lying, new RegExp(`it has rows of block ${height} .*, which Bitcoin Core .* does not have`));
  });
});

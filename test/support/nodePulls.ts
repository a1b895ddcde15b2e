/** Checks the results of pulls from a node: rows in files, answers of the API, and files of the folder. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { readFiles } from '../../src/duckdb/readFilesSql.ts';
import { Store } from '../../src/duckdb/store.ts';
import type { PullResult } from '../../src/pull/pullOptions.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { filesBelow, rowsOf, temporaryFolder, testBuild, tree } from './build.ts';
import { type FakeBlock, FakeNode } from './fakeNode.ts';
import { MemoryChain, spentBy } from './memoryLedger.ts';
import { type TestPull, testPull } from './pull.ts';
import type { Activity } from './records.ts';
import { blocksOf, type FixtureChain, networkOf } from './runeChains.ts';
import { startServer } from './server.ts';

/** Pulls blocks of regtest from a node that has only these. */
export async function pullChain(blocks: readonly FakeBlock[], to: string, options: TestPull = {}): Promise<PullResult> {
  const node = await FakeNode.start(blocks, { network: 'regtest' });
  try {
    return await testPull(`core:${node.url}`, to, options);
  } finally {
    await node.close();
  }
}

/** Returns the pulled files that builds read. Maps paths to hashes. */
export const pulledTree = (to: string): Record<string, string> =>
  Object.fromEntries(Object.entries(tree(join(to, 'pulled'))).filter(([path]) => !path.startsWith('.state')));

/** Returns all rows of the pulled files as text, in the order of blocks, transactions and events. */
export async function pulledRows(to: string): Promise<string[]> {
  const folder = join(to, 'pulled');
  const files = filesBelow(folder).filter((path) => /^[0-9]+-[0-9]+-[0-9a-f]{16}\.parquet$/.test(path));
  if (files.length === 0) return [];
  const store = await Store.open({ memoryLimit: '700MB', threads: 1, scratch: temporaryFolder() });
  try {
    const all = readFiles(
      'parquet',
      files.map((path) => join(folder, path)),
    );
    const rows = await rowsOf(`SELECT * FROM ${all} ORDER BY block_height, tx_index, event_index`, store);
    return rows.map((row) => JSON.stringify(row));
  } finally {
    store.close();
  }
}

/** Returns the rows of a chain in memory, in the form of `pulledRows`. */
export const memoryRows = ({ rows }: Pick<MemoryChain, 'rows'>): string[] =>
  rows.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)));

/**
 * Pulls a chain of the fixtures, and compares its rows with those of a chain in memory, which test/runes/runes.test.ts compares with ord.
 * Also builds the chain: outputs, burned amounts and mints in the API's answers must equal those of ord.
 */
export async function checkFixture(fixture: FixtureChain): Promise<void> {
  const network = networkOf(fixture);
  const { firstHeight } = NETWORKS[network];
  const expected = fixture.asserts.at(-1);
  if (expected === undefined) throw new Error(`the chain ${fixture.test} has no state`);
  const blocks = blocksOf(fixture).slice(0, expected.height + 1);
  const node = await FakeNode.start(blocks, { network });
  const [to, out] = [temporaryFolder(), join(temporaryFolder(), 'dist')];
  try {
    await testPull(`core:${node.url}`, to);
  } finally {
    await node.close();
  }
  const memory = new MemoryChain(NETWORKS[network]);
  for (const { bytes, height } of blocks) memory.add(bytes, height);
  const rows = await pulledRows(to);
  expect(rows).toEqual(memoryRows(memory));
  if (!fixture.index_runes) return;
  await testBuild(out, { inputs: [to], dialect: 'hiro' });
  const records = await askAll(out, firstHeight, firstHeight + expected.height);
  const units = ({ rune, amount = '0' }: Activity) => {
    const { divisibility = 0 } = expected.runes.find(({ id }) => id === rune.id) ?? {};
    const [whole = '', decimals = ''] = amount.split('.');
    expect(decimals).toHaveLength(divisibility);
    return BigInt(whole + decimals);
  };
  const of = (operation: string) => records.filter((record) => record.operation === operation);
  const spent = new Set(rows.flatMap((row) => spentBy(JSON.parse(row) as { spent: string | null })));
  const outputs = new Map<string, Map<string, bigint>>();
  for (const record of of('receive')) {
    const outpoint = `${record.location.output}`;
    if (spent.has(outpoint)) continue;
    const runes = outputs.get(outpoint) ?? new Map<string, bigint>();
    outputs.set(outpoint, runes.set(record.rune.id, (runes.get(record.rune.id) ?? 0n) + units(record)));
  }
  const found = [...outputs].map(([outpoint, runes]) => [outpoint, [...runes].map(([id, amount]) => [id, String(amount)]).sort()]);
  expect(found.sort()).toEqual(expected.balances.map(([outpoint, runes]) => [outpoint, [...runes].sort()]).sort());
  for (const { id, burned, mints } of expected.runes) {
    const sum = of('burn').reduce((total, record) => total + (record.rune.id === id ? units(record) : 0n), 0n);
    expect([id, String(sum), String(of('mint').filter(({ rune }) => rune.id === id).length)]).toEqual([id, burned, mints]);
  }
}

/** Requests all records of these blocks from a server. */
async function askAll(out: string, first: number, last: number): Promise<Activity[]> {
  const server = await startServer(out);
  const records: Activity[] = [];
  try {
    for (let height = first; height <= last; height++) {
      for (let offset = 0, total = 1; offset < total; offset += 60) {
        const { body } = await server.send('GET', `/runes/v1/blocks/${height}/activity?offset=${offset}&limit=60`);
        const page = JSON.parse(body) as { total: number; results: Activity[] };
        total = page.total;
        records.push(...page.results);
      }
    }
  } finally {
    await server.close();
  }
  return records;
}

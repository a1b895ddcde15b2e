/**
 * Tests incremental builds after changes that are easy to miss: rows that name other spent outputs, although their records stay the same,
 * and a block that only burns runes.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RecordingLog, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { type MemoryChain, outpointOf } from '../../support/memoryLedger.ts';
import { changeSpent, csv, writeRows } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor, randomFor } from '../../support/seed.ts';

it('a block that spends other outputs than before is built again, even if its records are the same', async () => {
  const random = integersFor('spent outputs');
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const { rows, ledger } = memoryOf(extended([], 24, random, 3));
  const options = { inputs: [input], layout: 'archive', lists: true } as const;
  const build = async (changed: typeof rows) => {
    writeRows({ rows: changed, ledger }, input);
    return (await testBuild(out, options)).manifest.digest;
  };
  expect(rows.some(({ spent }) => spent !== null)).toBe(true);
  const digest = await build(rows);
  const before = tree(out);
  for (let step = 0; step < 3; step += 1) {
    // First no row has spent outputs, then some rows have other spent outputs, and at last all rows are as in the beginning.
    const changed = [rows.map((row) => ({ ...row, spent: null })), rows.map((row) => changeSpent(row, random)), rows][step] ?? rows;
    expect(await build(changed)).toBe(digest);
    const full = join(work, `full-${step}`);
    await testBuild(full, options);
    expect(tree(out)).toEqual(tree(full));
    if (step === 0) expect(tree(out)).not.toEqual(before);
    if (step === 2) expect(tree(out)).toEqual(before);
  }
});

it('adding or removing a block that only burns changes the supply of its rune', async () => {
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const etching = { inputs: [{ outpoint: outpointOf('11'.repeat(32), 0) }], outputs: [messageScript([2, 1, 6, 1000]), taproot(1)] };
  const etched = chainOf(0, [[], [etching]]);
  const premine = outpointOf(memoryOf(etched).rows.at(-1)?.tx_id ?? '', 1);
  /** A transaction that burns all runes that it spends (a cenotaph), and a transaction that sends them. */
  const [burns, sends] = [[messageScript([20, 1, 126, 0])], []].map((message) =>
    memoryOf([...etched, ...chainOf(2, [[{ inputs: [{ outpoint: premine }], outputs: [...message, taproot(2)] }]], etched.at(-1)?.hash)]),
  );
  expect(burns?.rows.filter((row) => row.block_height === 2).map(({ operation }) => operation)).toEqual(['burn']);
  for (const [step, memory] of [sends, burns, sends].entries()) {
    if (memory === undefined) throw new Error('no chain');
    writeRows(memory, input);
    await testBuild(out, { inputs: [input] });
    await testBuild(join(work, `full-${step}`), { inputs: [input] });
    expect(tree(out)).toEqual(tree(join(work, `full-${step}`)));
  }
});

describe('an archive of rows from a node', () => {
  const random = randomFor('outputs of one chain');
  const isSpent = ({ spent }: MemoryChain['rows'][number]) => spent !== null && /:bcrt1/.test(spent);
  const drawn = () => memoryOf(extended([], 40, (below) => Math.floor(random() * below), 40));
  let memory = drawn();
  while (!memory.rows.some(isSpent)) memory = drawn();
  const build = async (work: string, rows: MemoryChain['rows']) => {
    writeRows({ rows, ledger: memory.ledger }, join(work, 'in'));
    return testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout: 'archive', lists: true });
  };
  const without = <Row extends object>({ spent, ...row }: Row & { readonly spent?: unknown }) => row;

  it('without an output that is spent according to the rows does not verify', async () => {
    const work = temporaryFolder();
    const at = memory.rows.findIndex(isSpent);
    await build(
      work,
      memory.rows.map((row, i) => (i === at ? { ...row, spent: null } : row)),
    );
    await expect(check(join(work, 'out'))).rejects.toMatchObject({
      details: expect.arrayContaining([expect.stringMatching(/the outputs .* do not add up/)]),
    });
  });

  it('reads the outputs that unchanged blocks spent from the input again, however deep a reorganisation is', async () => {
    const work = temporaryFolder();
    const draw = integersFor('outputs of a reorganised chain');
    let old = extended([], 46, draw, 40, 12);
    const isFit = ({ rows }: MemoryChain) => rows.some(({ block_height, spent }) => block_height === 24 && spent !== null);
    while (!isFit(memoryOf(old))) old = extended([], 46, draw, 40, 12);
    const limits = limitsWith({ listPage: 3, listLevels: { steps: [24, 8, 4], unsettled: 2 } });
    const log = new RecordingLog();
    const common = { inputs: [join(work, 'in')], layout: 'archive', lists: true, limits, log } as const;
    writeRows(memoryOf(old), join(work, 'in'));
    await testBuild(join(work, 'out'), common);
    // Replaces blocks of the level from block 24 on, and then of the lowest level.
    for (const height of [39, 12]) {
      writeRows(memoryOf(extended(old.slice(0, height), 46 - height, draw, 40, 12)), join(work, 'in'));
      expect((await testBuild(join(work, 'out'), common)).wasFull).toBe(false);
      expect(log.notices).toEqual([]);
      await testBuild(join(work, `full-${height}`), common);
      expect(tree(join(work, 'out'))).toEqual(tree(join(work, `full-${height}`)));
      await check(join(work, 'out'));
    }
  });

  it('has outputs only if all of its rows name spent outputs', async () => {
    const work = temporaryFolder();
    expect((await build(work, memory.rows)).manifest.lists?.outputs).toEqual({});
    const name = `ledger-${memory.rows.at(-1)?.block_height}.csv`;
    const [path, old] = [
      join(work, 'in', name),
      memory.rows.filter(({ block_height }) => block_height === memory.rows.at(-1)?.block_height),
    ];
    writeFileSync(path, csv(old.map(without)));
    const options = { inputs: [join(work, 'in')], layout: 'archive', lists: true } as const;
    expect((await testBuild(join(work, 'out'), options)).manifest.lists?.outputs).toBeUndefined();
    await check(join(work, 'out'));
    const again = await build(work, memory.rows);
    expect([again.wasFull, again.manifest.lists?.outputs]).toEqual([false, {}]);
    await check(join(work, 'out'));
  });
});

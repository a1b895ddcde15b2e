/**
 * Tests incremental builds after two changes that are easy to miss. Rows may name other spent outputs, although their
 * records stay the same. And a block may only burn runes.
 */

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { chainOf } from '../../support/fakeNode.ts';
import { limitsWith } from '../../support/limits.ts';
import { outpointOf } from '../../support/memoryLedger.ts';
import { changeSpent, writeRows } from '../../support/nodeRows.ts';
import { checkOutputs, kindsIn } from '../../support/outputHistory.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';

it('a block that spends other outputs than before is built again, even if its records are the same', async () => {
  const next = randomFor('spent outputs');
  const random = (below: number) => Math.floor(next() * below);
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
    // First no row has spent outputs, then some rows have other spent outputs, and at last all rows are as in the
    // beginning.
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

it('unspent outputs equal the ledger, whether blocks spend few or many outputs of a page', async () => {
  const next = randomFor('pages of unspent outputs');
  const random = (below: number) => Math.floor(next() * below);
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const limits = limitsWith({ listPage: 2, documentMember: 200, listLevels: { steps: [24, 8, 4], unsettled: 2 } });
  let chain = extended([], 60, random, 40, 12);
  const kinds = new Set<string>();
  // The last builds join levels that remove outputs of lower levels.
  for (const [step, thrift] of [40, 2, 2, 2].entries()) {
    chain = extended(chain, 3, random, thrift, 12);
    const memory = memoryOf(chain);
    writeRows(memory, input);
    const { wasFull } = await testBuild(out, {
      inputs: [input],
      dialect: 'hiro',
      layout: 'archive',
      lists: true,
      objectSize: 4096,
      limits,
    });
    expect(wasFull).toBe(step === 0);
    await checkOutputs(out, memory, random);
    for (const kind of kindsIn(out)) kinds.add(kind);
  }
  expect([...kinds].sort()).toEqual(['list', 'page', 'removal']);
});

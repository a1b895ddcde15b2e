/** Tests that verification finds rows whose senders differ from the chain, because the amounts then do not add up. Covers both layouts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import type { LedgerRow } from '../../../src/runes/ledgerRows.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { run } from '../../support/cli.ts';
import { chainOf } from '../../support/fakeNode.ts';
import { type MemoryChain, outpointOf } from '../../support/memoryLedger.ts';
import { indexWith, writeRows } from '../../support/nodeRows.ts';
import { check } from '../../support/outputs.ts';
import { messageScript, taproot } from '../../support/runeBlocks.ts';
import { extended, memoryOf } from '../../support/runeChains.ts';
import { integersFor } from '../../support/seed.ts';

const random = integersFor('senders');
const begin = extended([], 12, random, 3);
const etching = { inputs: [{ outpoint: outpointOf('ab'.repeat(32), 1) }], outputs: [messageScript([2, 1, 6, 1000]), taproot(1)] };
const [etched] = chainOf(begin.length, [[etching]], begin.at(-1)?.hash);
const premine = outpointOf(memoryOf([...begin, etched!]).rows.at(-1)!.tx_id, 1);
/**
 * At the end of the chain, the premine of a rune goes to one address, and is then sent to another. No script without an address ever had
 * this rune.
 */
const chain = [
  ...begin,
  ...chainOf(begin.length, [[etching], [{ inputs: [{ outpoint: premine }], outputs: [taproot(2)] }]], begin.at(-1)?.hash),
];
const { rows, ledger } = memoryOf(chain);
const STRANGER = 'bcrt1qstranger';

/** Builds the rows as a pull from a node writes them, or as rows of a database, whose source is unknown. Returns the output folder. */
async function built(changed: readonly LedgerRow[], layout: 'files' | 'archive', isFromNode = true): Promise<string> {
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const shown = isFromNode ? changed : changed.map(({ spent, ...row }) => row as LedgerRow);
  writeRows({ rows: shown as MemoryChain['rows'], ledger }, input);
  if (isFromNode) writeFileSync(join(input, 'index.json'), indexWith({ sources: [{ rules: 'ord', blocks: [[0, chain.length - 1]] }] }));
  await testBuild(out, { inputs: [input], layout, lists: layout === 'archive' });
  return out;
}
/** Returns all rows. The first row that matches has these changes. */
function withOne(matches: (row: LedgerRow) => boolean, change: Partial<LedgerRow>): LedgerRow[] {
  const at = rows.findIndex(matches);
  expect(at).toBeGreaterThan(-1);
  return rows.map((row, i) => (i === at ? { ...row, ...change } : row));
}
const isSend = ({ operation, address, amount }: LedgerRow) => operation === 'send' && address !== null && (amount ?? 0n) > 0n;

describe.each(LAYOUTS)('rows of a node in layout %s', (layout) => {
  it('verify if they equal the chain', async () => {
    expect(rows.some(isSend)).toBe(true);
    const out = await built(rows, layout);
    expect(await check(out)).toMatchObject({ manifest: { records: rows.length } });
  });

  it.each([
    ['another address', STRANGER, `the address ${STRANGER} sends more than it received`],
    ['no address', null, 'scripts without an address send [0-9]+ units more than they received'],
  ])('with %s as a sender do not verify, and the message has advice', async (_, address, expected) => {
    const out = await built(
      withOne((row) => isSend(row) && row.block_height === chain.length - 1, { address }),
      layout,
    );
    const { code, stderr } = await run('verify', ['--dir', out], temporaryFolder());
    expect([code, stderr]).toEqual([4, expect.stringMatching(new RegExp(`rune ${begin.length}:1: ${expected}`))]);
    expect(stderr).toContain('pull anew');
    expect(stderr).not.toContain('Build again');
  });
});

it('rows of a database that do not add up are reported with their balances, but not as a fault of the build', async () => {
  const out = await built(withOne(isSend, { address: STRANGER }), 'archive', false);
  const { code, stdout, stderr } = await run('verify', ['--dir', out], temporaryFolder());
  expect([code, `${stdout}${stderr}`]).toEqual([
    0,
    expect.stringMatching(/the records of 1 rune do not add up.*such as of [0-9]+:[0-9]+\./),
  ]);
});

it.each(['receive', 'send'] as const)('rows of a node with another amount in a %s do not verify', async (operation) => {
  const some = rows.find((row) => row.operation === operation && (row.amount ?? 0n) > 0n);
  const out = await built(
    withOne((row) => row === some, { amount: (some?.amount ?? 0n) + 10n ** 30n }),
    'files',
  );
  const error = await check(out).catch((failure: unknown) => failure);
  expect(error).toMatchObject({
    exitCode: 4,
    details: expect.arrayContaining([expect.stringContaining('does not conserve rune'), expect.stringContaining('pull anew')]),
  });
});

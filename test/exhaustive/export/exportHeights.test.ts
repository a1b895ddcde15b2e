/**
 * Exports the holders after a certain block from mirrors of random chains. Some mirrors have the complete history,
 * others started from another mirror. The exported files equal the export of a mirror that was built only up to that
 * block, and the holders of an independent model.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decimal } from '../../rehearsal/model/model.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { run } from '../../support/cli.ts';
import { airdrop, extendedBy, modelOf } from '../../support/outputStates.ts';
import { extended } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { StartedPulls } from '../../support/startedPulls.ts';

const ROUNDS = Number(process.env['FC_RUNS'] ?? 1);
const next = randomFor('exported heights');
const random = (below: number) => Math.floor(next() * below);
const AIRDROP = 60;
const TIP = 110;
let dropped = extended([], AIRDROP, random, 6);
// The blocks have random times, so half of them have a hash below the target of regtest, as a valid block must. Repeats
// until a block has such a hash.
while (dropped.length === AIRDROP) {
  const blocks = extendedBy(dropped, [airdrop(30)], random);
  if ((blocks.at(-1)?.hash ?? '') < '7fffff') dropped = blocks;
}
const CHAIN = extended(dropped, TIP - AIRDROP, random, 6);
const MODEL = modelOf(CHAIN);
const work = temporaryFolder();

let pulls: StartedPulls;
beforeAll(async () => {
  pulls = await StartedPulls.begin(CHAIN);
  await pulls.follow();
  await pulls.build(join(work, 'files'), pulls.complete, { layout: 'files', dialect: 'hiro' });
});
afterAll(() => pulls.node.close());

let files = 0;
async function exported(...args: string[]): Promise<{ code: number | null; text: string; stderr: string }> {
  files += 1;
  const out = join(work, `list-${files}`);
  const { code, stderr } = await run('export', ['holders', ...args, '--out', out], work);
  return { code, stderr, text: code === 0 ? readFileSync(out, 'utf8') : '' };
}

it.each(Array.from({ length: ROUNDS }, (_, i) => i))('equal those of a mirror up to that block, round %d', async (round) => {
  const [to, started] = [temporaryFolder(), join(work, `started-${round}`)];
  const start = (await pulls.start(to, 20 + random(80))).height;
  await pulls.build(started, join(to, 'pulled'), { layout: round % 2 === 0 ? 'archive' : 'files' });
  let [long, refused] = [0, 0];
  for (const height of [start, start - 1, AIRDROP, start + 1 + random(TIP - start)]) {
    const lower = join(work, `up-to-${round}-${height}`);
    // Builds a mirror up to this height. Its lists are shorter than a page, so they are exact after its highest block.
    const input = temporaryFolder();
    await pulls.pull(input, { wanted: { from: undefined, to: height } });
    await testBuild(lower, { inputs: [input], layout: 'archive', lists: true });
    const runes = [...MODEL.etchings()].sort(() => next() - 0.5).slice(0, 2);
    const [widest] = [...MODEL.etchings()].sort((a, b) => MODEL.holders(b, AIRDROP).length - MODEL.holders(a, AIRDROP).length);
    for (const rune of new Set([...runes, ...(widest === undefined ? [] : [widest])])) {
      const expected = MODEL.holders(rune, height).map(({ address, amount }) => `${address},${decimal(amount, rune.divisibility)}\r\n`);
      const text = `address,balance\r\n${expected.join('')}`;
      long += expected.length > 3 ? 1 : 0;
      const built = await exported(rune.id, '--dir', lower);
      expect([rune.id, height, built.text]).toEqual([rune.id, height, rune.height > height && built.code === 2 ? '' : text]);
      for (const dir of [pulls.all, join(work, 'files'), started]) {
        const { code, text: found, stderr } = await exported(rune.id, '--height', String(height), '--dir', dir);
        if (dir === started && height < start) {
          refused += 1;
          const message = `began with the ledger as of block ${start}, so the holders as of block ${height} are unknown`;
          expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
        } else expect([dir, rune.id, height, stderr, found]).toEqual([dir, rune.id, height, '', text]);
      }
    }
  }
  expect(long).toBeGreaterThan(0);
  expect(refused).toBeGreaterThan(0);
});

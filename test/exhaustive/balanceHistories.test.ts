/**
 * Makes random histories of balances. After every change, the build gives the answers of an independent model
 * (test/support/balanceHistory.ts), equals a full build, and passes verification. The variable SEED repeats a run.
 */

import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { crossings, LIMITS } from '../../src/limits.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from '../support/archives.ts';
import { BALANCE_CHANGES, BalanceHistory } from '../support/balanceHistory.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { limitsWith } from '../support/limits.ts';
import { check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 3);

it('balances and holders equal those of the oracle after any change, and an incremental build equals a full build', async () => {
  crossings.clear();
  const seen = { runs: 0, large: 0, unbalanced: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.array(fc.constantFrom(...BALANCE_CHANGES), { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 6 }),
      fc.constantFrom(...DIALECTS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(4096, 2 * 1024 * 1024),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(LIMITS.listLevels, { steps: [64, 16, 4], unsettled: 3 }, { steps: [16, 4, 2], unsettled: 3 }),
      async (number, steps, dialect, layout, objectSize, listPage, listLevels) => {
        // Every second history has addresses that send more than they have, blocks in the lowest level from the first
        // build on, and pages of one entry. So each run has all kinds of histories.
        const isWrong = seen.runs % 2 === 0;
        seen.runs += 1;
        const limits = limitsWith({ listPage: isWrong ? 1 : listPage, listLevels });
        const random = randomFor(`balances ${number}`);
        const history = new BalanceHistory(random, isWrong);
        const work = temporaryFolder();
        const [out, input] = [join(work, 'out'), join(work, 'in')];
        const options = {
          inputs: [input],
          dialect,
          layout,
          pageSizes: [2, 4],
          lists: true,
          objectSize,
          limits,
        } as const;
        for (const [i, changes] of [isWrong ? (['leap'] as const) : [], ...steps].entries()) {
          for (const change of changes) history[change]();
          history.write(input);
          const { manifest, wasFull } = await testBuild(out, options);
          expect(wasFull).toBe(i === 0);
          await testBuild(join(work, `full-${i}`), options);
          expect(tree(out)).toEqual(tree(join(work, `full-${i}`)));
          await check(out);

          const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
          const ask = async (path: string) => {
            const response = await mirror.answer(new Request(`http://host/runes/v1/${path}`));
            return [response?.status, JSON.stringify(await response?.json())];
          };
          if (history.hidden !== undefined) {
            expect((await ask('addresses/bc1q0/balances'))[0]).toBe(501);
            continue;
          }
          const windows = async (path: string, { block_height, results }: { block_height?: number; results: readonly object[] }) => {
            for (const offset of [0, Math.floor(random() * (results.length + 2))]) {
              const limit = 1 + Math.floor(random() * 4);
              const page = { limit, offset, total: results.length, results: results.slice(offset, offset + limit) };
              const body = JSON.stringify(block_height === undefined ? page : { block_height, ...page });
              expect(await ask(`${path}?limit=${limit}&offset=${offset}`), path).toEqual([200, body]);
            }
          };
          for (const rune of history.runes) {
            const expected = history.holders(rune, limits, layout === 'files' ? Math.min(...history.blocks.keys()) : 0);
            if (expected.block_height !== undefined) seen.large += 1;
            const name = [rune.id, String(rune.number), rune.name.toLowerCase()][Math.floor(random() * 3)] ?? '';
            await windows(`etchings/${name}/holders`, expected);
            for (const address of history.addresses) {
              const holder = history.holder(rune, address);
              const answer = await ask(`etchings/${name}/holders/${encodeURIComponent(address)}`);
              if (holder === undefined) expect(answer[0]).toBe(404);
              else expect(answer).toEqual([200, JSON.stringify(holder)]);
            }
          }
          for (const address of history.addresses)
            await windows(`addresses/${encodeURIComponent(address)}/balances`, { results: history.balances(address) });
          for (const path of ['etchings/NOSUCHRUNE/holders', 'etchings/1:7/holders', 'addresses/nobody/balances'])
            await windows(path, { results: [] });

          const wrong = history.runes.filter(({ id }) => [...(history.sums().get(id)?.values() ?? [])].some((units) => units < 0n));
          if (wrong.length > 0) seen.unbalanced += 1;
          const { unbalanced } = manifest.lists?.balances ?? {};
          expect(unbalanced?.runes ?? []).toEqual(wrong.slice(0, 20).map(({ id }) => id));
          expect(unbalanced?.more_runes ?? 0).toBe(Math.max(wrong.length - 20, 0));
        }
      },
    ),
    { numRuns: HISTORIES, endOnFailure: true },
  );
  expect(seen.runs).toBe(HISTORIES);
  expect(seen.large).toBeGreaterThan(0);
  expect(crossings.get('listPage')).toBeGreaterThan(0);
  expect(seen.unbalanced).toBeGreaterThan(0);
}, 3_600_000);

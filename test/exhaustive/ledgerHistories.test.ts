/**
 * Makes random histories of ledger exports. After every change, the build gives the answers of an independent model
 * (test/support/ledgerHistory.ts), equals a full build, and passes verification. The variable SEED repeats a run.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { crossings, LIMITS, type LimitName } from '../../src/limits.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { fileServer } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { LEDGER_CHANGES, LedgerHistory } from '../support/ledgerHistory.ts';
import { limitsWith, TINY } from '../support/limits.ts';
import { check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 3);

const fetchFrom = (folder: string) => async (path: string) =>
  existsSync(join(folder, path)) ? new Response(readFileSync(join(folder, path))) : new Response(null, { status: 404 });

/** Converts an answer about activity from dialect `hiro` to dialect `contract`, in which keys have another order. */
function inContract<Page extends { readonly results: readonly { readonly location: Readonly<Record<string, unknown>> }[] }>(
  page: Page,
): object {
  const results = page.results.map(({ location, ...record }) => {
    const [block_hash, tx_id] = [`0x${location['block_hash']}`, `0x${location['tx_id']}`];
    return { ...record, location: { ...location, block_hash, tx_id, ...('output' in location ? { output: tx_id } : {}) } };
  });
  return { ...page, results };
}

it('etchings, activity, balances and holders equal those of the model after any change, and an incremental build equals a full build', async () => {
  crossings.clear();
  const seen = { runs: 0, large: 0, unbalanced: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.array(fc.constantFrom(...LEDGER_CHANGES), { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 6 }),
      fc.constantFrom(...DIALECTS),
      fc.constantFrom(...LAYOUTS),
      fc.constantFrom(4096, 2 * 1024 * 1024),
      fc.integer({ min: 2, max: 5 }),
      fc.constantFrom(LIMITS.listLevels, { steps: [64, 16, 4], unsettled: 3 }, { steps: [16, 4, 2], unsettled: 3 }),
      async (number, steps, dialect, layout, objectSize, listPage, listLevels) => {
        // Every second history has addresses that send more than they have, blocks in the lowest level from the first
        // build on, and pages of one entry. So each run has all kinds of histories.
        const isWrong = seen.runs % 2 === 0;
        seen.runs += 1;
        const limits = limitsWith(isWrong ? { ...TINY, listPage: 1, listLevels } : { listPage, listLevels });
        const random = randomFor(`ledgers ${number}`);
        const history = new LedgerHistory(random, isWrong);
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
          // The full build sorts pointers in other parts.
          await testBuild(join(work, `full-${i}`), { ...options, limits: { ...limits, sortedAtOnce: 20 } });
          expect(tree(out)).toEqual(tree(join(work, `full-${i}`)));
          await check(out);

          const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
          const ask = async (path: string) => {
            const response = await mirror.answer(new Request(`http://host/runes/v1/${path}`));
            return [response?.status, await response?.text()];
          };
          const etchings = history.etchings(dialect);
          for (let offset = 0; offset <= etchings.length; offset += 3) {
            const limit = 1 + Math.floor(random() * 4);
            const results = etchings.slice(offset, offset + limit).map(({ json }) => json);
            const body = `{"limit":${limit},"offset":${offset},"total":${etchings.length},"results":[${results.join()}]}`;
            expect(await ask(`etchings?limit=${limit}&offset=${offset}`)).toEqual([200, body]);
          }
          for (const { rune, json } of etchings)
            for (const name of [rune.id, String(rune.number), rune.name.toLowerCase(), encodeURIComponent(rune.spaced)])
              expect(await ask(`etchings/${name}`)).toEqual([200, json]);
          for (const name of ['NOSUCHRUNE', String(etchings.length), '3990:99']) expect((await ask(`etchings/${name}`))[0]).toBe(404);

          const activity = history.activity();
          for (const rune of [
            undefined,
            ...history.runes.flatMap(({ id, number, name }) => [id, String(number), name][number % 3] ?? []),
            'NOSUCHRUNE',
          ]) {
            for (const address of [...(rune === undefined ? [] : [undefined]), ...history.addresses, 'nobody']) {
              const window = { limit: 1 + Math.floor(random() * 4), offset: Math.floor(random() ** 2 * 60) };
              const list = rune === undefined ? `addresses/${encodeURIComponent(address ?? '')}/activity` : `etchings/${rune}/activity`;
              const only = rune === undefined || address === undefined ? '' : `/${encodeURIComponent(address)}`;
              const target = `${list}${only}?limit=${window.limit}&offset=${window.offset}`;
              const body = activity.answer({ rune, address, ...window });
              if (dialect === 'hiro') expect([target, ...(await ask(target))]).toEqual([target, 200, body]);
              else expect([target, JSON.parse(String((await ask(target))[1]))]).toEqual([target, inContract(JSON.parse(body))]);
            }
          }

          if (!history.isWhole) {
            expect((await ask('addresses/bc1q0/balances'))[0]).toBe(501);
            continue;
          }
          // Balances and holders have escapes for characters outside of ASCII.
          const parsed = async (path: string) => {
            const [status, body] = await ask(path);
            return [status, JSON.stringify(JSON.parse(String(body)))];
          };
          const windows = async (path: string, { block_height, results }: { block_height?: number; results: readonly object[] }) => {
            for (const offset of [0, Math.floor(random() * (results.length + 2))]) {
              const limit = 1 + Math.floor(random() * 4);
              const page = { limit, offset, total: results.length, results: results.slice(offset, offset + limit) };
              const body = JSON.stringify(block_height === undefined ? page : { block_height, ...page });
              expect(await parsed(`${path}?limit=${limit}&offset=${offset}`), path).toEqual([200, body]);
            }
          };
          for (const rune of history.runes) {
            const expected = history.holders(rune, limits, layout === 'files' ? history.lowest : 0);
            if (expected.block_height !== undefined) seen.large += 1;
            const name = [rune.id, String(rune.number), rune.name.toLowerCase()][Math.floor(random() * 3)] ?? '';
            await windows(`etchings/${name}/holders`, expected);
            for (const address of history.addresses) {
              const holder = history.holder(rune, address);
              const answer = await parsed(`etchings/${name}/holders/${encodeURIComponent(address)}`);
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
  expect(
    ['batchRecords', 'entriesPerCount', 'documentMember', 'listPage', 'sortedAtOnce', 'listLevels', 'tableLevels'].filter(
      (name) => !crossings.has(name as LimitName),
    ),
  ).toEqual([]);
  expect(seen.unbalanced).toBeGreaterThan(0);
}, 3_600_000);

it('a rune that is read from files of two builds is answered as in one of the builds, or with 503', async () => {
  const random = randomFor('etchings of two builds');
  const seen = { old: 0, new: 0, later: 0 };
  for (let run = 0; run < 10; run += 1) {
    const history = new LedgerHistory(random, false);
    const work = temporaryFolder();
    const builds: { out: string; names: string[] }[] = [];
    for (const changes of [
      ['append', 'append', 'append'],
      ['reorg', 'append'],
    ] as const) {
      for (const change of changes) history[change]();
      const out = join(work, `out-${builds.length}`);
      history.write(join(work, 'in'));
      await testBuild(out, { inputs: [join(work, 'in')], pageSizes: [2, 4] });
      builds.push({ out, names: history.runes.flatMap(({ id, number, name }) => [id, String(number), name]) });
    }
    const [before, after] = builds;
    if (before === undefined || after === undefined) throw new Error('two builds were made');
    const ask = async (fetchFile: (path: string) => Promise<Response>, name: string) => {
      const response = await new FetchMirror(fetchFile, 0).answer(new Request(`http://host/runes/v1/etchings/${name}`));
      return response?.status === 503 ? '503' : `${response?.status} ${await response?.text()}`;
    };
    for (const name of new Set([...before.names, ...after.names])) {
      const [old, fresh] = [await ask(fetchFrom(before.out), name), await ask(fetchFrom(after.out), name)];
      for (let mix = 0; mix < 6; mix += 1) {
        const sides = new Map<string, string>();
        const fetchFile = (path: string) => {
          const side = sides.get(path) ?? (random() < 0.5 ? before.out : after.out);
          sides.set(path, side);
          return fetchFrom(side)(path);
        };
        const answer = await ask(fetchFile, name);
        expect([old, fresh, '503'], name).toContain(answer);
        seen[answer === '503' ? 'later' : answer === old ? 'old' : 'new'] += 1;
      }
    }
  }
  for (const [outcome, times] of Object.entries(seen)) expect([outcome, times > 0]).toEqual([outcome, true]);
}, 600_000);

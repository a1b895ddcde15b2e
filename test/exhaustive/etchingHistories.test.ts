/**
 * Makes random histories of etchings. After every change, the build gives the answers of an independent model
 * (test/support/etchingHistory.ts), equals a full build, and passes verification. The variable SEED repeats a run.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { ETCHING_CHANGES, EtchingHistory } from '../support/etchingHistory.ts';
import { check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 6);

const fetchFrom = (folder: string) => async (path: string) =>
  existsSync(join(folder, path)) ? new Response(readFileSync(join(folder, path))) : new Response(null, { status: 404 });

it('etchings equal those of the oracle after any change, and an incremental build equals a full build', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.array(fc.constantFrom(...ETCHING_CHANGES), { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
      fc.constantFrom(...DIALECTS),
      fc.constantFrom(...LAYOUTS),
      async (number, steps, dialect, layout) => {
        runs += 1;
        const random = randomFor(`etchings ${number}`);
        const history = new EtchingHistory(random);
        const work = temporaryFolder();
        const [out, input] = [join(work, 'out'), join(work, 'in')];
        const options = { inputs: [input], dialect, layout, pageSizes: [2, 4] };
        for (const [i, changes] of [[], ...steps].entries()) {
          for (const change of changes) history[change]();
          history.write(input);
          const { wasFull } = await testBuild(out, options);
          expect(wasFull).toBe(i === 0);
          await testBuild(join(work, `full-${i}`), options);
          expect(tree(out)).toEqual(tree(join(work, `full-${i}`)));
          await check(out);

          const mirror = new FetchMirror(fetchFrom(out), 0);
          const ask = async (path: string) => {
            const response = await mirror.answer(new Request(`http://host/runes/v1/etchings${path}`));
            return [response?.status, await response?.text()];
          };
          const all = history.expected(dialect);
          for (let offset = 0; offset <= all.length; offset += 1) {
            const limit = 1 + Math.floor(random() * 4);
            const results = all.slice(offset, offset + limit).map(({ json }) => json);
            const body = `{"limit":${limit},"offset":${offset},"total":${all.length},"results":[${results.join()}]}`;
            expect(await ask(`?limit=${limit}&offset=${offset}`)).toEqual([200, body]);
          }
          for (const { rune, json } of all) {
            for (const name of [rune.id, String(rune.number), rune.name.toLowerCase(), encodeURIComponent(rune.spaced)])
              expect(await ask(`/${name}`)).toEqual([200, json]);
          }
          for (const name of ['1:7', '9999', 'NOSUCHRUNE']) expect((await ask(`/${name}`))[0]).toBe(404);
        }
      },
    ),
    { numRuns: HISTORIES, endOnFailure: true },
  );
  expect(runs).toBe(HISTORIES);
}, 3_600_000);

it('a rune that is read from files of two builds is answered as in one of the builds, or with 503', async () => {
  const random = randomFor('etchings of two builds');
  const seen = { old: 0, new: 0, later: 0 };
  for (let run = 0; run < 10; run += 1) {
    const history = new EtchingHistory(random);
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

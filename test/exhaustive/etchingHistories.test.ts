/** Random histories of etchings: every build answers as the oracle says, equals a full build, and verifies. SEED repeats a run. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FetchMirror } from '../../src/hosts/fetch.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/site.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { ETCHING_CHANGES, EtchingHistory } from '../support/etchingHistory.ts';
import { check } from '../support/outputs.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 8);

const fetchFrom = (folder: string) => async (path: string) =>
  existsSync(join(folder, path)) ? new Response(readFileSync(join(folder, path))) : new Response(null, { status: 404 });

it('etchings are those of the oracle after any change, and an incremental build equals a full one', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      fc.array(fc.array(fc.constantFrom(...ETCHING_CHANGES), { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
      fc.constantFrom(...DIALECTS),
      fc.constantFrom(...LAYOUTS),
      async (numbers, steps, dialect, layout) => {
        runs += 1;
        const random = () => numbers.next().value;
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

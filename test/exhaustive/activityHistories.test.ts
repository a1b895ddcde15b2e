/**
 * Makes random histories of activity. After every change, the build's lists equal the lists of an independent model
 * (test/support/activityOracle.ts), the build equals a full build, and the build passes verification. The variable SEED
 * repeats a run.
 */

import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FetchMirror } from '../../src/serve/fetchHost.ts';
import { ACTIVITY_CHANGES, ActivityHistory, ADDRESSES, RUNES } from '../support/activityHistory.ts';
import { fileServer } from '../support/archives.ts';
import { temporaryFolder, testBuild, tree } from '../support/build.ts';
import { limitsWith } from '../support/limits.ts';
import { check } from '../support/outputs.ts';
import { randomFor } from '../support/seed.ts';

const HISTORIES = Number(process.env['FC_RUNS'] ?? 4);
const NAMES = [...RUNES.flatMap(({ id, number, name }) => [id, String(number), name]), 'NOSUCHRUNE', '99'];

it('lists of activity equal those of the oracle after any change, and an incremental build equals a full build', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.array(fc.constantFrom(...ACTIVITY_CHANGES), { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 5 }),
      fc.constantFrom('archive', 'files'),
      fc.constantFrom(4096, 3 * 1024 * 1024),
      async (number, steps, layout, objectSize) => {
        const random = randomFor(`activity ${number}`);
        const history = new ActivityHistory(random);
        const work = temporaryFolder();
        const options = {
          inputs: [join(work, 'in')],
          dialect: 'hiro',
          layout,
          lists: true,
          pageSizes: [2, 5],
          objectSize,
        } as const;
        for (const [i, changes] of [[], ...steps].entries()) {
          for (const change of changes) history[change]();
          history.write(join(work, 'in'));
          const out = join(work, 'out');
          await testBuild(out, options);
          const full = join(work, `full-${i}`);
          // The full build sorts pointers in parts of 20, the incremental build sorts them at once. The files must be
          // the same.
          await testBuild(full, { ...options, limits: limitsWith({ sortedAtOnce: 20 }) });
          expect(tree(out)).toEqual(tree(full));
          await check(out);
          const oracle = history.oracle();
          const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
          for (const rune of [undefined, ...NAMES]) {
            for (const address of [...(rune === undefined ? [] : [undefined]), ...ADDRESSES, 'nobody']) {
              const window = { limit: 1 + Math.floor(random() * 5), offset: Math.floor(random() ** 2 * 60) };
              const list = rune === undefined ? `addresses/${encodeURIComponent(address ?? '')}/activity` : `etchings/${rune}/activity`;
              const only = rune === undefined || address === undefined ? '' : `/${encodeURIComponent(address)}`;
              const target = `/runes/v1/${list}${only}?limit=${window.limit}&offset=${window.offset}`;
              const response = await mirror.answer(new Request(`http://127.0.0.1${target}`));
              expect([target, await response?.text()]).toEqual([target, oracle.answer({ rune, address, ...window })]);
            }
          }
        }
      },
    ),
    { numRuns: HISTORIES },
  );
});

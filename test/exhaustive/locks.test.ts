/**
 * Starts builds of one output folder at the same moment. The output must be complete and of one build. Each refused
 * build must end with exit code 3.
 */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { runProcess } from '../support/cli.ts';
import { ndjson, record } from '../support/records.ts';

describe('two simultaneous builds', () => {
  it('started together end with one complete output, whichever is first', async () => {
    const work = temporaryFolder();
    const names = ['a', 'b', 'c'];
    for (const [i, name] of names.entries()) {
      const records = Array.from({ length: 1500 * (i + 1) }, (_, n) => record(5 + i + (n % 5), Math.floor(n / 5)));
      writeFiles(work, { [`${name}.ndjson`]: ndjson(records) });
      await testBuild(join(work, `fresh-${name}`), { inputs: [join(work, `${name}.ndjson`)] });
    }
    const flags = (name: string) => ['--input', `${name}.ndjson`, '--out', 'out', '--cache', `cache-${name}`];
    const ended = await Promise.all(names.map((name) => runProcess('build', flags(name), work)));
    expect(ended.map(({ code }) => code)).toContain(0);
    for (const { code, stderr } of ended.filter((one) => one.code !== 0)) {
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(
          /another build is using the output folder out |another build changed the output folder out while this one read its input/,
        ),
      ]);
    }
    expect(names.map((name) => tree(join(work, `fresh-${name}`)))).toContainEqual(tree(join(work, 'out')));
  });
});

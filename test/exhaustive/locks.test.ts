/** Builds that are started at the same moment. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { runProcess } from '../support/cli.ts';
import { ndjson, record } from '../support/records.ts';

describe('two builds at once', () => {
  it('started together end with one whole output, whoever wins', async () => {
    const work = temporaryFolder();
    const names = ['a', 'b', 'c'];
    for (const [i, name] of names.entries()) {
      const records = Array.from({ length: 1500 * (i + 1) }, (_, n) => record(5 + i + (n % 5), Math.floor(n / 5)));
      writeFiles(work, { [`${name}.ndjson`]: ndjson(records) });
      await testBuild(join(work, `fresh-${name}`), { inputs: [join(work, `${name}.ndjson`)] });
    }
    const flags = (name: string) => ['--input', `${name}.ndjson`, '--out', 'out', '--cache', `cache-${name}`];
    const codes = await Promise.all(names.map(async (name) => (await runProcess('build', flags(name), work)).code));
    expect(codes).toContain(0);
    expect(codes.every((code) => code === 0 || code === 3)).toBe(true);
    expect(names.map((name) => tree(join(work, `fresh-${name}`)))).toContainEqual(tree(join(work, 'out')));
  });
});

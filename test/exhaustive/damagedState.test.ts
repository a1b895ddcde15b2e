/** Tests builds with a damaged cache: the output must equal that of a full build. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { ndjson, record } from '../support/records.ts';

describe('a cache that is', () => {
  it('damaged inside causes a full build, at any position of the damage', async () => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const put = (height: number, amount: string) =>
      writeFiles(input, {
        [`${height}.ndjson`]: ndjson(Array.from({ length: 75 }, (_, i) => record(height, 3 - Math.floor(i / 25), { amount }))),
      });
    for (const height of [1, 2, 3]) put(height, '1');
    await testBuild(out, { inputs: [input] });
    const file = join(`${out}.cache`, 'state.duckdb');
    const whole = readFileSync(file);
    let moved = 0;
    for (let at = 5000; at < whole.length; at += Math.ceil(whole.length / 12)) {
      const damaged = Buffer.from(whole);
      damaged.fill(0xa5, at, at + 600);
      writeFileSync(file, damaged);
      put(4, `${at}`);
      const log = new RecordingLog();
      await testBuild(out, { inputs: [input], log });
      await testBuild(join(work, 'fresh'), { inputs: [input], full: true });
      expect(tree(out)).toEqual(tree(join(work, 'fresh')));
      if (log.notices.some((notice) => notice.startsWith('the cache is damaged'))) {
        expect(readFileSync(`${file}.damaged`).equals(damaged)).toBe(true);
        moved += 1;
      }
    }
    expect(moved).toBeGreaterThan(0);
  });
});

/** Checks that some test exceeds each limit. Otherwise the chain of mainnet might be the first to exceed it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { crossings, LIMITS, type LimitName, PENDING_LIMITS, READER_LIMITS, SERVER_LIMITS } from '../../src/limits.ts';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { CROSSED, CROSSED_ELSEWHERE, limitsWith } from '../support/limits.ts';
import { ndjson, record } from '../support/records.ts';

it('every limit is crossed by a suite with tiny limits, or by a test that is named', () => {
  const names = [LIMITS, READER_LIMITS, PENDING_LIMITS, SERVER_LIMITS].flatMap((limits) => Object.keys(limits) as LimitName[]);
  const counted = new Set(Object.values(CROSSED).flat());
  expect(names.filter((name) => !counted.has(name)).sort()).toEqual(Object.keys(CROSSED_ELSEWHERE).sort());
  for (const [name, [file, text]] of Object.entries(CROSSED_ELSEWHERE))
    expect([name, readFileSync(join(ROOT, `test/${file}.test.ts`), 'utf8').includes(text)]).toEqual([name, true]);
});

it('a build of more files than a scan may have equals a build with one scan', async () => {
  const work = temporaryFolder();
  const names = [1, 2, 3, 4, 5].map((height) => `${height}.ndjson`);
  writeFiles(work, Object.fromEntries(names.map((name, i) => [name, ndjson([record(i + 1, 1), record(i + 1, 0)])])));
  const inputs = names.map((name) => join(work, name));
  const before = crossings.get('filesPerScan') ?? 0;
  await testBuild(join(work, 'tiny'), { inputs, limits: limitsWith({ filesPerScan: 2 }) });
  expect(crossings.get('filesPerScan')).toBe(before + 1);
  await testBuild(join(work, 'usual'), { inputs });
  expect(tree(join(work, 'tiny'))).toEqual(tree(join(work, 'usual')));
});

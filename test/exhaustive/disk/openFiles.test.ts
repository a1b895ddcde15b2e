/** Runs builds with a low limit of open files. Each build must succeed or name the error, and the next build must complete the output. */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { finished, RUNNER } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';

describe('too many open files', () => {
  it.skipIf(process.platform === 'win32')('are named, whichever file exceeds the limit, and the next build is complete', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson(Array.from({ length: 500 }, (_, i) => record(5, i))) });
    const run = async (limit: number, args: readonly string[]): Promise<readonly [number | null, string]> => {
      // The bundle, because tsx opens a different number of files from run to run.
      const command = ['-c', `ulimit -n ${limit} && exec "$@"`, 'sh', process.execPath, RUNNER, 'build', ...args];
      const child = spawn('sh', command, { cwd: work, stdio: ['ignore', 'pipe', 'pipe'] });
      const { code, stdout, stderr } = await finished(child);
      return [code, stdout + stderr];
    };
    // Node itself needs about 20 open files. With fewer it cannot start, and the error is not from this program.
    let least = 16;
    while ((await run(least, ['--help']))[0] !== 0) least += 1;
    let failures = 0;
    for (let limit = least; limit < least + 10; limit += 2) {
      const [code, text] = await run(limit, ['--input', 'in', '--out', 'out', '--cache', 'cache']);
      if (code === 0) continue;
      failures += 1;
      expect([limit, code, text], text).toEqual([limit, 3, expect.stringMatching(/EMFILE|[Tt]oo many open files/)]);
      expect(text).not.toContain('unexpected');
      expect(text).toContain('ulimit -n');
    }
    expect(failures).toBeGreaterThan(0);
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], cache: join(work, 'cache') });
    rmSync(join(work, 'cache'), { recursive: true });
    await testBuild(join(work, 'fresh'), { inputs: [join(work, 'in')] });
    expect(tree(join(work, 'out'))).toEqual(tree(join(work, 'fresh')));
  });
});

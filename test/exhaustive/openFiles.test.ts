/**
 * Runs builds with a low limit of open files. Each build must succeed or name the error, and the next build must
 * complete the output.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { ndjson, record } from '../support/records.ts';

describe('too many open files', () => {
  it.skipIf(process.platform === 'win32')('are named, whichever file exceeds the limit, and the next build is complete', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson(Array.from({ length: 500 }, (_, i) => record(5, i))) });
    const build = [join(ROOT, 'scripts/run.cjs'), 'build', '--input', 'in', '--out'];
    // Fills the cache of tsx before the limited builds, because compiling starts a process, which opens files.
    execFileSync(process.execPath, [...build, 'warm', '--cache', 'warm-cache'], { cwd: work });
    const command = [process.execPath, ...build, 'out', '--cache', 'cache'];
    let failures = 0;
    for (const limit of [24, 26, 28, 30, 32, 34, 36, 38, 42]) {
      const child = spawn('sh', ['-c', `ulimit -n ${limit} && exec "$@"`, 'sh', ...command], {
        cwd: work,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
      const [code] = (await once(child, 'close')) as [number];
      if (code === 0) continue;
      failures += 1;
      // Node itself needs about two dozen files. Below that it cannot start, and the message comes from Node.
      if (!/^Error: /m.test(text)) continue;
      expect([code, text]).toEqual([3, expect.stringMatching(/EMFILE|[Tt]oo many open files/)]);
      expect(text).not.toContain('unexpected');
    }
    expect(failures).toBeGreaterThan(0);
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], cache: join(work, 'cache') });
    rmSync(join(work, 'cache'), { recursive: true });
    await testBuild(join(work, 'fresh'), { inputs: [join(work, 'in')] });
    expect(tree(join(work, 'out'))).toEqual(tree(join(work, 'fresh')));
  });
});

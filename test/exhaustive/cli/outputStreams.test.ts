/** Tests builds whose standard output is closed or cannot be written. */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { endOf, finished, ROOT, run, start } from '../../support/cli.ts';
import { workFolder } from '../../support/records.ts';

describe('npm run build', () => {
  it('continues when the reader of its output is gone', async () => {
    const work = workFolder();
    const child = start('build', ['--input', 'input'], work);
    child.stdout?.destroy();
    child.stderr?.destroy();
    expect(await endOf(child)).toEqual([0, null]);
    expect((await run('verify', [], work)).code).toBe(0);
  });

  it.skipIf(!existsSync('/dev/full'))('continues when its log cannot be written, and says so in the requested format', async () => {
    const work = workFolder();
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [join(ROOT, 'scripts/run.cjs'), 'build', '--log', 'json'], {
      cwd: work,
      stdio: ['ignore', full, 'pipe'],
    });
    closeSync(full);
    const { code, stderr } = await finished(child);
    expect(code).toBe(3);
    const message = expect.stringMatching(/^cannot write to standard output \(ENOSPC: .*\); the command continues$/);
    expect(JSON.parse(stderr)).toMatchObject({ level: 'error', event: 'error', message, details: [], exit_code: 3 });
    expect((await run('verify', [], work)).code).toBe(0);
  });
});

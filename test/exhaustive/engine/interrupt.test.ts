/** Tests Ctrl-C and SIGTERM during a build. The build says what it leaves behind, and the same command continues it. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { finished, ROOT, RUNNER, runProcess } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';

function workFolder(): string {
  const work = temporaryFolder();
  const records = Array.from({ length: 20 }, (_, i) => Array.from({ length: 50 }, (_, tx) => record(i + 1, tx)));
  writeFiles(work, { 'input/a.ndjson': ndjson(records.flat()) });
  return work;
}

/** Runs a build that gets a signal just before a change of a file. */
async function stopped(work: string, signalAt: string): Promise<{ code: number | null; stderr: string }> {
  const args = ['--require', join(ROOT, 'test/support/signalAt.cjs'), RUNNER, 'build', '--no-sync'];
  const child = spawn(execPath, args, { cwd: work, env: { ...env, SIGNAL_AT: signalAt }, stdio: ['ignore', 'ignore', 'pipe'] });
  const { code, stderr } = await finished(child);
  return { code, stderr };
}

it('before a build writes, the output is unchanged', async () => {
  const work = workFolder();
  expect(await stopped(work, 'SIGTERM mkdirSync.*[.]cache')).toEqual({
    code: 130,
    stderr: 'Error: stopped; dist is unchanged\n  Run the same command again.\n',
  });
  expect(existsSync(join(work, 'dist'))).toBe(false);
});

it('while a build writes, the next build completes the output', async () => {
  const work = workFolder();
  expect(await stopped(work, 'SIGINT renameSync.*[.]rune-activity-mirror')).toEqual({
    code: 130,
    stderr: 'Error: stopped; dist is not finished\n  Run the same command again: it completes the build and writes only what is missing.\n',
  });
  expect(await runProcess('build', ['--no-sync'], work)).toMatchObject({ code: 0, stderr: '' });
  await testBuild(join(work, 'fresh'), { inputs: [join(work, 'input')] });
  expect(tree(join(work, 'dist'))).toEqual(tree(join(work, 'fresh')));
});

/** A build that Ctrl-C or SIGTERM stops says what it leaves behind, and the same command continues. */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { runProcess, start } from '../support/cli.ts';
import { ndjson, record } from '../support/records.ts';

/** A folder with input that takes seconds to build. */
function workFolder(): string {
  const work = temporaryFolder();
  const records = Array.from({ length: 40 }, (_, i) => Array.from({ length: 500 }, (_, tx) => record(i + 1, tx)));
  writeFiles(work, { 'input/a.ndjson': ndjson(records.flat()) });
  return work;
}

/** Starts a build, and sends it a signal at a moment. */
async function stopped(work: string, signal: NodeJS.Signals, isDue: () => boolean): Promise<{ code: number | null; stderr: string }> {
  const child = start('build', ['--no-sync'], work);
  let stderr = '';
  child.stderr?.on('data', (part) => {
    stderr += String(part);
  });
  while (!isDue()) await sleep(2);
  child.kill(signal);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

it('before it writes, the output is unchanged', async () => {
  const work = workFolder();
  expect(await stopped(work, 'SIGTERM', () => existsSync(join(work, '.cache')))).toEqual({
    code: 130,
    stderr: 'Error: stopped; dist is unchanged\n  Run the same command again.\n',
  });
  expect(existsSync(join(work, 'dist'))).toBe(false);
});

it('while it writes, the next build completes the output', async () => {
  const work = workFolder();
  const marker = join(work, 'dist/.rune-activity-mirror');
  const isWriting = () => existsSync(marker) && readFileSync(marker, 'utf8').split('\n').length > 2;
  expect(await stopped(work, 'SIGINT', isWriting)).toEqual({
    code: 130,
    stderr: 'Error: stopped; dist is not finished\n  Run the same command again: it completes the build and writes only what is missing.\n',
  });
  expect(await runProcess('build', ['--no-sync'], work)).toMatchObject({ code: 0, stderr: '' });
  await testBuild(join(work, 'fresh'), { inputs: [join(work, 'input')] });
  expect(tree(join(work, 'dist'))).toEqual(tree(join(work, 'fresh')));
});

/** Tests Ctrl-C and SIGTERM during a build. The build says what it leaves behind, and the same command continues it. */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { runProcess, start } from '../support/cli.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { randomFor } from '../support/seed.ts';

/** Returns a folder with input that takes seconds to build. */
function workFolder(): string {
  const work = temporaryFolder();
  const records = Array.from({ length: 40 }, (_, i) => Array.from({ length: 500 }, (_, tx) => record(i + 1, tx)));
  writeFiles(work, { 'input/a.ndjson': ndjson(records.flat()) });
  return work;
}

/** Starts a build, and sends the signal as soon as `isDue` returns true. */
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

it('before a build writes, the output is unchanged', async () => {
  const work = workFolder();
  expect(await stopped(work, 'SIGTERM', () => existsSync(join(work, '.cache')))).toEqual({
    code: 130,
    stderr: 'Error: stopped; dist is unchanged\n  Run the same command again.\n',
  });
  expect(existsSync(join(work, 'dist'))).toBe(false);
});

it('while a build writes, the next build completes the output', async () => {
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

/** Returns the CPU seconds that a process has used, or undefined if the process has ended. */
function cpuOf(pid: number): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return fields[0] === 'Z' ? undefined : (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return undefined;
  }
}

it('at any moment, a build ends soon, also if many ids have the same ending', async () => {
  const work = temporaryFolder();
  const END = '0123456789ab';
  const block = (height: number, transactions: number) =>
    Array.from({ length: transactions }, (_, i) => {
      const tx_id = `0x${hex(`${height} ${i}`).slice(0, -END.length)}${END}`;
      return record(height, transactions - i, { location: { tx_id, output: tx_id } });
    });
  const args = ['--no-sync', '--layout', 'archive', '--object-size', '100KB'];
  writeFiles(work, { 'input/a.ndjson': ndjson(Array.from({ length: 40 }, (_, height) => block(height, 250)).flat()) });
  expect(await runProcess('build', args, work)).toMatchObject({ code: 0 });
  writeFiles(work, { 'input/b.ndjson': ndjson(block(40, 20)) });
  const random = randomFor('interrupt');
  for (let i = 0; i < 8; i += 1) {
    const child = start('build', i % 2 === 0 ? args : [...args, '--full'], work);
    const closed = once(child, 'close');
    let isOver = false;
    closed.then(() => {
      isOver = true;
    });
    const [pid, moment] = [child.pid ?? 0, random() * 4];
    // The moment of the signal is in CPU seconds of the build, so that it is the same on a slow machine.
    while ((cpuOf(pid) ?? Number.POSITIVE_INFINITY) < moment) await sleep(5);
    const before = cpuOf(pid) ?? 0;
    child.kill('SIGTERM');
    let used = 0;
    for (let now = cpuOf(pid); now !== undefined && !isOver; now = cpuOf(pid)) {
      used = now - before;
      await sleep(5);
    }
    await closed;
    expect(used).toBeLessThan(1.5);
  }
  expect(await runProcess('build', args, work)).toMatchObject({ code: 0 });
  await testBuild(join(work, 'fresh'), { inputs: [join(work, 'input')], layout: 'archive', objectSize: 100 * 1024, lists: true });
  expect(tree(join(work, 'dist'))).toEqual(tree(join(work, 'fresh')));
});

/**
 * Kills builds with threads, in processes of their own, at random writes of any of their threads. The next build completes the output.
 * exhaustive/disk/crashes.test.ts tries the same without processes and threads at every write. More kills: KILLS=50 npm run test:exhaustive
 * -- exhaustive/engine/kill
 */
import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { expect, it } from 'vitest';
import { LAYOUTS, type Layout } from '../../../src/pages/mirrorOptions.ts';
import { temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { finished, ROOT, RUNNER } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';
import { randomFor } from '../../support/seed.ts';

const KILLS = Number(env['KILLS'] ?? 2);
const random = randomFor('kills of builds');
const work = temporaryFolder();
/** So many records that a build writes them in threads. */
const write = (name: string, from: number, amount: string) =>
  writeFiles(work, {
    [`${name}.ndjson`]: ndjson(
      Array.from({ length: 60 }, (_, i) => Array.from({ length: 160 }, (_, n) => record(from + i, n >> 4, { amount }))).flat(),
    ),
  });

/** Runs a build of the input `after`. Returns how it ended, and what it wrote to standard error. */
async function build(out: string, layout: Layout, signalAt: string) {
  const args = [
    '--input',
    'after.ndjson',
    '--out',
    out,
    '--cache',
    `${out}.cache`,
    '--layout',
    layout,
    '--lists',
    '--threads',
    '3',
    '--no-sync',
  ];
  const preload = ['--require', join(ROOT, 'test/support/signalAt.cjs')];
  const options = { cwd: work, env: { ...env, SIGNAL_AT: signalAt }, stdio: ['ignore', 'ignore', 'pipe'] as ['ignore', 'ignore', 'pipe'] };
  const child = spawn(execPath, [...preload, RUNNER, 'build', ...args], options);
  const { stderr } = await finished(child);
  return { signal: child.signalCode, stderr };
}

it.each(LAYOUTS)('a build of layout %s that is killed is completed by the next one', async (layout) => {
  write('before', 1, '1');
  write('after', 3, '2');
  const at = (name: string) => join(work, `${layout}-${name}`);
  await testBuild(at('before'), { inputs: [join(work, 'before.ndjson')], layout, lists: true });
  const copy = (name: string) => {
    for (const end of ['', '.cache']) cpSync(`${at('before')}${end}`, `${at(name)}${end}`, { recursive: true });
    return at(name);
  };
  const whole = copy('whole');
  const { stderr } = await build(whole, layout, 'count');
  const changes = Number(/^(\d+) changes$/m.exec(stderr)?.[1]);
  expect(changes).toBeGreaterThan(100);
  for (let i = 0; i < KILLS; i += 1) {
    const out = copy(`out-${i}`);
    const moment = `SIGKILL ${1 + Math.floor(random() * changes)}`;
    expect([moment, (await build(out, layout, moment)).signal]).toEqual([moment, 'SIGKILL']);
    await testBuild(out, { inputs: [join(work, 'after.ndjson')], layout, lists: true });
    const { '.rune-activity-mirror.lock': _, ...files } = tree(out);
    expect(files, moment).toEqual(tree(whole));
  }
});

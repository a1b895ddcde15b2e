/** Tests that a run removes what killed runs left in the temporary folder. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/build.ts';
import { mountDisk } from '../support/disk.ts';
import { removeAbandoned } from '../support/globalSetup.ts';

it('folders of runs whose process has ended are removed, with what is mounted there, and no others', async () => {
  const base = temporaryFolder();
  const { pid } = spawnSync(process.execPath, ['--version']);
  const [ended, running, other] = [`rune-activity-mirror-${pid}-x`, `rune-activity-mirror-${process.pid}-x`, `mirror-${pid}-x`];
  for (const name of [ended, running, other]) mkdirSync(join(base, name, 'test-1'), { recursive: true });
  if (mountDisk(join(base, ended, 'disk'), '1m')) writeFileSync(join(base, ended, 'disk/file'), '');
  await removeAbandoned(base);
  expect(readdirSync(base).sort()).toEqual([other, running].sort());
});

/**
 * Makes a folder in memory and one on the disk for all files of a test run, and removes both at the end of the run. Tests do not remove
 * their files, because ext4 is slow to reuse the inodes of recently deleted files, which would make later builds ten times slower. Also
 * chooses one seed for all random choices, and prints the seed so that a run can be repeated.
 */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../../src/errors.ts';

export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Each project of a run calls this function, and so does a run that a test starts.
  if (process.env['MIRROR_TEST_FOLDER'] !== undefined) return undefined;
  const bases = [baseFolder(), tmpdir()];
  for (const base of new Set(bases)) await removeAbandoned(base);
  const folders = bases.map((base) => mkdtempSync(join(base, `rune-activity-mirror-${process.pid}-`)));
  [process.env['MIRROR_TEST_FOLDER'], process.env['MIRROR_TEST_DISK']] = folders;
  // Browsers, engines and commands put their temporary files there, too.
  process.env['TMPDIR'] = folders[1];
  const seed = process.env['SEED'] ?? String(randomInt(2 ** 31));
  if (!/^\d{1,10}$/.test(seed) || Number(seed) >= 2 ** 31) throw new Error(`SEED "${seed}" must be an integer from 0 to 2147483647`);
  process.env['SEED'] = seed;
  console.log(`Random tests: SEED=${seed} repeats them.`);
  return async () => {
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  };
}

/** Removes the folders of runs that were killed, which would fill the memory, and unmounts what these mounted there. */
export async function removeAbandoned(base: string): Promise<void> {
  for (const name of readdirSync(base)) {
    const [, pid] = /^rune-activity-mirror-([0-9]+)-/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    const mounts = existsSync('/proc/mounts') ? readFileSync('/proc/mounts', 'utf8') : '';
    for (const [, path = ''] of mounts.matchAll(/^\S+ (\S+)/gm)) if (path.startsWith(join(base, name, '/'))) spawnSync('umount', [path]);
    // Another user's folder stays.
    await rm(join(base, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

/** Free bytes that a folder in memory needs. A run may have about 4 GB of files at its end. */
const ROOM = 12e9;

/**
 * Returns `/dev/shm` if it has enough space: writing files there takes a third of the system time of a disk. The variable TMPDIR overrides
 * the choice.
 */
function baseFolder(): string {
  if (process.env['TMPDIR'] === undefined) {
    try {
      const { bavail, bsize } = statfsSync('/dev/shm');
      if (bavail * bsize > ROOM) return '/dev/shm';
    } catch {
      // Only Linux has /dev/shm.
    }
  }
  return tmpdir();
}

/** Full disks, for real: a small tmpfs is mounted where this user may, as root on Linux. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failedBuild, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from './support/build.ts';
import { SAMPLE_INPUT } from './support/cases.ts';
import { ndjson, record } from './support/records.ts';

const disk = join(temporaryFolder(), 'disk');

/** Whether a disk of 3 MB could be mounted. */
function mount(): boolean {
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const mounted = mount();

describe.skipIf(!mounted)('a full disk (skipped where a tmpfs cannot be mounted)', () => {
  beforeAll(() => expect(filesBelow(disk)).toEqual([]));
  afterAll(() => {
    execFileSync('umount', [disk]);
  });

  it('of the output: exit code 3, advice, no half page, and a build elsewhere works', async () => {
    const out = join(disk, 'dist');
    const cache = join(temporaryFolder(), 'cache');
    const error = await failedBuild(out, { inputs: [SAMPLE_INPUT], cache });
    expect([error.exitCode, error.message, error.details]).toEqual([
      3,
      expect.stringMatching(/^writing the output failed: ENOSPC/),
      ['The disk is full, or out of inodes: free some, or build into another folder with --out. Then build again.'],
    ]);
    const whole = join(temporaryFolder(), 'dist');
    await testBuild(whole, { inputs: [SAMPLE_INPUT], cache });
    const written = tree(out);
    expect(Object.keys(written).length).toBeGreaterThan(10);
    expect(tree(whole)).toMatchObject(written);
  });

  it('of the cache: exit code 3 and advice, and the output is not begun', async () => {
    const work = temporaryFolder();
    const packed = gzipSync(ndjson(Array.from({ length: 20_000 }, (_, i) => record(5, i))));
    writeFiles(work, { 'a.ndjson.gz': packed });
    const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'a.ndjson.gz')], cache: join(disk, 'cache') });
    expect([error.exitCode, error.details]).toEqual([3, ['Free some space there, or name another folder with --cache.']]);
    expect(error.message).toContain('a.ndjson.gz cannot be unpacked into the cache folder: ENOSPC');
    expect(() => readFileSync(join(work, 'out'))).toThrow('ENOENT');
  });
});

/** Tests full disks with a small tmpfs. Mounting needs a right that only root on Linux has. */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CliError } from '../../../src/errors.ts';
import { failedBuild, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { mountDisk } from '../../support/disk.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { pulledTree } from '../../support/nodePulls.ts';
import { check } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { ndjson, record } from '../../support/records.ts';
import { extended } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';

const disk = join(temporaryFolder(), 'disk');

/** Fills the disk until only `left` bytes are free. */
function fill(left: number): void {
  try {
    for (;;) writeFileSync(join(disk, 'filler'), Buffer.alloc(4096), { flag: 'a' });
  } catch {
    truncateSync(join(disk, 'filler'), statSync(join(disk, 'filler')).size - left);
  }
}

const mounted = mountDisk(disk, '4m');

describe.skipIf(!mounted)('a full disk (skipped where a tmpfs cannot be mounted)', () => {
  beforeAll(() => expect(filesBelow(disk)).toEqual([]));
  afterAll(() => {
    execFileSync('umount', [disk]);
  });

  it('of the output: exit code 3, advice, no partial page, and a build elsewhere works', async () => {
    const out = join(disk, 'dist');
    const cache = join(temporaryFolder(), 'cache');
    const error = await failedBuild(out, { inputs: [SAMPLE_INPUT], cache });
    expect([error.exitCode, error.message, error.details]).toEqual([
      3,
      expect.stringMatching(/^writing the output failed: ENOSPC/),
      ['The disk is full or out of inodes. Free some space, or choose another disk with --out and --cache. Then build again.'],
    ]);
    const whole = join(temporaryFolder(), 'dist');
    await testBuild(whole, { inputs: [SAMPLE_INPUT], cache });
    // Compares all files except the marker, which says that the build did not finish.
    const { '.rune-activity-mirror': marker, ...written } = tree(out);
    expect(marker).not.toBe(tree(whole)['.rune-activity-mirror']);
    expect(Object.keys(written).length).toBeGreaterThan(10);
    expect(tree(whole)).toMatchObject(written);
  });

  it('of the cache: exit code 3 and advice, and the output is not changed', async () => {
    const work = temporaryFolder();
    rmSync(join(disk, 'dist'), { recursive: true });
    const packed = gzipSync(ndjson(Array.from({ length: 20_000 }, (_, i) => record(5, i))));
    writeFiles(work, { 'a.ndjson.gz': packed });
    const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'a.ndjson.gz')], cache: join(disk, 'cache') });
    expect([error.exitCode, error.details]).toEqual([3, ['Free some space there, or use another folder with --cache.']]);
    expect(error.message).toContain('a.ndjson.gz cannot be unpacked into the cache folder: ENOSPC');
    expect(() => readFileSync(join(work, 'out'))).toThrow('ENOENT');
    // The cache folder is empty again after the failed build.
    expect(filesBelow(disk)).toEqual([]);
    // Gives the disk more space for the next test, whose new state needs about 4 MB beside the old state.
    execFileSync('mount', ['-o', 'remount,size=16m', disk]);
  });

  it('of the cache when the state is written: exit code 3, and the next build completes everything', async () => {
    const work = temporaryFolder();
    const [out, cache] = [join(work, 'out'), join(disk, 'cache')];
    const build = { inputs: [join(work, 'in')], cache };
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    await testBuild(out, build);
    writeFiles(work, { 'in/b.ndjson': ndjson(Array.from({ length: 2000 }, (_, i) => record(5, i))) });
    fill(600_000);
    const error = await failedBuild(out, build);
    rmSync(join(disk, 'filler'));
    expect([error.exitCode, error.message]).toEqual([3, expect.stringMatching(/^the disk of the cache folder is full: /)]);
    expect(error.details[0]).toMatch(/--cache/);
    await testBuild(out, build);
    await testBuild(join(work, 'fresh'), { inputs: build.inputs });
    expect(tree(out)).toEqual(tree(join(work, 'fresh')));
    rmSync(cache, { recursive: true });
  });

  it('of temporary files of a verification: exit code 3 and advice, and nothing stays', async () => {
    const out = join(temporaryFolder(), 'dist');
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    vi.stubEnv('TMPDIR', disk);
    fill(300_000);
    const error: unknown = await check(out).catch((failure: unknown) => failure);
    vi.unstubAllEnvs();
    rmSync(join(disk, 'filler'));
    expect(error).toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/^the folder for temporary files is full: /),
      details: ['Free some space there, or name another folder in the variable TMPDIR.'],
    });
    expect(filesBelow(disk)).toEqual([]);
  });

  it('of a pull from a node, at any amount of free space: exit code 3 and advice, and the next pull continues', async () => {
    const next = randomFor('full disks of pulls from a node');
    const node = await FakeNode.start(
      extended([], 130, (below) => Math.floor(next() * below)),
      { network: 'regtest' },
    );
    const [to, fresh] = [join(disk, 'input'), temporaryFolder()];
    const options = { confirmations: 12 };
    try {
      await testPull(`core:${node.url}`, fresh, options);
      const failures = new Set<string>();
      // A complete pull needs about 250 kB.
      for (let left = 8192; left < 400_000; left += 24_576) {
        fill(left);
        // If the pull had enough space, it is complete.
        const error = await testPull(`core:${node.url}`, to, options).then(
          () => undefined,
          (failure: unknown) => failure,
        );
        rmSync(join(disk, 'filler'));
        if (error === undefined) {
          expect(pulledTree(to), String(left)).toEqual(pulledTree(fresh));
          continue;
        }
        if (!(error instanceof CliError)) throw error;
        expect([error.exitCode, error.message], String(left)).toEqual([
          3,
          expect.stringMatching(/the disk of .* is full|cannot be written/),
        ]);
        failures.add(error.message);
      }
      expect(failures.size).toBeGreaterThan(0);
      await testPull(`core:${node.url}`, to, options);
      expect(pulledTree(to)).toEqual(pulledTree(fresh));
    } finally {
      await node.close();
    }
  });
});

/** Tests builds that run at the same time, and builds on read-only disks. They end with a clear error and exit code 3, and lose no data. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, utimesSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withScratch } from '../../../src/disk/scratchFolder.ts';
import { withLock } from '../../../src/duckdb/lockDatabase.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { LockedError } from '../../../src/errors.ts';
import { claimOutput, inspectOutput, LOCK, releaseOutput } from '../../../src/output/outputFolder.ts';
import { failedBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { endOf, ROOT, runProcess, untilSaid } from '../../support/cli.ts';
import { mountDisk } from '../../support/disk.ts';
import { ndjson, record } from '../../support/records.ts';

/** Starts another process that keeps a database file open until `release`, as a build does. The garbage collector must not close it. */
async function holder(path: string): Promise<{ release(): Promise<unknown> }> {
  const code = `const { DuckDBInstance } = require('@duckdb/node-api');
    DuckDBInstance.create(process.argv[1]).then((held) => { console.log('held'); setInterval(() => held, 1000); });`;
  const child = spawn(process.execPath, ['-e', code, path], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  await untilSaid(child, /held/);
  return {
    release: () => {
      child.kill('SIGKILL');
      return endOf(child);
    },
  };
}

describe('two simultaneous builds', () => {
  it('with one output: the second stops and changes nothing', async () => {
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    const other = await holder(join(out, LOCK));
    const before = tree(out);
    // This build has another cache than the first one, so both share only the output.
    const build = { inputs: [SAMPLE_INPUT], cache: `${out}.other` };
    const error = await failedBuild(out, build);
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^another build is using the output folder .* \(process \d+\)$/),
    ]);
    expect(error.details).toEqual(['Wait until it ends, or use another folder.']);
    expect(tree(out)).toEqual(before);
    // The operating system releases the lock when its process ends, no matter why.
    await other.release();
    expect((await testBuild(out, build)).kept).toBeGreaterThan(100);
  });

  it('started together end with one complete output, whichever is first', async () => {
    const work = temporaryFolder();
    const names = ['a', 'b', 'c'];
    for (const [i, name] of names.entries()) {
      const records = Array.from({ length: 1500 * (i + 1) }, (_, n) => record(5 + i + (n % 5), Math.floor(n / 5)));
      writeFiles(work, { [`${name}.ndjson`]: ndjson(records) });
      await testBuild(join(work, `fresh-${name}`), { inputs: [join(work, `${name}.ndjson`)] });
    }
    const flags = (name: string) => ['--input', `${name}.ndjson`, '--out', 'out', '--cache', `cache-${name}`];
    const ended = await Promise.all(names.map((name) => runProcess('build', flags(name), work)));
    expect(ended.map(({ code }) => code)).toContain(0);
    for (const { code, stderr } of ended.filter((one) => one.code !== 0)) {
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(
          /another build is using the output folder out |another build changed the output folder out while this one read its input/,
        ),
      ]);
    }
    expect(names.map((name) => tree(join(work, `fresh-${name}`)))).toContainEqual(tree(join(work, 'out')));
  });

  it('with one cache: the second stops before it reads anything', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'cache'));
    const other = await holder(join(work, 'cache/state.duckdb'));
    const build = { inputs: [join(work, 'nothing')], cache: join(work, 'cache') };
    const error = await failedBuild(join(work, 'out'), build);
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^another build is using the cache folder .* \(process \d+\)$/),
    ]);
    await other.release();
    expect((await failedBuild(join(work, 'out'), build)).exitCode).toBe(2);
  });
});

describe('an output', () => {
  it('that another build finished while this build read its input is not touched', async () => {
    const work = temporaryFolder();
    const [out, store] = [join(work, 'out'), await Store.open({ memoryLimit: '100MB', threads: 1, scratch: join(work, 'scratch') })];
    try {
      writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]), 'b.ndjson': ndjson([record(6, 1)]) });
      await testBuild(out, { inputs: [join(work, 'a.ndjson')] });
      const seen = inspectOutput(out);
      await testBuild(out, { inputs: [join(work, 'b.ndjson')] });
      const before = tree(out);
      await expect(claimOutput(out, seen, store)).rejects.toMatchObject({
        exitCode: 3,
        message: `another build changed the output folder ${out} while this one read its input`,
      });
      // The refused build has neither marked the output as unfinished nor locked it.
      expect(tree(out)).toEqual(before);
      await claimOutput(out, inspectOutput(out), store);
      await releaseOutput(out, store);
    } finally {
      store.close();
    }
  });
});

describe('scratch folders', () => {
  it('of killed builds are removed, but those of builds in other containers only when they are old', async () => {
    const cache = join(temporaryFolder(), 'cache');
    const names = () => readdirSync(cache).filter((name) => name.startsWith('scratch-'));
    const [ended, other, abandoned] = await withScratch(cache, async (own) => {
      const [, space = ''] = /scratch-([0-9a-f]{12})-[0-9]+-/.exec(own) ?? [];
      // The process id is above the maximum of Linux, so no process has it.
      return [`scratch-${space}-4194305-a`, 'scratch-0123456789ab-4194305-a', 'scratch-4194305'];
    });
    for (const name of [ended, other, abandoned]) writeFiles(cache, { [`${name}/spill`]: 'x' });
    const old = new Date(Date.now() - 8 * 24 * 3600 * 1000);
    utimesSync(join(cache, abandoned ?? ''), old, old);
    await withScratch(cache, async (own) => {
      expect(names().sort()).toEqual([basename(own), other].sort());
      // Another build of the same process gets its own scratch folder, and does not remove this one.
      await withScratch(cache, async (second) => expect(second).not.toBe(own));
      expect(existsSync(own)).toBe(true);
    });
    expect(names()).toEqual([other]);
  });
});

describe('a lock', () => {
  const withStore = async (work: (store: Store) => Promise<void>) => {
    const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: temporaryFolder() });
    try {
      await work(store);
    } finally {
      store.close();
    }
  };

  it('names the process that has it, and is released at the end, also after a failure', async () => {
    const path = join(temporaryFolder(), 'x.lock');
    const lock = { path, name: 'x', what: 'the folder x', worker: 'pull' };
    const other = await holder(path);
    await withStore(async (store) => {
      const error = await withLock(store, lock, async () => undefined).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockedError);
      expect(error).toMatchObject({
        message: expect.stringMatching(/^another pull is using the folder x \(process \d+\)$/),
        // Names no flag: the command `update`, which runs pulls, has no flags for folders.
        details: ['Wait until it ends, or use another folder.'],
      });
      expect(existsSync(path)).toBe(true);
      await other.release();
      const failing = withLock(store, lock, async () => {
        expect(existsSync(path)).toBe(true);
        throw new Error('the work failed');
      });
      await expect(failing).rejects.toThrow('the work failed');
      expect(existsSync(path)).toBe(false);
      expect(await withLock(store, lock, async () => 5)).toBe(5);
    });
  });
});

describe('an output whose build died before its first file', () => {
  it.each([0, 4096])('with a lock file of %i bytes is built', async (bytes) => {
    const out = join(temporaryFolder(), 'out');
    writeFiles(out, { [LOCK]: Buffer.alloc(bytes), '.rune-activity-mirror.tmp': '' });
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    const whole = tree(out);
    // A finished output with such a lock file keeps its state too, so the next build is incremental.
    writeFiles(out, { [LOCK]: Buffer.alloc(bytes) });
    const folder = temporaryFolder();
    const more = join(folder, 'more.ndjson');
    writeFiles(folder, { 'more.ndjson': ndjson([record(5, 1)]) });
    expect(await testBuild(out, { inputs: [SAMPLE_INPUT, more] })).toMatchObject({ wasFull: false, blocks: { written: 1, gone: 0 } });
    expect(await testBuild(out, { inputs: [SAMPLE_INPUT] })).toMatchObject({ wasFull: false, blocks: { written: 0, gone: 1 } });
    expect(tree(out)).toEqual(whole);
  });
});

const disk = join(temporaryFolder(), 'read-only');
const mounted = mountDisk(disk, '20m');

describe.skipIf(!mounted)('a file system that turned read-only (skipped where a tmpfs cannot be mounted)', () => {
  const build = { inputs: [SAMPLE_INPUT] };
  beforeAll(async () => {
    await testBuild(join(disk, 'out'), { ...build, cache: join(disk, 'cache') });
    execFileSync('mount', ['-o', 'remount,ro', disk]);
  });
  afterAll(() => {
    execFileSync('umount', [disk]);
  });

  it('of the cache is named', async () => {
    const error = await failedBuild(join(temporaryFolder(), 'out'), { ...build, cache: join(disk, 'cache') });
    expect([error.exitCode, error.message, error.details]).toEqual([
      3,
      expect.stringMatching(/^the cache folder .*read-only\/cache cannot be used: EROFS/),
      ['Use another folder with --cache.'],
    ]);
  });

  it('of the output is named, and the output stays complete', async () => {
    const before = tree(join(disk, 'out'));
    const error = await failedBuild(join(disk, 'out'), { ...build, cache: join(temporaryFolder(), 'cache') });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^the output folder .*read-only\/out cannot be written: .*Read-only file system/),
    ]);
    expect(tree(join(disk, 'out'))).toEqual(before);
  });
});

/**
 * Simulates failing disks. In each case, another system call that changes a file fails once, and the next build must repair everything. By
 * default, a seed selects a sample of the calls. For all calls: IO_FAULTS=all npm run test:exhaustive -- engine/ioErrors
 */
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { DiskSink } from '../../../src/engine/render/diskSink.ts';
import { CliError } from '../../../src/errors.ts';
import { failedBuild, RecordingLog, type TestBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { type Call, withFault } from '../../support/ioFaults.ts';
import { hex, ndjson, record } from '../../support/records.ts';

const SEED = Number(process.env['SEED']);
const FAULTS = process.env['IO_FAULTS'] ?? '8';
const SAMPLE = FAULTS === 'all' ? Number.POSITIVE_INFINITY : Number(FAULTS);
const MARKER = '.rune-activity-mirror';

/** Returns at most SAMPLE numbers below `count`. Divides the range into equal parts, and draws one number from each. */
function sample(count: number): number[] {
  if (count <= SAMPLE) return Array.from({ length: count }, (_, i) => i);
  const stretch = count / SAMPLE;
  return Array.from({ length: SAMPLE }, (_, i) =>
    Math.floor((i + (Number.parseInt(hex(`${SEED} ${i}`).slice(0, 8), 16) % 1000) / 1000) * stretch),
  );
}

const work = temporaryFolder();
const [before, after] = ['before', 'after'].map((name) => join(work, name)) as [string, string];
const options = (input: string, out: string): TestBuild => ({ inputs: [input], cache: `${out}.cache`, threads: 1 });
const isFinished = (out: string) => readFileSync(join(out, MARKER), 'utf8') === readFileSync(join(after, '..', 'fresh', MARKER), 'utf8');
const pages = (out: string) => {
  const { [MARKER]: _, [`${MARKER}.lock`]: __, ...files } = tree(out);
  return files;
};

beforeAll(async () => {
  const many = (height: number, n: number, amount: string) => Array.from({ length: n }, () => record(height, 1, { amount }));
  writeFiles(before, { 'a.ndjson': ndjson([...many(5, 25, '1'), ...many(6, 1, '1'), ...many(7, 1, '1')]) });
  // Compared with `before`, block 5 shrinks, block 7 is removed, and block 8 is added.
  writeFiles(after, { 'a.ndjson': ndjson([...many(5, 3, '2'), ...many(6, 1, '1'), ...many(8, 1, '1')]) });
  await testBuild(join(work, 'old'), options(before, join(work, 'old')));
  await testBuild(join(work, 'fresh'), options(after, join(work, 'fresh')));
});

let copies = 0;
function copyOfOld(): string {
  copies += 1;
  const out = join(work, `out-${copies}`);
  for (const ending of ['', '.cache']) cpSync(join(work, `old${ending}`), `${out}${ending}`, { recursive: true });
  return out;
}

/** Builds the input `after` into the output of `before`. The system call with the number `failing` fails. */
async function buildWithFault(out: string, failing: number): Promise<{ calls: Call[]; error: unknown }> {
  let error: unknown;
  const calls = await withFault([out, `${out}.cache`], failing, failing % 2 === 0 ? 'EIO' : 'ENOSPC', async () => {
    await testBuild(out, options(after, out)).catch((thrown: unknown) => {
      error = thrown;
    });
  });
  return { calls, error };
}

describe('a failing system call', () => {
  it('in a build gives exit code 3 and a clear message, and the next build completes the output', async () => {
    const first = copyOfOld();
    const { calls, error } = await buildWithFault(first, -1);
    expect([error, pages(first)]).toEqual([undefined, pages(join(work, 'fresh'))]);
    expect(calls.length).toBeGreaterThan(50);
    for (const failing of sample(calls.length)) {
      const out = copyOfOld();
      const { error } = await buildWithFault(out, failing);
      const call = calls[failing];
      // If the build did not fail, the failed call read an old file to compare it with the new content. Builds can do without this
      // comparison.
      if (error !== undefined) {
        expect(error, call).toBeInstanceOf(CliError);
        const { exitCode, message } = error as CliError;
        expect([call, exitCode, message]).toEqual([
          call,
          3,
          expect.stringMatching(/^(writing the output failed|the output cannot be read|the cache folder .* cannot be used): .*i\/o error/),
        ]);
      }
      if (error === undefined) expect(pages(out), call).toEqual(pages(join(work, 'fresh')));
      else if (isFinished(out)) expect([pages(join(work, 'old')), pages(join(work, 'fresh'))], call).toContainEqual(pages(out));
      await testBuild(out, options(after, out));
      expect(pages(out), call).toEqual(pages(join(work, 'fresh')));
      expect(isFinished(out), call).toBe(true);
    }
  }, 1_200_000);

  it('of a writer leaves either the old or the new file, and the next attempt completes the file', async () => {
    const folder = temporaryFolder();
    const write = (root: string) => {
      const sink = new DiskSink(root);
      sink.page('a/b/1.json', '{"results":[', Buffer.from('1'));
      sink.link('a/c/1.json', 'a/b/1.json');
      sink.file('d.json', Buffer.from('{}'));
      writeFiles(folder, { made: 'made' });
      sink.take('e/made', join(folder, 'made'));
    };
    write(join(folder, 'fresh'));
    const old = { 'a/b/1.json': 'old', 'a/c/1.json': 'old', 'd.json': 'old', 'e/made': 'old' };
    writeFiles(join(folder, 'old'), old);
    let failing = 0;
    for (; ; failing += 1) {
      const root = join(folder, `out-${failing}`);
      if (failing % 2 === 0) writeFiles(root, old);
      else mkdirSync(root);
      let failed = false;
      await withFault([root], failing, 'ENOSPC', async () => {
        try {
          write(root);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ENOSPC' });
          failed = true;
        }
      });
      const kinds = [tree(join(folder, 'fresh')), tree(join(folder, 'old'))];
      for (const [path, digest] of Object.entries(tree(root)).filter(([path]) => !path.endsWith('.tmp')))
        expect(kinds.map((kind) => kind[path])).toContain(digest);
      if (!failed) break;
      write(root);
      expect(tree(root)).toMatchObject(tree(join(folder, 'fresh')));
    }
    expect(failing).toBeGreaterThan(10);
  });
});

describe('before a build is marked as finished', () => {
  /** Runs a build during which this script is the program `sync`. */
  const withSync = async <T>(script: string | undefined, build: () => Promise<T>): Promise<T> => {
    const bin = temporaryFolder();
    if (script !== undefined) {
      writeFiles(bin, { sync: `#!/bin/sh\n${script}\n` });
      chmodSync(join(bin, 'sync'), 0o755);
    }
    const { PATH } = process.env;
    process.env['PATH'] = script === undefined ? bin : `${bin}:${PATH}`;
    try {
      return await build();
    } finally {
      process.env['PATH'] = PATH;
    }
  };

  it('its pages are synced, then the manifest, and then the marker', async () => {
    const out = join(work, 'synced');
    const said = join(work, 'said');
    let calls: Call[] = [];
    const build = () => testBuild(out, { ...options(after, out), sync: true });
    const script = `echo "$1 $2 $(ls ${out}/runes/v1/blocks | wc -l) $(ls ${out}/runes/v1 | grep -c manifest) $(wc -l < ${out}/${MARKER})" >> ${said}`;
    await withSync(script, async () => {
      calls = await withFault([out], -1, 'EIO', async () => void (await build()));
    });
    const blocks = 12;
    expect(readFileSync(said, 'utf8')).toBe(`-f ${out} ${blocks} 0 2\n`);
    const syncs = calls.filter((call) => call.startsWith('fsyncSync')).map((call) => call.replace('fsyncSync ', '').replace(out, ''));
    expect(syncs).toEqual([`/${MARKER}.tmp`, '', '/runes/v1/manifest.json', '/runes/v1', `/${MARKER}.tmp`, '']);
    // Neither a build that changes nothing nor a dry run calls `sync`.
    rmSync(said);
    await withSync(script, async () => {
      expect(await withFault([out], -1, 'EIO', async () => void (await build()))).toSatisfy((all: Call[]) =>
        all.every((call) => !call.startsWith('fsync')),
      );
      await testBuild(join(work, 'dry'), { ...options(after, join(work, 'dry')), sync: true, dryRun: true });
    });
    expect(existsSync(said)).toBe(false);
  });

  it.each([
    ['is missing', undefined, 'the program "sync" is missing'],
    ['does not know -f', 'echo "sync: unrecognized option \'-f\'" >&2; exit 1', "sync: unrecognized option '-f'"],
  ])('a sync program that %s is reported once', async (_, script, reason) => {
    const out = copyOfOld();
    const log = new RecordingLog();
    await withSync(script, () => testBuild(out, { ...options(after, out), sync: true, log }));
    expect(log.notices).toEqual([
      `the pages cannot be synced to the disk (${reason}); after a power cut within the next minute, build with --full`,
    ]);
  });

  it('a disk that cannot be synced gives exit code 3 and an unfinished build', async () => {
    const out = copyOfOld();
    const failed = () => failedBuild(out, { ...options(after, out), sync: true });
    const error = await withSync(`echo "sync: error syncing '$2': Input/output error" >&2; exit 1`, failed);
    expect([error.exitCode, error.message]).toEqual([3, `writing the output failed: sync: error syncing '${out}': Input/output error`]);
    expect(isFinished(out)).toBe(false);
  });
});

/**
 * Kills builds at random moments. After a kill, every file has either its old or its new bytes, and the next build
 * completes the output. The variable SEED repeats the moments as exactly as the machine allows. KILLS sets the number
 * of kills: KILLS=100 npm run test:exhaustive -- kill
 */
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { Progress } from '../../src/cli/progress.ts';
import { LAYOUTS, type Layout } from '../../src/pages/mirrorOptions.ts';
import { verify } from '../../src/verify/verify.ts';
import { RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { start } from '../support/cli.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { randomFor } from '../support/seed.ts';

const KILLS = Number(process.env['KILLS'] ?? 20);

const work = temporaryFolder();
const input = (name: string) => join(work, name);

/** Writes one file per block. Each block has over a hundred records, in transactions of all sizes. */
function write(name: string, heights: readonly number[], edition: (height: number) => string): void {
  const files = heights.map((height): [string, string] => {
    const fork = edition(height);
    const records = Array.from({ length: 30 }, (_, tx) =>
      Array.from({ length: tx % 15 === 0 ? 45 : 1 + (tx % 3) }, (_, i) =>
        record(height, tx, {
          amount: `${i}`,
          operation: tx % 2 === 0 ? 'send' : 'receive',
          location: { block_hash: hex(`block ${height} ${fork}`), tx_id: hex(`tx ${height} ${tx % 2 === 0 ? tx : `${tx} ${fork}`}`) },
        }),
      ),
    );
    return [`${height}.ndjson`, ndjson(records.flat())];
  });
  writeFiles(input(name), Object.fromEntries(files));
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Files of complete builds, by layout and input (`before` or `after`). */
const whole: Record<string, Record<string, string>> = {};
beforeAll(async () => {
  write('before', range(1, 24), () => 'a');
  // Compared with the input `before`, replaces the blocks above 12, removes some blocks and adds some.
  write('after', [...range(1, 20), ...range(25, 30)], (height) => (height > 12 ? 'b' : 'a'));
  for (const layout of LAYOUTS) {
    for (const name of ['before', 'after']) {
      await testBuild(join(work, `${layout}-${name}`), { inputs: [input(name)], layout, lists: true });
      whole[`${layout}-${name}`] = contents(join(work, `${layout}-${name}`));
    }
  }
});

/**
 * Returns every file except the marker, which says whether a build finished, and the lock, which a killed build leaves
 * behind.
 */
function contents(out: string): Record<string, string> {
  const { '.rune-activity-mirror': _marker, '.rune-activity-mirror.lock': _lock, ...files } = existsSync(out) ? tree(out) : {};
  return files;
}

interface Moments {
  /** Milliseconds from the start until the input is loaded, and until the end. */
  readonly loaded: number;
  readonly ended: number;
}

/**
 * Runs a build of the input `after`, and kills it when `kill` resolves. Returns the times, and whether the build was
 * still running.
 */
async function runBuild(
  out: string,
  layout: Layout,
  kill: (loaded: Promise<void>) => Promise<void>,
): Promise<Moments & { readonly wasKilled: boolean }> {
  const flags = ['--input', input('after'), '--out', out, '--cache', `${out}.cache`, '--layout', layout, '--log', 'json'];
  if (layout === 'files') flags.push('--lists');
  const child = start('build', flags, work);
  const begun = performance.now();
  let [text, loadedAt, wasKilled] = ['', 0, false];
  const loaded = new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (!text.includes('"event":"loaded"') || loadedAt > 0) return;
      loadedAt = performance.now() - begun;
      resolve();
    });
    child.on('exit', () => resolve());
  });
  const exit = once(child, 'exit');
  void kill(loaded).then(() => {
    wasKilled = child.exitCode === null;
    child.kill('SIGKILL');
  });
  await exit;
  return { loaded: loadedAt, ended: performance.now() - begun, wasKilled };
}

const never = (): Promise<void> => new Promise(() => undefined);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const random = randomFor('kills of builds');

/**
 * Waits until a random moment of a build. Most of these moments are after the input was loaded, while the build changes
 * files.
 */
async function someMoment(loaded: Promise<void>, usual: Moments): Promise<void> {
  if (random() < 0.25) return pause(random() * usual.loaded);
  await loaded;
  return pause(random() * (usual.ended - usual.loaded));
}

/** Copies the output of the input `before`, if the build must be incremental. */
function prepare(out: string, layout: Layout, isIncremental: boolean): string {
  if (isIncremental) {
    cpSync(join(work, `${layout}-before`), out, { recursive: true });
    cpSync(join(work, `${layout}-before.cache`), `${out}.cache`, { recursive: true });
  }
  return out;
}

describe.each([
  ['a first build, layout files,', 'files', false],
  ['an incremental build, layout files,', 'files', true],
  ['a first build, layout archive,', 'archive', false],
  ['an incremental build, layout archive,', 'archive', true],
] as const)('%s that is killed', (_, layout, isIncremental) => {
  const times = Math.ceil(KILLS / 4);
  it(`leaves old or new bytes at every path that was there, and the next build makes all whole (${times} times)`, async () => {
    const before = isIncremental ? (whole[`${layout}-before`] ?? {}) : {};
    const after = whole[`${layout}-after`] ?? {};
    const usual = await runBuild(prepare(join(work, `timed-${layout}-${isIncremental}`), layout, isIncremental), layout, never);
    let killed = 0;
    for (let i = 0; killed < times; i += 1) {
      expect(i, 'too many builds end before they are killed').toBeLessThan(KILLS * 5);
      const out = prepare(join(work, `out-${layout}-${isIncremental}-${i}`), layout, isIncremental);
      const { wasKilled } = await runBuild(out, layout, (loaded) => someMoment(loaded, usual));
      if (!wasKilled) continue;
      killed += 1;
      const left = contents(out);
      for (const [path, bytes] of Object.entries(before)) expect([bytes, after[path]], path).toContain(left[path]);

      await testBuild(out, { inputs: [input('after')], layout, lists: true });
      expect(contents(out)).toEqual(after);
      await verify(out, new Progress(new RecordingLog(), false));
      // The lists of changes must name all files that the killed build or the next build changed.
      const list = (name: string) => new Set(readFileSync(join(`${out}.cache/changes`, name), 'utf8').split('\n'));
      const [added, removed] = [list('added.txt'), list('removed.txt')];
      expect(Object.keys(after).filter((path) => before[path] !== after[path] && !added.has(path))).toEqual([]);
      expect(Object.keys(before).filter((path) => after[path] === undefined && !removed.has(path))).toEqual([]);
    }
  }, 3_600_000);
});

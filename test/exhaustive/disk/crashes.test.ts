/**
 * Ends builds, pulls and updates at each of their steps, by a kill or a power cut (test/support/crashes.ts). Readers of what is left get
 * old answers, new answers or a 503, and the next run leaves exactly what a run without a crash leaves. Draws two kills and four power cuts
 * of each, because a kill is a power cut that loses nothing. All of them: KILLS=all npm run test:exhaustive -- crashes
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Flags } from '../../../src/cli/flags.ts';
import { InputError } from '../../../src/errors.ts';
import { KEYGEN_COMMAND, runKeygen } from '../../../src/output/keygenCommand.ts';
import type { Layout } from '../../../src/pages/mirrorOptions.ts';
import { writeSettings } from '../../../src/setup/initCommand.ts';
import { RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { type Crash, crashesOf, END, restore } from '../../support/crashes.ts';
import { chainOf, type FakeBlock, FakeNode } from '../../support/fakeNode.ts';
import { limitsWith, TINY } from '../../support/limits.ts';
import { pulledTree } from '../../support/nodePulls.ts';
import { startPlainFiles } from '../../support/plainFiles.ts';
import { testPull } from '../../support/pull.ts';
import { hex, ndjson, record } from '../../support/records.ts';
import { extended } from '../../support/runeChains.ts';
import { randomFor } from '../../support/seed.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

/** Number of kills of each run. There are twice as many power cuts. */
const KILLS = env['KILLS'] === 'all' ? Number.POSITIVE_INFINITY : Number(env['KILLS'] ?? 2);

interface Run {
  /** Leaves what the run begins with in `root`, an empty folder. */
  readonly prepare: (root: string) => Promise<unknown>;
  readonly run: (root: string) => Promise<unknown>;
  /** The run after the crash. By default the same run. */
  readonly next?: (root: string) => Promise<unknown>;
  /** Files that must be equal after `next`. */
  readonly result: (root: string) => Record<string, string>;
  /** Opens what the run begins with. */
  readonly open?: (root: string) => Promise<Reader>;
}

/** Reads what a crash and then the next run leave. */
interface Reader {
  crashed(crash: Crash): Promise<void>;
  completed(): Promise<void>;
}

/** Returns at most `most` items: divides the list into equal parts, and draws one of each. */
function drawn<T>(items: readonly T[], most: number, random: () => number): T[] {
  if (items.length <= most) return [...items];
  const part = items.length / most;
  return Array.from({ length: most }, (_, i) => items[Math.floor((i + random()) * part)] as T);
}

async function crashEach(name: string, { prepare, run, next = run, result, open }: Run): Promise<void> {
  const root = join(temporaryFolder(), 'root');
  const random = randomFor(`crashes of ${name}`);
  restore(root, new Map());
  await prepare(root);
  // Keeps times and hard links.
  const copyOf = (from: string, to: string) => execFileSync('cp', ['-a', from, to]);
  const prepared = join(temporaryFolder(), 'prepared');
  copyOf(root, prepared);
  // Most steps after a sync are wanted: then the latest promise of the run is on the disk, and all else may be lost.
  const { steps } = await crashesOf(root, () => run(root), random);
  await next(root);
  const whole = result(root);
  const after = [...steps.keys()].filter((i) => /: (?:f?sync)/.test(steps[i - 1] ?? ''));
  const wanted = new Set([0, ...drawn([...steps.keys()], 2 * KILLS, random), ...drawn(after, 2 * KILLS, random)]);
  rmSync(root, { recursive: true });
  copyOf(prepared, root);
  const { crashes } = await crashesOf(
    root,
    () => run(root),
    random,
    (step) => wanted.has(step),
  );
  const kinds = (['kill', 'power cut'] as const).map((kind, i) =>
    drawn(
      crashes.filter((crash) => crash.kind === kind),
      KILLS * (i + 1),
      random,
    ),
  );
  expect(crashes.length).toBeGreaterThan(3);
  if (env['KILLS'] === 'all') console.log(`${name}: ${steps.length} steps, ${kinds[0]?.length} kills, ${kinds[1]?.length} power cuts`);
  for (const crash of kinds.flat()) {
    try {
      restore(root, crashes[0]?.state ?? new Map());
      const reader = await open?.(root);
      restore(root, crash.state);
      await reader?.crashed(crash);
      await next(root);
      expect(result(root)).toEqual(whole);
      await reader?.completed();
    } catch (error) {
      throw new Error(`${crash.kind} before step ${crash.name}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }
}

describe('a build', () => {
  const inputs = temporaryFolder();
  /** Blocks of each input, as height and fork. `after` replaces blocks 3 and 4, removes block 5 and adds block 6. */
  const BLOCKS = { before: ['1a', '2a', '3a', '4a', '5a'], after: ['1a', '2a', '3b', '4b', '6a'] } as const;
  type Input = keyof typeof BLOCKS;
  const blockHash = (block: string) => hex(`block ${block}`);
  /** Returns the id of a transaction. Every second transaction of a block is the same in all forks. */
  const txId = (block: string, tx: number) => hex(`tx ${tx % 2 === 0 ? block.slice(0, -1) : block} ${tx}`);
  const TARGETS = [...new Set(Object.values(BLOCKS).flat())].flatMap((block) => [
    ...[block.slice(0, -1), blockHash(block)].flatMap((id) =>
      ['', '?limit=60', '?limit=7&offset=33', '?operation_type=send'].map((query) => `/runes/v1/blocks/${id}/activity${query}`),
    ),
    ...[2, 3].map((tx) => `/runes/v1/transactions/${txId(block, tx)}/activity?limit=25&offset=1`),
    ...['', '?limit=25&offset=10'].map((query) => `/runes/v1/etchings/${record(1, 1).rune.id}/activity${query}`),
  ]);

  /** Asks a server for all targets. Starts one if `host` is undefined, unless it refuses to, because there is no whole manifest. */
  const answersOf = async (out: string, host?: LocalHost): Promise<string[]> => {
    const asked =
      host ??
      (await startServer(out).catch((error: unknown) => {
        if (error instanceof InputError) return undefined;
        throw error;
      }));
    if (asked === undefined) return [];
    const answers: string[] = [];
    for (const target of TARGETS) {
      const { status, body } = await asked.send('GET', target);
      answers.push(status === 503 ? '503' : `${status} ${body}`);
    }
    if (host === undefined) await asked.close();
    return answers;
  };

  const build = (out: string, input: Input, layout: Layout, more = {}) =>
    testBuild(out, { inputs: [join(inputs, input)], layout, lists: true, sync: true, ...more });

  beforeAll(() => {
    for (const [name, blocks] of Object.entries(BLOCKS)) {
      const files = blocks.map((block) => {
        const records = Array.from({ length: 6 }, (_, tx) =>
          Array.from({ length: tx === 3 ? 36 : 1 + (tx % 3) }, (_, i) =>
            record(Number.parseInt(block, 10), tx, {
              amount: `${i}`,
              operation: tx % 2 === 0 ? 'send' : 'receive',
              location: { block_hash: blockHash(block), tx_id: txId(block, tx) },
            }),
          ),
        );
        return [`${name}/${block}.ndjson`, ndjson(records.flat())] as const;
      });
      writeFiles(inputs, Object.fromEntries(files));
    }
  });

  it.each<[string, Layout | undefined, Layout, object]>([
    ['incremental, layout files', 'files', 'files', {}],
    ['first, layout archive', undefined, 'archive', {}],
    ['incremental, layout archive', 'archive', 'archive', {}],
    ['from layout files to layout archive', 'files', 'archive', {}],
    ['from layout archive to layout files in another dialect', 'archive', 'files', { dialect: 'hiro' }],
  ])('%s', async (name, before, layout, more) => {
    const folder = temporaryFolder();
    const outs = { before: join(folder, 'before'), after: join(folder, 'after') };
    if (before !== undefined) await build(outs.before, 'before', before);
    await build(outs.after, 'after', layout, more);
    const answers = { before: await answersOf(outs.before), after: await answersOf(outs.after) };
    const isOwn = (path: string) => path.startsWith('.');
    const [old, fresh] = [before === undefined ? {} : tree(outs.before), tree(outs.after)];
    /** Returns all files except the lock, which a crash may leave behind. */
    const files = (out: string) => {
      const { '.rune-activity-mirror.lock': _, ...others } = existsSync(out) ? tree(out) : {};
      return others;
    };
    await crashEach(name, {
      prepare: async (root) => before && (await build(join(root, 'out'), 'before', before)),
      run: (root) => build(join(root, 'out'), 'after', layout, more),
      next: (root) => build(join(root, 'out'), 'after', layout, { ...more, sync: false }),
      result: (root) => files(join(root, 'out')),
      open: async (root) => {
        const out = join(root, 'out');
        // The server has answers of the old build in memory.
        const host = before === undefined ? undefined : await startServer(out);
        if (host !== undefined) expect(await answersOf(out, host)).toEqual(answers.before);
        return {
          crashed: async ({ kind }) => {
            for (const [i, answer] of (await answersOf(out, host)).entries())
              expect(['503', answers.before[i], answers.after[i]], TARGETS[i]).toContain(answer);
            const left = files(out);
            if (kind === 'kill')
              for (const [path, bytes] of Object.entries(old)) if (!isOwn(path)) expect([bytes, fresh[path]], path).toContain(left[path]);
          },
          completed: async () => {
            expect(await answersOf(out, host)).toEqual(answers.after);
            await host?.close();
          },
        };
      },
    });
  });
});

describe('a command that makes a file', () => {
  const keygen = (file: string) => runKeygen(Flags.parse(KEYGEN_COMMAND, ['--name', 'host', '--out', file]), new RecordingLog());
  it.each<[string, string, (file: string) => Promise<void>]>([
    ['init', 'rune-mirror.json', async () => writeSettings({ pull: { from: 'https://host' } })],
    ['keygen', 'mirror.key', keygen],
  ])('%s leaves it complete or not at all, and at the end it is on the disk', async (name, file, make) => {
    const before = process.cwd();
    let isEnd = false;
    const run = async (root: string) => {
      process.chdir(join(root, 'home'));
      if (!isEnd && !existsSync(file)) await make(file);
    };
    await crashEach(name, {
      prepare: async (root) => mkdirSync(join(root, 'home')),
      run,
      // Each key differs, but its length does not.
      result: (root) => ({
        [file]: name === 'init' ? readFileSync(join(root, 'home', file), 'utf8') : `${statSync(join(root, 'home', file)).size}`,
      }),
      open: async () => ({
        crashed: async (crash) => {
          isEnd = crash.name.includes(END);
        },
        completed: async () => undefined,
      }),
    }).finally(() => process.chdir(before));
  });
});

describe('a pull from a node', () => {
  const next = randomFor('chains of crashes');
  const grow = (from: readonly FakeBlock[], count: number) => extended(from, count, (below) => Math.floor(next() * below));
  /** Few of the blocks have rows, because the recorder of steps looks at all files of a folder. */
  const chain = grow(
    chainOf(
      0,
      Array.from({ length: 85 }, () => []),
    ),
    31,
  );
  const busy = grow([], 33);
  const branch = grow(chain.slice(0, 111), 9);
  const shorter = grow(chain.slice(0, 111), 3);
  const limits = limitsWith({ ...TINY, blocksPerCommit: 3 });
  let node: FakeNode;
  beforeAll(async () => {
    node = await FakeNode.start([], { network: 'regtest' });
  });
  afterAll(() => node.close());
  const pull = (root: string, blocks: readonly FakeBlock[], confirmations = 6) => {
    node.replace(blocks);
    return testPull(`core:${node.url}`, join(root, 'input'), { limits, confirmations });
  };
  /** The pull after the crash also reads three new blocks, which spend outputs of the ledger that the crash left. */
  const pulling = (name: string, from: readonly FakeBlock[] | undefined, to: readonly FakeBlock[]) =>
    crashEach(name, {
      prepare: async (root) => from && (await pull(root, from)),
      run: (root) => pull(root, to.slice(0, -3)),
      next: (root) => pull(root, to),
      result: (root) => pulledTree(join(root, 'input')),
    });

  it('that is the first', () => pulling('a first pull from a node', undefined, busy));
  it('that joins the files of a hundred', () => pulling('a pull that joins', chain.slice(0, 101), chain.slice(0, 110)));
  it('in a reorganisation, before another that leaves fewer blocks', () =>
    crashEach('a pull in a reorganisation', {
      prepare: (root) => pull(root, chain, 12),
      run: (root) => pull(root, branch, 12),
      next: (root) => pull(root, shorter, 12),
      result: (root) => pulledTree(join(root, 'input')),
    }));

  it('and the build of an update', async () => {
    const update = async (root: string, blocks: readonly FakeBlock[], sync = false) => {
      await pull(root, blocks);
      const options = { layout: 'archive', lists: true, parquet: true, sync } as const;
      await testBuild(join(root, 'dist'), { inputs: [join(root, 'input/pulled')], ...options });
    };
    await crashEach('an update', {
      prepare: (root) => update(root, busy.slice(0, 10)),
      run: (root) => update(root, busy.slice(0, 15), true),
      next: (root) => update(root, busy.slice(0, 17)),
      result: (root) => ({ ...pulledTree(join(root, 'input')), ...tree(join(root, 'dist')) }),
    });
  });

  it('and a pull of its rows from a mirror', async () => {
    const folder = temporaryFolder();
    // The first hundred blocks are in one file.
    await pull(folder, chain.slice(0, 107));
    await testBuild(join(folder, 'dist'), { inputs: [join(folder, 'input/pulled')], layout: 'archive', parquet: true });
    const mirror = await startPlainFiles(join(folder, 'dist'));
    await crashEach('a pull of rows', {
      prepare: async () => undefined,
      run: (root) => testPull(mirror.base, join(root, 'input')),
      result: (root) => tree(join(root, 'input')),
    }).finally(() => mirror.close());
  });
});

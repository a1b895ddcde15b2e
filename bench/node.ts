/**
 * The benchmark of pulls from a Bitcoin Core node. Invents a chain and the ledger before it, and serves the chain from files. Measures the
 * pull of all history. Then measures new blocks and reorganisations while the pull follows the node. nginx, which serves the files, runs on
 * this machine and shares its cores.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, type Flags, HELP, LOG } from '../src/cli/flags.ts';
import type { Log } from '../src/cli/log.ts';
import { CliError, EXIT, UsageError } from '../src/errors.ts';
import { STATE_FOLDER } from '../src/pull/pulledFiles.ts';
import { filesBelow } from '../test/support/build.ts';
import { endOf, ROOT, runProcess, saidBy, start } from '../test/support/cli.ts';
import { startServer } from '../test/support/server.ts';
import { count } from './figures.ts';
import { cpuSecondsOf, ownCpuSeconds } from './load/processes.ts';
import { BASE, makeChain } from './nodeChain.ts';
import { makeState } from './nodeState.ts';
import { StaticNode } from './staticNode.ts';

export const BENCH_NODE_COMMAND: Command = {
  call: 'npm run bench:node --',
  about: 'Measures pulls of invented blocks from a simulated Bitcoin Core node, whose answers are files that nginx sends.',
  flags: [
    { name: 'blocks', value: 'N', byDefault: '20', about: 'Number of blocks to pull; each has 1.59 MB.' },
    { name: 'rows', value: 'N', byDefault: '1500', about: 'Rows of each block, about.' },
    {
      name: 'outputs',
      value: 'LIST',
      byDefault: '100000',
      about: 'Unspent outputs with runes before these blocks; one run for each number.',
    },
    { name: 'runes', value: 'N', byDefault: '1000', about: 'Number of runes before these blocks.' },
    { name: 'layout', value: 'NAME', byDefault: 'archive', about: 'Layout of the builds that follow the node.' },
    { name: 'depths', value: 'LIST', byDefault: '1', about: 'Blocks that each reorganisation replaces.' },
    { name: 'dir', value: 'DIR', byDefault: 'a temporary folder', about: 'Working folder. Chain and states stay in it for the next run.' },
    LOG,
    HELP,
  ],
  examples: [{ args: '--blocks 300 --outputs 10000000 --runes 200000 --depths 1,6,100', about: 'Measures a full state.' }],
  exits: ['done', 'usage', 'buildFailed'],
};

/** Number of mainnet blocks, and their size in megabytes, from the first block with runes to November 2026. */
const HISTORY = { blocks: 137_000, megabytes: 225_000 };

/** Number of new blocks, added one by one before the reorganisations. */
const NEW_BLOCKS = 3;

/** Milliseconds between two checks for a new block. */
const LOOK_MS = 5;

/** Longest wait until a new block is served, in milliseconds. */
const LONGEST_MS = 300_000;

export async function benchNode(flags: Flags, log: Log): Promise<void> {
  const blocks = flags.integer('blocks', 20, 1, 100_000);
  const rows = flags.integer('rows', 1500, 0, 10_000);
  const runes = flags.integer('runes', 1000, 1000, 270_000);
  const sizes = list(flags, 'outputs', '100000');
  const depths = list(flags, 'depths', '1');
  const parent = flags.one('dir');
  if (parent !== undefined) mkdirSync(parent, { recursive: true });
  const folder = parent ?? mkdtempSync(join(tmpdir(), 'mirror-bench-'));
  process.env['MIRROR_TEST_FOLDER'] = folder;
  const chain = join(folder, `chain-${rows}`);
  const work = mkdtempSync(join(folder, 'work-'));
  let node: StaticNode | undefined;
  try {
    const length = Math.max(blocks, Math.max(...depths) + NEW_BLOCKS + depths.length + 1);
    const baseHash = makeChain(chain, length, rows);
    log.info('generated', `The chain has ${length} blocks.`, { blocks: length, rows });
    node = await StaticNode.start(chain, join(work, 'node'));
    for (const outputs of sizes) {
      const state = join(folder, `state-${outputs}-${runes}`);
      const settled = await makeState(state, baseHash, outputs, runes);
      if (settled.length > 0) {
        const text = settled.map((seconds) => seconds.toFixed(1)).join(', ');
        log.info('settled', `Made a state of ${count(outputs)} outputs; it was settled in ${text} s.`, { outputs, seconds: settled });
      }
      const input = copyOf(state, join(work, `input-${outputs}`));
      await measureHistory(input, node, blocks, outputs, log);
      rmSync(input, { recursive: true });
    }
    const largest = join(folder, `state-${Math.max(...sizes)}-${runes}`);
    const input = copyOf(largest, join(work, 'input'));
    await measureTip(input, join(work, 'dist'), flags.one('layout') ?? 'archive', node, depths, log);
  } finally {
    await node?.stop();
    rmSync(parent === undefined ? folder : work, { recursive: true, force: true });
  }
}

function list(flags: Flags, name: string, byDefault: string): number[] {
  const text = flags.one(name) ?? byDefault;
  if (!/^[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})*$/.test(text))
    throw new UsageError(`--${name} "${text}" must be numbers above 0, separated by commas`);
  return text.split(',').map(Number);
}

/** Copies the folder of a pull, because a pull replaces files in it. */
function copyOf(state: string, input: string): string {
  cpSync(state, input, { recursive: true, filter: (path) => path !== join(state, 'done') });
  return input;
}

/** Fields of the report that a pull writes (`--log json`). */
interface Pulled {
  readonly records: number;
  readonly seconds: number;
  readonly peak_rss_mb: number;
}

const cpuOf = ({ pid }: StaticNode): number => cpuSecondsOf([pid]) ?? 0;

async function pull(input: string, node: StaticNode, last: number) {
  const [own, its] = [ownCpuSeconds() ?? 0, cpuOf(node)];
  // Of all history, only a hundred blocks are unsettled, and get a file each.
  const args = ['--from', `core:${node.url}`, '--to', input, '--blocks', `..${last}`, '--confirmations', '0', '--log', 'json'];
  const { code, stdout, stderr } = await runProcess('pull', args, ROOT);
  if (code !== 0) throw new CliError(`the pull ended with exit code ${code}`, EXIT.buildFailed, [stderr]);
  const pulled = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Pulled;
  return { ...pulled, cpuSeconds: (ownCpuSeconds() ?? 0) - own, nodeCpuSeconds: cpuOf(node) - its };
}

/** Measures a pull of all blocks, and a second pull, which finds nothing new. */
async function measureHistory(input: string, node: StaticNode, blocks: number, outputs: number, log: Log): Promise<void> {
  const last = BASE + blocks;
  const before = bytesOf(input);
  const first = await pull(input, node, last);
  const again = await pull(input, node, last);
  const after = bytesOf(input);
  const megabytes = blocks * BLOCK_MEGABYTES;
  const perBlock = {
    wall: (first.seconds - again.seconds) / blocks,
    cpu: (first.cpuSeconds - again.cpuSeconds) / blocks,
    nodeCpu: (first.nodeCpuSeconds - again.nodeCpuSeconds) / blocks,
    rows: first.records / blocks,
    pulled: (after.pulled - before.pulled) / blocks,
  };
  const hours = ((HISTORY.megabytes / BLOCK_MEGABYTES) * perBlock.wall) / 3600;
  const gigabytes = (HISTORY.blocks * perBlock.pulled) / 1e9;
  const ms = (seconds: number) => `${(1000 * seconds).toFixed(1)} ms`;
  log.info(
    'history',
    `${count(outputs)} outputs, ${count(blocks)} blocks: ${(1 / perBlock.wall).toFixed(1)} blocks/s, ${(BLOCK_MEGABYTES / perBlock.wall).toFixed(0)} MB/s, ` +
      `${perBlock.rows.toFixed(0)} rows a block; CPU a block: pull ${ms(perBlock.cpu)}, node ${ms(perBlock.nodeCpu)}; ` +
      `peak RSS ${first.peak_rss_mb} MB; state ${(after.state / 1e6).toFixed(0)} MB, pulled/ ${(perBlock.pulled / 1e3).toFixed(0)} kB a block; ` +
      `start without a new block ${again.seconds} s, ${again.peak_rss_mb} MB`,
    { outputs, blocks, megabytes, perBlock, peak_rss_mb: first.peak_rss_mb, state: after.state, start: again.seconds },
  );
  log.info(
    'extrapolated',
    `  all history: ${count(HISTORY.megabytes)} MB / ${BLOCK_MEGABYTES} MB × ${ms(perBlock.wall)} = ${hours.toFixed(2)} h; ` +
      `${count(HISTORY.blocks)} blocks × ${(perBlock.pulled / 1e3).toFixed(0)} kB = ${gigabytes.toFixed(1)} GB in pulled/`,
    { outputs, hours, gigabytes },
  );
}

/** Size of a block of the invented chain, in megabytes. */
const BLOCK_MEGABYTES = 1.59;

function bytesOf(input: string): { readonly state: number; readonly pulled: number } {
  const folder = join(input, 'pulled');
  let [state, pulled] = [0, 0];
  for (const path of filesBelow(folder)) {
    const { size } = statSync(join(folder, path));
    if (path.startsWith(STATE_FOLDER)) state += size;
    else pulled += size;
  }
  return { state, pulled };
}

/** Measures the time from a new block, or a reorganisation, until the local server answers requests for the new last block. */
async function measureTip(
  input: string,
  out: string,
  layout: string,
  node: StaticNode,
  depths: readonly number[],
  log: Log,
): Promise<void> {
  let tip = BASE + Math.max(...depths) + 1;
  node.show(tip);
  const follower = start(
    'pull',
    ['--from', `core:${node.url}`, '--to', input, '--follow', '--log', 'json', '--', '--out', out, '--layout', layout],
    ROOT,
  );
  const said = saidBy(follower);
  const details = () => [said.stdout + said.stderr];
  const check = () => {
    if (follower.exitCode !== null) throw new CliError(`the pull ended with exit code ${follower.exitCode}`, EXIT.buildFailed, details());
  };
  for (; !existsSync(join(out, 'runes/v1/manifest.json')); await sleep(LOOK_MS)) check();
  const server = await startServer(out);
  /** Waits until the server has the tip: its status, which a build writes last, has the tip, and it answers requests for this block. */
  const served = async (): Promise<void> => {
    for (const begin = performance.now(); performance.now() - begin < LONGEST_MS; await sleep(LOOK_MS)) {
      check();
      const status = await server.send('GET', '/runes/v1');
      if (!status.body.includes(`"block_height":${tip}`)) continue;
      const block = await server.send('GET', `/runes/v1/blocks/${tip}/activity`);
      if (block.status === 200) return;
    }
    throw new CliError(`block ${tip} was not served`, EXIT.buildFailed, details());
  };
  const reports = () => said.stdout.match(/.*"followed".*\n/g) ?? [];
  const measure = async (name: string, change: () => void) => {
    // The pull polls once a second, so a random delay lets each measurement begin at another moment of that second.
    await sleep(1000 + 1000 * Math.random());
    const before = reports().length;
    const begin = performance.now();
    change();
    await served();
    const seconds = (performance.now() - begin) / 1000;
    // The pull writes its report a moment after the server has the block.
    for (; reports().length === before; await sleep(LOOK_MS)) check();
    const parts = (JSON.parse(reports().at(-1) ?? '') as { readonly seconds: { readonly pull: number; readonly build: number } }).seconds;
    log.info('tip', `${name}: served after ${seconds.toFixed(2)} s; pulled in ${parts.pull} s, built in ${parts.build} s`, {
      name,
      seconds,
      parts,
    });
  };
  try {
    await served();
    for (let i = 0; i < NEW_BLOCKS; i++) {
      tip++;
      await measure('one new block', () => node.show(tip));
    }
    for (const depth of depths) {
      const fork = tip - depth + 1;
      tip++;
      await measure(`a reorganisation of ${depth}`, () => node.fork(fork, tip));
    }
  } finally {
    await server.close();
    follower.kill('SIGTERM');
    await endOf(follower);
  }
}

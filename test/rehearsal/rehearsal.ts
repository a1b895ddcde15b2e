/**
 * A rehearsal of mainnet. Invents a chain as long as mainnet's, and serves it from a simulated node. Runs the real commands on it: pulls
 * and builds up to several heights, then follows the node through new blocks and reorganisations, and kills commands at random moments. An
 * independent model (model/) gives the expected answers.
 */
import type { ChildProcess } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSecondsOf, ownCpuSeconds } from '../../bench/load/processes.ts';
import { randomNumbers } from '../../bench/random.ts';
import { type Command, type Flags, HELP, LOG } from '../../src/cli/flags.ts';
import type { Log } from '../../src/cli/log.ts';
import { rowsName } from '../../src/contract/rowsSchemas.ts';
import { readFiles } from '../../src/duckdb/readFilesSql.ts';
import { int, nullable, Store } from '../../src/duckdb/store.ts';
import { CliError, EXIT } from '../../src/errors.ts';
import type { Limits } from '../../src/limits.ts';
import { commitIndex, moveIn, readIndex } from '../../src/rows/rowsFolder.ts';
import { contentsOf, copyTable, NODE_LEDGER } from '../../src/rows/rowsForm.ts';
import { endOf, hasEnded, portOf } from '../support/cli.ts';
import { type NodeProcess, startNodeProcess } from '../support/fakeNode.ts';
import { TINY } from '../support/limits.ts';
import { placeFile } from '../support/placeFile.ts';
import { sendTo } from '../support/server.ts';
import { ChainMaker, MAINNET, ROWS_PER_BLOCK } from './chain.ts';
import { ChainReader, ChainWriter } from './chainFile.ts';
import {
  AnswerSum,
  allCandidates,
  type Compared,
  compareAll,
  compareRandom,
  Differences,
  type Mirror,
  newCandidates,
  outpointsOf,
} from './compare.ts';
import { FolderMirror } from './folderFiles.ts';
import { type Limited, type Measured, MemoryWatch, measured, startCommand } from './measured.ts';
import { Model } from './model/model.ts';
import { RowStore } from './rows.ts';

export const REHEARSAL_COMMAND: Command = {
  call: 'npm run rehearsal --',
  about:
    'Rehearses mainnet: pulls, builds, verifies and follows an invented chain as long, and compares all answers with an independent model.',
  flags: [
    { name: 'blocks', value: 'N', byDefault: String(MAINNET.blocks), about: 'Length of the chain.' },
    { name: 'rows', value: 'N', byDefault: String(ROWS_PER_BLOCK), about: 'Rows of a block, about.' },
    { name: 'heights', value: 'N', byDefault: '5', about: 'Heights at which a build is compared with the model, and measured.' },
    { name: 'follow', value: 'N', byDefault: '60', about: 'Blocks that come while the pull follows the node.' },
    { name: 'requests', value: 'N', byDefault: '10000', about: 'Random requests that are compared at the end.' },
    { name: 'full', about: `As large as mainnet: ${MAINNET.rowsPerBlock} rows a block, 20 heights, 500 followed blocks.` },
    { name: 'tiny', about: 'Gives the commands tiny limits, so that a short chain crosses what else only mainnet does.' },
    { name: 'seed', value: 'N', byDefault: '1', about: 'Another seed makes another chain, and other moments of kills.' },
    { name: 'dir', value: 'DIR', byDefault: 'a temporary folder', about: 'Working folder. What the commands wrote stays in it.' },
    LOG,
    HELP,
  ],
  examples: [{ args: '--blocks 2000', about: 'Rehearses a short chain, in a few minutes.' }],
  exits: ['done', 'usage', 'buildFailed', 'verificationFailed'],
};

export interface RehearsalOptions {
  readonly blocks: number;
  readonly rows: number;
  readonly heights: number;
  readonly follow: number;
  readonly requests: number;
  readonly seed: number;
  readonly folder: string;
  /** Limits of the commands that differ from the default. */
  readonly limits?: Partial<Limits>;
}

/** Parses the flags, and runs a rehearsal. Throws a CliError if the mirror differs from the model. */
export async function runRehearsal(flags: Flags, log: Log): Promise<void> {
  const isFull = flags.has('full');
  const blocks = flags.integer('blocks', MAINNET.blocks, 100, 1_000_000);
  const parent = flags.one('dir');
  if (parent !== undefined) mkdirSync(parent, { recursive: true });
  const folder = parent ?? mkdtempSync(join(tmpdir(), `rune-activity-mirror-${process.pid}-rehearsal-`));
  try {
    const { differences, answers } = await rehearse(
      {
        blocks,
        rows: flags.integer('rows', isFull ? MAINNET.rowsPerBlock : ROWS_PER_BLOCK, 0, 10_000),
        heights: flags.integer('heights', isFull ? 20 : 5, 1, 100),
        follow: flags.integer('follow', isFull ? 500 : 60, 0, 10_000),
        requests: flags.integer('requests', 10_000, 0, 10_000_000),
        seed: flags.integer('seed', 1, 0, 2 ** 31),
        folder,
        ...(flags.has('tiny') ? { limits: TINY } : {}),
      },
      log,
    );
    const { count, compared, first } = differences;
    const text = `compared ${thousands(compared)} answers with the model`;
    if (count > 0) throw new CliError(`${text}: ${thousands(count)} differ`, EXIT.verificationFailed, first);
    const sum = answers.toString();
    log.info('rehearsed', `Rehearsed ${thousands(blocks)} blocks: ${text}, and all are equal. Sum of the answers: ${sum}`, {
      blocks,
      compared,
      sum,
    });
  } finally {
    if (parent === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Largest depth of a reorganisation in blocks. */
const DEEPEST = 60;

/** A reorganisation comes with every REORGANISED-th new block that the pull follows. */
const REORGANISED = 3;

/** Share of followed blocks during which the pull is killed. */
const KILLED = 1 / 2;

/**
 * A kill comes at most this many milliseconds after a new block, so it may come before, during or after the pull's work: the pull takes
 * about 3,000 ms to follow a block.
 */
const KILLED_WITHIN_MS = 4000;

/** Longest wait until a followed block is built, in milliseconds. */
const LONGEST_MS = 600_000;
const LOOK_MS = 50;

/** Number of random requests after each followed block. */
const REQUESTS_PER_BLOCK = 100;

/** Number of recent transactions. The requests after a followed block ask for what these transactions changed. */
const NEW_TRANSACTIONS = 300;

/** Measurements of one stage, such as a pull or a build, up to a height. */
interface Stage extends Partial<Measured> {
  readonly name: string;
  readonly height: number;
  readonly seconds: number;
  /** CPU seconds of the commands that the stage runs, and of this process. */
  readonly cpuSeconds?: number | undefined;
  readonly what?: string;
}

/** Results of a rehearsal. With other limits than the default, `crossed` counts how often commands crossed each limit. */
interface Rehearsed {
  readonly differences: Differences;
  readonly answers: AnswerSum;
  readonly crossed: ReadonlyMap<string, number>;
}

/** Runs a rehearsal in a folder. Throws a CliError if a command fails. */
export async function rehearse(options: RehearsalOptions, log: Log): Promise<Rehearsed> {
  const rehearsal = new Rehearsal(options, log);
  try {
    await rehearsal.run();
    return rehearsal;
  } catch (error) {
    const { count, first } = rehearsal.differences;
    if (!(error instanceof CliError) || count === 0) throw error;
    throw new CliError(`${error.message}, after ${thousands(count)} answers differed from the model`, error.exitCode, [
      ...first,
      ...error.details,
    ]);
  } finally {
    await rehearsal.close();
  }
}

class Rehearsal {
  readonly differences = new Differences();
  readonly answers = new AnswerSum();
  /** Number of times that the commands crossed each limit, by name. */
  readonly crossed = new Map<string, number>();
  readonly #options: RehearsalOptions;
  readonly #log: Log;
  readonly #maker: ChainMaker;
  readonly #writer: ChainWriter;
  readonly #rows: RowStore;
  readonly #model: Model;
  readonly #stages: Stage[] = [];
  readonly #limited: Limited | undefined;
  /** Height of the next block to apply to the model. */
  #modelled = 0;
  readonly #paths: { readonly chain: string; readonly input: string; readonly out: string; readonly cache: string };
  #node: NodeProcess | undefined;
  #follower: Follower | undefined;

  constructor(options: RehearsalOptions, log: Log) {
    const { blocks, follow, rows, seed, folder } = options;
    this.#options = options;
    this.#log = log;
    this.#paths = { chain: join(folder, 'chain'), input: join(folder, 'input'), out: join(folder, 'dist'), cache: join(folder, 'cache') };
    const { limits } = options;
    const crossed = join(folder, 'crossed');
    this.#limited = limits && { changes: limits, crossed };
    rmSync(crossed, { force: true });
    for (const path of Object.values(this.#paths)) rmSync(path, { recursive: true, force: true });
    mkdirSync(this.#paths.chain, { recursive: true });
    this.#maker = new ChainMaker({ seed, rows, blocks: blocks + 2 * follow });
    this.#writer = new ChainWriter(this.#paths.chain);
    this.#rows = new RowStore(join(folder, 'rows'));
    this.#model = new Model('regtest', { onRows: (transaction) => this.#rows.add(transaction) });
  }

  async close(): Promise<void> {
    await this.#follower?.kill(true);
    await this.#node?.stop();
    this.#rows.close();
  }

  async run(): Promise<void> {
    const { blocks, heights, requests, seed } = this.#options;
    await this.#here('invent', blocks - 1, async () => {
      for (let height = 0; height < blocks; height++) {
        this.#writer.add(this.#maker.next());
        if (height % 1000 === 999) await sleep(0);
      }
    });
    this.#node = await startNodeProcess(this.#paths.chain, { network: 'regtest' });
    this.#show();
    const reader = new ChainReader(this.#paths.chain);
    for (let turn = 1; turn <= heights; turn++) {
      const height = Math.floor((blocks * turn) / heights) - 1;
      await this.#command('pull', height, ['--from', `core:${this.#node.url}`, '--to', this.#paths.input, '--blocks', `..${height}`]);
      const build = () => this.#command('build', height, ['--input', join(this.#paths.input, 'pulled'), ...this.#buildArgs]);
      if (turn === 1) await this.#withoutSpent(build);
      await build();
      await this.#here('model', height, async () => {
        const chain = reader.chainAfter(this.#writer.count);
        for (let at = this.#modelled; at <= height; at++) {
          const placed = chain[at];
          if (placed) this.#model.apply(Buffer.from(placed.bytes), at);
          this.#modelled = at + 1;
          if (at % 1000 === 999) await sleep(0);
        }
      });
      await this.#compare(Math.ceil(requests / heights), seed + turn, turn === heights && this.#options.follow === 0);
    }
    await this.#verify();
    if (this.#options.follow > 0) {
      await this.#follow();
      await this.#verify();
    }
    await this.#serve(requests, seed);
    this.#report();
    this.#countCrossings();
  }

  /**
   * Removes the spent outputs from the rows of the last block that spends any, calls `work`, and restores the rows. This simulates a source
   * that corrects spent outputs later, which does not change the digest of the block's records. Does nothing if no row spends an output.
   */
  async #withoutSpent(work: () => Promise<void>): Promise<void> {
    const pulled = join(this.#paths.input, 'pulled');
    const index = readIndex(pulled);
    const last = index?.files.at(-1);
    if (index === undefined || last === undefined) return;
    const aside = join(this.#options.folder, 'aside');
    mkdirSync(aside, { recursive: true });
    const [kept, other] = [join(aside, 'rows.parquet'), join(aside, 'other.parquet')];
    copyFileSync(join(pulled, rowsName('files', last)), kept);
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: join(aside, 'scratch') });
    try {
      const rows = readFiles('parquet', [kept]);
      const { height } = await store.row(`SELECT max(block_height) FILTER (spent IS NOT NULL) AS height FROM ${rows}`, {
        height: nullable(int),
      });
      if (height !== undefined) {
        const changed = `SELECT * REPLACE (CASE WHEN block_height < ${height} THEN spent END AS spent) FROM ${rows}`;
        await store.run(copyTable(changed, NODE_LEDGER.order, other));
        const [content] = await contentsOf([other], NODE_LEDGER, store);
        const entry = await placeFile(pulled, other, 'files', last, content!);
        commitIndex(pulled, { ...index, files: [...index.files.slice(0, -1), entry] }, join(aside, 'index.json'));
        await work();
        await moveIn(pulled, kept, 'files', last);
        commitIndex(pulled, index, join(aside, 'index.json'));
      }
    } finally {
      store.close();
    }
    rmSync(aside, { recursive: true });
  }

  #start(name: string, args: readonly string[]): ChildProcess {
    return startCommand([name, ...args], this.#options.folder, this.#limited);
  }

  get #buildArgs(): string[] {
    return ['--out', this.#paths.out, '--cache', this.#paths.cache, '--layout', 'archive'];
  }

  /** Makes the node show all blocks that are in the file. */
  #show(): void {
    this.#node?.tell(`show ${this.#writer.count}`);
  }

  /** Runs work of this process and measures it. */
  async #here(name: string, height: number, work: () => Promise<void>): Promise<void> {
    const [begin, cpu] = [performance.now(), ownCpuSeconds() ?? 0];
    const watch = new MemoryWatch(() => [process.pid]);
    await work();
    const [seconds, cpuSeconds] = [(performance.now() - begin) / 1000, (ownCpuSeconds() ?? 0) - cpu];
    this.#add({ name, height, seconds, cpuSeconds, peakMb: watch.end() });
  }

  async #command(name: string, height: number, args: readonly string[]): Promise<void> {
    const node = this.#node?.pid ?? 0;
    const [before, cpu] = [cpuSecondsOf([node]) ?? 0, ownCpuSeconds() ?? 0];
    const { seconds, peakMb } = await measured(`npm run ${name}`, this.#start(name, args));
    const [nodeSeconds, cpuSeconds] = [(cpuSecondsOf([node]) ?? 0) - before, (ownCpuSeconds() ?? 0) - cpu];
    this.#add({ name, height, seconds, cpuSeconds, peakMb, ...(name === 'pull' ? { what: `node ${nodeSeconds.toFixed(1)} s` } : {}) });
  }

  /** Counts findings of `verify` as differences. */
  async #verify(): Promise<void> {
    const { height } = this.#model.tip;
    try {
      await this.#command('verify', height, ['--dir', this.#paths.out]);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      // Logs the complete output of the command, because the list of differences shows only a part.
      this.#log.info('verify', `  ${[error.message, ...error.details].join('\n')}`);
      this.differences.add(height, 'npm run verify', 'exit code 0', error.message);
    }
  }

  #add(stage: Stage): void {
    this.#stages.push(stage);
    const { name, height, what } = stage;
    const text = `  ${name.padEnd(9)} to ${thousands(height).padStart(7)}: ${figures(stage)}${what === undefined ? '' : ` (${what})`}`;
    this.#log.info('stage', text, { ...stage });
  }

  /** Compares all answers of the build in the output folder with the model. If `spent` is true, also compares spent outputs. */
  async #compare(requests: number, seed: number, spent: boolean): Promise<void> {
    const { height } = this.#model.tip;
    await this.#withMirror(async (compared) => {
      await this.#here('compare', height, () => compareAll(compared, spent));
      await this.#here('requests', height, () => compareRandom(compared, allCandidates(this.#model, this.#rows), requests, seed));
    });
  }

  async #withMirror(work: (compared: Compared) => Promise<void>): Promise<void> {
    const mirror = new FolderMirror(this.#paths.out);
    try {
      await work(this.#comparedWith(mirror));
    } finally {
      mirror.close();
    }
  }

  #comparedWith(mirror: Mirror): Compared {
    return { model: this.#model, rows: this.#rows, mirror: this.answers.of(mirror), differences: this.differences };
  }

  /** Compares the answers of the local server to random requests with the model. */
  async #serve(requests: number, seed: number): Promise<void> {
    const child = this.#start('serve', ['--dir', this.#paths.out, '--port', '0', '--log', 'json']);
    try {
      const send = sendTo(await portOf(child));
      const compared = this.#comparedWith({ get: (target) => send('GET', target) });
      const watch = new MemoryWatch(() => [child.pid ?? 0]);
      const begin = performance.now();
      await compareRandom(compared, allCandidates(this.#model, this.#rows), requests, seed);
      this.#add({
        name: 'serve',
        height: this.#model.tip.height,
        seconds: (performance.now() - begin) / 1000,
        peakMb: watch.end(),
        what: `${thousands(requests)} requests`,
      });
    } finally {
      child.kill('SIGKILL');
      await endOf(child);
    }
  }

  /** Follows the node through new blocks, reorganisations and kills. */
  async #follow(): Promise<void> {
    const { follow, seed } = this.#options;
    const next = randomNumbers(seed + 7);
    const begin = performance.now();
    const args = ['--from', `core:${this.#node?.url}`, '--to', this.#paths.input, '--follow', '--', ...this.#buildArgs];
    const restart = () => {
      this.#follower = new Follower(this.#start('pull', args));
      return this.#follower;
    };
    const watch = new MemoryWatch(() => [this.#follower?.pid ?? 0]);
    let follower = restart();
    let [kills, replaced] = [0, 0];
    const seconds: number[] = [];
    const all = allCandidates(this.#model, this.#rows);
    /** Outpoints in the blocks that the last reorganisation replaced. */
    let gone: string[] = [];
    for (let turn = 1; turn <= follow; turn++) {
      const depth = turn % REORGANISED === 2 ? 1 + Math.floor(next() * DEEPEST) : 0;
      const fork = this.#maker.height - depth;
      const tip = this.#maker.height + 1;
      if (depth > 0) {
        this.#maker.rewind(fork, turn, fork + 1 + Math.floor(next() * depth));
        this.#model.rewind(fork);
        gone = this.#rows.rewind(fork).flatMap(outpointsOf);
        replaced += depth;
      }
      while (this.#maker.height < tip) {
        const made = this.#maker.next();
        this.#writer.add(made);
        this.#model.apply(made.bytes, made.height);
      }
      const came = performance.now();
      this.#show();
      const isKilled = next() < KILLED;
      if (isKilled) {
        await sleep(next() * KILLED_WITHIN_MS);
        // Some kills spare the build that the pull has started. The next pull must handle this build.
        await follower.kill(next() < 0.5);
        kills++;
        follower = restart();
      }
      await this.#untilBuilt(tip, follower);
      if (!isKilled) seconds.push((performance.now() - came) / 1000);
      const candidates = newCandidates(this.#model, this.#rows, NEW_TRANSACTIONS, gone, all);
      await this.#withMirror((compared) => compareRandom(compared, candidates, REQUESTS_PER_BLOCK, seed + 1000 + turn));
    }
    await follower.stop();
    this.#follower = undefined;
    seconds.sort((a, b) => a - b);
    this.#add({
      name: 'follow',
      height: this.#maker.height,
      seconds: (performance.now() - begin) / 1000,
      peakMb: watch.end(),
      what: `${follow} blocks, ${replaced} replaced, ${kills} kills; a block took ${seconds[Math.floor(seconds.length / 2)]?.toFixed(1) ?? '-'} s, at most ${seconds.at(-1)?.toFixed(1) ?? '-'} s`,
    });
    await this.#compare(this.#options.requests, seed, true);
  }

  async #untilBuilt(height: number, follower: Follower): Promise<void> {
    for (const begin = performance.now(); ; await sleep(LOOK_MS)) {
      if (builtHeight(this.#paths.out) === height) return;
      if (!follower.isRunning) throw new CliError('the pull that follows the node ended', EXIT.buildFailed, [follower.said]);
      if (performance.now() - begin > LONGEST_MS)
        throw new CliError(`block ${height} was not built within ${LONGEST_MS / 1000} s`, EXIT.buildFailed, [follower.said]);
    }
  }

  #countCrossings(): void {
    if (this.#limited === undefined) return;
    for (const line of readFileSync(this.#limited.crossed, 'utf8').trimEnd().split('\n')) {
      for (const [name, count] of JSON.parse(line) as [string, number][]) this.crossed.set(name, (this.crossed.get(name) ?? 0) + count);
    }
    const text = [...this.crossed].map(([name, count]) => `${name} ${thousands(count)}`).join(', ');
    this.#log.info('crossed', `limits crossed: ${text}`, { crossed: Object.fromEntries(this.crossed) });
  }

  /** Prints time and memory of each stage at each height. */
  #report(): void {
    const names = [...new Set(this.#stages.map(({ name }) => name))];
    const heights = [...new Set(this.#stages.map(({ height }) => height))].sort((a, b) => a - b);
    const cell = (text: string) => text.padStart(28);
    const lines = [`${'up to height'.padEnd(10)}${heights.map((height) => cell(thousands(height))).join('')}`];
    for (const name of names) {
      const cells = heights.map((height) => {
        const stage = this.#stages.find((one) => one.name === name && one.height === height);
        return cell(stage === undefined ? '' : figures(stage));
      });
      lines.push(`${name.padEnd(12)}${cells.join('')}`);
    }
    const { runes } = this.#model;
    let outputs = 0;
    let unspent = 0;
    for (const { spent } of this.#model.outputs()) {
      outputs++;
      if (!spent) unspent++;
    }
    const addresses = [...this.#model.addresses()];
    const most = addresses.reduce((max, address) => Math.max(max, this.#model.outputsOf(address).length), 0);
    const widest = runes.reduce((max, rune) => Math.max(max, this.#model.holders(rune).length), 0);
    const totals = { records: this.#rows.count, runes: runes.length, outputs, unspent, addresses: addresses.length, most, widest };
    const said = `${thousands(totals.records)} records, ${thousands(totals.runes)} runes, ${thousands(outputs)} outputs (${thousands(unspent)} unspent, ${thousands(most)} of one address), ${thousands(totals.addresses)} addresses, ${thousands(widest)} holders of one rune`;
    this.#log.info('table', `${lines.join('\n')}\n${said}`, { stages: this.#stages, ...totals });
  }
}

/** A pull that follows the node. */
class Follower {
  readonly #child: ChildProcess;
  said = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (text: Buffer) => {
        this.said = (this.said + text.toString()).slice(-10_000);
      });
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isRunning(): boolean {
    return !hasEnded(this.#child);
  }

  /** Kills the pull. If `builds` is true, also kills the build that it has started, as when a container ends. */
  async kill(builds: boolean): Promise<void> {
    const children = builds ? childrenOf(this.pid) : [];
    this.#child.kill('SIGKILL');
    for (const pid of children) killed(pid);
    await endOf(this.#child);
  }

  /** Asks the pull to end. Throws a CliError if it fails. A pull that has just started may end without a message. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await endOf(this.#child);
    const isAtStart = this.#child.signalCode === 'SIGTERM' && this.said === '';
    if (!isAtStart && this.#child.exitCode !== 0 && this.#child.exitCode !== EXIT.interrupted)
      throw new CliError(`the pull that follows the node ended with exit code ${this.#child.exitCode}`, EXIT.buildFailed, [this.said]);
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

/** Returns the height of the last block that the build has read, or undefined if there is no finished build. */
function builtHeight(out: string): number | undefined {
  try {
    if (readFileSync(join(out, '.rune-activity-mirror'), 'utf8').includes('did not finish')) return undefined;
    const { sources } = JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')) as {
      sources?: { blocks: [number, number][] }[];
    };
    return sources?.[0]?.blocks.at(-1)?.[1];
  } catch {
    return undefined;
  }
}

/** Formats the time, CPU time and memory of a stage. */
function figures({ seconds, cpuSeconds, peakMb }: Stage): string {
  const cpu = cpuSeconds === undefined ? '' : `, CPU ${cpuSeconds.toFixed(1)} s`;
  return `${seconds.toFixed(1)} s${cpu}${peakMb === undefined ? '' : `, ${peakMb} MB`}`;
}

const thousands = (n: number): string => n.toLocaleString('en-US');

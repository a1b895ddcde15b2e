/** Runs the pull command: takes the lock, opens the source, pulls and reports. */
import { setMaxListeners } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { attempt } from '../attempt.ts';
import type { Flags } from '../cli/flags.ts';
import { count, type Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { costRows, peakMegabytes, Stopwatch } from '../cli/stopwatch.ts';
import { withLock } from '../duckdb/lockDatabase.ts';
import { Store } from '../duckdb/store.ts';
import { CliError, codeOf, EXIT, InputError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { readIndex } from '../rows/rowsFolder.ts';
import { NETWORKS } from '../runes/networks.ts';
import { removeState } from '../unspent/diskLedger.ts';
import { DamagedStateError } from '../unspent/sortedFile.ts';
import { Client } from './httpClient.ts';
import { baseOf } from './mirror/mirrorSource.ts';
import { pullRows } from './mirror/rows/pullRows.ts';
import { BlockServer } from './node/blockServer.ts';
import { hasAllRows } from './node/continueRows.ts';
import { BitcoinNode } from './node/coreNode.ts';
import { follow } from './node/followNode.ts';
import { NodePull } from './node/nodePull.ts';
import { NodeUrl, type PullRequest, pullRequestOf } from './pullCommand.ts';
import { explained, PULLED_FOLDER, removeWorkFiles, STATE_FOLDER, WORK_FOLDER, writeError } from './pulledFiles.ts';
import type { PullResult, Tools } from './pullOptions.ts';

export async function runPull(flags: Flags, log: Log, limits = LIMITS): Promise<void> {
  const interruption = new AbortController();
  const request = pullRequestOf(flags, limits, interruption.signal);
  const stop = () => interruption.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    await pullFrom(request, log, Progress.of(flags, log));
    // A build of --follow may still be running, and would keep the process alive. Killing it is safe at any moment.
    if (interruption.signal.aborted) process.exit(EXIT.done);
  } finally {
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
}

/** Throws the errors of pullRows() and NodePull, a LockedError if another pull uses the folder, and a CliError if the signal aborts. */
export async function pullFrom(request: PullRequest, log: Log, progress: Progress): Promise<PullResult> {
  const clock = new Stopwatch();
  // Every request and connection adds a listener to the signal. By default, Node warns of a leak above ten listeners.
  setMaxListeners(request.concurrency + 10, request.signal);
  const folder = join(request.to, PULLED_FOLDER);
  const work = openWork(folder);
  // DuckDB only writes the rows of a node's blocks: a second thread would mostly wait. Making the ledger from rows is more work.
  const isContinued = !existsSync(join(folder, STATE_FOLDER)) && attempt(() => readIndex(folder)) !== undefined;
  const isOfBlocks = request.from instanceof NodeUrl && !isContinued;
  const threads = isOfBlocks ? 1 : availableParallelism();
  const store = await Store.open({ memoryLimit: request.memoryLimit, threads, scratch: work });
  const tools = { store, log, progress };
  const client = new Client({ ...request, onRetry: (why) => log.notice(`${why}; trying again`) });
  const lock = { path: join(work, 'lock'), name: 'pull_lock', what: `the folder ${folder}`, worker: 'pull' };
  try {
    if (!isOfBlocks) await store.returnFreed();
    return await withLock(store, lock, async () => {
      // Removes the temporary files of killed pulls. No other pull can use them, because this one has the lock.
      for (const name of readdirSync(work)) if (name !== 'lock') rmSync(join(work, name), { recursive: true, force: true });
      const done = (result: PullResult): void => {
        progress.end();
        report(result, request.to, clock, log);
      };
      const { from } = request;
      if (from instanceof NodeUrl) return pullFromNode({ ...request, folder, url: from.url }, client, done, tools);
      if (existsSync(join(folder, STATE_FOLDER)))
        throw new InputError(`${folder} has blocks from a Bitcoin Core node, so only a node can continue it`, [
          `Give another folder with --to, or remove ${folder}.`,
        ]);
      const result = await pullRows({ ...request, folder }, baseOf(from), client, tools);
      done(result);
      return result;
    });
  } catch (error) {
    // An abort makes the running step fail with some other error, whose message would mislead.
    if (request.signal.aborted)
      throw new CliError('stopped; fetched blocks are kept, and the same command continues from here', EXIT.interrupted);
    throw explained(folder, error);
  } finally {
    progress.end();
    client.close();
    store.close();
    // Fails if another pull is using the folder of temporary files, which then is not empty.
    attempt(() => {
      removeWorkFiles(folder);
      rmdirSync(work);
    });
  }
}

/**
 * Pulls from a node once, calls `done`, and with `builds` then pulls and builds each new block until the signal aborts. Makes a damaged
 * ledger again from the rows in the folder, if it has all of them.
 */
async function pullFromNode(
  request: Omit<PullRequest, 'from'> & { readonly folder: string; readonly url: URL },
  client: Client,
  done: (result: PullResult) => void,
  tools: Tools,
): Promise<PullResult> {
  const { folder, signal, builds } = request;
  const { log } = tools;
  const onNotice = (message: string) => log.notice(message);
  const blockServer = request.blockSource && new BlockServer(request.blockSource, client);
  const node = await BitcoinNode.open({ ...request, onNotice, blockServer });
  const run = async () => {
    const pull = await NodePull.open(request, node, tools);
    try {
      const result = await pull.run();
      done(result);
      if (builds === undefined) await pull.settle();
      else await follow({ folder, builds, signal }, node, pull, log);
      return result;
    } finally {
      pull.close();
    }
  };
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof DamagedStateError)) throw error;
    const chain = await node.chain().catch(() => undefined);
    if (chain === undefined || !hasAllRows(folder, NETWORKS[chain.network])) throw error;
    log.notice(`${error.message}; the ledger is made again from the rows`);
    removeState(join(folder, STATE_FOLDER));
    return await run();
  } finally {
    node.close();
  }
}

/** Creates the folder that contains the temporary files and the lock file. Returns its path. */
function openWork(folder: string): string {
  const work = resolve(folder, WORK_FOLDER);
  try {
    mkdirSync(work, { recursive: true });
  } catch (error) {
    if (['EEXIST', 'ENOTDIR'].includes(codeOf(error) ?? ''))
      throw new InputError(`${folder} is not a folder`, ['Give another folder with --to.']);
    throw writeError(folder, error);
  }
  return work;
}

function report(result: PullResult, to: string, clock: Stopwatch, log: Log): void {
  const seconds = clock.total;
  const { blocks, records, bytes, replaced, heights } = result;
  const runs = heights.map(({ first, last }) => `${first}..${last}`);
  const size = (bytes / 1e6).toFixed(1);
  const shown = runs.length > 5 ? [...runs.slice(0, 4), `${runs.length - 4} more ranges`] : runs;
  const fetched =
    blocks === 0 ? 'No blocks were fetched' : `Fetched ${count(blocks, 'block')} with ${count(records, 'record')} (${size} MB)`;
  const held = `${join(to, PULLED_FOLDER)} has ${shown.length === 0 ? 'no blocks' : `blocks ${shown.join(', ')}`}`;
  const ranges = heights.map(({ first, last }) => [first, last]);
  const fields = { blocks, records, bytes, replaced, seconds, peak_rss_mb: peakMegabytes(), held: ranges };
  log.info('pulled', `${fetched} in ${seconds} s. ${held}.`, fields);
  const number = (n: number) => n.toLocaleString('en-US');
  if (blocks > 0)
    log.summary([
      ['blocks', `${number(blocks)} fetched, ${number(replaced)} pulled before were replaced`],
      ['records', number(records)],
      ['bytes', number(bytes)],
      ...costRows(clock),
    ]);
  const others = readdirSync(to).filter((name) => name !== PULLED_FOLDER && !name.startsWith('.') && !name.endsWith('.md'));
  if (others.length > 0)
    log.notice(`${to} also has ${others.slice(0, 3).join(', ')}${others.length > 3 ? ' ...' : ''}, which builds of ${to} read too.`);
}

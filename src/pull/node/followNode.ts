/** Follows a node: waits for blocks, pulls them, and runs a build after each pull. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { count, type Log } from '../../cli/log.ts';
import { peakMegabytes } from '../../cli/stopwatch.ts';
import { build } from '../../engine/build.ts';
import type { BuildOptions } from '../../engine/buildOptions.ts';
import { BuildError, CliError, EXIT, UsageError } from '../../errors.ts';
import { explained } from '../pulledFiles.ts';
import type { PullOptions } from '../pullOptions.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { NodePull } from './nodePull.ts';

/** Milliseconds between requests for the node's tip, which take it less than one, after a failed request, and after a failed build. */
const [LOOK_MS, LOST_MS, FAILED_MS] = [200, 10_000, 60_000];

interface FollowOptions extends Pick<PullOptions, 'folder' | 'signal'> {
  /** How to build the folder, which is one more input. */
  readonly builds: BuildOptions;
}

/**
 * Runs until the signal aborts. Logs and retries if a build fails or the node does not answer. A build that runs when the signal aborts is
 * not stopped. So the caller must end the process, which is safe at any moment of a build.
 */
export async function follow(options: FollowOptions, node: BitcoinNode, pull: NodePull, log: Log): Promise<void> {
  const { signal } = options;
  let built = pull.hasRows && (await tryBuild(options, log));
  log.info('following', `Following ${node.name}; a new block is pulled and built when the node has it.`, { built });
  let seen: string | undefined;
  let retryAt = Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    try {
      const chain = await node.chain();
      if (chain.bestHash !== seen || performance.now() >= retryAt) {
        const clock = performance.now();
        const { blocks, records, replaced, heights } = await pull.run();
        if (pull.hasRows && (blocks > 0 || replaced > 0 || !built)) {
          const pulledMs = performance.now() - clock;
          built = await tryBuild(options, log);
          const tip = heights.at(-1)?.last;
          const what = `${count(blocks, 'block')} to ${tip}${replaced === 0 ? '' : `, ${replaced} replaced`}: ${count(records, 'record')}`;
          const seconds = { pull: round(pulledMs), build: round(performance.now() - clock - pulledMs) };
          const fields = { tip, blocks, records, replaced, seconds, peak_rss_mb: peakMegabytes() };
          if (built) log.info('followed', `${what}; pulled in ${seconds.pull} s, built in ${seconds.build} s`, fields);
        }
        await pull.settle();
        seen = chain.bestHash;
        retryAt = built || !pull.hasRows ? Number.POSITIVE_INFINITY : performance.now() + FAILED_MS;
      }
      await pause(LOOK_MS, signal);
    } catch (caught) {
      if (signal.aborted) break;
      const error = explained(options.folder, caught);
      if (!(error instanceof BuildError)) throw caught;
      // The pull may have written blocks before it failed, so the next round must build even without new blocks.
      built = false;
      log.notice(`${error.message}; trying again in ${LOST_MS / 1000} s`);
      await pause(LOST_MS, signal);
    }
  }
  log.info('stopped', 'Stopped following.');
}

const round = (ms: number): number => Math.round(ms / 100) / 10;

/** Waits, or returns immediately when the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => undefined);

/** Returns false if the build fails, whose notices and error it logs, or if the signal aborts. Throws a UsageError for bad arguments. */
async function tryBuild({ folder, builds, signal }: FollowOptions, log: Log): Promise<boolean> {
  if (signal.aborted) return false;
  const said: string[] = [];
  const quiet: Log = { info: () => {}, summary: () => {}, notice: (message) => said.push(message), failure: () => {}, error: () => {} };
  const ended = new AbortController();
  try {
    await Promise.race([build({ ...builds, inputs: [folder, ...builds.inputs] }, quiet), once(signal, 'abort', { signal: ended.signal })]);
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    if (error instanceof UsageError) throw error;
    const [code, lines] =
      error instanceof CliError
        ? [error.exitCode, [error.message, ...error.details]]
        : [EXIT.buildFailed, [error instanceof Error ? (error.stack ?? error.message) : String(error)]];
    const text = [...said, ...lines].join('\n');
    log.failure(`the build failed (exit code ${code}); trying again in ${FAILED_MS / 1000} s. It said:\n${text}`);
    return false;
  } finally {
    ended.abort();
  }
}

/** Follows a node: waits for blocks, pulls them, and runs a build after each pull. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { env, execPath } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { withoutSecrets } from '../../cli/environment.ts';
import { count, type Log } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import { BuildError, EXIT, messageOf, UsageError } from '../../errors.ts';
import { program } from '../../program.ts';
import type { BitcoinNode } from './coreNode.ts';
import type { NodePull } from './nodePull.ts';

/** Milliseconds between two requests for the node's tip. A request takes the node less than a millisecond. */
const LOOK_MS = 1000;

/** Milliseconds until the next request to a node that did not answer. */
const LOST_MS = 10_000;

/** Milliseconds until a failed build is retried. The build of a killed pull may still have the lock. */
const FAILED_MS = 60_000;

export interface FollowOptions {
  /** The folder `pulled`, which is the input of builds. */
  readonly folder: string;
  /** Further arguments of builds. */
  readonly args: readonly string[];
  readonly signal: AbortSignal;
}

/** Runs until the signal aborts. Logs and retries if a build fails or the node does not answer. */
export async function follow(options: FollowOptions, node: BitcoinNode, pull: NodePull, log: Log, progress: Progress): Promise<void> {
  const { signal } = options;
  let built = pull.hasRows && (await build(options, log));
  log.info('following', `Following ${node.name}; a new block is pulled and built when the node has it.`);
  let seen: string | undefined;
  let retryAt = Number.POSITIVE_INFINITY;
  while (!signal.aborted) {
    try {
      const chain = await node.chain();
      if (chain.bestHash !== seen || performance.now() >= retryAt) {
        const clock = performance.now();
        const { blocks, records, replaced, heights } = await pull.run(progress);
        if (pull.hasRows && (blocks > 0 || replaced > 0 || !built)) {
          const pulledMs = performance.now() - clock;
          built = await build(options, log);
          const tip = heights.at(-1)?.last;
          const what = `${count(blocks, 'block')} to ${tip}${replaced === 0 ? '' : `, ${replaced} replaced`}: ${count(records, 'record')}`;
          const seconds = { pull: round(pulledMs), build: round(performance.now() - clock - pulledMs) };
          if (built)
            log.info('followed', `${what}; pulled in ${seconds.pull} s, built in ${seconds.build} s`, {
              tip,
              blocks,
              records,
              replaced,
              seconds,
            });
        }
        await pull.settle();
        seen = chain.bestHash;
        retryAt = built || !pull.hasRows ? Number.POSITIVE_INFINITY : performance.now() + FAILED_MS;
      }
      await pause(LOOK_MS, signal);
    } catch (error) {
      if (signal.aborted) break;
      if (!(error instanceof BuildError)) throw error;
      // The last build may lack some pulled blocks.
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

/**
 * Runs a build in its own process. Returns false and logs its output if it fails. Throws a UsageError for bad
 * arguments.
 */
export async function build({ folder, args, signal }: FollowOptions, log: Log): Promise<boolean> {
  if (signal.aborted) return false;
  const child = spawn(execPath, [program.runner, 'build', '--input', folder, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: withoutSecrets(env),
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-10_000);
    });
  }
  const stop = () => child.kill('SIGTERM');
  signal.addEventListener('abort', stop);
  try {
    const [code, killed] = (await once(child, 'close').catch((error: unknown) => [null, messageOf(error)])) as [
      number | null,
      string | null,
    ];
    if (code === EXIT.done || signal.aborted) return code === EXIT.done;
    if (code === EXIT.usage) throw new UsageError(`the arguments for the build are wrong: ${said.trim()}`);
    log.notice(`the build failed (${killed ?? `exit code ${code}`}); trying again in ${FAILED_MS / 1000} s. It said:\n${said.trimEnd()}`);
    return false;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Runs pulls for tests, with short pauses. */
import { Progress } from '../../src/cli/progress.ts';
import { CliError } from '../../src/errors.ts';
import type { Clock } from '../../src/pull/httpClient.ts';
import { NodeUrl, type PullRequest } from '../../src/pull/pullCommand.ts';
import type { PullResult } from '../../src/pull/pullOptions.ts';
import { pullFrom } from '../../src/pull/runPull.ts';
import { RecordingLog } from './build.ts';
import { TEST_LIMITS } from './limits.ts';

export interface TestPull extends Partial<Omit<PullRequest, 'from' | 'to'>> {
  readonly log?: RecordingLog;
}

export async function testPull(from: string, to: string, options: TestPull = {}): Promise<PullResult> {
  const { log = new RecordingLog(), ...request } = options;
  const defaults: Omit<PullRequest, 'from' | 'to'> = {
    wanted: { from: undefined, to: undefined },
    confirmations: 6,
    concurrency: 4,
    rate: 0,
    retries: 12,
    timeoutMs: 10_000,
    pauseMs: 2,
    memoryLimit: '700MB',
    limits: TEST_LIMITS,
    signal: new AbortController().signal,
    isInvented: true,
  };
  const source = from.startsWith('core:') ? new NodeUrl(new URL(from.slice(5))) : new URL(from);
  return pullFrom({ ...defaults, ...request, from: source, to }, log, new Progress(log, false));
}

/** A clock that moves only while a pull waits. */
export class PullClock implements Clock {
  #now = 0;
  now(): number {
    return this.#now;
  }
  wait(ms: number): Promise<void> {
    this.#now += ms;
    return Promise.resolve();
  }
}

/** Returns the error of a pull that must fail. */
export async function failedPull(from: string, to: string, options: TestPull = {}): Promise<CliError> {
  try {
    await testPull(from, to, options);
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error('the pull succeeded');
}

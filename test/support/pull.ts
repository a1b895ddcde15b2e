/**
 * Runs pulls for tests, with short pauses. Also returns the recorded data as blocks of records, as a server of the API
 * has them.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Progress } from '../../src/cli/progress.ts';
import type { Manifest } from '../../src/contract/schemas.ts';
import { CliError } from '../../src/errors.ts';
import type { Clock } from '../../src/pull/httpClient.ts';
import type { PullResult } from '../../src/pull/pullBlocks.ts';
import { NodeUrl, type PullRequest } from '../../src/pull/pullRequest.ts';
import { pullFrom } from '../../src/pull/runPull.ts';
import { CONFORMANCE_INPUTS, RecordingLog, temporaryFolder, testBuild } from './build.ts';
import { TEST_LIMITS } from './limits.ts';
import { type Activity, hex, record } from './records.ts';

export interface TestPull extends Partial<Omit<PullRequest, 'from' | 'to'>> {
  readonly log?: RecordingLog;
}

export async function testPull(from: string, to: string, options: TestPull = {}): Promise<PullResult> {
  const { log = new RecordingLog(), ...request } = options;
  const defaults: Omit<PullRequest, 'from' | 'to'> = {
    wanted: { from: undefined, to: undefined },
    confirmations: 6,
    concurrency: 4,
    headers: {},
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

/**
 * Builds an input folder to as few files as possible, because many tests need only the digest, which does not depend on
 * them. Returns the manifest.
 */
export const leanBuild = async (inputs: readonly string[], out = join(temporaryFolder(), 'out')): Promise<Manifest> =>
  (await testBuild(out, { inputs, pageSizes: [100_000], operationPages: false, dialect: 'hiro' })).manifest;

interface Recorded {
  /**
   * Blocks by height, in the dialect of the recorded server. The records of a block are in served order
   * (src/engine/render/servedOrder.ts).
   */
  readonly blocks: ReadonlyMap<number, Activity[]>;
  readonly manifest: Manifest;
}
let recorded: Promise<Recorded> | undefined;

/** Returns the recorded blocks, read once per test file, and the manifest of a build of them. */
export async function recordedBlocks(): Promise<Recorded> {
  recorded ??= (async () => {
    const out = join(temporaryFolder(), 'dist');
    const manifest = await leanBuild(CONFORMANCE_INPUTS, out);
    return { blocks: blocksOf(out), manifest };
  })();
  return recorded;
}

/** Returns the blocks of a build that `leanBuild` made. */
export function blocksOf(out: string): Map<number, Activity[]> {
  const folder = join(out, 'runes/v1/blocks');
  const heights = readdirSync(folder).filter((name) => /^[0-9]{1,7}\.json$/.test(name));
  return new Map(
    heights.map((name) => {
      const { results } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { results: Activity[] };
      return [Number.parseInt(name, 10), results];
    }),
  );
}

/** Returns an invented block in served order. `fork` distinguishes blocks at the same height. */
export const block = (height: number, records: number, fork = ''): Activity[] =>
  Array.from({ length: records }, (_, i) =>
    record(height, records - 1 - i, {
      amount: `${i}`,
      location: { block_hash: hex(`block ${height} ${fork}`), tx_id: hex(`tx ${height} ${i} ${fork}`) },
    }),
  );

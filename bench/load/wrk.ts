/** Generates load with wrk: each connection sends its next request as soon as it has an answer. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CliError, EXIT } from '../../src/errors.ts';

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));

/** Result of a load with one set of targets. */
interface Load {
  readonly requests: number;
  /** Seconds of wall-clock time. */
  readonly seconds: number;
  /** Latency in milliseconds: median and 99th percentile. */
  readonly p50: number;
  readonly p99: number;
}

/** Loads a server for `seconds` with the targets of a file, one per line. Rejects when a request fails. */
export async function load(port: number, targets: string, connections: number, seconds: number): Promise<Load> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', SCRIPT, `http://127.0.0.1:${port}`, '--', targets];
  const { stdout } = await promisify(execFile)('wrk', args);
  const result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Readonly<Record<string, number>>;
  const { requests = 0, microseconds = 0, p50 = 0, p99 = 0, failed = 0, refused = 0 } = result;
  if (failed + refused > 0 || requests === 0) {
    throw new CliError(`${failed} of ${requests} requests got no answer, and ${refused} an error status`, EXIT.buildFailed);
  }
  return { requests, seconds: microseconds / 1e6, p50: p50 / 1000, p99: p99 / 1000 };
}

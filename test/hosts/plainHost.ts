/**
 * Checks the answers of hosts that run none of this project's code. An answer must equal the answer of `npm start` to the same request, or
 * be an error. A client would read any other answer as data.
 */
import { spawn, spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { expect } from 'vitest';
import { errorResponse } from '../../src/contract/schemas.ts';
import { CASES, checkCase } from '../support/cases.ts';
import { endOf, hasEnded, saidBy } from '../support/cli.ts';
import { freePort } from '../support/ports.ts';
import { type Answer, type Host, type LocalHost, sendTo } from '../support/server.ts';
import { until } from '../support/until.ts';
import type { PlainRequest } from './requests.ts';

/** Result of the check of an answer: `exact`, `refused` with the status (such as `refused 501`), or a description of the problem. */
export type Verdict = string;

/**
 * Checks an answer that differs from `expected`, the exact answer. Returns its problem, or undefined if the answer is an acceptable error.
 */
export type JudgeError = (answer: Answer, method: string, expected: Answer | undefined) => string | undefined;

/** True for the body of an empty list. Only an empty list may be answered with a 404, because a client reads a 404 as an empty list. */
const isEmptyList = (body: string): boolean => (JSON.parse(body) as { total?: unknown }).total === 0;

/**
 * Accepts an error of the API: JSON with the status, CORS for every origin, and no caching. If the exact answer is a 200, the error must be
 * a 501, or a 404 instead of an empty list.
 */
const problemOfApiError: JudgeError = ({ status, headers, body }, method, expected) => {
  if (status < 400) return 'is no error';
  if (expected?.status === 200 && status !== 501 && (status !== 404 || (expected.body !== '' && !isEmptyList(expected.body)))) {
    return 'blames the client or hides a list';
  }
  if (headers['access-control-allow-origin'] !== '*') return 'has no CORS header';
  if (headers['cache-control'] !== 'no-store') return `may be cached: ${headers['cache-control']}`;
  if (headers['content-type'] !== 'application/json; charset=utf-8') return `is ${headers['content-type']}`;
  if (headers.etag !== undefined) return 'has an ETag';
  if (method === 'HEAD') return undefined;
  try {
    return errorResponse.parse(JSON.parse(body)).statusCode === status ? undefined : 'names another status';
  } catch (error) {
    return `is no error body: ${error}`;
  }
};

/** Accepts any error. The host may send its own body. */
export const problemOfOwnError: JudgeError = ({ status }) => (status < 400 ? 'is no error' : undefined);

/** Compares the answer of a host with the answer of `npm start`. */
function classify({ method, target }: PlainRequest, answer: Answer, expected: Answer, judge: JudgeError = problemOfApiError): Verdict {
  if (answer.status === expected.status && answer.body === expected.body) return 'exact';
  // Outside of lists, any correctly formed error is allowed, because the host may lack files that `npm start` has.
  const isList = target.includes('/activity');
  const problem = judge(answer, method, isList ? expected : undefined);
  return problem === undefined ? `refused ${answer.status}` : `WRONG ${problem}: ${answer.status} ${answer.body.slice(0, 100)}`;
}

/** Sends all requests to a host and to `npm start`, several in parallel. Returns the verdicts in the order of the requests. */
export async function classifyAll(host: Host, exact: Host, requests: readonly PlainRequest[], judge?: JudgeError): Promise<Verdict[]> {
  const verdicts: Verdict[] = [];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < requests.length; i = next++) {
      const one = requests[i];
      if (one === undefined) return;
      const [answer, expected] = await Promise.all([host, exact].map((asked) => asked.send(one.method, one.target, one.headers)));
      if (answer !== undefined && expected !== undefined) verdicts[i] = classify(one, answer, expected, judge);
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return verdicts;
}

/** Counts the verdicts of each kind. */
export function countVerdicts(verdicts: readonly Verdict[]): Record<Verdict, number> {
  const counts: Record<Verdict, number> = {};
  for (const verdict of [...verdicts].sort()) counts[verdict] = (counts[verdict] ?? 0) + 1;
  return counts;
}

/**
 * Sends every request of the case table (test/support/cases.ts). Returns the verdict on each case by its name. The verdict is `exact` if
 * `checkCase` accepts the answer, including headers and ETag.
 */
export async function judgeCases(host: Host, judge: JudgeError = problemOfApiError): Promise<Record<string, Verdict>> {
  const verdicts: Record<string, Verdict> = {};
  for (const one of CASES) {
    const problem = await checkCase(host, one, false).catch((error: unknown) => error);
    if (problem === undefined) verdicts[one.name] = 'exact';
    else {
      const answer = await host.send(one.method ?? 'GET', one.target);
      const fault = judge(answer, one.method ?? 'GET', undefined);
      verdicts[one.name] = fault === undefined ? `refused ${answer.status}` : `WRONG ${fault}: ${problem}`;
    }
  }
  return verdicts;
}

/** Returns the verdicts that are not `exact`. */
export const notExact = (verdicts: Readonly<Record<string, Verdict>>): Record<string, Verdict> =>
  Object.fromEntries(Object.entries(verdicts).filter(([, verdict]) => verdict !== 'exact'));

/** Command that starts a host's program on a port. */
export interface ProgramCall {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Number of attempts to start a program. */
const STARTS = 4;

/** Thrown when a program ends before it answers. */
class EndedError extends Error {}

/**
 * Starts the program of a host on a free port, and waits until it answers. A parallel test may take the port first. If the program ends
 * instead of answering, starts it again on another port.
 */
export async function startProgram(callFor: (port: number) => ProgramCall): Promise<LocalHost> {
  for (let starts = 1; ; starts += 1) {
    const port = await freePort();
    try {
      return await startOnce(callFor(port), port);
    } catch (error) {
      if (!(error instanceof EndedError) || starts === STARTS) throw error;
    }
  }
}

async function startOnce({ program, args, env = {} }: ProgramCall, port: number): Promise<LocalHost> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'], ...env } });
  const said = saidBy(child);
  const send = sendTo(port);
  await until(() => {
    if (hasEnded(child)) throw new EndedError(`${program} ended: ${said.stdout}${said.stderr}`);
    return send('GET', '/').then(
      () => true,
      () => false,
    );
  });
  return {
    port,
    send,
    close: async () => {
      child.kill('SIGTERM');
      await endOf(child);
    },
  };
}

/** Returns the path of a program from a package of the distribution. Throws an error with advice if the program is missing. */
export function findProgram(name: string): string {
  // Also searches folders outside of a user's PATH, where Debian installs servers.
  const found = spawnSync('sh', ['-c', `command -v ${name}`], { env: { PATH: `${process.env['PATH']}:/usr/sbin:/usr/local/sbin` } });
  const path = found.stdout.toString('utf8').trim();
  if (path === '') throw new Error(`not installed: ${name}. Run: apt-get install -y ${name}`);
  return path;
}

/** Replaces a pattern. Throws unless the pattern occurs exactly `times` times. */
export function replaceAll(text: string, from: RegExp, to: string, times: number): string {
  expect(text.match(from)).toHaveLength(times);
  return text.replace(from, to);
}

/** Requests a path. Returns the answer with the bytes of the body as sent, without decompression. */
export function fetchRaw(
  port: number,
  path: string,
  headers: Record<string, string>,
): Promise<{ headers: Record<string, unknown>; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ headers: response.headers, bytes: Buffer.concat(chunks) }));
    });
    outgoing.on('error', reject).end();
  });
}

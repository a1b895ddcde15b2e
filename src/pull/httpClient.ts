/**
 * HTTP client with a rate limit, retries, and limits on the size and the time of each answer. Follows no redirects, so that a server can
 * send a pull to no other host. Uses undici's request(), because fetch() takes four times the CPU time for a block.
 */

import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { Agent, errors } from 'undici';
import { AtOnce } from '../atOnce.ts';
import type { Log } from '../cli/log.ts';
import { misfitOf } from '../contract/schemas.ts';
import { BuildError, codeOf, InputError, messageOf } from '../errors.ts';
import { DEFAULTS } from './pullOptions.ts';

export interface ClientOptions {
  /** Requests per second; 0 for no limit. */
  readonly rate: number;
  readonly retries: number;
  readonly concurrency?: number;
  /** Longest time without data from the server, in milliseconds. */
  readonly timeoutMs: number;
  /** Longest time for a complete answer, in milliseconds. A multiple of `timeoutMs` by default. */
  readonly longestMs?: number;
  /** Maximum pause before the first retry, in milliseconds. Doubles with each further retry. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  readonly onRetry: (why: string) => void;
  readonly clock?: Clock | undefined;
}

/** Time for the pauses of a client, in milliseconds. Tests pass another one. */
export interface Clock {
  now(): number;
  wait(ms: number, signal: AbortSignal): Promise<unknown>;
}

const CLOCK: Clock = { now: () => performance.now(), wait: (ms, signal) => sleep(ms, undefined, { signal }) };

export interface Reading {
  /** Largest body of an answer with the wanted content, in bytes. */
  readonly limit: number;
  /** Receives the wanted content in parts. `Answer.body` is then empty. An error that the sink throws ends the request. */
  readonly sink?: ((chunk: Uint8Array) => void) | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  /** Header values, by name in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Complete body if the status is 200 or 206, otherwise the first part of the body, up to about REFUSAL_BYTES. */
  readonly body: Buffer;
}

/** A failure that a retry may fix. `waitMs` is the server's Retry-After, in milliseconds. */
export class PassingError extends Error {
  constructor(
    message: string,
    readonly waitMs: number | undefined = undefined,
  ) {
    super(message);
  }
}

const LONGEST_PAUSE_MS = 60_000;

/** Longest Retry-After that a pull waits for, in milliseconds. A longer one ends the pull with a BuildError. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** Longest time for a complete answer, as a multiple of `timeoutMs`, because a server could send a byte at a time forever. */
const LONGEST_ANSWER = 20;

/** Largest body that `get` accepts by default, and how much of a body without the wanted content is read, in bytes. */
const [LARGEST_BODY_BYTES, REFUSAL_BYTES] = [256 * 1024 * 1024, 64 * 1024];

/** Reason for the abort of a request whose answer was read. Without a reason, each abort would create an error. */
const ENDED = new Error('the request has ended');

/** True for a status that may change after a retry. The status 501 does not: the server does not support the request. */
export const isPassing = (status: number): boolean => [408, 425, 429].includes(status) || (status >= 500 && status !== 501);

/** Parses the body of an answer. Throws a PassingError if `parse` throws, because the body may be damaged. */
export function parsed<T>(body: Buffer, parse: (body: Buffer) => T): T {
  try {
    return parse(body);
  } catch (error) {
    // The message of JSON.parse() quotes the body.
    throw new PassingError(`has an unexpected response body: ${error instanceof SyntaxError ? 'not valid JSON' : misfitOf(error)}`);
  }
}

export class Client {
  readonly #agent: Agent;
  readonly #clock: Clock;
  readonly #atOnce: AtOnce;
  /** Earliest start of the next request, on the client's clock. */
  #next = 0;

  constructor(private readonly options: ClientOptions) {
    const { timeoutMs, concurrency = Number.POSITIVE_INFINITY, clock = CLOCK } = options;
    this.#agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connect: { timeout: timeoutMs } });
    this.#clock = clock;
    this.#atOnce = new AtOnce(concurrency);
  }

  /** Closes all connections. Running requests fail. */
  close(): void {
    void this.#agent.destroy();
  }

  /** Returns a client that reports its retries, and that no signal ends. */
  static reporting(log: Log, rate: number = DEFAULTS.rate): Client {
    const { signal } = new AbortController();
    // Each request adds a listener, and an answer may take more requests than the ten of which Node warns.
    setMaxListeners(0, signal);
    return new Client({ ...DEFAULTS, rate, signal, onRetry: (why) => log.notice(`${why}; trying again`) });
  }

  /**
   * Requests a URL, and parses the body of an answer with status 200, of at most `limit` bytes. Retries if `parse` throws, because the body
   * may be damaged, and if a retry may change the status (`isPassing`). Returns any other status without a body. Throws a BuildError if the
   * last retry fails, and an InputError for a redirect.
   */
  get<T>(url: string, parse: (body: Buffer) => T, limit = LARGEST_BODY_BYTES): Promise<{ status: number; body: T | undefined }> {
    return this.persist(url, async () => {
      const { status, body } = await this.ask(url, { limit });
      return { status, body: status === 200 ? parsed(body, parse) : undefined };
    });
  }

  /** Requests a URL once, and saves a body of exactly `bytes`, or throws a PassingError. Returns its SHA-256. */
  async save(url: string, path: string, bytes: number): Promise<{ readonly status: number; readonly digest: string }> {
    const [hash, file] = [createHash('sha256'), openSync(path, 'w')];
    let size = 0;
    try {
      const sink = (chunk: Uint8Array) => {
        size += chunk.length;
        hash.update(chunk);
        writeFileSync(file, chunk);
      };
      const { status } = await this.ask(url, { limit: bytes, sink });
      if (status === 200 && size !== bytes) throw new PassingError(`has ${size} bytes instead of ${bytes}`);
      return { status, digest: hash.digest('hex') };
    } finally {
      closeSync(file);
    }
  }

  /** Runs `step` again after a PassingError, and throws a BuildError after the last retry. `what` names the request. */
  async persist<T>(what: string, step: () => Promise<T>): Promise<T> {
    const { retries, pauseMs, signal, onRetry } = this.options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await step();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof PassingError)) throw error;
        if (attempt >= retries)
          throw new BuildError(`${what} ${error.message}; tried ${attempt + 1} times`, [
            'Check the server and the network, then run the same command again: it continues from here.',
          ]);
        onRetry(`${what} ${error.message}`);
        // A Retry-After applies to all requests to the server.
        if (error.waitMs !== undefined) this.#next = Math.max(this.#next, this.#clock.now() + error.waitMs);
        // The pause is random, so that clients that failed together do not retry together.
        const pause = Math.random() * Math.min(pauseMs * 2 ** attempt, LONGEST_PAUSE_MS);
        await this.#clock.wait(pause, signal);
      }
    }
  }

  /**
   * Sends a request as soon as `concurrency`, `rate` and Retry-After allow it, and reads the answer, whatever its status. Throws a
   * PassingError if the network fails, or if the answer is cut short, too large or too slow. Throws an InputError for a redirect. Throws
   * the reason of the signal when the signal aborts.
   */
  send(url: URL, reading: Reading): Promise<Answer> {
    return this.#atOnce.run(() => this.#send(url, reading));
  }

  async #send(url: URL, { limit, sink, headers = {} }: Reading): Promise<Answer> {
    const { rate, signal, timeoutMs, longestMs = timeoutMs * LONGEST_ANSWER } = this.options;
    // The turn comes after the wait for a running request: requests that have their turn must not leave all at once.
    const left = () => this.#next - this.#clock.now();
    for (let ms = left(); ms > 0; ms = left()) await this.#clock.wait(ms, signal);
    if (rate > 0) this.#next = this.#clock.now() + 1000 / rate;
    signal.throwIfAborted();
    // AbortSignal.any() would leak memory: each request would stay attached to the signal, which lives as long as the pull.
    const request = new AbortController();
    const stop = () => {
      request.abort(signal.reason);
      this.close();
    };
    signal.addEventListener('abort', stop);
    const longest = setTimeout(() => request.abort(new PassingError(`did not complete within ${longestMs / 1000} s`)), longestMs);
    let size: number | undefined;
    let isOfSink = false;
    try {
      const [origin, path] = [url.origin, url.pathname + url.search];
      const response = await this.#agent.request({ origin, path, method: 'GET', headers, signal: request.signal });
      // The `for await` loop throws the errors of the stream. Without a listener, an error outside of the loop would end the process.
      response.body.on('error', () => undefined);
      const answer = { status: response.statusCode, headers: response.headers };
      refuseRedirect(url, answer);
      const isWanted = answer.status === 200 || answer.status === 206;
      const check = (bytes: number) => {
        if (isWanted && bytes > limit) throw new PassingError(`has ${bytes} bytes or more; the largest valid answer has ${limit}`);
      };
      check(Number(answer.headers['content-length'] ?? 0));
      const { 'content-encoding': encoding = 'identity' } = answer.headers;
      if (isWanted && encoding !== 'identity')
        throw new PassingError(`is compressed (${String(encoding).slice(0, 60)}), which was not asked for`);
      size = 0;
      const chunks: Buffer[] = [];
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (isWanted && sink !== undefined) {
          isOfSink = true;
          sink(chunk);
          isOfSink = false;
        } else chunks.push(chunk);
        check(size);
        if (!isWanted && size > REFUSAL_BYTES) break;
      }
      return { ...answer, body: Buffer.concat(chunks) };
    } catch (error) {
      request.signal.throwIfAborted();
      const code = codeOf(error);
      // Only network errors have a code, and a retry may fix these errors. After `close`, no retry can help.
      if (isOfSink || code === undefined || error instanceof errors.ClientDestroyedError) throw error;
      if (code.endsWith('_TIMEOUT')) throw new PassingError(`sent no data for ${timeoutMs / 1000} s`);
      if (size !== undefined) throw new PassingError(`was cut off after ${size} bytes`);
      // Shows the code if the message is empty, as when all addresses of a host refuse the connection.
      throw new PassingError(`failed: ${messageOf(error) || code}`);
    } finally {
      clearTimeout(longest);
      signal.removeEventListener('abort', stop);
      request.abort(ENDED);
      // undici frees the connection only in the next turn of the event loop, and would open another one before.
      await setImmediate();
    }
  }

  /** Sends a request like `send`, but throws a PassingError for a status that may change. */
  async ask(url: string, reading: Reading): Promise<Answer> {
    const headers = { 'accept-encoding': 'identity', 'user-agent': 'node', ...reading.headers };
    const answer = await this.send(new URL(url), { ...reading, headers });
    if (isPassing(answer.status))
      throw new PassingError(`was answered with status ${answer.status}`, retryAfter(String(answer.headers['retry-after'])));
    return answer;
  }
}

/** Milliseconds of a Retry-After, which has seconds or a date; undefined if invalid. Throws a BuildError if too long. */
function retryAfter(value: string): number | undefined {
  const ms = /^[0-9]+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  if (Number.isNaN(ms)) return undefined;
  if (ms > LONGEST_WAIT_MS)
    throw new BuildError(
      `the server asks to retry in ${Math.ceil(ms / 60_000)} minutes, but a pull waits for ${LONGEST_WAIT_MS / 60_000} minutes at most`,
      ['Run the same command again then: it continues from here. A lower --rate may avoid the wait.'],
    );
  return Math.max(ms, 0);
}

/** Throws an InputError for a redirect. The message shows only scheme and host of its target, which a stranger chose. */
function refuseRedirect({ origin, pathname }: URL, { status, headers: { location = '' } }: Pick<Answer, 'status' | 'headers'>): void {
  if (status < 300 || status >= 400) return;
  const target = URL.canParse(String(location), origin) ? new URL(String(location), origin).origin : 'null';
  throw new InputError(`${origin}${pathname} redirects to ${target === 'null' ? 'an invalid URL' : target}`, [
    'Redirects are not followed, because they could lead to any host. Use the URL that it redirects to.',
  ]);
}

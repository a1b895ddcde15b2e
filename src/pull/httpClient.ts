/** HTTP client with a rate limit, timeouts and a limited number of retries. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { misfitOf } from '../contract/schemas.ts';
import { BuildError, InputError } from '../errors.ts';
import { type Answer, ENCODINGS, PassingError, type Question, TooLargeError, Transport } from './httpConnections.ts';
import { writeError } from './writePulled.ts';

export interface ClientOptions {
  /** Headers of every request. Their values may be API keys, so messages never show the values. */
  readonly headers: Readonly<Record<string, string>>;
  /** Requests per second; 0 for no limit. */
  readonly rate: number;
  readonly retries: number;
  /** Longest time without data from the server, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum pause before the first retry, in milliseconds. Doubles with each further retry. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  /** Called before every retry. `why` describes the failure. */
  readonly onRetry: (why: string) => void;
  readonly clock?: Clock | undefined;
}

/** Time for the pauses of a client, in milliseconds. Tests pass another one. */
export interface Clock {
  now(): number;
  wait(ms: number, signal: AbortSignal): Promise<unknown>;
}

const CLOCK: Clock = { now: () => performance.now(), wait: (ms, signal) => sleep(ms, undefined, { signal }) };

export interface Reply<T> {
  readonly status: number;
  /** Parsed response body; undefined unless the status is 200. */
  readonly body: T | undefined;
  /** First 2,000 characters of the response body if the status is not 200. */
  readonly refusal: string;
}

const LONGEST_PAUSE_MS = 60_000;

/** Longest Retry-After that a pull waits for, in milliseconds. A longer one ends the pull with a BuildError. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** Largest accepted response body if the caller gives no smaller limit. Files of archives are the largest bodies. */
const LARGEST_BODY_BYTES = 256 * 1024 * 1024;

/**
 * True for a status that may change after a retry. False for 501, because the server does not support the request at
 * all.
 */
export const isPassing = (status: number): boolean => [408, 425, 429].includes(status) || (status >= 500 && status !== 501);

export class Client {
  readonly #transport: Transport;
  readonly #clock: Clock;
  /** Earliest start of the next request, on the client's clock. */
  #next = 0;

  constructor(private readonly options: ClientOptions) {
    this.#transport = new Transport(options);
    this.#clock = options.clock ?? CLOCK;
  }

  /** Sends a request without the rate limit. Throws the errors of `Transport.send`. */
  send(question: Question): Promise<Answer> {
    return this.#transport.send(question);
  }

  close(): void {
    this.#transport.close();
  }

  /**
   * Requests a URL, and parses the body of an answer with status 200. Retries if `parse` throws, because the body may
   * be damaged. Also retries if a retry may change the status (`isPassing`). Returns any other status. Throws a
   * BuildError if the last retry fails, and an InputError for a redirect, or for a body of more than `most` bytes.
   */
  get<T>(url: string, parse: (text: string) => T, most = LARGEST_BODY_BYTES): Promise<Reply<T>> {
    return this.getParsed(url, (body) => parse(new TextDecoder('utf-8', { fatal: true }).decode(body)), most);
  }

  /** Requests a URL like `get`, but returns the body as bytes. */
  getBytes(url: string, most = LARGEST_BODY_BYTES): Promise<Reply<Uint8Array>> {
    return this.getParsed(url, (body) => body, most);
  }

  /** Requests a URL like `get`, but `parse` gets the body as bytes. */
  getParsed<T>(url: string, parse: (body: Uint8Array) => T, most = LARGEST_BODY_BYTES): Promise<Reply<T>> {
    return this.persist(withoutQuery(url), async () => {
      await this.#turn();
      return this.#attempt(url, parse, Math.min(most, LARGEST_BODY_BYTES));
    });
  }

  /**
   * Requests a URL once, and writes the body to a file while it arrives. Returns the SHA-256 of the body. Throws a
   * PassingError if the body does not have exactly `bytes`.
   */
  async save(url: string, path: string, bytes: number): Promise<{ readonly status: number; readonly digest: string }> {
    await this.#turn();
    const hash = createHash('sha256');
    let size = 0;
    const file = openSync(path, 'w');
    try {
      const sink = (chunk: Uint8Array) => {
        size += chunk.length;
        if (size > bytes) throw new PassingError(`has more than ${bytes} bytes`);
        hash.update(chunk);
        try {
          for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
        } catch (error) {
          // Converts the error: the transport would treat an error with a code as a network error.
          throw writeError(dirname(path), error);
        }
      };
      const headers = { 'user-agent': 'node', ...this.options.headers };
      const { status, headers: found } = await this.#transport.send({ url: new URL(url), headers, limit: 0, sink });
      if (isPassing(status)) throw new PassingError(`was answered with status ${status}`, retryAfter(found['retry-after'] ?? ''));
      refuseRedirect(url, status, found['location']);
      if (status === 200 && size !== bytes) throw new PassingError(`has ${size} bytes instead of ${bytes}`);
      return { status, digest: hash.digest('hex') };
    } finally {
      closeSync(file);
    }
  }

  /**
   * Runs `step`, and retries it after a pause whenever it throws a PassingError. Throws a BuildError after the last
   * retry. `what` names the request in messages.
   */
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

  /** Waits until the rate limit and Retry-After allow another request. */
  async #turn(): Promise<void> {
    const { rate, signal } = this.options;
    for (;;) {
      signal.throwIfAborted();
      const now = this.#clock.now();
      if (this.#next <= now) break;
      await this.#clock.wait(Math.min(this.#next - now, 1000), signal);
    }
    if (rate > 0) this.#next = Math.max(this.#next, this.#clock.now()) + 1000 / rate;
  }

  async #attempt<T>(url: string, parse: (body: Uint8Array) => T, most: number): Promise<Reply<T>> {
    const headers = { accept: 'application/json', 'accept-encoding': ENCODINGS, 'user-agent': 'node', ...this.options.headers };
    const answer = await this.#transport.send({ url: new URL(url), headers, limit: most }).catch((error: unknown) => {
      if (!(error instanceof TooLargeError)) throw error;
      throw new InputError(`${withoutQuery(url)} answers with more than ${sizeText(most)}`, [
        'No such response of this API is that large. Check the URL.',
      ]);
    });
    const { status, body } = answer;
    if (isPassing(status)) throw new PassingError(`was answered with status ${status}`, retryAfter(answer.headers['retry-after'] ?? ''));
    refuseRedirect(url, status, answer.headers['location']);
    if (status !== 200) return { status, body: undefined, refusal: body.toString('utf8').slice(0, 2000) };
    try {
      return { status, body: parse(body), refusal: '' };
    } catch (error) {
      // Does not show the message of JSON.parse(): it quotes the body, which may contain a key.
      const why = error instanceof SyntaxError ? 'not valid JSON' : misfitOf(error);
      throw new PassingError(`has an unexpected response body: ${why}`);
    }
  }
}

const sizeText = (bytes: number): string =>
  bytes >= 1024 * 1024 ? `${Math.floor(bytes / 1024 / 1024)} MB` : `${Math.floor(bytes / 1024)} KB`;

/**
 * Converts a Retry-After header, which has seconds or a date, to milliseconds. Returns undefined for an invalid header.
 * Throws a BuildError if the wait is too long.
 */
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

/** Throws an InputError for a redirect. */
export function refuseRedirect(url: string, status: number, location: string | null | undefined): void {
  if (status >= 300 && status < 400)
    throw new InputError(`${withoutQuery(url)} redirects to ${targetOf(location, url)}`, [
      'Redirects are not followed, because they could send API keys to another host. Use the URL that it redirects to.',
    ]);
}

/** Returns scheme and host of the target of a redirect. The rest may repeat an API key of the request. */
export function targetOf(location: string | null | undefined, from: string): string {
  const origin = URL.canParse(location ?? '', from) ? new URL(location ?? '', from).origin : 'null';
  return origin === 'null' ? 'an invalid URL' : origin;
}

/** Removes query and credentials, which may contain keys, from a URL that a message shows. */
function withoutQuery(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/**
 * Requests to somebody else's server: at a polite rate, tried again when that can help, and never for ever.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { misfitOf } from '../contract/schemas.ts';
import { BuildError, InputError, messageOf } from '../errors.ts';

export interface ClientOptions {
  /** Sent with every request. Their values are never shown. */
  readonly headers: Readonly<Record<string, string>>;
  /** Requests a second; 0 for as many as the server answers. */
  readonly rate: number;
  /** How often a request is tried again. */
  readonly retries: number;
  /** How long the server may be silent, in milliseconds. */
  readonly timeoutMs: number;
  /** The first pause before another try, in milliseconds; each further one may be twice as long. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  /** Told of every failure that is tried again. */
  readonly onRetry: (why: string) => void;
}

export interface Reply<T> {
  readonly status: number;
  /** What a 200 held; undefined for every other status. */
  readonly body: T | undefined;
  /** The beginning of the body of every other status. */
  readonly refusal: string;
}

/** Longest pause between two tries, in milliseconds. */
const LONGEST_PAUSE_MS = 60_000;

/** Longest pause that a server may ask for with Retry-After, in milliseconds. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** An answer that trickles may take so many times as long as a server may be silent. */
const LONGEST_ANSWER = 20;

/** Largest body that is read: a page of 100,000 records has some 60 MB. */
const LARGEST_BODY_BYTES = 256 * 1024 * 1024;

/** Another try can help. `waitMs` is what the server asked for. */
export class PassingError extends Error {
  override readonly name: string = 'PassingError';
  constructor(
    message: string,
    readonly waitMs: number | undefined = undefined,
  ) {
    super(message);
  }
}

export class Client {
  readonly #options: ClientOptions;
  /** When the next request may start, as performance.now() counts. */
  #next = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /**
   * Gets a URL. `parse` makes something of a 200's body; when it throws, the body counts as damaged and is asked for again. Statuses that another try
   * cannot change are returned. Throws a BuildError when the server cannot be reached or does not recover.
   */
  get<T>(url: string, parse: (text: string) => T): Promise<Reply<T>> {
    return this.persist(withoutQuery(url), async () => {
      await this.#turn();
      return this.#attempt(url, parse);
    });
  }

  /** Does something again, after a pause, as long as it ends with a PassingError. Throws a BuildError when it does so too often. */
  async persist<T>(what: string, step: () => Promise<T>): Promise<T> {
    const { retries, pauseMs, signal, onRetry } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await step();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof PassingError)) throw error;
        if (attempt >= retries) {
          throw new BuildError(`${what} ${error.message}; tried ${attempt + 1} times`, [
            'Check the server and the network; the same command goes on from here.',
          ]);
        }
        onRetry(`${what} ${error.message}`);
        // What a server asks for holds for every request to it.
        if (error.waitMs !== undefined) this.#next = Math.max(this.#next, performance.now() + error.waitMs);
        // Somewhere up to the full pause: clients that failed together do not come back together.
        const pause = Math.random() * Math.min(pauseMs * 2 ** attempt, LONGEST_PAUSE_MS);
        await sleep(pause, undefined, { signal });
      }
    }
  }

  /** Waits until another request may start. */
  async #turn(): Promise<void> {
    const { rate, signal } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      const now = performance.now();
      if (this.#next <= now) break;
      await sleep(Math.min(this.#next - now, 1000), undefined, { signal });
    }
    if (rate > 0) this.#next = Math.max(this.#next, performance.now()) + 1000 / rate;
  }

  async #attempt<T>(url: string, parse: (text: string) => T): Promise<Reply<T>> {
    const { timeoutMs, signal } = this.#options;
    // Its own controller: AbortSignal.any() would leave something of every request on the signal of the whole pull.
    const request = new AbortController();
    const stop = () => request.abort();
    let timedOut: string | undefined;
    const stopAfter = (ms: number, why: string) =>
      setTimeout(() => {
        timedOut ??= `${why} ${ms / 1000} s`;
        stop();
      }, ms);
    const silence = stopAfter(timeoutMs, 'was silent for');
    const longest = stopAfter(timeoutMs * LONGEST_ANSWER, 'was not answered whole in');
    signal.addEventListener('abort', stop);
    let response: Response;
    let text: string;
    try {
      // A redirect is not followed: it could carry an API key to another host.
      response = await fetch(url, {
        headers: { accept: 'application/json', ...this.#options.headers },
        redirect: 'manual',
        signal: request.signal,
      });
      text = await readBody(response, () => silence.refresh());
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof InputError) throw error;
      throw new PassingError(timedOut ?? `failed: ${causeOf(error)}`);
    } finally {
      clearTimeout(silence);
      clearTimeout(longest);
      signal.removeEventListener('abort', stop);
    }
    const { status, headers } = response;
    if (status === 429 || status === 408 || status === 425 || status >= 500) {
      throw new PassingError(`was answered with status ${status}`, retryAfter(headers.get('retry-after')));
    }
    if (status >= 300 && status < 400) {
      throw new InputError(`${withoutQuery(url)} redirects to ${JSON.stringify(headers.get('location') ?? '')}`, [
        'Redirects are not followed, because API keys would go along. Name the address that it leads to with --from.',
      ]);
    }
    if (status !== 200) return { status, body: undefined, refusal: text.slice(0, 2000) };
    try {
      return { status, body: parse(text), refusal: '' };
    } catch (error) {
      // The parser's own words would repeat a part of the body, which may repeat a key.
      const why = error instanceof SyntaxError ? 'not valid JSON' : misfitOf(error);
      throw new PassingError(`has an unexpected response body: ${why}`);
    }
  }
}

async function readBody(response: Response, onData: () => void): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let [text, bytes] = ['', 0];
  for await (const chunk of response.body ?? []) {
    onData();
    bytes += chunk.byteLength;
    if (bytes > LARGEST_BODY_BYTES) {
      throw new InputError(`${withoutQuery(response.url)} answers with more than ${LARGEST_BODY_BYTES / 1024 / 1024} MB`, [
        'No response of this API is so large. Check the address given with --from.',
      ]);
    }
    text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return text + decoder.decode();
}

/** Retry-After in milliseconds: seconds or a date. Undefined when there is none. Throws a BuildError when it is too long to wait. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^[0-9]+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  if (Number.isNaN(ms)) return undefined;
  if (ms > LONGEST_WAIT_MS) {
    throw new BuildError(`the server asks to come back in ${Math.ceil(ms / 60_000)} minutes (Retry-After: ${value})`, [
      'Run the same command again then: it goes on from here. A lower --rate may avoid it.',
    ]);
  }
  return Math.max(ms, 0);
}

/** What lies behind fetch's "fetch failed". */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return messageOf(cause) || String(cause);
}

/** A URL for messages. Keys are sometimes put into the query, and credentials before the host. */
function withoutQuery(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/**
 * HTTP over connections that stay open. Limits the size and the time of each answer. Follows no redirects, because they
 * could send credentials to another host.
 *
 * Uses undici's request() instead of fetch(), which takes four times the CPU time for a block.
 */
import { type Duplex, pipeline } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { Agent, errors } from 'undici';
import { codeOf, messageOf } from '../errors.ts';

export interface Question {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of a POST request. Without it, the method is GET. */
  readonly body?: string;
  /** Largest body of an answer with status 200, in bytes. Does not apply if a sink receives the body. */
  readonly limit: number;
  /**
   * Receives the body of an answer with status 200 in parts. `Answer.body` is then empty. If the sink throws, the
   * request ends with this error.
   */
  readonly sink?: ((chunk: Uint8Array) => void) | undefined;
}

export interface Answer {
  readonly status: number;
  /** Header values, by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Complete body if the status is 200, otherwise the first part of the body, up to about REFUSAL_BYTES. */
  readonly body: Buffer;
}

export interface TransportOptions {
  /** Longest time without data from the server, in milliseconds. */
  readonly timeoutMs: number;
  /** Longest time for a complete answer, in milliseconds. A multiple of `timeoutMs` by default. */
  readonly longestMs?: number;
  readonly signal: AbortSignal;
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

/** Thrown for an answer whose body is larger than the limit. */
export class TooLargeError extends PassingError {
  constructor(bytes: number, limit: number) {
    super(`has ${bytes} bytes or more; the largest valid answer has ${limit}`);
  }
}

/**
 * Longest time for a complete answer, as a multiple of `timeoutMs`. Without this limit, a server could send a byte at a
 * time forever.
 */
const LONGEST_ANSWER = 20;

/** Maximum number of bytes to read from a body whose status is not 200. The rest of the body is ignored. */
const REFUSAL_BYTES = 64 * 1024;

/** Reason for the abort of a request whose answer was read. Without a reason, each abort would create an error. */
const ENDED = new Error('the request has ended');

/** Content codings that requests accept. */
export const ENCODINGS = 'gzip, br';

/** Decoders by content coding. Servers may write gzip by its old name x-gzip (RFC 9110, 8.4.1.3). */
const DECODERS: ReadonlyMap<string, () => Duplex> = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['br', createBrotliDecompress],
]);

/**
 * Returns the decoders for a Content-Encoding header, which lists the codings in the order in which they were applied,
 * in any case. Returns undefined for an unknown coding, and for more than two codings.
 */
function decodersOf(header: string): Duplex[] | undefined {
  const codings = header
    .toLowerCase()
    .split(',')
    .map((coding) => coding.trim())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const decoders = codings.flatMap((coding) => DECODERS.get(coding) ?? []);
  return decoders.length < codings.length || codings.length > 2 ? undefined : decoders.reverse().map((create) => create());
}

export class Transport {
  readonly #agent: Agent;
  readonly #timeoutMs: number;
  readonly #longestMs: number;
  readonly #signal: AbortSignal;

  constructor({ timeoutMs, longestMs = timeoutMs * LONGEST_ANSWER, signal }: TransportOptions) {
    this.#agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connect: { timeout: timeoutMs } });
    this.#timeoutMs = timeoutMs;
    this.#longestMs = longestMs;
    this.#signal = signal;
  }

  /**
   * Sends a request and reads the answer, whatever its status. Throws a PassingError if the network fails, or if the
   * answer is cut short, too large or too slow. Throws the reason of the signal when the signal aborts. `isSecond` is
   * true for the retry after the server closed a kept connection.
   */
  async send(question: Question, isSecond = false): Promise<Answer> {
    const [signal, { url, headers = {}, body = null, limit, sink }] = [this.#signal, question];
    signal.throwIfAborted();
    // AbortSignal.any() would leak memory: each request would stay attached to the signal, which lives as long as the
    // pull.
    const request = new AbortController();
    const stop = () => {
      request.abort(signal.reason);
      this.close();
    };
    signal.addEventListener('abort', stop);
    const longest = setTimeout(() => {
      request.abort(new PassingError(`did not complete within ${this.#longestMs / 1000} s`));
    }, this.#longestMs);
    let size: number | undefined;
    try {
      const method = body === null ? 'GET' : 'POST';
      const path = url.pathname + url.search;
      const response = await this.#agent.request({ origin: url.origin, path, method, headers, body, signal: request.signal });
      // The `for await` loop throws the errors of the stream. Without a listener, an error outside of the loop would
      // end the process.
      response.body.on('error', () => undefined);
      const answer = { status: response.statusCode, headers: textsOf(response.headers) };
      const isWanted = answer.status === 200;
      const chunks: Buffer[] = [];
      const length = Number(answer.headers['content-length'] ?? 0);
      if (isWanted && sink === undefined && length > limit) throw new TooLargeError(length, limit);
      const encoding = answer.headers['content-encoding'] ?? '';
      const decoders = decodersOf(encoding);
      if (isWanted && decoders === undefined)
        throw new PassingError(`has the content encoding ${JSON.stringify(encoding.slice(0, 60))}, which is not one of ${ENCODINGS}`);
      size = 0;
      const parts =
        decoders === undefined || decoders.length === 0 ? response.body : pipeline([response.body, ...decoders], () => undefined);
      for await (const chunk of parts as AsyncIterable<Buffer>) {
        size += chunk.length;
        if (isWanted && sink !== undefined) sink(chunk);
        else if (isWanted && size > limit) throw new TooLargeError(size, limit);
        else chunks.push(chunk);
        if (!isWanted && size > REFUSAL_BYTES) break;
      }
      return { ...answer, body: Buffer.concat(chunks) };
    } catch (error) {
      request.signal.throwIfAborted();
      const code = codeOf(error);
      // Only network errors have a code, and a retry may fix these errors. Errors of a sink have no code. After
      // `close`, no retry can help.
      if (code === undefined || error instanceof errors.ClientDestroyedError) throw error;
      if (code.endsWith('_TIMEOUT')) throw new PassingError(`sent no data for ${this.#timeoutMs / 1000} s`);
      const isDamaged = /^(?:Z_DATA_ERROR|ERR_)/.test(code);
      if (size !== undefined && !isDamaged) throw new PassingError(`was cut off after ${size} bytes`);
      // The server may have closed the kept connection before it read the request. A new connection may work.
      const wasKept = error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0;
      if (wasKept && !isSecond) return this.send(question, true);
      // Shows the code if the message is empty, as when all addresses of a host refuse the connection.
      throw new PassingError(`failed: ${messageOf(error) || code}`);
    } finally {
      clearTimeout(longest);
      signal.removeEventListener('abort', stop);
      request.abort(ENDED);
      // undici frees or closes the connection only in the next turn of the event loop. Waits for this turn, so that the
      // next request can use the connection.
      await setImmediate();
    }
  }

  /** Closes all connections. Running requests fail. */
  close(): void {
    void this.#agent.destroy();
  }
}

const textsOf = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

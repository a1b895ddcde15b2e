/**
 * HTTP to one server over connections that stay open. Bounds the size of answers and the time for them.
 *
 * Uses node:http because fetch() takes more CPU time for a block.
 */
import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps, Agent as TlsAgent } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { codeOf, messageOf } from '../../errors.ts';
import { LONGEST_ANSWER, PassingError } from '../client.ts';

export interface Question {
  readonly method: 'GET' | 'POST';
  /** Appended to the path of the server's URL. Begins with a slash. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Largest body of the answer, in bytes. One that a sink receives may be larger. */
  readonly limit: number;
  /** Receives the body of an answer with status 200 in parts, which are then not kept. Its errors end the request. */
  readonly sink?: ((chunk: Uint8Array) => void) | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface TransportOptions {
  /** Longest time without data from the server, in milliseconds. */
  readonly timeoutMs: number;
  /** Longest time for a whole answer, in milliseconds. A multiple of `timeoutMs` by default. */
  readonly longestMs?: number;
  readonly signal: AbortSignal;
}

/** The server closed a kept connection before it read the request. Another connection may work. */
class StaleConnectionError extends Error {
  override readonly name = 'StaleConnectionError';
}

export class Transport {
  readonly #base: ReturnType<typeof urlToHttpOptions>;
  readonly #prefix: string;
  readonly #agent: Agent;
  readonly #send: (options: object) => ClientRequest;
  readonly #timeoutMs: number;
  readonly #longestMs: number;
  readonly #signal: AbortSignal;
  /** Functions that end the open requests. */
  readonly #stops = new Set<(why: unknown) => void>();

  constructor(base: URL, { timeoutMs, longestMs = timeoutMs * LONGEST_ANSWER, signal }: TransportOptions) {
    const isTls = base.protocol === 'https:';
    this.#base = urlToHttpOptions(base);
    this.#prefix = base.pathname.replace(/\/+$/, '');
    this.#agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true });
    this.#send = isTls ? overHttps : overHttp;
    this.#timeoutMs = timeoutMs;
    this.#longestMs = longestMs;
    this.#signal = signal;
    // One listener for all requests: a pull makes hundreds of thousands.
    signal.addEventListener('abort', this.#abort);
  }

  /**
   * Sends a request and reads the whole answer, whatever its status. Throws a PassingError for failures of the network,
   * for answers that are cut short, too large or too slow, and the signal's reason when it aborts.
   */
  async send(question: Question): Promise<Answer> {
    for (;;) {
      this.#signal.throwIfAborted();
      try {
        return await this.#attempt(question);
      } catch (error) {
        if (!(error instanceof StaleConnectionError)) throw error;
      }
    }
  }

  /** Closes all connections. Open requests fail. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#abort);
    this.#stopAll(new Error('the connection was closed'));
  }

  readonly #abort = (): void => this.#stopAll(this.#signal.reason);

  #stopAll(why: unknown): void {
    for (const stop of this.#stops) stop(why);
    this.#agent.destroy();
  }

  #attempt({ method, path, headers = {}, body, limit, sink }: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = this.#send({
        ...this.#base,
        agent: this.#agent,
        method,
        path: this.#prefix + path,
        headers: body === undefined ? headers : { ...headers, 'content-length': Buffer.byteLength(body) },
      });
      const settle = () => {
        clearTimeout(silence);
        clearTimeout(longest);
        this.#stops.delete(stop);
      };
      const stop = (why: unknown) => {
        settle();
        reject(why);
        request.destroy();
      };
      const stopAfter = (ms: number, why: string) => setTimeout(() => stop(new PassingError(`${why} ${ms / 1000} s`)), ms);
      const silence = stopAfter(this.#timeoutMs, 'sent no data for');
      const longest = stopAfter(this.#longestMs, 'did not complete within');
      this.#stops.add(stop);

      const chunks: Buffer[] = [];
      let size = 0;
      const read = (response: IncomingMessage) => {
        const tooLarge = (bytes: number) => stop(new PassingError(`has ${bytes} bytes or more; the largest valid answer has ${limit}`));
        const take = response.statusCode === 200 ? sink : undefined;
        const length = Number(response.headers['content-length'] ?? 0);
        if (take === undefined && length > limit) return tooLarge(length);
        response.on('data', (chunk: Buffer) => {
          silence.refresh();
          size += chunk.length;
          if (take !== undefined) {
            try {
              return take(chunk);
            } catch (error) {
              return stop(error);
            }
          }
          if (size > limit) return tooLarge(size);
          chunks.push(chunk);
        });
        response.on('end', () => {
          settle();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
        });
        response.on('error', () => stop(new PassingError(`was cut off after ${size} bytes`)));
      };
      request.on('response', read);
      request.on('error', (error) => {
        const isStale = request.reusedSocket && size === 0 && ['ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '');
        // The message of a refusal by all addresses of a host is empty.
        stop(isStale ? new StaleConnectionError() : new PassingError(`failed: ${messageOf(error) || codeOf(error)}`));
      });
      request.end(body);
    });
  }
}

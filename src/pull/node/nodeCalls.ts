/** Calls Bitcoin Core's REST and RPC interfaces. Converts statuses and error codes to errors, and retries. */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { AtOnce } from '../../atOnce.ts';
import { misfitOf } from '../../contract/schemas.ts';
import { BuildError, type CliError, InputError } from '../../errors.ts';
import { Client, type ClientOptions, isPassing, targetOf } from '../httpClient.ts';
import { type Answer, PassingError, type Question } from '../httpConnections.ts';
import { type CredentialOptions, Credentials } from './rpcCredentials.ts';

/** Error codes of Bitcoin Core (src/rpc/protocol.h). */
export const RPC_CODES = { parameter: -8, warmingUp: -28 } as const;

/**
 * Thrown when Bitcoin Core answers an RPC call with an error. `persist` retries the call, unless the step with the
 * call catches the error.
 */
export class RpcError extends PassingError {
  constructor(
    readonly code: number,
    readonly text: string,
  ) {
    super(`was answered with RPC error ${code}: ${quoted(text)}`);
  }
}

/** Thrown while the node is starting. The message is the stage of the start that the node reports. */
class WarmingUpError extends Error {}

/** Thrown when the node's request queue is full. */
class FullQueueError extends PassingError {}

/** Thrown for a block that the node has pruned. */
export class PrunedError extends InputError {}

/** Thrown for a block that the node has not downloaded yet, because it was started from a snapshot. */
export class NotDownloadedError extends BuildError {}

/** Thrown when the server at the URL does not answer like Bitcoin Core. */
export class WrongServerError extends InputError {}

export class CredentialsError extends InputError {}

/** Thrown when the node rejects this machine, or does not let this user call a method. */
export class ForbiddenError extends InputError {}

export interface CallOptions extends Pick<ClientOptions, 'retries' | 'timeoutMs' | 'pauseMs' | 'signal'>, CredentialOptions {
  /** Maximum number of parallel requests. */
  readonly concurrency: number;
  /** Receives messages for the user, such as about a retry. */
  readonly onNotice: (message: string) => void;
}

/** Largest answer about the chain or the node, in bytes. A larger answer is an error. */
const SMALL_ANSWER = 1_000_000;

/** Pause between two requests to a node that is starting, as a multiple of `pauseMs`. */
const WARM_UP_PAUSES = 4;

/** Answer of the RPC interface. In JSON-RPC 2.0, it has only one of the fields. In 1.0, the other field is null. */
const envelope = z.object({ result: z.unknown().optional(), error: z.object({ code: z.int(), message: z.string() }).nullish() });

export class Calls {
  /** Name of the node in messages. */
  readonly name: string;
  readonly #options: CallOptions;
  readonly #client: Client;
  /** URL of the server without a trailing slash. */
  readonly #base: string;
  /** Undefined if only REST is used. */
  credentials: Credentials | undefined;
  #isWarmingUp = false;
  /** True after the notice about a refused connection, until a request succeeds. */
  #isRefused = false;
  readonly #atOnce: AtOnce;

  constructor(options: CallOptions) {
    const { url, onNotice } = options;
    this.name = `Bitcoin Core ${url.host}`;
    this.#options = options;
    this.#base = url.href.replace(/\/+$/, '');
    this.credentials = Credentials.find(options);
    this.#atOnce = new AtOnce(options.concurrency);
    this.#client = new Client({
      ...options,
      headers: {},
      rate: 0,
      onRetry: (why) => {
        const wasRefused = this.#isRefused;
        this.#isRefused = why.includes('ECONNREFUSED');
        if (!this.#isRefused) onNotice(`${why}; trying again`);
        else if (!wasRefused) onNotice(`${why}; does bitcoind run, with -server, on this port? Trying again`);
      },
    });
  }

  /**
   * Runs `step` until it succeeds. The number of retries after a PassingError is limited. Waits without limit while the
   * node is starting. If the node's queue is full, because other programs use it too, halves the number of parallel
   * requests. `what` names the request in messages.
   */
  persist<T>(what: string, step: () => Promise<T>): Promise<T> {
    return this.#client.persist(`${what} of ${this.name}`, async () => {
      for (;;) {
        try {
          const result = await step();
          this.#isWarmingUp = false;
          this.#isRefused = false;
          return result;
        } catch (error) {
          if (error instanceof FullQueueError && this.#atOnce.most > 1) {
            this.#atOnce.most = Math.ceil(this.#atOnce.most / 2);
            this.#options.onNotice(`${what} of ${this.name} ${error.message}; sending ${this.#atOnce.most} at once from now on`);
            continue;
          }
          if (!(error instanceof WarmingUpError)) throw error;
          if (!this.#isWarmingUp) this.#options.onNotice(`${this.name} is starting (${quoted(error.message)}); waiting for it`);
          this.#isWarmingUp = true;
          await sleep(this.#options.pauseMs * WARM_UP_PAUSES, undefined, { signal: this.#options.signal });
        }
      }
    });
  }

  /**
   * Requests a REST path. Returns answers with status 200 or 404, and throws for others. `limit` is the maximum size of
   * the body in bytes. It does not apply if `sink` receives the body.
   */
  async rest(path: string, limit = SMALL_ANSWER, sink?: Question['sink']): Promise<Answer> {
    const answer = await this.#send(`/rest${path}`, { limit, sink });
    const { status, body } = answer;
    const starting = /^Service temporarily unavailable: (.*)/.exec(status === 503 ? textOf(body) : '');
    if (starting) throw new WarmingUpError(starting[1]);
    this.#refuse(answer);
    if (status === 401 || status === 403) throw this.#forbidden(status);
    if (status !== 200 && status !== 404) throw statusError(status, textOf(body));
    return answer;
  }

  /** Returns the body of a REST answer. Throws if the block is missing or pruned. */
  async restBody(path: string, limit?: number, sink?: Question['sink']): Promise<Buffer> {
    const answer = await this.rest(path, limit, sink);
    if (answer.status !== 200) throw this.missing(answer);
    return answer.body;
  }

  /**
   * Calls a method of the RPC interface. `limit` is the maximum size of the answer, in bytes. If `sink` is given, it
   * receives the answer, and the result is undefined. Throws an RpcError if the node answers with an error, a
   * CredentialsError if it rejects the credentials, and a WrongServerError if it has no RPC interface.
   */
  async rpc<T>(
    method: string,
    params: readonly unknown[],
    schema: z.ZodType<T>,
    limit = SMALL_ANSWER,
    sink?: Question['sink'],
  ): Promise<T> {
    const { credentials } = this;
    const header = credentials?.header;
    const body = JSON.stringify({ jsonrpc: '1.0', id: 1, method, params });
    const ask = (authorization: string | undefined) => {
      const headers = { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) };
      return this.#send('/', { headers, body, limit, sink });
    };
    let answer = await ask(header);
    if (answer.status === 401 && header !== undefined && credentials?.refresh(header)) answer = await ask(credentials.header);
    const { status } = answer;
    const hide = (text: string) => credentials?.hide(text) ?? text;
    if (status === 401)
      throw new CredentialsError(`${this.name} does not accept ${credentials ? credentials.source : 'requests without credentials'}`, [
        'Give the cookie file of the node with --cookie FILE, or its user and password in the environment variables CORE_RPC_USER and CORE_RPC_PASSWORD.',
      ]);
    if (status === 403) throw this.#forbidden(status);
    // The node reports errors of a method as JSON too, but with a status such as 500.
    const isJson = /^application\/json\b/i.test(answer.headers['content-type'] ?? '');
    if (!isJson) this.#refuse(answer, hide);
    if (!isJson && status !== 200) throw this.wrongServer(`answers an RPC call with status ${status}`);
    if (sink !== undefined && status === 200) return parsed(undefined, schema);
    const { result, error } = parseJson(answer.body, envelope);
    if (error?.code === RPC_CODES.warmingUp) throw new WarmingUpError(hide(error.message));
    if (error) throw this.#unavailable(hide(error.message)) ?? new RpcError(error.code, hide(error.message));
    return parsed(result, schema);
  }

  close(): void {
    this.#client.close();
  }

  /** Sends a request as soon as fewer requests are running than are allowed in parallel. */
  #send(path: string, question: Omit<Question, 'url'>): Promise<Answer> {
    return this.#atOnce.run(() => this.#client.send({ url: new URL(this.#base + path), ...question }));
  }

  /** Throws for failures that are the same in REST and RPC: temporary error statuses, redirects and web pages. */
  #refuse({ status, headers, body }: Answer, hide = (text: string) => text): void {
    const text = hide(textOf(body));
    if (status === 503 && text === 'Work queue depth exceeded') throw new FullQueueError(statusError(status, text).message);
    if (isPassing(status)) throw statusError(status, text);
    if (status >= 300 && status < 400)
      throw new InputError(`${this.name} redirects to ${targetOf(hide(headers['location'] ?? ''), this.#base)}`, [
        'Bitcoin Core never does, and redirects are not followed, because they could send credentials to another host. Check the URL.',
      ]);
    if (status === 200 && /^text\/html\b/i.test(headers['content-type'] ?? '')) throw this.wrongServer('answers with a web page');
  }

  wrongServer(why: string): WrongServerError {
    const { protocol, host } = this.#options.url;
    return new WrongServerError(`the server at ${protocol}//${host} is not Bitcoin Core: it ${why}`, [
      "Give the URL of the node's RPC port, such as http://127.0.0.1:8332.",
    ]);
  }

  /** Returns the error for a REST answer without the requested block. */
  missing({ status, body }: Answer): Error {
    return this.#unavailable(textOf(body)) ?? statusError(status, textOf(body));
  }

  /**
   * Converts the node's text about a missing or pruned block to an error with advice. Returns undefined for other
   * texts.
   */
  #unavailable(text: string): CliError | undefined {
    if (text.includes('not fully downloaded'))
      return new NotDownloadedError(`${this.name} has not yet downloaded a block that is needed (${quoted(text)})`, [
        'It was started from a snapshot (assumeutxo) and still downloads older blocks. Wait for it, then run the same command again.',
      ]);
    if (!text.includes('pruned data')) return undefined;
    return new PrunedError(`${this.name} has pruned a block that is needed (${quoted(text)})`, [
      'Give a server that has it with --block-source: it need not be trusted.',
      'Set prune=0 in bitcoin.conf and let the node download its blocks again, or use another node.',
    ]);
  }

  #forbidden(status: number): ForbiddenError {
    return new ForbiddenError(`${this.name} refuses requests of this machine or user (status ${status})`, [
      'Check rpcallowip, rpcbind and rpcwhitelist in bitcoin.conf.',
    ]);
  }
}

/** Parses a body as JSON. Throws a PassingError if the body does not match the schema. */
export function parseJson<T>(body: Buffer, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new PassingError('has an unexpected answer: not valid JSON');
  }
  return parsed(value, schema);
}

/** Parses a value. Throws a PassingError if the value does not match the schema. */
export function parsed<T>(value: unknown, schema: z.ZodType<T>): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new PassingError(`has an unexpected answer: ${misfitOf(result.error)}`);
  return result.data;
}

/** Returns a PassingError for a status other than 200. */
function statusError(status: number, text: string): PassingError {
  const why = text !== '' ? ` ${quoted(text)}` : status === 503 ? ': the node is stopping, or too busy' : '';
  return new PassingError(`was answered with status ${status}${why}`);
}

/** Returns the first 1,000 bytes of a body as text. */
export const textOf = (body: Buffer): string => body.toString('utf8', 0, 1000).trim();

/** Quotes and shortens text from the server for a message. */
const quoted = (text: string): string => JSON.stringify(text.slice(0, 200));

/** The local server: the handler (serve/http/handler.ts) over node:http. */
import { ReadStream } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Log } from '../../cli/log.ts';
import { messageOf } from '../../errors.ts';
import { FormatError } from '../../format/formatVersion.ts';
import { shortTarget } from '../http/errorBodies.ts';
import { isUnread, type Reply, replyTo, unavailable } from '../http/handler.ts';
import { logRequests } from './accessLog.ts';
import { CLIENT_LIMITS, type ClientLimits, limitedServer } from './clientLimits.ts';
import { ClientLeftError, DiskOrigin, type LocalRequest } from './diskOrigin.ts';

export interface ServerSettings {
  readonly compresses: boolean;
  readonly limits: ClientLimits;
  readonly accessLog: Log;
  /** The clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Creates a server for the build in `dir`; the caller starts it with `listen`. The server notices a new build in the same folder. Throws an
 * InputError if the folder has no build.
 */
export function createMirrorServer(
  dir: string,
  { compresses = true, limits = CLIENT_LIMITS, accessLog, now = Date.now }: Partial<ServerSettings> = {},
): Server {
  const origin = new DiskOrigin(dir, compresses, limits, now);
  const server = limitedServer((request, response) => {
    const exchange = new Exchange(request, response);
    exchange.answer(origin).catch((error: unknown) => {
      if (error instanceof ClientLeftError) response.destroy();
      // Ignores the error if the client has disconnected.
      if (response.destroyed) return;
      // Only the log gets the reason, because it may contain paths of this machine.
      process.stderr.write(`${exchange.method} ${JSON.stringify(shortTarget(request.url ?? ''))}: ${messageOf(error)}\n`);
      // Cuts the connection, so that the client does not take a partial answer for a complete one.
      if (response.headersSent) response.destroy();
      else void exchange.send(unavailable(error instanceof FormatError ? error.message : undefined));
    });
  }, limits);
  if (accessLog !== undefined) logRequests(server, accessLog);
  server.on('close', () => origin.close());
  return server;
}

class Exchange implements LocalRequest {
  readonly method: string;
  readonly target: string;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    this.method = request.method ?? 'GET';
    this.target = targetOf(request);
  }

  header(name: string): string | undefined {
    return this.request.headers[name]?.toString();
  }

  hasLeft(isLong: boolean): boolean {
    const { destroyed, socket } = this.response;
    return destroyed || (isLong && socket?.readableEnded === true);
  }

  async answer(origin: DiskOrigin): Promise<void> {
    return this.send(await replyTo(this, origin));
  }

  async send({ status, headers, body }: Reply<Readable>): Promise<void> {
    const length = typeof body === 'string' ? ['content-length', String(Buffer.byteLength(body))] : [];
    // Node's types require a mutable list, but Node does not change it.
    this.response.writeHead(status, length.length === 0 ? (headers as string[]) : [...headers, ...length]);
    if (body !== undefined && isUnread(body)) await this.#stream(body.stream(), Number(headers[headers.indexOf('content-length') + 1]));
    else this.response.end(this.method === 'HEAD' ? undefined : body);
  }

  /** Sends a stream. `length` is its size in bytes, if the headers say it. */
  async #stream(stream: Readable, length: number): Promise<void> {
    await pipeline(stream, this.response, { end: false });
    // The client would read the next answer as the rest of a file that somebody has shortened meanwhile.
    if (stream instanceof ReadStream && stream.bytesRead !== length) this.response.destroy();
    else this.response.end();
  }
}

/** Returns the path and query of a request. A proxy may send a complete URL, and `OPTIONS *` has no path. */
function targetOf(request: IncomingMessage): string {
  const url = request.url ?? '/';
  return url.startsWith('/') ? url : `/${url.replace(/^[a-z]+:\/\/[^/?]*\/?/i, '')}`;
}

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
import { CLIENT_LIMITS, type ClientLimits, limitedServer } from './clientLimits.ts';
import { ClientLeftError, DiskOrigin, type LocalRequest } from './diskOrigin.ts';

export interface ServerSettings {
  readonly compresses: boolean;
  readonly limits: ClientLimits;
  readonly accessLog: Log;
  /** The clock, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Creates a server for the build in `dir`, and for later builds in this folder. Throws an InputError if the folder has no build. */
export function createMirrorServer(
  dir: string,
  { compresses = true, limits = CLIENT_LIMITS, accessLog, now = Date.now }: Partial<ServerSettings> = {},
): Server {
  const origin = new DiskOrigin(dir, compresses, limits, now);
  const server = limitedServer((request, response) => {
    const exchange = new Exchange(request, response);
    const answer = async () => exchange.send(await replyTo(exchange, origin));
    answer().catch((error: unknown) => {
      if (error instanceof ClientLeftError) response.destroy();
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

/** Logs each request when its answer has ended, except malformed ones, because Node refuses those itself. */
function logRequests(server: Server, log: Log): void {
  server.prependListener('request', (request, response) => {
    const [start, client] = [performance.now(), request.socket.remoteAddress ?? ''];
    response.once('close', () => {
      const { method = '' } = request;
      const target = shortTarget(request.url ?? '');
      const ms = Math.round((performance.now() - start) * 10) / 10;
      const status = response.statusCode;
      // Marks an answer whose client disconnected before the end of the answer.
      const cut = response.writableFinished ? {} : { incomplete: true };
      const message = `${client} ${method} ${JSON.stringify(target)} ${status}${response.writableFinished ? '' : ' incomplete'} ${ms} ms`;
      log.info('request', message, { client, method, target, status, ms, ...cut });
    });
  });
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

  async send({ status, headers, body }: Reply<Readable>): Promise<void> {
    // Node's types require a mutable list, but Node does not change it.
    const all = typeof body === 'string' ? [...headers, 'content-length', String(Buffer.byteLength(body))] : (headers as string[]);
    this.response.writeHead(status, all);
    if (body === undefined || !isUnread(body)) return void this.response.end(this.method === 'HEAD' ? undefined : body);
    const stream = body.stream();
    const length = Number(headers[headers.indexOf('content-length') + 1]);
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

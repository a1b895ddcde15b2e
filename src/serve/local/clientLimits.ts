/** Limits of the local server on each client, which Node.js enforces, and its answers to requests that are no HTTP. */
import { createServer, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { codeOf } from '../../errors.ts';
import { SERVER_LIMITS } from '../../limits.ts';
import { type ErrorStatus, errorBody } from '../http/errorBodies.ts';
import { ERROR_HEADERS } from '../http/headers.ts';

/** Limits of the local server. Times are in milliseconds. */
export const CLIENT_LIMITS = {
  ...SERVER_LIMITS,
  /** Open connections. The server closes further ones immediately. */
  connections: 20_000,
  /** Requests of a connection that may wait for the answers to its earlier requests. One more closes the connection. */
  waiting: 100,
  /** Request line and headers together, in bytes. */
  headerBytes: 16 * 1024,
  /** Time from the start of a connection or request until its headers are complete. */
  headersMs: 10_000,
  /** Time from the same start until the body is complete. The server discards bodies, because no API request has one. */
  requestMs: 20_000,
  /** Time for which a connection may stay open without a request. Proxies reuse connections for a minute, so it must be longer. */
  idleMs: 65_000,
  /** Time after which a connection is closed on which nothing was sent or received. Node.js may take twice as long. */
  stalledMs: 30_000,
  /** Interval between checks of the connections. */
  checkEveryMs: 1000,
};
export type ClientLimits = Readonly<typeof CLIENT_LIMITS>;

/** Creates a server with these limits. */
export function limitedServer(work: RequestListener, limits: ClientLimits): Server {
  const options = {
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    maxHeaderSize: limits.headerBytes,
    noDelay: true,
  };
  const server = createServer(options, inTurn(work, limits));
  server.maxConnections = limits.connections;
  server.timeout = limits.stalledMs;
  // Answers a client that closes its sending side after the request.
  Object.assign(server, { httpAllowHalfOpen: true });
  return server.on('clientError', refuse);
}

/** The answer whose turn it is on each connection, and the number of requests that wait for theirs. */
const turns = new WeakMap<Duplex, { current: ServerResponse | undefined; waiting: number }>();

/**
 * Makes the answers of a connection one after another: a client may send many requests before it reads an answer. Node.js gives the
 * connection to an answer when its turn comes, which is never after an answer that closes the connection.
 */
const inTurn =
  (work: RequestListener, limits: ClientLimits): RequestListener =>
  (request, response) => {
    const { socket } = request;
    const turn = turns.get(socket) ?? { current: undefined, waiting: 0 };
    turns.set(socket, turn);
    // An idle connection keeps nothing of its last request, whose headers may be long.
    response.once('close', () => {
      if (turn.current === response) turn.current = undefined;
    });
    if (response.socket !== null) {
      turn.current = response;
      return work(request, response);
    }
    turn.waiting += 1;
    if (turn.waiting > limits.waiting) socket.destroy();
    response.once('socket', () => {
      turn.waiting -= 1;
      turn.current = response;
      // Other connections get a turn first.
      setImmediate(() => socket.destroyed || work(request, response));
    });
  };

/** Milliseconds for a client to read an error answer before the connection is cut. */
const ERROR_GRACE_MS = 1000;

/** Answers malformed or too slow HTTP with an error, in JSON and with the headers for browsers, and closes the connection. */
function refuse(error: Error, socket: Duplex): void {
  // The client would read an error as a part of the answer that is being sent.
  const isSending = turns.get(socket)?.current?.headersSent === true;
  if (isSending || !socket.writable) return void socket.destroy();
  const [status, message] = REFUSALS[codeOf(error) ?? ''] ?? [400, 'the request is not valid HTTP'];
  const { body } = errorBody(status, message);
  const headers = { ...ERROR_HEADERS, connection: 'close', 'content-length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
  setTimeout(() => socket.destroy(), ERROR_GRACE_MS).unref();
}

/** Answers to errors of Node's parser and to timeouts. All other errors are a 400. */
const REFUSALS: Readonly<Record<string, readonly [status: ErrorStatus, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the request line and headers are too long'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'the chunk extensions of the body are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long'],
};

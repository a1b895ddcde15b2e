/**
 * Protects the local server against slow, greedy and malformed requests: timeouts, limits on connections, error
 * answers.
 */
import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { attempt } from '../../attempt.ts';
import { codeOf } from '../../errors.ts';
import { countCrossing, exceeds, SERVER_LIMITS } from '../../limits.ts';
import { type ErrorStatus, errorBody } from '../http/errorBodies.ts';
import { ALLOWED_METHODS, ERROR_HEADERS } from '../http/headers.ts';

/** Limits of the local server on each client. Times are in milliseconds. */
export const CLIENT_LIMITS = {
  ...SERVER_LIMITS,
  /** Time from the start of a connection or request until its headers are complete. */
  headersMs: 10_000,
  /**
   * Time from the start of a connection or request until the body of the request is complete. The server discards
   * bodies, because no API request has one.
   */
  requestMs: 20_000,
  /**
   * Time for which a connection may stay open without a request. Must be longer than the minute for which proxies reuse
   * connections; otherwise proxies would send requests on closed connections.
   */
  idleMs: 65_000,
  /** Time after which a client that reads nothing of its pending answer is disconnected. */
  stalledMs: 30_000,
  /** Interval between checks of the connections. */
  checkEveryMs: 1000,
};
export type ClientLimits = Readonly<typeof CLIENT_LIMITS>;

/** Number of open files that are reserved for reading pages. The limit on connections leaves them free. */
const RESERVED_FILES = 100;

/** Milliseconds for a client to read an error answer before the connection is cut. */
const ERROR_GRACE_MS = 1000;

/**
 * Returns the options of the server. `requireHostHeader` is false, because Node would refuse a request without a Host
 * header with an empty body. Instead, server.ts answers with an API error.
 */
export const serverOptions = (limits: ClientLimits): ServerOptions => ({
  headersTimeout: limits.headersMs,
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.idleMs,
  connectionsCheckingInterval: limits.checkEveryMs,
  maxHeaderSize: limits.headerBytes,
  requireHostHeader: false,
  noDelay: true,
});

/** Applies the limits that can be set only after the server is created. */
export function limitServer(server: Server, limits: ClientLimits): void {
  server.maxConnections = connectionsOf(limits);
  server.on('drop', () => countCrossing('connections'));
  server.timeout = limits.stalledMs;
  server.on('timeout', (socket) => socket.destroy());
  server.on('connection', (socket: Socket) => cutWhenStalled(socket, limits));
  server.on('clientError', refuse);
  server.on('connect', (_request, socket: Duplex) => {
    socket.on('error', () => {});
    refuseWith(405, 'CONNECT is not allowed; the API is read-only', socket, { allow: ALLOWED_METHODS });
  });
  // A client may close its sending side after the request (half-open). Without this option, Node would then end the
  // connection before the answer is ready.
  Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Cuts a connection if its client reads nothing for `stalledMs` while an answer is pending. Node's own timeout would
 * take at least twice as long, because it restarts whenever the system buffers a part of the answer.
 */
function cutWhenStalled(socket: Socket, { stalledMs, checkEveryMs }: ClientLimits): void {
  let [sent, since] = [0, performance.now()];
  const timer = setInterval(() => {
    const now = performance.now();
    const sentNow = socket.bytesWritten - socket.writableLength;
    if (socket.writableLength === 0 || sentNow !== sent) [sent, since] = [sentNow, now];
    else if (now - since >= stalledMs) socket.destroy();
  }, checkEveryMs).unref();
  socket.once('close', () => clearInterval(timer));
}

/** Pending answers of each connection, in the order of their requests. */
const waiting = new WeakMap<Duplex, Set<ServerResponse>>();

/**
 * Processes the requests of a connection one after another. A client may pipeline many requests without reading the
 * answers. If the server processed them in parallel, they would slow down other clients, and the bodies of all answers
 * would be in memory.
 */
export function inTurn(work: (request: IncomingMessage, response: ServerResponse) => void, limits: ClientLimits): RequestListener {
  return (request, response) => {
    const { socket } = request;
    const answers = waiting.get(socket) ?? new Set();
    waiting.set(socket, answers);
    answers.add(response);
    if (exceeds(limits, 'pending', answers.size)) socket.destroy();
    const end = () => {
      if (!answers.delete(response)) return;
      const [next] = answers;
      // Does not call `work` directly, so that other connections get a turn first.
      if (next !== undefined && !socket.destroyed) setImmediate(work, next.req, next);
    };
    // `finish` means that the answer was sent, `close` that the client disconnected.
    response.once('finish', end).once('close', end);
    if (answers.size === 1) work(request, response);
  };
}

/** Returns the maximum number of connections. Leaves a part of the system's limit on open files for pages. */
function connectionsOf({ connections }: ClientLimits): number {
  const soft = Number(reportedLimit());
  const openFiles = Number.isInteger(soft) && soft > 0 ? soft : connections + RESERVED_FILES;
  return Math.min(connections, Math.max(openFiles - RESERVED_FILES, Math.floor(openFiles / 2)));
}

/** Returns the system's limit on open files of this process, which include connections. */
function reportedLimit(): unknown {
  // Deno and Bun do not report this limit, or need a permission for the report.
  const report = attempt(
    () => process.report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } } },
  );
  return report?.userLimits?.open_files?.soft;
}

/** Answers malformed or too slow HTTP with an error and closes the connection. */
function refuse(error: Error, socket: Duplex): void {
  if (codeOf(error) === HEADER_OVERFLOW) countCrossing('headerBytes');
  const [answer] = waiting.get(socket) ?? [];
  // An answer is being sent, and the client would read an error as a part of this answer.
  if (answer?.headersSent === true) return void socket.destroy();
  const [status, message] = REFUSALS[codeOf(error) ?? ''] ?? [400, 'the request is not valid HTTP'];
  refuseWith(status, message, socket);
}

/** Writes an error to the socket, because node:http has no response object here. Closes the connection. */
function refuseWith(status: ErrorStatus, message: string, socket: Duplex, more: Readonly<Record<string, string>> = {}): void {
  if (!socket.writable) return void socket.destroy();
  const { body } = errorBody(status, message);
  const length = String(Buffer.byteLength(body));
  const headers = { ...ERROR_HEADERS, ...more, connection: 'close', 'content-length': length };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
  // A client that neither reads nor closes would keep the connection open forever.
  setTimeout(() => socket.destroy(), ERROR_GRACE_MS).unref();
}

/** Error code of Node's parser if the headers have more than `headerBytes`. */
const HEADER_OVERFLOW = 'HPE_HEADER_OVERFLOW';

/** Answers to errors of Node's parser and to timeouts. All other errors are a 400. */
const REFUSALS: Readonly<Record<string, readonly [status: ErrorStatus, message: string]>> = {
  [HEADER_OVERFLOW]: [431, 'the request line and headers are too long'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'the chunk extensions of the body are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long'],
};

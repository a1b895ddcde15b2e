/**
 * What the local server grants a client: how long it may take, how many may come at once, and what one that breaks the rules of HTTP is told.
 */
import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { codeOf } from '../../errors.ts';
import { errorBody } from '../../http/errors.ts';
import { ALLOWED_METHODS, ERROR_HEADERS } from '../../http/headers.ts';

/** Times are in milliseconds. */
export interface Limits {
  /** From the beginning of a connection, or of a request on it, to the end of the request's headers. */
  readonly headersMs: number;
  /** The same to the end of the request's body: no request of the API has one, so what comes is thrown away. */
  readonly requestMs: number;
  /** How long a connection may stay open without a request. Longer than the minute that proxies in front keep theirs, or they would send into closed ones. */
  readonly idleMs: number;
  /** How long a client may read nothing of an answer. */
  readonly stalledMs: number;
  /** How often connections are looked at. */
  readonly checkEveryMs: number;
  /** Connections at once; one more is closed at once. */
  readonly connections: number;
}

/** Connections that are not taken of what the system allows: files have to be opened too. */
const RESERVED_FILES = 100;
const MOST_CONNECTIONS = 20_000;

export const LIMITS: Limits = {
  headersMs: 10_000,
  requestMs: 20_000,
  idleMs: 65_000,
  stalledMs: 30_000,
  checkEveryMs: 1000,
  connections: MOST_CONNECTIONS,
};

/** The bytes that a request line and its headers may have together; Node's own, said here because it is promised. */
const HEADER_BYTES = 16_384;

/** How long a client has to take the answer to what was no request, before the connection is cut. */
const LAST_WORDS_MS = 1000;

/** The limits, as a server is made with them. A request without a Host header is not refused by Node, whose answer has no body, but by the server. */
export const serverOptions = (limits: Limits): ServerOptions => ({
  headersTimeout: limits.headersMs,
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.idleMs,
  connectionsCheckingInterval: limits.checkEveryMs,
  maxHeaderSize: HEADER_BYTES,
  requireHostHeader: false,
  noDelay: true,
});

/** Sets what cannot be given to a server when it is made. */
export function limitServer(server: Server, limits: Limits): void {
  server.maxConnections = Math.min(limits.connections, connectionsOf(openFilesLimit()));
  server.timeout = limits.stalledMs;
  server.on('timeout', (socket) => socket.destroy());
  server.on('connection', (socket: Socket) => cutWhenStalled(socket, limits));
  server.on('clientError', refuse);
  server.on('connect', (_request, socket: Duplex) => {
    socket.on('error', () => {});
    refuseWith(405, 'CONNECT is not allowed; the API is read-only', socket, { allow: ALLOWED_METHODS });
  });
  // A client may close its side once it has asked. Without this, Node ends the connection before an answer that is still being made.
  Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Cuts a connection whose client has read nothing for `stalledMs` while an answer waits for it. Node's own timeout begins anew when the system took a part
 * of the answer, and takes twice as long or more.
 */
function cutWhenStalled(socket: Socket, { stalledMs, checkEveryMs }: Limits): void {
  let [sent, since] = [0, performance.now()];
  const timer = setInterval(() => {
    const now = performance.now();
    const sentNow = socket.bytesWritten - socket.writableLength;
    if (socket.writableLength === 0 || sentNow !== sent) [sent, since] = [sentNow, now];
    else if (now - since >= stalledMs) socket.destroy();
  }, checkEveryMs).unref();
  socket.once('close', () => clearInterval(timer));
}

/** Requests that may wait on a connection for the answers before them; one more closes it. */
const MOST_WAITING = 1000;

/** The answers that a connection waits for, in the order of their requests. */
const waiting = new WeakMap<Duplex, Set<ServerResponse>>();

/**
 * Answers requests of a connection one after the other: a client may send many without reading an answer, and all of them at once would take the time of
 * others and a body's memory each.
 */
export function inTurn(work: (request: IncomingMessage, response: ServerResponse) => void): RequestListener {
  return (request, response) => {
    const { socket } = request;
    const answers = waiting.get(socket) ?? new Set();
    waiting.set(socket, answers);
    answers.add(response);
    if (answers.size > MOST_WAITING) socket.destroy();
    const end = () => {
      if (!answers.delete(response)) return;
      const [next] = answers;
      // Others have their turn in between.
      if (next !== undefined && !socket.destroyed) setImmediate(work, next.req, next);
    };
    // The one when it was sent, the other when its client went away.
    response.once('finish', end).once('close', end);
    if (answers.size === 1) work(request, response);
  };
}

/** Connections that fit into what the system allows to have open, so that there is always a file left to read. */
const connectionsOf = (openFiles: number): number => Math.max(openFiles - RESERVED_FILES, Math.floor(openFiles / 2));

/** How many files this process may have open, connections included. */
function openFilesLimit(): number {
  const soft = Number(readLimits()?.open_files?.soft);
  return Number.isInteger(soft) && soft > 0 ? soft : MOST_CONNECTIONS + RESERVED_FILES;
}

function readLimits(): { readonly open_files?: { readonly soft?: unknown } } | undefined {
  try {
    return (process.report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft?: unknown } } }).userLimits;
  } catch {
    // Deno and Bun do not tell, or not without being allowed to.
    return undefined;
  }
}

/** Answers what is no request, or came too slowly, and closes the connection. */
function refuse(error: Error, socket: Duplex): void {
  const [answer] = waiting.get(socket) ?? [];
  // In the middle of an answer an error would be taken for a part of it.
  if (answer?.headersSent === true) {
    socket.destroy();
    return;
  }
  const status = STATUS_OF[codeOf(error) ?? ''] ?? 400;
  refuseWith(status, STATUS_CODES[status] ?? 'Bad Request', socket);
}

/** Answers with an error, without the help of node:http, and closes the connection. */
function refuseWith(status: number, message: string, socket: Duplex, more: Readonly<Record<string, string>> = {}): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { body } = errorBody(status, message);
  const length = String(Buffer.byteLength(body));
  const headers = { ...ERROR_HEADERS, ...more, connection: 'close', 'content-length': length };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}\r\n${lines.join('')}\r\n${body}`);
  // A client that neither reads nor closes would keep the connection for ever.
  setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
}

const STATUS_OF: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

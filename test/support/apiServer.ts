/**
 * A server that answers like the recorded server (test/fixtures): pages have at most 60 records, a window past the end
 * has total 0, and the status names the tip. A test can add faults.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Activity } from './records.ts';

/** Fault in the answer to a request. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Cuts the connection before the answer, or in its middle. */
  | { readonly kind: 'cut'; readonly after: 'nothing' | 'half' }
  /** Sends half of the body, and then nothing. */
  | { readonly kind: 'silence' }
  | { readonly kind: 'body'; readonly body: string };

export class ApiServer {
  /** Blocks by height. The records of a block are in served order (src/engine/render/servedOrder.ts). */
  readonly blocks = new Map<number, Activity[]>();
  limit = 60;
  /** Height of the tip in the status. By default the highest block. */
  tip: number | undefined;
  /** Called before every answer. Returns the fault to apply. */
  fault: (target: string, request: IncomingMessage) => Fault | undefined = () => undefined;
  /** Called after every complete answer of the API. */
  answered: (target: string) => void = () => undefined;
  readonly requests: string[] = [];
  readonly #server = createServer((request, response) => this.#answer(request, response));

  /** Starts the server. Returns its URL. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const target = request.url ?? '';
    this.requests.push(target);
    const fault = this.fault(target, request);
    const { status, body } = this.#respond(target);
    const json = { 'content-type': 'application/json; charset=utf-8' };
    if (fault === undefined) {
      response.writeHead(status, json).end(body);
      this.answered(target);
      return;
    }
    const half = body.slice(0, body.length / 2);
    switch (fault.kind) {
      case 'status':
        response.writeHead(fault.status, { ...json, ...fault.headers }).end(fault.body ?? '{"error":"no"}');
        return;
      case 'body':
        response.writeHead(200, json).end(fault.body);
        return;
      case 'cut':
        if (fault.after === 'nothing') request.socket.destroy();
        else response.writeHead(status, { ...json, 'content-length': Buffer.byteLength(body) }).write(half, () => request.socket.destroy());
        return;
      case 'silence':
        response.writeHead(status, { ...json, 'content-length': Buffer.byteLength(body) }).write(half);
    }
  }

  #respond(target: string): { status: number; body: string } {
    const url = new URL(target, 'http://server.invalid');
    if (/^\/runes(\/v1)?\/?$/.test(url.pathname)) {
      const block_height = this.tip ?? Math.max(...this.blocks.keys());
      return { status: 200, body: JSON.stringify({ server_version: 'recorded', status: 'ready', block_height }) };
    }
    const [, height] = /^\/runes\/v1\/blocks\/([0-9]+)\/activity$/.exec(url.pathname) ?? [];
    if (height === undefined) return { status: 404, body: '{"statusCode":404,"error":"Not Found","message":"Route not found"}' };
    const [limit, offset] = [Number(url.searchParams.get('limit') ?? 20), Number(url.searchParams.get('offset') ?? 0)];
    if (limit > this.limit) {
      const message = `querystring/limit must be <= ${this.limit}`;
      return { status: 400, body: JSON.stringify({ statusCode: 400, error: 'Bad Request', message }) };
    }
    const records = this.blocks.get(Number(height)) ?? [];
    const results = records.slice(offset, offset + limit);
    // As on the recorded server, the total is 0 if the window is past the end.
    return { status: 200, body: JSON.stringify({ limit, offset, total: results.length === 0 ? 0 : records.length, results }) };
  }
}

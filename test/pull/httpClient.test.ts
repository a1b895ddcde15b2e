/** Tests the HTTP client of pulls with servers that fail in every way. */
import { createHash } from 'node:crypto';
import { getEventListeners, once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createRawServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { BuildError, type CliError, InputError } from '../../src/errors.ts';
import { Client, type ClientOptions } from '../../src/pull/httpClient.ts';
import { temporaryFolder } from '../support/build.ts';
import { PullClock } from '../support/pull.ts';
import { listening } from '../support/server.ts';
import { until } from '../support/until.ts';

const TOO_LARGE = /has 2048 bytes or more; the largest valid answer has 1024$/;
const BODY = JSON.stringify({ answer: 'x'.repeat(1000) });
type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const right: Handler = (_, response) => response.end(BODY);
const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Handler =>
  (_, response) =>
    response.writeHead(code, headers).end('no');

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** Starts a server that gives these answers in order, the last one again and again. Returns its URL and its requests. */
async function serve(...handlers: Handler[]): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const handler = handlers.length > 1 ? handlers.shift() : handlers[0];
    handler?.(request, response);
  });
  const host = await listening(server);
  open.push(host);
  return { url: `${host.url}/a`, requests };
}

const parsed = (body: Buffer): unknown => JSON.parse(body.toString());

let reasons: string[];
function clientWith(options: Partial<ClientOptions> = {}): Client {
  reasons = [];
  const client = new Client({
    ...{ rate: 0, retries: 1, timeoutMs: 10_000, pauseMs: 1, signal: new AbortController().signal },
    onRetry: (why) => reasons.push(why),
    ...options,
  });
  open.push(client);
  return client;
}

const errorOf = async (promise: Promise<unknown>): Promise<CliError> =>
  promise.then(
    () => Promise.reject(new Error('no error')),
    (error: CliError) => error,
  );

const cutAfter =
  (bytes: number): Handler =>
  (_, response) =>
    response.writeHead(200, { 'content-length': BODY.length }).write(BODY.slice(0, bytes), () => response.destroy());

describe('an answer is requested again', () => {
  // The right answer must come within the limits of time, also on a busy machine, so these are a second.
  it.each<[string, Handler, RegExp, Partial<ClientOptions>?]>([
    ['status 429', status(429, { 'retry-after': '0' }), /was answered with status 429$/],
    ['status 503', status(503, { 'retry-after': 'Fri, 01 Jan 2021 00:00:00 GMT' }), /was answered with status 503$/],
    ['no answer', (request) => request.socket.destroy(), /failed: /],
    ['a body that is cut', cutAfter(500), /was cut off after 500 bytes$/],
    [
      'a body that stops',
      (_, response) => response.writeHead(200, { 'content-length': BODY.length }).write('{'),
      /sent no data for 1 s$/,
      { timeoutMs: 1000 },
    ],
    ['a body that is no JSON', (_, response) => response.end('<html>'), /has an unexpected response body: not valid JSON$/],
    ['a body that is no text', (_, response) => response.end(Buffer.of(0xff)), /has an unexpected response body: /],
    ['a body that is too large, as its length says', (_, response) => response.end(Buffer.alloc(2048)), TOO_LARGE],
    [
      'a body that is too large and has no length',
      (_, response) => response.writeHead(200).write(Buffer.alloc(2048), () => response.end()),
      TOO_LARGE,
    ],
    [
      'a body that was compressed without being asked for',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(BODY)),
      /is compressed \(gzip\), which was not asked for$/,
    ],
  ])('after %s', async (_, fault, why, options) => {
    const { url, requests } = await serve(fault, right);
    const reply = await clientWith(options).get(url, parsed, 1024);
    expect(reply).toEqual({ status: 200, body: JSON.parse(BODY) });
    expect(reasons).toEqual([expect.stringMatching(why)]);
    expect(requests.map(({ headers }) => headers['accept-encoding'])).toEqual(['identity', 'identity']);
    const last = await serve(fault);
    const error = await errorOf(clientWith(options).get(last.url, parsed, 1024));
    expect(error).toBeInstanceOf(BuildError);
    expect(error.message).toMatch(/^http:\/\/127.0.0.1:\d+\/a .*; tried 2 times$/);
  });

  it('if it is not complete in time, although data keeps arriving', async () => {
    const { url } = await serve((_, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '), 5);
      response.once('close', () => clearInterval(timer));
    }, right);
    expect((await clientWith({ longestMs: 1000 }).get(url, parsed)).status).toBe(200);
    expect(reasons).toEqual([expect.stringMatching(/did not complete within 1 s$/)]);
  });

  it('once if a server closes each connection within the head of its answer', async () => {
    let connections = 0;
    const server = createRawServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 20'));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    open.push(server);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expect((await errorOf(clientWith().get(url, parsed))).message).toMatch(/failed: .*; tried 2 times$/);
    expect(connections).toBe(2);
  });
});

describe('an answer is final', () => {
  it.each([401, 404, 501])('with status %i', async (code) => {
    const { url, requests } = await serve(status(code));
    expect(await clientWith().get(url, parsed)).toEqual({ status: code, body: undefined });
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['https://user:k3y@elsewhere.invalid/k3y?api_key=k3y#k3y', 'https://elsewhere.invalid'],
    ['/k3y?api_key=k3y', 'http://127.0.0.1:[0-9]+'],
    ['k3y:k3y', 'an invalid URL'],
    ['http://k3y:k3y', 'an invalid URL'],
  ])('if it redirects to %s, and the message shows no key', async (location, shown) => {
    const { url, requests } = await serve(status(301, { location }));
    const error = await errorOf(clientWith().get(url, parsed));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(new RegExp(`^http://127.0.0.1:[0-9]+/a redirects to ${shown}$`));
    expect(requests).toHaveLength(1);
  });

  it('if it asks for a delay of hours', async () => {
    const { url } = await serve(status(429, { 'retry-after': '7200' }));
    const error = await errorOf(clientWith().get(url, parsed));
    expect(error).toBeInstanceOf(BuildError);
    expect(error.message).toBe('the server asks to retry in 120 minutes, but a pull waits for 15 minutes at most');
  });
});

it('a server that asks for a delay gets no request until then, and --rate spaces requests', async () => {
  const clock = new PullClock();
  const times: number[] = [];
  const at: Handler = (request, response) => {
    times.push(clock.now());
    (times.length === 3 ? status(429, { 'retry-after': '100' }) : right)(request, response);
  };
  const { url } = await serve(at);
  const client = clientWith({ clock, rate: 10, pauseMs: 0 });
  for (let i = 0; i < 4; i++) await client.get(url, parsed);
  expect(times).toEqual([0, 100, 200, 100_200, 100_300]);
});

it('--rate spaces requests that wait for others to end', async () => {
  const clock = new PullClock();
  const times: number[] = [];
  const { url } = await serve((request, response) => {
    times.push(clock.now());
    right(request, response);
  });
  const client = clientWith({ clock, rate: 10, concurrency: 2 });
  await Promise.all(Array.from({ length: 8 }, () => client.get(url, parsed)));
  // At most two requests run at the same time, so no more can have their turn together.
  expect([times.length, new Set(times).size]).toEqual([8, expect.toSatisfy((different: number) => different >= 4)]);
});

describe('a file', () => {
  it('is saved with its digest, and an answer of another length is a passing failure', async () => {
    const { url } = await serve(right);
    const path = join(temporaryFolder(), 'file');
    const digest = createHash('sha256').update(BODY).digest('hex');
    expect(await clientWith().save(url, path, BODY.length)).toEqual({ status: 200, digest });
    expect(readFileSync(path, 'utf8')).toBe(BODY);
    await expect(clientWith().save(url, path, BODY.length + 1)).rejects.toThrow(/^has \d+ bytes instead of \d+$/);
    await expect(clientWith().save(url, path, BODY.length - 1)).rejects.toThrow(
      /^has 1013 bytes or more; the largest valid answer has 1012$/,
    );
  });

  it.skipIf(!existsSync('/dev/full'))('on a full disk is an error, and is not requested again', async () => {
    const { url, requests } = await serve(right);
    const error = await errorOf(clientWith().save(url, '/dev/full', BODY.length));
    expect([requests.length, error]).toEqual([1, expect.objectContaining({ code: 'ENOSPC' })]);
  });
});

/** Counts what a signal keeps: its listeners, and its dependent signals, which Node stores in a set under a symbol. */
const hangingOn = (signal: AbortSignal): number =>
  Object.getOwnPropertySymbols(signal)
    .map((symbol) => (signal as unknown as Record<symbol, unknown>)[symbol])
    .reduce<number>((sum, value) => sum + (value instanceof Set ? value.size : 0), getEventListeners(signal, 'abort').length);

it('an abort ends a request at once, and requests leave nothing on the signal', async () => {
  const stop = new AbortController();
  const { url, requests } = await serve(right, status(503), right, right, (_, response) => response.writeHead(200).write('{'));
  const client = clientWith({ signal: stop.signal });
  for (let i = 0; i < 3; i++) await client.get(url, parsed);
  expect(hangingOn(stop.signal)).toBe(0);
  const asking = errorOf(client.get(url, parsed));
  await until(() => requests.length === 5);
  stop.abort();
  expect((await asking).name).toBe('AbortError');
  expect(hangingOn(stop.signal)).toBe(0);
});

it('an error that a sink throws ends the request with this error', async () => {
  const { url } = await serve(right);
  const sink = () => {
    throw new RangeError('enough');
  };
  await expect(clientWith().send(new URL(url), { limit: BODY.length, sink })).rejects.toThrow(new RangeError('enough'));
});

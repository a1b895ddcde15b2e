/** Tests pulls over a network that fails: every request is repeated, waits as the server asks, or ends with advice. */
import { getEventListeners, once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MANIFEST_PATH } from '../../../src/pages/filePaths.ts';
import { Client } from '../../../src/pull/httpClient.ts';
import { RecordingLog, temporaryFolder, tree } from '../../support/build.ts';
import type { Fault } from '../../support/plainFiles.ts';
import { failedPull, PullClock, testPull } from '../../support/pull.ts';
import { hex } from '../../support/records.ts';
import { host, rowsFiles, to, useMirror } from '../../support/rowsMirror.ts';

useMirror();

describe('a mirror that fails', () => {
  const faults: readonly Fault[] = [
    { kind: 'status', status: 429, headers: { 'retry-after': '0' } },
    { kind: 'status', status: 429 },
    { kind: 'status', status: 500, body: '<html>no' },
    { kind: 'status', status: 503, headers: { 'retry-after': 'Fri, 01 Jan 2021 00:00:00 GMT' } },
    { kind: 'cut', after: 'nothing' },
    { kind: 'cut', after: 'half' },
    { kind: 'body', body: '{"generator":"rune-activity-mirror","form' },
  ];

  it('in every way, every third time, is asked again until every answer is right', async () => {
    const given = new Set<Fault>();
    host.fault = () => {
      const n = host.asked.length;
      const fault = n % 3 === 0 ? faults[(n / 3) % faults.length] : undefined;
      if (fault !== undefined) given.add(fault);
      return fault;
    };
    const log = new RecordingLog();
    await testPull(host.base, to, { log, retries: 40 });
    expect(given.size).toBe(faults.length);
    expect(log.notices.length).toBeGreaterThan(faults.length);
    // Each failure is reported in a single line.
    expect(log.notices.filter((notice) => notice.includes('\n'))).toEqual([]);
    host.fault = () => undefined;
    const whole = join(temporaryFolder(), 'input');
    await testPull(host.base, whole);
    expect(tree(to)).toEqual(tree(whole));
  });

  it('by silence in the middle of a body is asked again', async () => {
    let silences = 0;
    host.fault = (path) => {
      if (path !== rowsFiles()[0] || silences === 2) return undefined;
      silences += 1;
      return { kind: 'silence' };
    };
    const log = new RecordingLog();
    await testPull(host.base, to, { log, timeoutMs: 300 });
    // On a slow machine, other requests may be asked again too.
    expect(log.notices.filter((notice) => notice.startsWith('the rows of blocks 0..99 ')).length).toBeGreaterThanOrEqual(2);
    expect(log.notices).toEqual(log.notices.map(() => expect.stringMatching(/ sent no data for 0\.3 s; trying again$/)));
  });

  it('and never recovers ends the pull, which keeps the fetched files', async () => {
    const last = rowsFiles().at(-1) ?? '';
    host.fault = (path) => (path === last ? { kind: 'status', status: 502 } : undefined);
    const error = await failedPull(host.base, to, { retries: 2, concurrency: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^the rows of blocks .* was answered with status 502; tried 3 times$/),
    ]);
    host.fault = () => undefined;
    host.asked.length = 0;
    await testPull(host.base, to);
    expect(host.asked.filter((path) => /^rows\/[0-9]/.test(path))).toEqual([last]);
  });

  it('and asks for a delay gets no request until then', async () => {
    const clock = new PullClock();
    const times: number[] = [];
    host.fault = () => {
      times.push(clock.now());
      return times.length === 8 ? { kind: 'status', status: 429, headers: { 'retry-after': '100' } } : undefined;
    };
    await testPull(host.base, to, { concurrency: 1, clock });
    expect(times.length).toBeGreaterThan(10);
    expect(times).toEqual(times.map((_, i) => (i < 8 ? 0 : 100_000)));
  });

  it('and asks for a delay of hours ends the pull', async () => {
    host.fault = () => ({ kind: 'status', status: 429, headers: { 'retry-after': '7200' } });
    const error = await failedPull(host.base, to);
    expect([error.exitCode, error.message]).toEqual([
      3,
      'the server asks to retry in 120 minutes, but a pull waits for 15 minutes at most',
    ]);
  });

  it.each([
    ['wants a key', { kind: 'status', status: 401 }, 2, /is not a mirror of this program: give a mirror, or save the answers/],
    ['is another', { kind: 'status', status: 404 }, 2, /is not a mirror of this program/],
    ['has a web page', { kind: 'body', body: '<html>a proxy says hello</html>' }, 2, /is not a mirror of this program/],
    ...[
      ['https://user:k3y@elsewhere.invalid/k3y?api_key=k3y#k3y', 'https://elsewhere.invalid'],
      ['/k3y?api_key=k3y', 'http://127.0.0.1:[0-9]+'],
      ['k3y:k3y', 'an invalid URL'],
      ['http://k3y:k3y', 'an invalid URL'],
    ].map(([location = '', shown]): [string, Fault, number, RegExp] => [
      `redirects to ${location}`,
      { kind: 'status', status: 301, headers: { location } },
      2,
      new RegExp(`/runes/v1/manifest.json redirects to ${shown}$`),
    ]),
  ] satisfies [string, Fault, number, RegExp][])('because it %s is explained', async (_, fault, code, message) => {
    host.fault = () => fault;
    const error = await failedPull(host.base, to);
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
  });

  it('because it is built without rows is refused, with advice', async () => {
    const { rows: _, ...manifest } = JSON.parse(readFileSync(join(host.folder, MANIFEST_PATH), 'utf8'));
    host.fault = () => ({ kind: 'body', body: JSON.stringify(manifest) });
    const error = await failedPull(host.base, to);
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/ publishes no rows: give another mirror, or ask its operator/),
    ]);
  });

  it('and cannot be reached is explained', async () => {
    await host.close();
    const error = await failedPull(host.base, to, { retries: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^http:\/\/127.* failed: connect ECONNREFUSED .*; tried 2 times$/),
    ]);
  });
});

describe.each<[string, (body: string | Uint8Array) => Uint8Array]>([
  ['gzip', gzipSync],
  ['X-GZip', gzipSync],
  ['br', brotliCompressSync],
  ['identity,Br , GZIP', (body) => gzipSync(brotliCompressSync(body))],
])('an answer that is compressed with %s', (encoding, compress) => {
  const clientOf = (retries: number) =>
    new Client({
      ...{ headers: {}, rate: 0, timeoutMs: 5000, pauseMs: 1, onRetry: () => undefined },
      ...{ retries, signal: new AbortController().signal },
    });
  /** Serves a body of any length. Returns the server's URL, and a function that returns a header of the request. */
  async function serve(body: Uint8Array, coding = encoding): Promise<{ url: string; asked: () => string | undefined; close: () => void }> {
    let asked: string | undefined;
    const encoded = createServer((request, response) => {
      asked = String(request.headers['accept-encoding']);
      response.writeHead(200, { 'content-encoding': coding }).end(body);
    }).listen(0, '127.0.0.1');
    await once(encoded, 'listening');
    return {
      url: `http://127.0.0.1:${(encoded.address() as AddressInfo).port}/`,
      asked: () => asked,
      close: () => encoded.close().closeAllConnections(),
    };
  }

  it('is read', async () => {
    const { url, asked, close } = await serve(compress('{"a":1}'));
    expect((await clientOf(0).get(url, JSON.parse)).body).toEqual({ a: 1 });
    expect(asked()).toBe('gzip, br');
    close();
  });

  it('is refused if it has another encoding, too', async () => {
    const { url, close } = await serve(compress('{"a":1}'), `${encoding}, deflate`);
    await expect(clientOf(1).get(url, JSON.parse)).rejects.toThrow(/ has the content encoding ".*, deflate", which is not one of gzip, br/);
    close();
  });

  it('is refused if it unpacks to more than the limit', async () => {
    const { url, close } = await serve(compress(Buffer.alloc(8 * 1024 * 1024, ' ')));
    await expect(clientOf(3).get(url, JSON.parse, 1024 * 1024)).rejects.toThrow(/ answers with more than 1 MB$/);
    close();
  });

  it('is requested again if it is damaged or cut', async () => {
    const whole = compress(JSON.stringify({ a: hex('a'), b: hex('b') }));
    for (const [body, why] of [
      [whole.subarray(0, -20), /\/ was cut off after \d+ bytes; tried 2 times$/],
      [Buffer.from('not compressed'), /\/ failed: .*; tried 2 times$/],
    ] as const) {
      const { url, close } = await serve(body);
      await expect(clientOf(1).get(url, JSON.parse)).rejects.toThrow(why);
      close();
    }
  });
});

describe('a long pull', () => {
  /**
   * Counts everything that a signal keeps: its listeners, and its dependent signals, which Node stores in a set under a
   * symbol.
   */
  const hangingOn = (signal: AbortSignal): number =>
    Object.getOwnPropertySymbols(signal)
      .map((symbol) => (signal as unknown as Record<symbol, unknown>)[symbol])
      .reduce<number>((sum, value) => sum + (value instanceof Set ? value.size : 0), getEventListeners(signal, 'abort').length);

  it('leaves no listener of its requests on the signal that stops it', async () => {
    host.fault = () => (host.asked.length % 3 === 0 ? { kind: 'status', status: 503 } : undefined);
    const { signal } = new AbortController();
    const client = new Client({ headers: {}, rate: 0, retries: 5, timeoutMs: 500, pauseMs: 1, signal, onRetry: () => undefined });
    for (let n = 0; n < 20; n += 1) await client.get(`${host.base}/runes/v1/manifest.json`, JSON.parse);
    expect(host.asked.length).toBeGreaterThan(25);
    expect(hangingOn(signal)).toBe(0);
    await testPull(host.base, to, { signal });
    expect(hangingOn(signal)).toBe(0);
  });

  it('with many parallel requests causes no warnings of Node', async () => {
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on('warning', keep);
    await testPull(host.base, to, { concurrency: 30 });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', keep);
    expect(warnings).toEqual([]);
  });

  it.skipIf(!existsSync('/dev/full'))('reports a full disk, and does not repeat requests', async () => {
    const signal = new AbortController().signal;
    const client = new Client({ headers: {}, rate: 0, retries: 5, timeoutMs: 500, pauseMs: 1, signal, onRetry: () => undefined });
    const failure = await client.save(`${host.base}/runes/v1/manifest.json`, '/dev/full', 1e6).catch((error: unknown) => error);
    expect([host.asked.length, failure]).toEqual([1, expect.objectContaining({ message: 'the disk of /dev is full', exitCode: 3 })]);
  });

  it('repeats a request whose answer is not complete in time, even if data keeps arriving', async () => {
    const trickle = createServer((_, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write(' '), 5);
      response.once('close', () => clearInterval(timer));
    }).listen(0, '127.0.0.1');
    await once(trickle, 'listening');
    const stop = new AbortController();
    const reasons: string[] = [];
    const onRetry = (reason: string) => {
      reasons.push(reason);
      if (!reason.includes('sent no data')) stop.abort();
    };
    // Allows many attempts, because on a busy machine an attempt may receive no data for 60 ms.
    const client = new Client({ headers: {}, rate: 0, retries: 50, timeoutMs: 60, pauseMs: 1, signal: stop.signal, onRetry });
    await expect(client.get(`http://127.0.0.1:${(trickle.address() as AddressInfo).port}/`, JSON.parse)).rejects.toThrow();
    expect(reasons.at(-1)).toMatch(/ did not complete within 1\.2 s$/);
    trickle.close();
    trickle.closeAllConnections();
  });
});

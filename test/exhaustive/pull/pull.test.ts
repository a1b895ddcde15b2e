import { getEventListeners, once } from 'node:events';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Client } from '../../../src/pull/httpClient.ts';
import type { Fault } from '../../support/apiServer.ts';
import { filesBelow, RecordingLog, temporaryFolder, tree } from '../../support/build.ts';
import { block, failedPull, leanBuild, PullClock, testPull } from '../../support/pull.ts';
import { base, builtDigest, recordedChain, server, shortChain, to, useServer } from '../../support/recordedServer.ts';
import { type Activity, hex } from '../../support/records.ts';

useServer();

const pulledHash = (height: number): string => {
  const [name = ''] = filesBelow(join(to, 'pulled')).filter((path) => path.includes(`/${height}-`));
  const [line = ''] = gunzipSync(readFileSync(join(to, 'pulled', name)))
    .toString()
    .split('\n');
  return (JSON.parse(line) as Activity).location.block_hash;
};

describe('blocks', () => {
  it('are complete, and build the mirror that the database export builds', async () => {
    const digest = await recordedChain();
    const log = new RecordingLog();
    const result = await testPull(base, to, { log });
    expect(log.notices).toEqual([]);
    expect(result).toMatchObject({ blocks: 40, records: 8771, replaced: 0, heights: [{ first: 840_000, last: 840_039 }] });
    expect(filesBelow(join(to, 'pulled'))).toHaveLength(41);
    expect(await builtDigest()).toBe(digest);
  });

  it('are not requested again: a second pull only compares the last of them', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    const before = tree(to);
    server.requests.length = 0;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, records: 0 });
    expect(tree(to)).toEqual(before);
    expect(server.requests.sort()).toEqual(
      [
        '/runes/v1/manifest.json',
        '/runes/v1/',
        '/runes/v1/blocks/1010/activity?offset=0&limit=1000000',
        '/runes/v1/etchings?offset=0&limit=60',
        ...[4, 5, 6, 7, 8, 9, 10, 10].map((n) => `/runes/v1/blocks/${1000 + n}/activity?offset=0&limit=1`),
      ].sort(),
    );
  });

  it('are read in pages as large as the server allows', async () => {
    shortChain();
    server.blocks.set(1005, block(1005, 700));
    server.limit = 500;
    expect(await testPull(base, to, { wanted: { from: 1001, to: undefined } })).toMatchObject({ records: 729 });
    expect(server.requests).toEqual(
      expect.arrayContaining(['0&limit=500', '500&limit=500'].map((window) => `/runes/v1/blocks/1005/activity?offset=${window}`)),
    );
  });

  it.each([
    ['a prefix', '/api'],
    ['a slash', '/'],
    ['the whole path', '/runes/v1/'],
  ])('are found at an address with %s', async (_, path) => {
    shortChain();
    if (path === '/api') {
      const proxy = createServer(async (request, response) => {
        if (request.url?.startsWith('/api/') !== true) return response.writeHead(404).end();
        const answer = await fetch(base + request.url.slice(4));
        return response.writeHead(answer.status).end(await answer.text());
      }).listen(0, '127.0.0.1');
      await once(proxy, 'listening');
      const outer = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
      await testPull(outer + path, to, { wanted: { from: 1001, to: undefined } });
      proxy.close();
    } else await testPull(base + path, to, { wanted: { from: 1001, to: undefined } });
    expect(filesBelow(join(to, 'pulled'))).toHaveLength(11);
  });

  it('without records have files too, and are fetched again only while they are new', async () => {
    shortChain();
    server.blocks.delete(1002);
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    expect(filesBelow(join(to, 'pulled'))).toHaveLength(11);
    server.requests.length = 0;
    await testPull(base, to);
    expect(server.requests.filter((target) => target.includes('/1002/'))).toEqual([]);
    expect((await leanBuild([to])).heights).toEqual([
      [1001, 1001],
      [1003, 1010],
    ]);
    // The server counts blocks up to 1030, but has not indexed them yet. Later it has records of block 1012, and then
    // of block 1011.
    server.tip = 1030;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0 });
    server.blocks.set(1012, block(1012, 70));
    expect(await testPull(base, to)).toMatchObject({ blocks: 2, heights: [{ first: 1001, last: 1012 }] });
    server.blocks.set(1011, block(1011, 70));
    expect(await testPull(base, to)).toMatchObject({ blocks: 1, replaced: 1 });
    expect(pulledHash(1011)).toBe(server.blocks.get(1011)?.[0]?.location.block_hash);
  });

  it('can be a range, a start, an end, or the last blocks of the chain', async () => {
    shortChain(1100);
    const heights = async (from: number | { last: number } | undefined, until: number | undefined) =>
      (await testPull(base, to, { wanted: { from, to: until } })).heights;
    expect(await heights(1050, 1060)).toEqual([{ first: 1050, last: 1060 }]);
    expect(await heights(undefined, 1062)).toEqual([{ first: 1050, last: 1062 }]);
    expect(await heights(1080, undefined)).toEqual([
      { first: 1050, last: 1062 },
      { first: 1080, last: 1100 },
    ]);
    // Without a wanted range, a pull continues from the first pulled block on, and fetches the blocks that are missing
    // between pulled ones.
    expect(await heights(undefined, undefined)).toEqual([{ first: 1050, last: 1100 }]);
    expect(await heights({ last: 10 }, undefined)).toEqual([{ first: 1091, last: 1100 }]);
    server.blocks.set(1101, block(1101, 3));
    expect(await heights({ last: 10 }, undefined)).toEqual([{ first: 1092, last: 1101 }]);
  });
});

describe('a chain that changes', () => {
  it('grows while blocks are fetched: the same pull fetches the new ones', async () => {
    shortChain();
    server.answered = (target) => {
      if (target.includes('/1005/') && !server.blocks.has(1011)) server.blocks.set(1011, block(1011, 2));
    };
    expect((await testPull(base, to, { wanted: { from: 1001, to: undefined } })).heights).toEqual([{ first: 1001, last: 1011 }]);
  });

  it('replaces a block between two of its pages: the pull reads the block again', async () => {
    shortChain();
    server.blocks.set(1008, block(1008, 150, 'old'));
    let swaps = 0;
    server.answered = (target) => {
      if (!target.includes('/1008/activity?offset=0&limit=60') || swaps === 3) return;
      swaps += 1;
      server.blocks.set(1008, block(1008, swaps === 2 ? 170 : 150, `new ${swaps}`));
    };
    const log = new RecordingLog();
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, log });
    expect(swaps).toBe(3);
    expect(log.notices.filter((notice) => notice.startsWith('block 1008 has')).length).toBeGreaterThanOrEqual(3);
    server.answered = () => undefined;
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole, { wanted: { from: 1001, to: undefined } });
    expect(tree(to)).toEqual(tree(whole));
  });

  it('is reorganised between two pulls: the last blocks are replaced, also by fewer', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    for (const height of [1007, 1008]) server.blocks.set(height, block(height, 65, 'fork'));
    for (const height of [1009, 1010]) server.blocks.delete(height);
    const log = new RecordingLog();
    expect(await testPull(base, to, { log })).toMatchObject({ blocks: 2, replaced: 2, heights: [{ first: 1001, last: 1008 }] });
    expect(log.infos[0]?.message).toMatch(/2 blocks to fetch, 2 pulled blocks changed\.$/);
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole, { wanted: { from: 1001, to: undefined } });
    expect(tree(to)).toEqual(tree(whole));
  });

  it('and a server that lags cause no removal', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    const before = tree(to);
    server.tip = 1005;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, replaced: 0 });
    expect(tree(to)).toEqual(before);
  });

  it.each(['fails', 'is stopped'])(
    'is reorganised, grows far, and the pull %s before all is replaced: the next one replaces the rest',
    async (how) => {
      shortChain();
      await testPull(base, to, { wanted: { from: 1001, to: undefined } });
      for (let height = 1007; height <= 1040; height += 1) server.blocks.set(height, block(height, 3, 'fork'));
      // Block 1008 has the most pages, so blocks above it may be complete before it.
      server.blocks.set(1008, block(1008, 300, 'fork'));
      const stopping = new AbortController();
      server.fault = (target) => {
        if (how === 'fails') return target.includes('/1008/activity?offset=60') ? { kind: 'status', status: 500 } : undefined;
        if (target.includes('/1008/activity?offset=120')) stopping.abort();
        return undefined;
      };
      expect((await failedPull(base, to, { retries: 1, signal: stopping.signal })).exitCode).toBe(how === 'fails' ? 3 : 130);
      server.fault = () => undefined;
      await testPull(base, to);
      const whole = join(temporaryFolder(), 'input');
      await testPull(base, whole, { wanted: { from: 1001, to: undefined } });
      expect(tree(to)).toEqual(tree(whole));
    },
  );

  it('is reorganised while it has gaps: the pull compares the highest settled block that it has', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: 1003 } });
    await testPull(base, to, { wanted: { from: 1005, to: 1010 } });
    for (let height = 1002; height <= 1011; height += 1) server.blocks.set(height, block(height, 4, 'fork'));
    expect((await failedPull(base, to)).message).toMatch(/^block 1002 differs between/);
  });

  it('is in two files if a pull died between a new file and the old one: the next pull repairs that', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    const [file = ''] = filesBelow(join(to, 'pulled')).filter((path) => path.includes('/1003-'));
    const before = tree(to);
    copyFileSync(join(to, 'pulled', file), join(to, 'pulled', file.replace(/-[0-9a-f]{16}/, '-0123456789abcdef')));
    await testPull(base, to);
    expect(tree(to)).toEqual(before);
  });

  it('has an impossible height: the pull refuses it', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    const before = tree(to);
    server.tip = 99_999_999;
    expect((await failedPull(base, to, { wanted: { from: { last: 5 }, to: undefined }, retries: 1 })).exitCode).toBe(3);
    expect(tree(to)).toEqual(before);
  });

  it('is reorganised deeper than --confirmations: nothing changes, and the message has advice', async () => {
    shortChain();
    await testPull(base, to, { wanted: { from: 1001, to: undefined } });
    const before = tree(to);
    for (let height = 1003; height <= 1010; height += 1) server.blocks.set(height, block(height, 4, 'fork'));
    const error = await failedPull(base, to);
    expect([error.exitCode, error.message]).toEqual([
      2,
      `block 1003 differs between ${to}/pulled and ${base}; the last 8 blocks would have to be replaced, but this pull replaces only the last 6`,
    ]);
    expect(error.details[0]).toMatch(/--confirmations 8 or more/);
    expect(tree(to)).toEqual(before);
    expect((await failedPull(base, to, { confirmations: 7 })).message).toMatch(/^block 1003 /);
    expect(await testPull(base, to, { confirmations: 8 })).toMatchObject({ blocks: 8, replaced: 8 });
  });

  it.each([
    ['one block deeper', 1004, []],
    ['far deeper, past blocks without records', 977, [970, 971, 975, 976, 985, 1000, 1003]],
    ['down to the first block', 971, []],
  ])('is reorganised %s: the hint names the right depth', async (_, fork, empty) => {
    shortChain(1010, 971 - empty.length);
    for (const height of empty) server.blocks.set(height, []);
    const wanted = { from: 971 - empty.length, to: undefined };
    await testPull(base, to, { wanted });
    for (let height = fork; height <= 1010; height += 1) if (!empty.includes(height)) server.blocks.set(height, block(height, 4, 'fork'));
    server.requests.length = 0;
    const { message, details } = await failedPull(base, to);
    expect(message).toMatch(new RegExp(`^block ${fork} differs`));
    // A pull that finds the fork block by block would need more requests.
    expect(server.requests.length).toBeLessThan(35);
    const [, confirmations] = /--confirmations ([0-9]+) or more/.exec(details[0] ?? '') ?? [];
    expect(Number(confirmations)).toBe(1010 - fork + 1);
    await testPull(base, to, { confirmations: Number(confirmations) });
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole, { wanted, confirmations: Number(confirmations) });
    expect(tree(to)).toEqual(tree(whole));
  });
});

describe('a server that fails', () => {
  const faults: readonly Fault[] = [
    { kind: 'status', status: 429, headers: { 'retry-after': '0' } },
    { kind: 'status', status: 429 },
    { kind: 'status', status: 500, body: '<html>no' },
    { kind: 'status', status: 503, headers: { 'retry-after': 'Fri, 01 Jan 2021 00:00:00 GMT' } },
    { kind: 'cut', after: 'nothing' },
    { kind: 'cut', after: 'half' },
    { kind: 'body', body: '{"limit":60,"offset":0,"total":3,"resul' },
    { kind: 'body', body: '<html>a proxy says hello</html>' },
    { kind: 'body', body: '{"limit":60,"offset":0,"total":9,"results":[{"rune":{}}]}' },
    { kind: 'body', body: '\ufffd' },
  ];

  it('in every way, every third time, is asked again until every answer is right', async () => {
    shortChain(1030);
    for (const height of [1004, 1010, 1020]) server.blocks.set(height, block(height, 150));
    const wanted = { from: 1001, to: undefined };
    let n = 0;
    const given = new Map<Fault, number>();
    server.fault = () => {
      n += 1;
      const fault = n % 3 === 0 ? faults[(n / 3) % faults.length] : undefined;
      if (fault !== undefined) given.set(fault, (given.get(fault) ?? 0) + 1);
      return fault;
    };
    const log = new RecordingLog();
    await testPull(base, to, { log, retries: 40, wanted });
    expect(given.size).toBe(faults.length);
    expect(log.notices.length).toBeGreaterThan(faults.length);
    // Each failure is reported in a single line.
    expect(log.notices.filter((notice) => notice.includes('\n'))).toEqual([]);
    expect(log.notices).toContainEqual(expect.stringMatching(/has an unexpected response body: results\.0\.operation: is missing/));
    server.fault = () => undefined;
    const whole = join(temporaryFolder(), 'input');
    await testPull(base, whole, { wanted });
    expect(tree(to)).toEqual(tree(whole));
  });

  it('by silence in the middle of a body is asked again', async () => {
    shortChain();
    let silences = 0;
    server.fault = (target) => {
      if (!target.includes('/1004/') || silences === 2) return undefined;
      silences += 1;
      return { kind: 'silence' };
    };
    const log = new RecordingLog();
    expect(await testPull(base, to, { log, wanted: { from: 1001, to: undefined }, timeoutMs: 300 })).toMatchObject({ blocks: 10 });
    // On a slow machine, other requests may be asked again too.
    expect(log.notices.filter((notice) => notice.includes('/1004/')).length).toBeGreaterThanOrEqual(2);
    expect(log.notices).toEqual(log.notices.map(() => expect.stringMatching(/ sent no data for 0\.3 s; trying again$/)));
  });

  it('and never recovers ends the pull, which keeps the fetched blocks', async () => {
    shortChain();
    server.fault = (target) => (target.includes('/1006/') ? { kind: 'status', status: 502 } : undefined);
    const error = await failedPull(base, to, { wanted: { from: 1001, to: undefined }, retries: 2, concurrency: 1 });
    expect([error.exitCode, error.message]).toEqual([
      3,
      expect.stringMatching(/^http:\/\/127.*\/1006\/activity was answered with status 502; tried 3 times$/),
    ]);
    expect(filesBelow(join(to, 'pulled')).map((path) => path.slice(5, 9))).toEqual(['1001', '1002', '1003', '1004', '1005']);
    server.fault = () => undefined;
    expect(await testPull(base, to)).toMatchObject({ blocks: 5, heights: [{ first: 1001, last: 1010 }] });
  });

  it('and asks for a delay gets no request until then', async () => {
    shortChain();
    const clock = new PullClock();
    const times: number[] = [];
    server.fault = () => {
      times.push(clock.now());
      return times.length === 8 ? { kind: 'status', status: 429, headers: { 'retry-after': '100' } } : undefined;
    };
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, concurrency: 1, clock });
    expect(times.length).toBeGreaterThan(10);
    expect(times).toEqual(times.map((_, i) => (i < 8 ? 0 : 100_000)));
  });

  it('and asks for a delay of hours ends the pull', async () => {
    server.fault = () => ({ kind: 'status', status: 429, headers: { 'retry-after': '7200' } });
    const error = await failedPull(base, to);
    expect([error.exitCode, error.message]).toEqual([
      3,
      'the server asks to retry in 120 minutes, but a pull waits for 15 minutes at most',
    ]);
  });

  it.each([
    ['wants a key', { kind: 'status', status: 401 }, 2, /status 401: the API key is missing or not accepted/],
    ['is another', { kind: 'status', status: 404 }, 2, /status 404$/],
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
    server.fault = () => fault;
    const error = await failedPull(base, to);
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.details).not.toEqual([]);
  });

  it.each([
    ['no height', '{"server_version":"other","status":"ready"}', 2, /^http:\/\/127.* has no blocks: its status has no block_height$/],
    ['null as its height', '{"block_height":null}', 2, /has no blocks: its status has no block_height$/],
    ['a text as its height', '{"block_height":"7"}', 3, /has an unexpected response body: block_height: Invalid input: expected number/],
    ['null', 'null', 3, /has an unexpected response body: Invalid input: expected object/],
    ['nothing', '', 3, /has an unexpected response body: not valid JSON; tried 2 times$/],
  ])('with status %s is explained', async (_, body, code, message) => {
    server.fault = (target) => (target.endsWith('manifest.json') ? { kind: 'status', status: 404 } : { kind: 'body', body });
    const error = await failedPull(base, to, { retries: 1 });
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.message).not.toContain('\n');
    expect(error.details).toHaveLength(1);
  });

  it('and cannot be reached is explained', async () => {
    await server.close();
    const error = await failedPull(base, to, { retries: 1 });
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
    shortChain();
    server.fault = () => (server.requests.length % 3 === 0 ? { kind: 'status', status: 503 } : undefined);
    const { signal } = new AbortController();
    const client = new Client({ headers: {}, rate: 0, retries: 5, timeoutMs: 500, pauseMs: 1, signal, onRetry: () => undefined });
    for (let n = 0; n < 20; n += 1) await client.get(`${base}/runes/v1/`, JSON.parse);
    expect(server.requests.length).toBeGreaterThan(25);
    expect(hangingOn(signal)).toBe(0);
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, signal });
    expect(hangingOn(signal)).toBe(0);
  });

  it('with many parallel requests causes no warnings of Node', async () => {
    shortChain(1040);
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on('warning', keep);
    await testPull(base, to, { wanted: { from: 1001, to: undefined }, concurrency: 30 });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', keep);
    expect(warnings).toEqual([]);
  });

  it.skipIf(!existsSync('/dev/full'))('reports a full disk, and does not repeat requests', async () => {
    const signal = new AbortController().signal;
    const client = new Client({ headers: {}, rate: 0, retries: 5, timeoutMs: 500, pauseMs: 1, signal, onRetry: () => undefined });
    const failure = await client.save(`${base}/runes/v1/`, '/dev/full', 1e6).catch((error: unknown) => error);
    expect([server.requests.length, failure]).toEqual([1, expect.objectContaining({ message: 'the disk of /dev is full', exitCode: 3 })]);
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

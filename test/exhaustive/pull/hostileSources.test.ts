/**
 * Tests sources that send endless data, or that claim more blocks or records than a chain can have. Pulls and
 * comparisons refuse these sources, and use little memory. Each command runs in a process with a small heap, and would
 * crash if the claims of a source could make a list longer and longer.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { RUNNER } from '../../support/cli.ts';
import { block } from '../../support/pull.ts';
import { hex, ndjson } from '../../support/records.ts';

/** Size of V8's heap in megabytes. A pull of few blocks needs 55 MB. */
const HEAP = 122;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Returns the body of the answer to a request, which gets status 200. Undefined means that the request gets a 404. */
type Answers = (target: string) => string | Buffer | undefined;

async function listen(answers: Answers): Promise<string> {
  server = createServer((request, response) => {
    const body = answers(request.url ?? '');
    response.writeHead(body === undefined ? 404 : 200).end(body ?? '{"error":"no"}');
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs a command in a process with a small heap. */
async function limited(command: string, args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
  const child = spawn(process.execPath, [`--max-old-space-size=${HEAP}`, RUNNER, command, ...args], {
    cwd: temporaryFolder(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = `${stderr}${chunk.toString()}`.slice(-4000);
  });
  return { code: await new Promise<number | null>((resolve) => child.on('close', resolve)), stderr };
}

/** Runs a pull. The process must end with this exit code and message. */
async function expectRefused(base: string, code: number, message: RegExp, retries = 1, more: readonly string[] = []): Promise<void> {
  const args = ['--from', base, '--to', 'in', '--rate', '0', '--retries', String(retries), ...more];
  const found = await limited('pull', args);
  expect([found.code, found.stderr]).toEqual([code, expect.stringMatching(message)]);
}

/** Returns a manifest of layout `files` with these changes. */
async function manifestWith(changes: object, layout: 'files' | 'archive' = 'files'): Promise<{ out: string; text: string }> {
  const work = temporaryFolder();
  writeFiles(work, { 'in/a.ndjson': ndjson(block(100, 3)) });
  await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], layout });
  const manifest = JSON.parse(readFileSync(join(work, 'out/runes/v1/manifest.json'), 'utf8')) as object;
  return { out: join(work, 'out'), text: JSON.stringify({ ...manifest, tip: undefined, ...changes }) };
}

const MOST = 9_007_199_254_740_991;
const million = { blocks: 1_000_000, transactions: 1_000_000, records: 1_000_000 };

it.each([
  [
    'a range that ends above all heights, before others',
    {
      heights: [
        [0, 9e15],
        [1, 2],
      ],
    },
    /the range of heights 0\.\.9000000000000000/,
  ],
  ['a range that ends below its beginning', { heights: [[5, 2]] }, /the range of heights 5\.\.2/],
  [
    'ranges that overlap',
    {
      heights: [
        [1, 900_000],
        [5, 900_001],
      ],
    },
    /the range of heights 5\.\.900001/,
  ],
  [
    'a range that was read and has no end',
    { sources: [{ rules: 'ord', blocks: [[0, MOST]] }] },
    /the range of heights 0\.\.9007199254740991/,
  ],
  [
    'more ranges than can be joined',
    { sources: [{ rules: 'ord', blocks: Array.from({ length: 10_001 }, (_, i) => [2 * i, 2 * i]) }] },
    /has 10001 ranges of blocks/,
  ],
  [
    'more blocks than a list of them has',
    { ...million, blocks: 1_000_001, transactions: 1_000_001, records: 1_000_001, heights: [[0, 1_000_000]] },
    /lists 1000001 blocks/,
  ],
] as const)('a mirror with %s is refused, also in comparisons', async (_, changes, message) => {
  const { text, out } = await manifestWith(changes);
  const base = await listen((target) => (target.endsWith('manifest.json') ? text : undefined));
  await expectRefused(base, 2, message);
  const own = (await manifestWith({})).out;
  expect(await limited('verify', ['--dir', own, '--against', base])).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  writeFiles(out, { 'runes/v1/manifest.json': text });
  expect(await limited('verify', ['--dir', own, '--against', out])).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
});

it('a mirror that lists more blocks than its manifest has is refused', async () => {
  const { text } = await manifestWith({ ...million, blocks: 5000, heights: [[0, 9_999_999]] });
  const digests = (first: number) =>
    JSON.stringify({
      blocks: Array.from({ length: 1000 }, (_, i) => ({ height: first + i, hash: hex(`${first + i}`), records: 1, digest: hex('') })),
    });
  let files = 0;
  const base = await listen((target) => {
    if (target.endsWith('manifest.json')) return text;
    const [, first] = /digests\/([0-9]+)\.json/.exec(target) ?? [];
    files += 1;
    return first === undefined ? undefined : digests(Number(first));
  });
  await expectRefused(base, 3, /has block digests that do not match the digest in its manifest/);
  expect(files).toBeLessThan(20);
});

/** Returns answers like a server of the API whose tip is block 840000. */
const api =
  (others: Answers): Answers =>
  (target) =>
    target.endsWith('manifest.json') ? undefined : target.endsWith('/v1/') ? '{"block_height":840000}' : others(target);

it('a server whose tip is far above is refused before a list of its blocks fills the memory', async () => {
  const page = (height: number) => JSON.stringify({ limit: 1, offset: 0, total: 3, results: block(height, 1) });
  const base = await listen((target) => {
    if (target.endsWith('manifest.json')) return undefined;
    if (target.endsWith('/v1/')) return '{"block_height":9999999}';
    const [, height] = /blocks\/([0-9]+)\/activity/.exec(target) ?? [];
    return height === undefined ? undefined : page(Number(height));
  });
  await expectRefused(base, 2, /the source has more than 1000000 blocks to fetch, up to height 9999999/);
});

it('a server with ever more valid pages of a block makes a pull use as little memory as one page', async () => {
  // A record has about 800 bytes. As objects, all of the records would take more than the heap.
  const [size, most] = [5000, 100_000];
  const page = (offset: number) => {
    const results = block(840_000, size).map((record, i) => ({
      ...record,
      location: { ...record.location, tx_index: most - offset - i, tx_id: hex(`tx ${offset} ${i}`) },
    }));
    return JSON.stringify({ limit: size, offset, total: 2 ** 24 - 1, results });
  };
  let last = 0;
  const base = await listen(
    api((target) => {
      const [, offset, limit] = /activity\?offset=([0-9]+)&limit=([0-9]+)/.exec(target) ?? [];
      if (offset === undefined) return undefined;
      if (Number(limit) === 1) return JSON.stringify({ limit: 1, offset: 0, total: 2 ** 24 - 1, results: block(840_000, 1) });
      last = Number(offset);
      // A pull does not repeat a request after a 404, so a 404 ends the pull.
      return last < most ? page(last) : undefined;
    }),
  );
  await expectRefused(base, 2, /was answered with status 404/, 3);
  expect(last).toBe(most);
}, 600_000);

it.each([
  [
    'more records than any block has',
    JSON.stringify({ limit: 60, total: MOST, results: block(840_000, 60) }),
    2,
    /has 9007199254740991 records, more than 16777215/,
  ],
  [
    'brackets',
    `{"limit":60,"total":60,"results":[${'[],'.repeat(2_500_000)}[]]}`,
    3,
    /it has \d+ JSON values, more than the \d+ that a page/,
  ],
  ['wrong records', `{"limit":60,"total":60,"results":[${'{"a":"aaaaaaaaaaaaaaaaaa"},'.repeat(300_000)}{}]}`, 3, /results\.0\./],
  ['more bytes than a page has', ' '.repeat(30 * 1024 * 1024), 2, /answers with more than [0-9]+ MB/],
] as const)('a server with a page of %s is refused', async (_, body, code, message) => {
  const small = JSON.stringify({ limit: 5000, offset: 0, total: 1, results: block(840_000, 1) });
  const base = await listen(
    api((target) => (/limit=1(?:000000)?$/.test(target) ? small : target.includes('/activity') ? body : undefined)),
  );
  await expectRefused(base, code, message, 0);
});

it('a server with endless error answers gets no further requests, and can send little of them', async () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  let sent = 0;
  server = createServer((request, response) => {
    response.writeHead(request.url?.endsWith('/v1/') === true ? 403 : 404);
    const more = () => {
      while (!response.destroyed && response.write(megabyte)) sent += 1;
    };
    response.on('drain', more);
    more();
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  await expectRefused(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 2, /the API key is missing or not accepted/);
  // The system keeps some megabytes for each connection.
  expect(sent).toBeLessThan(100);
});

it('a server with ever more etchings makes a pull use little memory for each', async () => {
  const none = { amount: null, cap: null, height_start: null, height_end: null, offset_start: null, offset_end: null };
  const etching = (number: number) => ({
    ...{
      id: `${840_000 - (number % 1000)}:${number}`,
      name: 'A'.repeat(26),
      spaced_name: 'A'.repeat(26),
      number,
      divisibility: 0,
      symbol: '¤',
    },
    ...{ turbo: false, mint_terms: none, supply: { premine: '0' } },
    location: { block_hash: hex('b'), block_height: 840_000, tx_id: hex(`${number}`), tx_index: 1, timestamp: 1 },
  });
  const [size, most] = [1000, 90_000];
  const small = JSON.stringify({ limit: size, offset: 0, total: 1, results: block(840_000, 1) });
  const base = await listen(
    api((target) => {
      const [, offset = '0'] = /offset=([0-9]+)/.exec(target) ?? [];
      if (target.includes('/activity')) return small;
      const results = Array.from({ length: Number(offset) < most ? size : 0 }, (_, i) => etching(most - Number(offset) - i));
      return JSON.stringify({ limit: size, offset: 0, total: Number(offset) >= most ? 10_000_001 : 10_000_000, results });
    }),
  );
  await expectRefused(base, 2, /has 10000001 etchings, more than 10000000/, 3);
}, 600_000);

it('a server that claims more etchings than any chain has is refused', async () => {
  const base = await listen(
    api((target) =>
      target.includes('/activity')
        ? JSON.stringify({ limit: 60, offset: 0, total: 1, results: block(840_000, 1) })
        : JSON.stringify({ limit: 60, total: MOST, results: [] }),
    ),
  );
  await expectRefused(base, 2, /has 9007199254740991 etchings, more than 10000000/);
});

/**
 * Tests sources that send endless data, or that claim more blocks or records than a chain can have. Pulls and comparisons refuse these
 * sources, and use little memory. Each command runs in a process with a small heap, and would crash if the claims of a source could make a
 * list longer and longer.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { Client } from '../../../src/pull/httpClient.ts';
import { readListing } from '../../../src/pull/mirror/mirrorSource.ts';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { RUNNER } from '../../support/cli.ts';
import { hex, ndjson, record } from '../../support/records.ts';
import { type Listening, listening } from '../../support/server.ts';

/** Size of V8's heap in megabytes. A pull of few blocks needs 55 MB. */
const HEAP = 122;

let open: Listening | undefined;
afterEach(() => open?.close());

/** Starts a server, and returns its URL. */
async function listen(answer: RequestListener): Promise<string> {
  open = await listening(createServer(answer));
  return open.url;
}

/** Answers with the body of a target, or with status 404 if it is undefined. */
const answering =
  (bodyOf: (target: string) => string | Buffer | undefined): RequestListener =>
  (request, response) => {
    const body = bodyOf(request.url ?? '');
    response.writeHead(body === undefined ? 404 : 200).end(body ?? '{"error":"no"}');
  };

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
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stderr };
}

/** Runs a pull, which must end with exit code 2 and this message. */
async function expectRefused(base: string, message: RegExp): Promise<void> {
  const found = await limited('pull', ['--from', base, '--to', 'in', '--rate', '0', '--retries', '1']);
  expect([found.code, found.stderr]).toEqual([2, expect.stringMatching(message)]);
}

/** A mirror that is no lie. */
const own = join(temporaryFolder(), 'out');
beforeAll(async () => {
  const input = temporaryFolder();
  writeFiles(input, { 'a.ndjson': ndjson([record(100, 1)]) });
  await testBuild(own, { inputs: [input] });
});

/** Returns the manifest with these changes. */
function manifestWith(changes: object): string {
  const manifest = JSON.parse(readFileSync(join(own, 'runes/v1/manifest.json'), 'utf8')) as object;
  return JSON.stringify({ ...manifest, tip: undefined, ...changes });
}

const client = () =>
  new Client({
    ...{ rate: 0, retries: 1, timeoutMs: 5000, pauseMs: 1, onRetry: () => undefined },
    signal: new AbortController().signal,
  });

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
  const text = manifestWith(changes);
  const base = await listen(answering((target) => (target.endsWith('manifest.json') ? text : undefined)));
  await expectRefused(base, message);
  const folder = temporaryFolder();
  writeFiles(folder, { 'runes/v1/manifest.json': text });
  for (const other of [base, folder])
    expect(await limited('verify', ['--against', own, '--against', other])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(message),
    });
});

it('a mirror that lists more blocks than its manifest has is refused', async () => {
  const text = manifestWith({ ...million, blocks: 5000, heights: [[0, 9_999_999]] });
  const digests = (first: number) =>
    JSON.stringify({
      blocks: Array.from({ length: 1000 }, (_, i) => ({ height: first + i, hash: hex(`${first + i}`), records: 1, digest: hex('') })),
    });
  let files = 0;
  const bodyOf = (target: string) => {
    if (target.endsWith('manifest.json')) return text;
    const [, first] = /digests\/([0-9]+)\.json/.exec(target) ?? [];
    files += 1;
    return first === undefined ? undefined : digests(Number(first));
  };
  await expect(readListing(await listen(answering(bodyOf)), client())).rejects.toThrow(
    /has block digests that do not match the digest in its manifest/,
  );
  expect(files).toBeLessThan(20);
});

it('a mirror whose digests are not those of its manifest is refused', async () => {
  const text = manifestWith({ digest: hex('another') });
  const base = await listen(answering((target) => (target.endsWith('manifest.json') ? text : readFileSync(join(own, target)))));
  await expect(readListing(base, client())).rejects.toThrow(/has block digests that do not match the digest in its manifest/);
});

it('a server with endless error answers gets no further requests, and can send little of them', async () => {
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  let sent = 0;
  const base = await listen((_, response) => {
    response.writeHead(403);
    const more = () => {
      while (!response.destroyed && response.write(megabyte)) sent += 1;
    };
    response.on('drain', more);
    more();
  });
  await expectRefused(base, /is not a mirror of this program/);
  // The system keeps some megabytes for each connection.
  expect(sent).toBeLessThan(100);
});

/** Tests the client of a Bitcoin Core node. A fake node answers and fails like Core. */
import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BuildError, CliError, InputError } from '../../../src/errors.ts';
import { BlockParser } from '../../../src/pull/node/blockParser.ts';
import { BitcoinNode, type NodeOptions } from '../../../src/pull/node/coreNode.ts';
import { SpentOutputs } from '../../../src/pull/node/spentOutputs.ts';
import { hashText } from '../../../src/runes/bytes.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { compact } from '../../rehearsal/blockWriter.ts';
import { temporaryFolder } from '../../support/build.ts';
import { chainOf, FAULTS, type FakeBlock, FakeNode, type FakeNodeOptions, type Fault, startNodeProcess } from '../../support/fakeNode.ts';
import { limitsWith, TEST_LIMITS } from '../../support/limits.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { taproot } from '../../support/runeBlocks.ts';
import { listening } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const FIRST = 840_000;

/** Two blocks that create outputs, an empty block, and a block with 24 transactions that spend these outputs. */
const made = chainOf(FIRST, [
  [{ inputs: [{ outpoint: outpointOf('11'.repeat(32), 0) }], outputs: [taproot(1), taproot(2)] }],
  [{ inputs: [{ outpoint: outpointOf('22'.repeat(32), 0) }], outputs: Array.from({ length: 24 }, (_, i) => taproot(10 + i)) }],
]);
const [one, two] = made as [FakeBlock, FakeBlock];
const txidsOf = (bytes: Uint8Array): string[] => {
  const { txids, transactions } = readBlock(bytes, hash256);
  return transactions.map((_, index) => hashText(txids, 32 * index));
};
const [, early = ''] = txidsOf(one.bytes);
const [, late = ''] = txidsOf(two.bytes);
const CHAIN = [
  ...made,
  ...chainOf(
    FIRST + 2,
    [
      [],
      [
        { inputs: [{ outpoint: outpointOf(late, 0) }, { outpoint: outpointOf(early, 1) }], outputs: [taproot(3)] },
        ...Array.from({ length: 23 }, (_, i) => ({ inputs: [{ outpoint: outpointOf(late, 1 + i) }], outputs: [taproot(4)] })),
      ],
    ],
    two.hash,
  ),
];
const LAST = CHAIN.at(-1) as FakeBlock;
const size = LAST.bytes.length;
const SPENDER = readBlock(LAST.bytes, hash256);

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** Messages that the client shows to users. */
let notices: string[] = [];

async function fakeNode(options: FakeNodeOptions = {}): Promise<FakeNode> {
  const node = await FakeNode.start(CHAIN, options);
  open.push(node);
  return node;
}

async function connect(url: string, options: Partial<NodeOptions> = {}): Promise<BitcoinNode> {
  notices = [];
  const node = await BitcoinNode.open({
    url: new URL(url),
    concurrency: 4,
    limits: TEST_LIMITS,
    retries: 3,
    timeoutMs: 5000,
    pauseMs: 1,
    signal: new AbortController().signal,
    onNotice: (message) => notices.push(message),
    ...options,
  });
  open.push(node);
  return node;
}

/** Returns the error of a promise. Its text has every message that users see. */
async function errorOf(promise: Promise<unknown>): Promise<CliError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason) => reason,
  );
  if (!(error instanceof CliError)) throw new Error(`no error for users: ${String(error)}`);
  return error;
}

/** Number of timers that keep the process running. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

// Runs first, because a timer of an earlier test that ends meanwhile would hide a new timer.
it('leaves no timer that keeps a command running', async () => {
  const before = timers();
  const node = await connect((await fakeNode()).url, { timeoutMs: 1_000_000 });
  for (let round = 0; round < 5; round++) await node.readBlock(LAST.hash);
  await until(() => timers() <= before);
});

it('that sends far more than was asked for is refused before it fills the memory', async () => {
  const server = createServer(({ url = '' }, response) => {
    if (!url.includes('spenttxouts')) return void response.end('{}');
    for (let i = 0; i < 3; i++) response.write(Buffer.alloc(1e6));
    response.end();
  });
  const { url, close } = await listening(server);
  open.push({ close });
  expect((await errorOf(connect(url, { retries: 0 }))).message).toMatch(/has \d+ bytes or more; the largest valid answer has \d+/);
});

describe('a node', () => {
  it('returns its chain, hashes, blocks and spent outputs', async () => {
    const fake = await fakeNode({ headers: FIRST + 9 });
    const node = await connect(fake.url);
    expect(node.name).toBe(`Bitcoin Core ${new URL(fake.url).host}`);
    expect(await node.chain()).toEqual({
      network: 'main',
      blocks: FIRST + 3,
      headers: FIRST + 9,
      bestHash: LAST.hash,
      isSyncing: false,
    });
    for (const { hash, height, bytes } of CHAIN) {
      expect(await node.hashAt(height)).toBe(hash);
      const block = await node.readBlock(hash);
      expect([block.hash, Buffer.compare(block.bytes, bytes)]).toEqual([hash, 0]);
    }
    expect(await node.hashAt(FIRST + 4)).toBeUndefined();
    const wanted = [
      { transaction: 2, input: 0 },
      { transaction: 1, input: 1 },
      { transaction: 1, input: 0 },
    ];
    expect(await node.spentScripts(SPENDER, wanted)).toEqual([11, 2, 10].map((key) => new Uint8Array(taproot(key))));
    expect(await node.spentScripts(SPENDER, [])).toEqual([]);
  });

  it('reports its sync, its pruned blocks and its network', async () => {
    const fake = await fakeNode({ isSyncing: true, prunedBelow: FIRST + 1, network: 'signet' });
    const node = await connect(fake.url);
    expect(await node.chain()).toMatchObject({ isSyncing: true, network: 'signet' });
    const error = await errorOf(node.readBlock(one.hash));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(
      /^Bitcoin Core 127\.0\.0\.1:\d+ has pruned block [0-9a-f]{64}, which is needed \(".*not available \(pruned data\)"\)$/,
    );
    fake.options.network = 'test';
    expect((await errorOf(node.chain())).message).toMatch(/follows the network "test", which is not supported$/);
  });

  it('follows a reorganisation and a tip that goes back', async () => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    const [other] = chainOf(FIRST + 2, [[{ inputs: [{ outpoint: outpointOf(early, 0) }], outputs: [taproot(9)] }]], two.hash) as [
      FakeBlock,
    ];
    fake.replace([one, two, other]);
    expect((await node.chain()).bestHash).toBe(other.hash);
    expect(await node.hashAt(FIRST + 2)).toBe(other.hash);
    expect(await node.hashAt(FIRST + 3)).toBeUndefined();
    // Core still returns the blocks of an abandoned branch, and so must the client.
    expect(Buffer.compare((await node.readBlock(LAST.hash)).bytes, LAST.bytes)).toBe(0);
    fake.setTip(FIRST);
    expect(await node.chain()).toMatchObject({ blocks: FIRST, bestHash: one.hash });
    expect(await node.hashAt(FIRST + 1)).toBeUndefined();
    expect(notices).toEqual([]);
  });

  // Each fault affects at least one answer for a block of 100 transactions, and then ends. The client must retry.
  const passing: [string, Fault, RegExp][] = [
    ['longer than its length', { length: -10 }, /is damaged: the block ends inside of|failed: Parse Error/],
    [
      'longer than any block',
      { status: 200, body: Buffer.alloc(8_100_000) },
      /has 8100000 bytes or more; the largest valid answer has 4000000/,
    ],
    ['empty', { status: 200 }, /is cut off: it has 0 bytes/],
    ['with a wrong byte in its header', { flip: 40 }, /is damaged: its header has the hash [0-9a-f]{64}/],
    [
      'with a wrong byte in a transaction',
      { flip: size - 30 },
      /is damaged: block [0-9a-f]{64} has transactions that do not match the merkle root in its header/,
    ],
    ['refused by a full work queue', FAULTS.workQueue, /was answered with status 503 "Work queue depth exceeded";/],
    ['refused by a full work queue, twice', { ...FAULTS.workQueue, times: 2 }, /status 503/],
    ['refused with 500', { status: 500, body: 'Internal bug detected' }, /was answered with status 500 "Internal bug detected"/],
  ];
  it.each(passing)('is asked again for a block that is %s', async (_, fault, notice) => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    notices = [];
    // Uses a copy, because the fake node counts down `times` in the fault.
    fake.faults.push({ on: /block/, ...fault });
    const block = await node.readBlock(LAST.hash);
    expect(block.transactions.length).toBe(25);
    expect(notices.length).toBe(fault.times ?? 1);
    expect(notices[0]).toMatch(new RegExp(`^block ${LAST.hash} of Bitcoin Core 127.0.0.1:\\d+ `));
    expect(notices[0]).toMatch(/; trying again$/);
    expect(notices[0]).toMatch(notice);
    expect(fake.faults).toEqual([]);
    // The client must close the connection of an aborted answer.
    await until(async () => (await fake.connections()) <= 1);
  });

  it('is awaited while it starts, with one notice', async () => {
    const fake = await fakeNode();
    fake.faults.push({ ...FAULTS.warmingUp, times: 20 });
    const node = await connect(fake.url, { retries: 0 });
    expect(notices).toEqual([`${node.name} is starting ("Verifying blocks…"); waiting for it`]);
    notices = [];
    fake.faults.push({ ...FAULTS.warmingUp, times: 5 });
    expect((await node.chain()).blocks).toBe(FIRST + 3);
    expect(notices.length).toBe(1);
  });

  const final: [string, Fault, RegExp][] = [
    ['redirects', FAULTS.redirect, /^http:\S+ redirects to https:\/\/elsewhere.example$/],
    ['answers with a web page', FAULTS.html, /is not Bitcoin Core: it answers with a web page/],
    ['refuses with 403', FAULTS.forbidden, /refuses requests of this machine \(status 403\)/],
  ];
  it.each(final)('causes an immediate failure if it %s', async (_, fault, message) => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    notices = [];
    fake.faults.push({ ...fault, times: 9 });
    const error = await errorOf(node.readBlock(LAST.hash));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(message);
    expect(error.details.length).toBeGreaterThan(0);
    expect(notices).toEqual([]);
  });

  it('causes a failure after the last retry, with the reason', async () => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    fake.forget(LAST.hash);
    const gone = await errorOf(node.readBlock(LAST.hash));
    expect(gone).toBeInstanceOf(BuildError);
    expect(gone.message).toMatch(/^block [0-9a-f]{64} of Bitcoin Core \S+ was answered with .* not found"; tried 4 times$/i);
    await fake.close();
    notices = [];
    expect((await errorOf(node.chain())).message).toMatch(/^the chain of Bitcoin Core \S+ failed: connect ECONNREFUSED .*; tried 4 times$/);
    await errorOf(node.readBlock(LAST.hash));
    // The first request may use a connection that the node has closed.
    expect(notices.slice(-1)).toEqual([
      expect.stringMatching(/ECONNREFUSED .*; does bitcoind run, with -server, on this port\? Trying again$/),
    ]);
    expect(notices.length).toBeLessThanOrEqual(2);
  });

  it('gets no more requests after the client is closed', async () => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    notices = [];
    fake.faults.push({ on: /block/, stall: 10 });
    const asking = Promise.allSettled([node.readBlock(LAST.hash)]);
    await until(() => fake.faults.length === 0);
    node.close();
    expect(await asking).toMatchObject([{ status: 'rejected', reason: { message: 'The client is destroyed' } }]);
    expect(notices).toEqual([]);
    await until(async () => (await fake.connections()) === 0);
  });
});

it('is asked again for spent outputs that do not match the block', async () => {
  const fake = await fakeNode();
  const node = await connect(fake.url);
  fake.faults.push({ on: /spenttxouts/, status: 200, body: compact(3) }, { on: /spenttxouts/, status: 404, body: 'undo not available' });
  fake.calls.length = 0;
  expect(await node.spentScripts(SPENDER, [{ transaction: 1, input: 0 }])).toEqual([new Uint8Array(taproot(10))]);
  expect(fake.calls).toEqual(Array(3).fill(`/rest/spenttxouts/${LAST.hash}.bin`));
  expect(notices).toEqual([
    expect.stringMatching(/are damaged: has 3 transactions or inputs instead of 25; trying again$/),
    expect.stringMatching(/was answered with status 404 "undo not available"; trying again$/),
  ]);
});

it('spent outputs are read from parts of any size', () => {
  const wanted = [
    { transaction: 24, input: 0 },
    { transaction: 1, input: 1 },
  ];
  const output = (script: Uint8Array) => Buffer.concat([new Uint8Array(8), compact(script.length), script]);
  const long = new Uint8Array(10_000).fill(7);
  const others = Array.from({ length: 22 }, () => Buffer.concat([compact(1), output(taproot(1))]));
  const bytes = Buffer.concat([
    compact(25),
    compact(0),
    compact(2),
    output(taproot(1)),
    output(long),
    ...others,
    compact(1),
    output(taproot(5)),
  ]);
  for (const size of [1, 2, 3, 9, 50, 9_999, bytes.length]) {
    const outputs = new SpentOutputs(SPENDER, wanted);
    for (let at = 0; at < bytes.length; at += size) outputs.feed(bytes.subarray(at, at + size));
    expect(outputs.end().map((script) => Buffer.from(script))).toEqual([taproot(5), long].map((script) => Buffer.from(script)));
  }
  // Answers with another length than expected: a future version of Core may add a field, which the client must not misread.
  const misfits = [
    bytes.subarray(0, -1),
    Buffer.concat([bytes, compact(0)]),
    bytes.subarray(1),
    Buffer.concat([compact(25), compact(1), bytes.subarray(2)]),
  ];
  for (const misfit of misfits) {
    expect(() => {
      const outputs = new SpentOutputs(SPENDER, wanted);
      outputs.feed(misfit);
      outputs.end();
    }).toThrow();
  }
});

it('a node with a queue of one gets no parallel requests with --concurrency 1', async () => {
  const fake = await fakeNode({ queue: 1 });
  // Answers take a while, so that parallel requests would meet in the queue.
  fake.faults.push({ delay: 5, times: Number.MAX_SAFE_INTEGER });
  const node = await connect(fake.url, { concurrency: 1, retries: 0 });
  await Promise.all(Array.from({ length: 8 }, () => node.readBlock(LAST.hash)));
  expect(fake.refused).toBe(0);
});

it('is asked again for unspent outputs that do not match the request', async () => {
  const fake = await fakeNode();
  const node = await connect(fake.url);
  const answer = (bitmap: string, count: number) => {
    const coin = { height: 1, scriptPubKey: { hex: '51' } };
    return { on: /getutxos/, status: 200, body: JSON.stringify({ chaintipHash: LAST.hash, bitmap, utxos: Array(count).fill(coin) }) };
  };
  fake.faults.push(answer('1', 1), answer('11', 1), answer('01', 1));
  expect(await node.coins([`${late}:0`, `${early}:1`])).toEqual({
    tip: LAST.hash,
    coins: [undefined, { height: 1, script: Uint8Array.of(0x51) }],
  });
  expect(notices).toEqual([expect.stringMatching(/are 1 instead of 2; trying again$/), expect.stringMatching(/unexpected/)]);
});

it('a node that started from a snapshot lacks old blocks, and the message says what to do', async () => {
  const fake = await fakeNode({ notDownloadedBelow: FIRST + 2 });
  const node = await connect(fake.url);
  const error = await errorOf(node.readBlock(one.hash));
  expect(error.exitCode).toBe(3);
  expect(error.message).toMatch(
    /has not yet downloaded block [0-9a-f]{64}, which is needed \(".*not available \(not fully downloaded\)"\)$/,
  );
  expect(error.details.join()).toMatch(/assumeutxo.*Wait for it/);
  expect((await node.readBlock(LAST.hash)).hash).toBe(LAST.hash);
});

it('a node that stops and starts again is awaited', async () => {
  const fake = await fakeNode();
  const node = await connect(fake.url);
  notices = [];
  fake.faults.push({ ...FAULTS.stopping }, { ...FAULTS.reset }, { ...FAULTS.loading, times: 9 }, { ...FAULTS.warmingUp, times: 9 });
  expect((await node.chain()).blocks).toBe(LAST.height);
  expect(notices).toEqual([
    expect.stringMatching(/is stopping, or too busy; trying again$/),
    expect.stringMatching(/other side closed; trying again$/),
    expect.stringMatching(/is starting \("Loading P2P addresses…"\); waiting for it$/),
  ]);
});

describe('a node is refused', () => {
  it.each<[string, FakeNodeOptions, Fault[], RegExp]>([
    ['without REST', { rest: false }, [], /does not answer REST: rest=1 is missing in bitcoin.conf, or this is not the node's port$/],
    ['before version 30', { hasSpentOutputs: false }, [], /has no rest\/spenttxouts: use Bitcoin Core 30 or newer$/],
    ['if it answers a web page', {}, [FAULTS.html], /^the server at http:\S+ is not Bitcoin Core: it answers with a web page$/],
    ['after its start', { rest: false }, [{ ...FAULTS.reset }, { ...FAULTS.stopping }], /rest=1 is missing/],
  ])('%s', async (_, served, faults, message) => {
    const fake = await fakeNode(served);
    fake.faults.push(...faults);
    const { signal } = new AbortController();
    const error = await errorOf(connect(fake.url, { signal }));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(message);
    expect(notices).toHaveLength(faults.length - (message.source.includes('web page') ? 1 : 0));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('if an older version answers after a restart', async () => {
    const fake = await fakeNode();
    const node = await connect(fake.url);
    fake.options.hasSpentOutputs = false;
    expect((await errorOf(node.spentScripts(SPENDER, [{ transaction: 1, input: 0 }]))).message).toMatch(/use Bitcoin Core 30 or newer$/);
  });

  it('if it has no TLS at an https URL', async () => {
    const fake = await fakeNode();
    expect((await errorOf(connect(fake.url.replace('http:', 'https:'), { retries: 0 }))).message).toMatch(
      /^the chain of Bitcoin Core .* failed: /,
    );
  });

  it('with a notice if it is asked over plain HTTP from another machine', async () => {
    await errorOf(connect('http://node.invalid:8332', { retries: 0 }));
    expect(notices).toEqual([
      expect.stringMatching(/^Bitcoin Core node.invalid:8332 is asked over plain HTTP: others in the network could/),
    ]);
  });
});

describe('a thread parses blocks after the first ones', () => {
  const limits = limitsWith({ blocksBeforeThread: 1 });

  it('like the main thread, and says which blocks are damaged', async () => {
    const fake = await fakeNode();
    const node = await connect(fake.url, { limits });
    for (const { hash, bytes } of [...CHAIN, ...CHAIN])
      expect(await node.readBlock(hash)).toEqual(readBlock(Uint8Array.from(bytes), hash256));
    fake.faults.push({ on: /block/, flip: size - 30 });
    expect((await node.readBlock(LAST.hash)).hash).toBe(LAST.hash);
    expect(notices).toEqual([expect.stringMatching(/is damaged: block [0-9a-f]{64} has transactions that do not match the merkle root/)]);
  });

  it('and blocks that it has not answered when it ends are errors', async () => {
    const parser = new BlockParser(limits);
    open.push(parser);
    const read = () => parser.read(Buffer.from(LAST.bytes));
    await read();
    const unanswered = errorOf(read());
    parser.close();
    expect((await unanswered).message).toBe('the thread that parses blocks has ended');
    expect((await read()).hash).toBe(LAST.hash);
  });
});

it('the fake node also runs as a process, with blocks of a folder', async () => {
  const folder = temporaryFolder();
  for (const { height, bytes } of CHAIN) writeFileSync(join(folder, `${height}.bin`), bytes);
  const fake = await startNodeProcess(folder);
  open.push({ close: () => fake.stop() });
  const node = await connect(fake.url);
  expect((await node.readBlock(LAST.hash)).hash).toBe(LAST.hash);
  expect(await node.spentScripts(SPENDER, [{ transaction: 2, input: 0 }])).toEqual([new Uint8Array(taproot(11))]);
  fake.tell('fault {"on":"chaininfo","status":500}');
  fake.tell(`tip ${FIRST}`);
  await until(async () => (await node.chain()).blocks === FIRST);
  expect(notices).toEqual([expect.stringMatching(/was answered with status 500; trying again$/)]);
});

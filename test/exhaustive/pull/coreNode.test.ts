/** Tests the client of a Bitcoin Core node. A fake node answers and fails like Core. */
import { getEventListeners } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BuildError, CliError, InputError } from '../../../src/errors.ts';
import { Transport } from '../../../src/pull/httpConnections.ts';
import { BitcoinNode } from '../../../src/pull/node/coreNode.ts';
import { hash256With } from '../../../src/pull/node/hash256.ts';
import { JsonPicker } from '../../../src/pull/node/jsonPicker.ts';
import type { CallOptions } from '../../../src/pull/node/nodeCalls.ts';
import { Credentials } from '../../../src/pull/node/rpcCredentials.ts';
import { SpentOutputs } from '../../../src/pull/node/spentOutputs.ts';
import { hashText } from '../../../src/runes/bytes.ts';
import type { Commitment } from '../../../src/runes/indexBlock.ts';
import { readBlock } from '../../../src/runes/parseBlock.ts';
import { chainOf, FAULTS, type FakeBlock, FakeNode, type FakeNodeOptions, type Fault, startNodeProcess } from '../../support/fakeNode.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { compact, taproot } from '../../support/runeBlocks.ts';
import { until } from '../../support/until.ts';

const FIRST = 840_000;
const SECRET = 'miner:correct-horse';
const [USER = '', PASSWORD = ''] = SECRET.split(':');
const ENVIRONMENT = { CORE_RPC_USER: USER, CORE_RPC_PASSWORD: PASSWORD };

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
const [, spending = ''] = txidsOf(LAST.bytes);
const SPENDER = readBlock(LAST.bytes, hash256);

/**
 * Returns the outputs that the `wanted` inputs of the last block spend. By default, `recentHeight` knows none of them,
 * so the client treats all as outputs of old blocks.
 */
const spentOutputs = (
  node: BitcoinNode,
  wanted: readonly Commitment[],
  recentHeight = async (): Promise<number | undefined> => undefined,
) => node.previousOutputs(SPENDER, LAST.height, wanted, recentHeight);

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

async function connect(url: string, options: Partial<CallOptions> = {}): Promise<BitcoinNode> {
  notices = [];
  const node = await BitcoinNode.open({
    url: new URL(url),
    cookie: undefined,
    environment: {},
    home: '/nonexistent',
    concurrency: 4,
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
  expect([error.message, ...error.details, ...notices].join('\n')).not.toContain(PASSWORD);
  return error;
}

/** Number of timers that keep the process running. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

const REST: [FakeNodeOptions, Partial<CallOptions>] = [{}, {}];
const RPC: [FakeNodeOptions, Partial<CallOptions>] = [{ rest: false, credentials: SECRET }, { environment: ENVIRONMENT }];
const BOTH: [FakeNodeOptions, Partial<CallOptions>] = [{ credentials: SECRET }, { environment: ENVIRONMENT }];

// Runs first, because a timer of an earlier test that ends meanwhile would hide a new timer.
it('leaves no timer that keeps a command running', async () => {
  const before = timers();
  const node = await connect((await fakeNode()).url, { timeoutMs: 1_000_000 });
  for (let round = 0; round < 5; round++) await node.readBlock(LAST.hash);
  await until(() => timers() <= before);
});

describe.each([
  ['REST', REST],
  ['RPC', RPC],
  ['REST and RPC', BOTH],
])('a node with %s', (_, [served, asked]) => {
  it('returns its chain, hashes, blocks and spent outputs', async () => {
    const fake = await fakeNode({ ...served, headers: FIRST + 9 });
    const node = await connect(fake.url, asked);
    expect(node.name).toBe(`Bitcoin Core ${new URL(fake.url).host}`);
    expect(await node.chain()).toEqual({
      network: 'main',
      blocks: FIRST + 3,
      headers: FIRST + 9,
      bestHash: LAST.hash,
      isSyncing: false,
      firstStored: 0,
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
    const found = async () => (await spentOutputs(node, wanted)).map(({ script, height }) => [Buffer.from(script), height]);
    // Over REST from Core 30 and newer, the client does not ask for the heights of spent outputs. It returns the
    // highest height that is low enough for a commitment.
    const isOld = served.rest !== false;
    expect(await found()).toEqual([
      [Buffer.from(taproot(11)), isOld ? LAST.height - 5 : FIRST + 1],
      [Buffer.from(taproot(2)), isOld ? LAST.height - 5 : FIRST],
      [Buffer.from(taproot(10)), isOld ? LAST.height - 5 : FIRST + 1],
    ]);
    expect(await spentOutputs(node, [])).toEqual([]);
  });

  it('reports its sync, its pruned blocks and its network', async () => {
    const fake = await fakeNode({ ...served, isSyncing: true, prunedBelow: FIRST + 1, network: 'signet' });
    const node = await connect(fake.url, asked);
    expect(await node.chain()).toMatchObject({ isSyncing: true, firstStored: FIRST + 1, network: 'signet' });
    const error = await errorOf(node.readBlock(one.hash));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(
      /^Bitcoin Core 127\.0\.0\.1:\d+ has pruned a block that is needed \(".*not available \(pruned data\)"\)$/,
    );
    fake.options.network = 'test';
    expect((await errorOf(node.chain())).message).toMatch(/follows the network "test", which is not supported$/);
  });

  it('follows a reorganisation and a tip that goes back', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
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
    expect(notices.filter((notice) => !notice.includes('rest=1'))).toEqual([]);
  });

  // Each fault affects at least one answer for a block of 100 transactions, and then ends. The client must retry.
  const size = LAST.bytes.length;
  const passing: [string, Fault, RegExp][] = [
    ['cut in mid-block', { cut: 200 }, /was cut off after 200 bytes/],
    ['cut after its first byte', { cut: 1 }, /was cut off after 1 bytes/],
    ['shorter than its length', { length: 10 }, /was cut off after \d+ bytes/],
    ['longer than its length', { length: -10 }, /is damaged: the block ends inside of|failed: Parse Error|not valid JSON/],
    [
      'longer than any block',
      { status: 200, body: Buffer.alloc(8_100_000) },
      /has 8100000 bytes or more; the largest valid answer has [48]00[01]000/,
    ],
    [
      'longer than any block, without length',
      { status: 200, body: Buffer.alloc(8_100_000), chunked: true },
      /has \d+ bytes or more; the largest/,
    ],
    ['empty', { status: 200 }, /is cut off: it has 0 bytes|an RPC call|not valid JSON/],
    ['with a wrong byte in its header', { flip: 40 }, /is damaged: its header has the hash [0-9a-f]{64}/],
    [
      'with a wrong byte in a transaction',
      { flip: size - 30 },
      /is damaged: block [0-9a-f]{64} has transactions that do not match the merkle root in its header/,
    ],
    ['too slow', { stall: 100 }, /sent no data for 0.3 s/],
    ['refused by a full work queue', FAULTS.workQueue, /was answered with status 503 "Work queue depth exceeded"; sending 2 at once/],
    ['stopping', FAULTS.stopping, /was answered with status 503: the node is stopping, or too busy;/],
    ['refused by a full work queue, twice', { ...FAULTS.workQueue, times: 2 }, /status 503/],
    ['refused with 429', { status: 429 }, /was answered with status 429;/],
    ['refused with 500', { status: 500, body: 'Internal bug detected' }, /was answered with status 500 "Internal bug detected"/],
  ];
  it.each(passing)('is asked again for a block that is %s', async (_, fault, notice) => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, { ...asked, timeoutMs: fault.stall === undefined ? 5000 : 300 });
    notices = [];
    // Uses a copy, because the fake node counts down `times` in the fault.
    fake.faults.push({ on: /block/, ...fault });
    const block = await node.readBlock(LAST.hash);
    expect(block.transactions.length).toBe(25);
    expect(notices.length).toBe(fault.times ?? 1);
    expect(notices[0]).toMatch(new RegExp(`^block ${LAST.hash} of Bitcoin Core 127.0.0.1:\\d+ `));
    expect(notices[0]).toMatch(/; (?:trying again|sending \d at once from now on)$/);
    if (served.rest !== false) expect(notices[0]).toMatch(notice);
    expect(fake.faults).toEqual([]);
    // The client must close the connection of an aborted answer.
    await until(async () => (await fake.connections()) <= 1);
  });

  it('is awaited while it starts, with one notice', async () => {
    const fake = await fakeNode(served);
    fake.faults.push({ ...FAULTS.warmingUp, times: 20 });
    const node = await connect(fake.url, { ...asked, retries: 0 });
    expect(notices.filter((notice) => !notice.includes('rest=1'))).toEqual([
      `${node.name} is starting ("Verifying blocks…"); waiting for it`,
    ]);
    notices = [];
    fake.faults.push({ ...FAULTS.warmingUp, times: 5 });
    expect((await node.chain()).blocks).toBe(FIRST + 3);
    expect(notices.length).toBe(1);
  });

  const final: [string, Fault, RegExp][] = [
    ['redirects', FAULTS.redirect, /redirects to https:\/\/elsewhere.example$/],
    ['answers with a web page', FAULTS.html, /is not Bitcoin Core: it answers with a web page/],
    ['refuses with 403', FAULTS.forbidden, /refuses requests of this machine or user \(status 403\)/],
  ];
  it.each(final)('causes an immediate failure if it %s', async (_, fault, message) => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
    notices = [];
    fake.faults.push({ ...fault, times: 9 });
    const error = await errorOf(node.readBlock(LAST.hash));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(message);
    expect(error.details.length).toBeGreaterThan(0);
    expect(notices).toEqual([]);
  });

  it('causes a failure after the last retry, with the reason', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
    fake.forget(LAST.hash);
    const gone = await errorOf(node.readBlock(LAST.hash));
    expect(gone).toBeInstanceOf(BuildError);
    expect(gone.message).toMatch(/^block [0-9a-f]{64} of Bitcoin Core \S+ was answered with .* not found"; tried 4 times$/i);
    await fake.close();
    notices = [];
    expect((await errorOf(node.chain())).message).toMatch(/^the chain of Bitcoin Core \S+ failed: connect ECONNREFUSED .*; tried 4 times$/);
    await errorOf(node.readBlock(LAST.hash));
    expect(notices).toEqual([expect.stringMatching(/ECONNREFUSED .*; does bitcoind run, with -server, on this port\? Trying again$/)]);
  });

  it('gets no more requests immediately after an abort, and requests leave no listener behind', async () => {
    const fake = await fakeNode(served);
    const interruption = new AbortController();
    const node = await connect(fake.url, { ...asked, signal: interruption.signal });
    await Promise.all(Array.from({ length: 20 }, () => node.chain()));
    expect(getEventListeners(interruption.signal, 'abort')).toEqual([]);
    fake.faults.push({ on: /block/, stall: 10, times: 3 });
    const asking = Promise.allSettled([node.readBlock(LAST.hash), node.readBlock(LAST.hash), node.hashAt(FIRST)]);
    await until(() => fake.faults.length === 0);
    interruption.abort();
    expect((await asking).map((result) => result.status === 'rejected' && result.reason.name)).toEqual(Array(3).fill('AbortError'));
    await expect(node.chain()).rejects.toThrow(/abort/);
    await until(async () => (await fake.connections()) === 0);
    node.close();
    expect(getEventListeners(interruption.signal, 'abort')).toEqual([]);
  });

  it('gets no more requests after the client is closed', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
    notices = [];
    fake.faults.push({ on: /block/, stall: 10 });
    const asking = Promise.allSettled([node.readBlock(LAST.hash)]);
    await until(() => fake.faults.length === 0);
    node.close();
    expect(await asking).toMatchObject([{ status: 'rejected', reason: { message: 'The client is destroyed' } }]);
    expect(notices).toEqual([]);
    await until(async () => (await fake.connections()) === 0);
  });

  it('is asked over a new connection without a notice if it closed an idle one', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
    notices = [];
    for (let round = 0; round < 20; round++) {
      await node.chain();
      fake.closeIdle();
    }
    expect(notices).toEqual([]);
  });
});

it('is asked again for a block in hex with other characters', async () => {
  const fake = await fakeNode(RPC[0]);
  const node = await connect(fake.url, RPC[1]);
  notices = [];
  const result = `${Buffer.from(LAST.bytes).toString('hex').slice(0, -2)}zz`;
  fake.faults.push({ status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ result, error: null }) });
  expect(Buffer.compare((await node.readBlock(LAST.hash)).bytes, LAST.bytes)).toBe(0);
  expect(notices).toEqual([expect.stringMatching(/is damaged: it is not hex; trying again$/)]);
});

describe('spent outputs', () => {
  const first = [{ transaction: 1, input: 0 }];
  const many = SPENDER.transactions.slice(1).map((_, i) => ({ transaction: 1 + i, input: 0 }));
  const asked30 = `/rest/spenttxouts/${LAST.hash}.bin`;
  const CORE_29 = { version: 290_000 };
  it.each<[string, FakeNodeOptions, Partial<CallOptions>, typeof first, string[]]>([
    ['one call of Core 25', { ...RPC[0], version: 250_000 }, RPC[1], first, ['getrawtransaction']],
    ['one call of Core 30 with REST', BOTH[0], BOTH[1], many, [asked30]],
    ['one call of Core 29 with REST', { ...BOTH[0], ...CORE_29 }, BOTH[1], first, [asked30, 'getrawtransaction']],
    ['the block of Core 24', { ...RPC[0], version: 240_200 }, RPC[1], first, ['getblock']],
    ['the block of Core 24 with REST', { ...BOTH[0], version: 240_200 }, BOTH[1], first, [asked30, `/rest/block/${LAST.hash}.json`]],
    ['the block over REST', CORE_29, REST[1], first, [asked30, `/rest/block/${LAST.hash}.json`]],
    ['the block for many', { ...BOTH[0], ...CORE_29 }, BOTH[1], many, [asked30, `/rest/block/${LAST.hash}.json`]],
    [
      'the block if the user may not ask for transactions',
      { ...BOTH[0], ...CORE_29, allowed: ['getnetworkinfo'] },
      BOTH[1],
      first,
      [asked30, 'getrawtransaction', `/rest/block/${LAST.hash}.json`],
    ],
  ])('come from %s', async (_, served, asked, wanted, calls) => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, asked);
    fake.calls.length = 0;
    const outputs = await spentOutputs(node, wanted);
    expect(outputs.map(({ script }) => Buffer.from(script))).toEqual(wanted.map((_, i) => Buffer.from(taproot(10 + i))));
    expect(fake.calls).toEqual(calls);
  });

  it('come from the block if the version is unknown and the calls for transactions do not return them', async () => {
    const fake = await fakeNode({ ...RPC[0], version: 240_000 });
    fake.faults.push({ on: /getnetworkinfo/, status: 403 });
    const node = await connect(fake.url, RPC[1]);
    expect(await spentOutputs(node, first)).toMatchObject([{ height: FIRST + 1 }]);
    expect(fake.calls.slice(-2)).toEqual(['getrawtransaction', 'getblock']);
  });

  it('are missing from Core 22', async () => {
    const overRpc = await fakeNode({ ...RPC[0], version: 220_100 });
    const old = await errorOf(connect(overRpc.url, RPC[1]));
    expect(old.message).toMatch(/^Bitcoin Core \S+ has version 22.1, which is too old$/);
    expect(old.details.join()).toMatch(/Bitcoin Core 25 or newer/);
    const overRest = await fakeNode({ version: 220_100 });
    const error = await errorOf(spentOutputs(await connect(overRest.url), first));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(/does not tell which outputs block [0-9a-f]{64} spends, so etchings cannot be checked$/);
  });

  it.each<[string, Fault, RegExp]>([
    ['no such transaction', { status: 200, body: '{"tx":[]}' }, /lack input 0 of transaction/],
    ['another transaction', { status: 200, body: '{"tx":[{},{"txid":"ab","vin":[{}]}]}' }, /lack input 0 of transaction/],
    ['no JSON', { status: 200, body: '{"tx":[' }, /has an unexpected answer: not valid JSON/],
    [
      'a script that is not hex',
      { status: 200, body: blockWith({ height: 1, scriptPubKey: { hex: 'xy' } }) },
      /unexpected answer: prevout.scriptPubKey.hex/,
    ],
    [
      'a height that cannot be',
      { status: 200, body: blockWith({ height: -1, scriptPubKey: { hex: '' } }) },
      /unexpected answer: prevout.height/,
    ],
  ])('are requested again after %s', async (_, fault, notice) => {
    const fake = await fakeNode(CORE_29);
    const node = await connect(fake.url);
    fake.faults.push({ on: /rest.block/, ...fault });
    expect(await spentOutputs(node, first)).toMatchObject([{ height: FIRST + 1 }]);
    expect(notices.length).toBe(1);
    expect(notices[0]).toMatch(notice);
  });
});

function blockWith(prevout: unknown): string {
  return JSON.stringify({ tx: [{}, { txid: spending, vin: [{ prevout }] }] });
}

it('are picked from JSON that arrives in parts of any size', () => {
  const value = { a: [1, { b: 'x"\\\\' }, [], { b: 'yes', c: { d: -7, e: null, f: {} } }], 'a"}': { b: 2 }, g: [true, [[3]]] };
  const paths = [
    ['a', 3, 'b'],
    ['a', 3, 'c', 'd'],
    ['a', 3, 'c', 'e'],
    ['a', 3, 'c', 'f'],
    ['g', 1, 0, 0],
    ['g', 0],
    ['a', 2],
    ['a', 9],
    ['b'],
  ];
  const expected = ['yes', '-7', 'null', '{', '3', 'true', '[', undefined, undefined];
  for (const indent of [0, 2]) {
    const bytes = Buffer.from(JSON.stringify(value, null, indent));
    for (let size = 1; size <= bytes.length; size++) {
      const picker = new JsonPicker(paths);
      for (let at = 0; at < bytes.length; at += size) picker.feed(bytes.subarray(at, at + size));
      picker.end();
      expect(picker.values).toEqual(expected);
    }
    for (let length = 0; length < bytes.length - 1; length++) {
      const picker = new JsonPicker(paths);
      picker.feed(bytes.subarray(0, length));
      expect(() => picker.end()).toThrow(/not valid JSON/);
    }
  }
  for (const text of ['[}', '{]', ']', '['.repeat(100)]) expect(() => new JsonPicker([]).feed(Buffer.from(text))).toThrow(/not valid JSON/);
  expect(() => new JsonPicker([['a']]).feed(Buffer.from(`{"a":"${'0'.repeat(20_001)}`))).toThrow(/more than 20000 bytes/);
});

it('of Core 30 are read from parts of any size', () => {
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
  // Answers with another length than expected: a future version of Core may add a field, which the client must not
  // misread.
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

describe('a node with one thread and a queue of one', () => {
  const wanted = Array.from({ length: 8 }, (_, i) => ({ transaction: 1 + i, input: 0 }));
  const served = { ...RPC[0], version: 290_000, threads: 1, queue: 1 };

  it('gets no parallel requests with --concurrency 1', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, { ...RPC[1], concurrency: 1, retries: 0 });
    const all = await Promise.all([spentOutputs(node, wanted), spentOutputs(node, wanted), node.readBlock(LAST.hash), node.chain()]);
    expect(all[0]).toHaveLength(8);
    expect(fake.refused).toBe(0);
  });

  it('gets fewer requests after it refuses one, and answers for a block of 8 etchings', async () => {
    const fake = await fakeNode(served);
    const node = await connect(fake.url, { ...RPC[1], concurrency: 16 });
    notices = [];
    const isLowest = () => notices.some((notice) => notice.endsWith('sending 1 at once from now on'));
    // On a busy machine, two requests may by chance never reach the node at the same time, so it refuses none of them.
    for (let i = 0; i < 100 && !isLowest(); i += 1) expect(await spentOutputs(node, wanted)).toHaveLength(8);
    expect(isLowest()).toBe(true);
    const before = fake.refused;
    expect(before).toBeGreaterThan(0);
    expect(await spentOutputs(node, wanted)).toHaveLength(8);
    expect(fake.refused).toBe(before);
  });
});

it.each([
  ['REST', REST],
  ['RPC', RPC],
])('a node that started from a snapshot lacks old blocks over %s, and the message says what to do', async (_, [served, asked]) => {
  const fake = await fakeNode({ ...served, notDownloadedBelow: FIRST + 2 });
  const node = await connect(fake.url, asked);
  const error = await errorOf(node.readBlock(one.hash));
  expect(error.exitCode).toBe(3);
  expect(error.message).toMatch(/has not yet downloaded a block that is needed \(".*not available \(not fully downloaded\)"\)$/);
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
    expect.stringMatching(/is starting \("Loading P2P addresses…"\); waiting for it$/),
  ]);
});

describe('a node is refused', () => {
  it.each<[string, FakeNodeOptions, Partial<CallOptions>, RegExp]>([
    ['without REST and credentials', { rest: false }, {}, /does not accept requests without credentials, and does not answer REST$/],
    ['with wrong credentials', { credentials: 'a:b' }, RPC[1], /does not accept CORE_RPC_USER and CORE_RPC_PASSWORD$/],
    ['with wrong credentials and no REST', { rest: false, credentials: 'a:b' }, RPC[1], /CORE_RPC_PASSWORD, and does not answer REST$/],
  ])('%s', async (_, served, asked, message) => {
    const fake = await fakeNode(served);
    const { signal } = new AbortController();
    const error = await errorOf(connect(fake.url, { ...asked, signal }));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(message);
    expect(error.details.join()).toMatch(/--cookie FILE/);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it.each<[string, Fault, RegExp]>([
    [
      '404 to everything',
      { status: 404, headers: { 'content-type': 'text/html' }, body: '<html>' },
      /is not Bitcoin Core: it answers neither REST nor RPC$/,
    ],
    ['a web page', FAULTS.html, /is not Bitcoin Core: it answers with a web page$/],
    ['405 to RPC', { status: 405, on: '^getblock' }, /is not Bitcoin Core: it answers neither REST nor RPC$/],
  ])('if it answers %s', async (_, fault, message) => {
    const fake = await fakeNode({ rest: false });
    fake.faults.push({ ...fault, times: 9 });
    expect((await errorOf(connect(fake.url))).message).toMatch(message);
  });

  it.each(['http://miner:correct-horse@127.0.0.1:8332', 'http://127.0.0.1:8332/?password=correct-horse', 'ftp://127.0.0.1'])(
    'at %s',
    async (url) => {
      const error = await errorOf(connect(url));
      expect(error.message).toMatch(/must be http or https, without user, password/);
      expect(error.message).not.toMatch(/miner/);
    },
  );

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

it('if its answer arrives a byte at a time for too long', async () => {
  const fake = await fakeNode();
  const transport = new Transport({ timeoutMs: 5000, longestMs: 100, signal: new AbortController().signal });
  open.push(transport);
  fake.faults.push({ trickle: 10 });
  const question = { url: new URL('/rest/chaininfo.json', fake.url), limit: 10_000 };
  await expect(transport.send(question)).rejects.toThrow(/^did not complete within 0.1 s$/);
  expect((await transport.send(question)).status).toBe(200);
});

it('after two requests at most if it closes each connection within the head of its answer', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 20'));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const transport = new Transport({ timeoutMs: 5000, signal: new AbortController().signal });
  open.push(transport, server);
  const { port } = server.address() as AddressInfo;
  await expect(transport.send({ url: new URL(`http://127.0.0.1:${port}/`), limit: 10 })).rejects.toThrow(/^failed: /);
  expect(connections).toBeLessThanOrEqual(2);
});

it('but not if it answers in JSON-RPC 2.0: errors have status 200, and a field is missing', async () => {
  const fake = await fakeNode(RPC[0]);
  const node = await connect(fake.url, RPC[1]);
  notices = [];
  const answer = (fields: object): Fault => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', ...fields }),
  });
  fake.faults.push(answer({ error: { code: -28, message: 'Verifying blocks…' } }), answer({ result: LAST.hash }));
  expect(await node.hashAt(FIRST)).toBe(LAST.hash);
  expect(notices).toEqual([expect.stringMatching(/is starting \("Verifying blocks…"\); waiting for it$/)]);
});

describe('credentials', () => {
  const folder = mkdtempSync(join(tmpdir(), 'core-'));
  const cookieAt = (path: string, text: string): string => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
    return join(folder, path);
  };
  const header = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

  it('are read again from the cookie file after a restart of the node', async () => {
    const cookie = cookieAt('restarted', '__cookie__:before');
    const fake = await fakeNode({ rest: false, credentials: '__cookie__:before' });
    const node = await connect(fake.url, { cookie });
    notices = [];
    fake.options.credentials = '__cookie__:correct-horse';
    expect((await errorOf(node.chain())).message).toMatch(new RegExp(`does not accept the cookie file ${cookie}$`));
    cookieAt('restarted', '__cookie__:correct-horse\n');
    expect(await Promise.all([node.hashAt(FIRST), node.hashAt(FIRST), node.hashAt(FIRST)])).toEqual(Array(3).fill(one.hash));
    expect(notices).toEqual([]);
  });

  it('of the default cookie file may be refused if the node answers REST', async () => {
    cookieAt('home/.bitcoin/.cookie', '__cookie__:correct-horse');
    const fake = await fakeNode({ credentials: 'a:b' });
    const node = await connect(fake.url, { home: join(folder, 'home') });
    expect(notices).toEqual([expect.stringMatching(/does not accept the cookie file .*home\/.bitcoin\/.cookie; using REST alone$/)]);
    expect((await node.chain()).blocks).toBe(FIRST + 3);
    fake.options.rest = false;
    expect((await errorOf(connect(fake.url, { home: join(folder, 'home') }))).message).toMatch(/\.cookie, and does not answer REST$/);
  });

  it.each<[string, string, Record<string, string>, string | undefined]>([
    ['http://127.0.0.1:8332', '.bitcoin/.cookie', {}, 'main'],
    ['http://localhost:38332', '.bitcoin/signet/.cookie', {}, 'signet'],
    ['http://[::1]:48332', '.bitcoin/testnet4/.cookie', {}, 'testnet4'],
    ['https://127.8.8.8:18443', '.bitcoin/regtest/.cookie', {}, 'regtest'],
    ['http://127.0.0.1:9999', '.bitcoin/.cookie', {}, 'other'],
    ['http://10.0.0.1:8332', '.bitcoin/.cookie', {}, undefined],
    ['http://127.0.0.1:8332', '.bitcoin/.cookie', ENVIRONMENT, 'environment'],
  ])('of %s come from %s', (url, path, environment, expected) => {
    const home = join(folder, `home-${String(expected)}`);
    cookieAt(`home-${String(expected)}/${path}`, `__cookie__:${String(expected)}\n`);
    const found = Credentials.find({ url: new URL(url), cookie: undefined, environment, home });
    expect(found?.header).toBe(expected && header(expected === 'environment' ? SECRET : `__cookie__:${expected}`));
    expect(found?.areDefault).toBe(expected && expected !== 'environment');
  });

  const echo = `Authorization: ${header(SECRET)} (${SECRET})`;
  it.each<[string, Fault]>([
    ['a failure', { status: 500, body: echo }],
    [
      'an error',
      { status: 500, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ error: { code: -1, message: echo } }) },
    ],
    [
      'a starting node',
      { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ error: { code: -28, message: echo } }) },
    ],
    ['a redirect', { status: 302, headers: { location: `http://${SECRET}@127.0.0.1/${encodeURI(header(SECRET))}` } }],
  ])('are not shown if %s repeats them', async (_, fault) => {
    const fake = await fakeNode(RPC[0]);
    const node = await connect(fake.url, RPC[1]);
    notices = [];
    fake.faults.push({ times: 4, ...fault });
    const shown = await node.chain().then(
      () => notices.join(),
      (error: Error) => `${notices.join()} ${error.message}`,
    );
    expect(shown).toMatch(/\.\.\.|redirects to http:\/\/127\.0\.0\.1$/);
    for (const secret of [PASSWORD, header(SECRET).slice(6)]) expect(shown).not.toContain(secret);
  });

  it.each<[string, Partial<CallOptions>, RegExp]>([
    ['a missing file', { cookie: join(folder, 'missing') }, /^cannot read the cookie file .*missing \(ENOENT\)$/],
    [
      'a file that is no cookie',
      { cookie: cookieAt('other', 'correct-horse battery staple') },
      /other is not a cookie file of Bitcoin Core/,
    ],
    ['an empty file', { cookie: cookieAt('empty', '') }, /empty is not a cookie file of Bitcoin Core/],
    ['a user without a password', { environment: { CORE_RPC_USER: 'a' } }, /CORE_RPC_USER is set, but CORE_RPC_PASSWORD is not$/],
    ['a password without a user', { environment: { CORE_RPC_PASSWORD: PASSWORD } }, /CORE_RPC_PASSWORD is set, but CORE_RPC_USER is not$/],
  ])('are refused: %s', async (_, asked, message) => {
    const error = await errorOf(connect('http://127.0.0.1:8332', asked));
    expect(error).toBeInstanceOf(InputError);
    expect(error.message).toMatch(message);
  });

  it('are absent without a default cookie file', () => {
    expect(Credentials.find({ url: new URL('http://127.0.0.1:8332'), cookie: undefined, environment: {}, home: folder })).toBeUndefined();
  });
});

it('hash256 is the same with and without crypto.hash', () => {
  expect(hashText(hash256With(undefined)(LAST.bytes.subarray(0, 80)))).toBe(LAST.hash);
  expect(hashText(hash256(LAST.bytes.subarray(0, 80)))).toBe(LAST.hash);
});

it('the fake node also runs as a process, with blocks of a folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'core-blocks-'));
  for (const { height, bytes } of CHAIN) writeFileSync(join(folder, `${height}.bin`), bytes);
  const fake = await startNodeProcess(folder, { credentials: SECRET });
  open.push({ close: () => fake.stop() });
  const node = await connect(fake.url, BOTH[1]);
  expect((await node.readBlock(LAST.hash)).hash).toBe(LAST.hash);
  expect(await spentOutputs(node, [{ transaction: 2, input: 0 }])).toMatchObject([{ script: new Uint8Array(taproot(11)) }]);
  fake.tell('fault {"on":"chaininfo","status":500}');
  fake.tell(`tip ${FIRST}`);
  await until(async () => (await node.chain()).blocks === FIRST);
  expect(notices).toEqual([expect.stringMatching(/was answered with status 500; trying again$/)]);
});

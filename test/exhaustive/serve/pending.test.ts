/** Tests the runes of unconfirmed transactions. The client computes them from a mirror's files. */
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { PENDING_LIMITS } from '../../../src/limits.ts';
import { addressOf } from '../../../src/runes/address.ts';
import { hashText } from '../../../src/runes/bytes.ts';
import { commitmentOf, FIRST_RESERVED } from '../../../src/runes/name.ts';
import { NETWORKS } from '../../../src/runes/networks.ts';
import { readTransaction } from '../../../src/runes/unconfirmed.ts';
import { Mirror, type PendingQuery, type RawTransaction } from '../../../src/serve/client/mirrorClient.ts';
import { type MirrorReads, pendingRunes } from '../../../src/serve/client/pending.ts';
import { temporaryFolder } from '../../support/build.ts';
import { exampleBelow } from '../../support/builtClient.ts';
import { hash256, outpointOf } from '../../support/memoryLedger.ts';
import { checkMempools, MempoolChain, type RawPending, remembering } from '../../support/mempools.ts';
import { NO_HEIGHTS } from '../../support/outputStates.ts';
import { messageScript, taproot, transactionBytes } from '../../support/runeBlocks.ts';
import { randomFor } from '../../support/seed.ts';
import { listening, startServer } from '../../support/server.ts';

const MEMPOOLS = Number(process.env['MEMPOOLS'] ?? 200);
/** Number of random mempools for each chain. */
const PER_CHAIN = 500;

const next = randomFor('mempools');
const random = (below: number) => Math.floor(next() * below);
/** The chain is fixed, because some tests need runes of several kinds. The mempools are random. */
const chain = new MempoolChain(1, 120);
const network = 'regtest';
const out = join(temporaryFolder(), 'out');
let mirror: Mirror;
let reads: MirrorReads;

beforeAll(async () => {
  mirror = await chain.mirror('hiro', out, true);
  reads = remembering(mirror);
});

it(`of ${MEMPOOLS} random mempools are those that a node's pull writes, and the model says, and what is certain is so in other blocks`, async () => {
  for (let left = MEMPOOLS, on = chain, from = reads; left > 0; left -= PER_CHAIN) {
    const count = Math.min(left, PER_CHAIN);
    const { mempools, ...seen } = await checkMempools(on, from, count, random);
    expect(mempools).toBe(count);
    for (const [kind, times] of Object.entries(seen)) expect(times, kind).toBeGreaterThan(count / 10);
    on = new MempoolChain(random(2 ** 31), 60 + random(120));
    from = remembering(await on.mirror(random(2) === 0 ? 'hiro' : 'contract'));
  }
});

it('are the same from a mirror in the other dialect', async () => {
  const other = await chain.mirror('contract');
  for (let i = 0; i < 3; i++) {
    const query = { transactions: chain.given(chain.mempool(random(2 ** 31), random)), network } as const;
    expect(await other.pending(query)).toEqual(await mirror.pending(query));
  }
});

/** Returns the newest unspent output of the chain with runes: its outpoint, and its runes. */
function newestOutput() {
  const newest = [...chain.model.outputs()].filter(({ spent }) => !spent).at(-1);
  if (newest === undefined) throw new Error('no output has runes');
  return { outpoint: newest.outpoint, held: newest.held, height: newest.location.height };
}

/** Returns a transaction with these outpoints as inputs and these scripts as outputs. */
function paying(inputs: readonly string[], ...outputs: readonly Uint8Array[]): RawPending {
  const spent = inputs.map((outpoint) => ({ outpoint: outpointOf(outpoint.slice(0, 64), Number(outpoint.slice(65))) }));
  const bytes = Buffer.from(transactionBytes({ inputs: spent, outputs }));
  return { txid: hashText(hash256(bytes)), bytes, inputs };
}

const hexOf = ({ bytes }: RawPending) => bytes.toString('hex');

async function only(transaction: RawTransaction, from: MirrorReads = reads, limits = PENDING_LIMITS) {
  const { transactions } = await pendingRunes({ transactions: [transaction], network }, from, limits);
  const [one] = transactions;
  if (one === undefined || transactions.length > 1) throw new Error('not one transaction');
  return one;
}

describe('a result is unknown', () => {
  const { outpoint, height, held } = newestOutput();
  const spending = paying([outpoint], taproot(1));
  const hex = hexOf(spending);

  it('unless everything that it depends on is known', async () => {
    expect(await only({ hex, inputs: [{ height }] })).toMatchObject({ result: 'runes', unknown: [], unconfirmed: true });
    const bare = await only({ hex, inputs: [{ height }] });
    expect(bare.coming).not.toEqual([]);
    expect(await only({ hex, inputs: [{ height, script: '' }] })).toEqual(bare);
  });

  it.each([
    ['without the height of an input', [], `the height of ${outpoint} is missing, and its transaction is not among these`],
    [
      'above the tip',
      [{ height: chain.tip + 1 }],
      `${outpoint}: the mirror has blocks up to ${chain.tip}, so it does not know an output of block ${chain.tip + 1}`,
    ],
    [
      'for a height that is none',
      [{ height: -1 }],
      `${outpoint}: -1 is not the height of an output's block, and a mirror has no unconfirmed transactions`,
    ],
    ['for the height of another block', [{ height: 3 }], `${outpoint}: the mirror has the output in block ${height}, not in block 3`],
    [
      'for another block of this height',
      [{ height, blockHash: 'ab'.repeat(32) }],
      `${outpoint}: block ${height} of the mirror has the hash ${chain.hashes[height]}`,
    ],
    ['for a script that is not hex', [{ height, script: '5' }], `the script of ${outpoint} is not hex`],
  ])('%s', async (_, inputs, why) => {
    expect(await only({ hex, inputs })).toMatchObject({
      result: 'unknown',
      unknown: [why],
      coming: [],
      going: [],
      burned: [],
      possible: [],
    });
  });

  it('if an output of a child is unknown, and for an output that its parent does not have', async () => {
    const child = paying([`${spending.txid}:0`], taproot(2));
    const absent = paying([`${spending.txid}:1`], taproot(2));
    const given = [child, spending, absent].map((one) => ({ hex: hexOf(one) }));
    const { transactions } = await pendingRunes({ transactions: given, network }, reads);
    expect(transactions.map(({ tx_id, unknown }) => [tx_id, unknown.at(-1)])).toEqual([
      [spending.txid, expect.stringContaining('is missing')],
      [child.txid, `it spends an output of ${spending.txid}, whose result is unknown`],
      [absent.txid, `it spends an output of ${spending.txid}, whose result is unknown`],
    ]);
    const known = given.map((one) => ({ ...one, inputs: [{ height }] }));
    const answer = await pendingRunes({ transactions: known, network }, reads);
    expect(answer.transactions.map(({ unknown }) => unknown)).toEqual([[], [], [`it spends ${spending.txid}:1, which does not exist`]]);
  });

  it('if it depends on a double spend', async () => {
    const [left, right] = [paying([outpoint], taproot(1)), paying([outpoint], taproot(2))];
    const both = paying([`${left.txid}:0`, `${right.txid}:0`], taproot(3));
    const child = paying([`${left.txid}:0`], taproot(4));
    const twice = paying([outpoint, outpoint], taproot(5));
    const all = [left, right, both, child, twice].map((one) => ({ hex: hexOf(one), inputs: [{ height }, { height }] }));
    const { transactions } = await pendingRunes({ transactions: all, network }, reads);
    const why = ['it can never be confirmed, because it or its parents spend an output twice'];
    expect(transactions.map(({ unknown }) => unknown)).toEqual([[], [], why, [], why]);
    const others = (...those: RawPending[]) => those.map(({ txid }) => txid);
    expect(transactions.map(({ conflicts }) => new Set(conflicts))).toEqual(
      [others(right, twice), others(left, twice), others(left, right, twice, child), others(both, right, twice), others(left, right)].map(
        (ids) => new Set(ids),
      ),
    );
  });

  it('once the mirror has the transaction, or another one that spends its input', async () => {
    const confirmed = chain.transactions.at(-1);
    const [one] = chain.lastBlock.filter(({ txid }) => txid === confirmed?.txid);
    if (one === undefined) throw new Error('no transaction');
    const { unknown } = await only({ hex: hexOf(one), inputs: one.inputs.map(() => ({ height: 1 })) });
    expect(unknown.at(-1)).toBe(`the transaction is confirmed: the mirror has it in block ${chain.tip}`);
    const spent = [...chain.model.outputs()].find((output) => output.spent);
    const again = { hex: hexOf(paying([spent?.outpoint ?? ''], taproot(1))), inputs: [{ height: spent?.location.height }] };
    expect((await only(again)).unknown).toEqual([`${spent?.outpoint} is spent in a block of the mirror`]);
  });

  it('if the mirror fails or is malformed', async () => {
    const failing = async () => {
      throw new Error('no connection');
    };
    const unknown = [{ outpoint, kind: 'unknown', reason: 'no connection' }] as const;
    for (const [change, why] of [
      [{ classify: async () => [...unknown] }, `${outpoint}: no connection`],
      [{ activity: failing }, 'no connection'],
    ] as const)
      expect((await only({ hex, inputs: [{ height }] }, { ...reads, ...change })).unknown).toEqual([why]);
    const [answer] = await reads.classify([{ outpoint, height }], {});
    if (answer?.kind !== 'runes') throw new Error('no runes');
    const [first] = answer.runes;
    if (first === undefined) throw new Error('no runes');
    for (const change of [
      { address: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' },
      { address: '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa' },
      { runes: [{ ...first, balance: '1e3' }] },
      { runes: [{ ...first, balance: '-1' }] },
      { runes: [{ ...first, rune: { ...first.rune, id: '1:9999999' } }] },
      { runes: undefined },
    ]) {
      const changed = async () => [{ ...answer, ...change } as typeof answer];
      expect(await only({ hex, inputs: [{ height }] }, { ...reads, classify: changed })).toMatchObject({ result: 'unknown', coming: [] });
    }
  });

  it('above a limit', async () => {
    const parts = { hex, inputs: [{ height }] };
    expect((await only(parts, reads, { ...PENDING_LIMITS, movedRows: 1 })).unknown).toEqual([
      'the transactions move runes more than 1 times',
    ]);
    expect((await only(parts, reads, { ...PENDING_LIMITS, spentRunes: held.length - 1 || 0.5 })).unknown).toEqual([
      expect.stringMatching(/^the transactions spend more than [0-9.]+ runes$/),
    ]);
    const two = { hex: hexOf(paying([outpoint, `${'ab'.repeat(32)}:0`], taproot(1))), inputs: [{ height }, { height }] };
    expect((await only(two, reads, { ...PENDING_LIMITS, lookUps: 1 })).unknown).toEqual([
      'the transactions need more than 1 look-ups in the mirror',
    ]);
    const others = async (limits: Partial<typeof PENDING_LIMITS>) =>
      pendingRunes({ transactions: [parts, two], network }, reads, { ...PENDING_LIMITS, ...limits });
    await expect(others({ transactions: 1 })).rejects.toThrow(new TypeError('there are more than 1 transactions'));
    await expect(others({ transactionBytes: 150 })).rejects.toThrow(new TypeError('the transactions have more than 150 bytes'));
  });
});

it('a height that no output has is refused by everything that takes the height of an output or of a block', async () => {
  const { outpoint } = newestOutput();
  const never = `${'ab'.repeat(32)}:0`;
  expect(await mirror.classify([{ outpoint: never, height: 1 }])).toMatchObject([{ kind: 'none' }]);
  for (const one of [outpoint, never]) {
    const classes = await mirror.classify(NO_HEIGHTS.map((height) => ({ outpoint: one, height })));
    expect(classes.map(({ kind }) => kind)).toEqual(NO_HEIGHTS.map(() => 'unknown'));
    for (const height of NO_HEIGHTS)
      await expect(mirror.output(one, { height })).rejects.toMatchObject({ name: 'MirrorError', statusCode: 400 });
  }
  const hex = hexOf(paying([outpoint], taproot(1)));
  for (const height of NO_HEIGHTS) {
    const { transactions } = await mirror.pending({ transactions: [{ hex, inputs: [{ height }] }], network });
    expect(transactions).toMatchObject([{ result: 'unknown' }]);
  }
  for (const height of NO_HEIGHTS.filter((one) => one !== 0))
    await expect(mirror.changes({ since: { height, hash: chain.hash } }).next()).rejects.toThrow(TypeError);
});

describe('mints and etchings are possible', () => {
  const { runes } = chain.model;
  const isBelowCap = ({ terms, counts }: (typeof runes)[number]) => (terms?.cap ?? 0n) > BigInt(counts.mints) && (terms?.amount ?? 0n) > 0n;
  const open = runes.find((rune) => isBelowCap(rune) && rune.terms?.offsetEnd === null);
  const closed = runes.find((rune) => isBelowCap(rune) && rune.block + Number(rune.terms?.offsetEnd ?? 1e9) <= chain.tip + 1);
  const full = runes.find(({ terms, counts: { mints } }) => terms?.cap === BigInt(mints) && mints > 0);
  const named = runes.find(({ name }) => name < FIRST_RESERVED);
  const partsOf = (rune: typeof open) => (rune?.id ?? '').split(':').map(Number) as [block: number, tx: number];
  const later = chain.tip + 1;
  /** Returns the results and possible runes of three transactions: one with this message, and two that spend its outputs 1 and 2. */
  async function resultsOf(integers: readonly (bigint | number)[], witness?: readonly Uint8Array[]) {
    const fee = outpointOf('cd'.repeat(32), 0);
    const outputs = [messageScript(integers), taproot(1), taproot(2)];
    const bytes = Buffer.from(transactionBytes({ inputs: [{ outpoint: fee, ...(witness && { witness }) }], outputs }));
    const { txid } = readTransaction(bytes, hash256);
    const children = [1, 2].map((vout) => paying([`${txid}:${vout}`], taproot(3)));
    const transactions = [bytes.toString('hex'), ...children.map(hexOf)].map((hex) => ({ hex, inputs: [{ height: 1 }] }));
    const answer = await pendingRunes({ transactions, network }, reads);
    expect(answer.transactions.flatMap(({ unknown }) => unknown)).toEqual([]);
    return answer.transactions.map(({ result, possible }) =>
      [result, ...possible.map(({ rune }) => rune.id ?? (rune.etching === txid ? 'own' : ''))].join(' '),
    );
  }

  it('in outputs that can have the rune', async () => {
    const [block, tx] = partsOf(open);
    const id = `${block}:${tx}`;
    expect(await resultsOf([20, block, 20, tx])).toEqual([`runes ${id}`, `runes ${id}`, 'none']);
    expect(await resultsOf([20, block, 20, tx, 22, 2])).toEqual([`runes ${id}`, 'none', `runes ${id}`]);
    expect(await resultsOf([20, block, 20, tx, 0, block, tx, 1, 2])).toEqual(Array(3).fill(`runes ${id}`));
    expect(await resultsOf([20, block, 20, tx, 126, 0])).toEqual([`runes ${id}`, 'none', 'none']);
    // The etchings have no edicts, an edict of the etched rune, or an edict of a rune of a later block. This later rune may be the etched
    // rune.
    expect(await resultsOf([2, 1, 6, 100])).toEqual(['runes own', 'runes own', 'none']);
    expect(await resultsOf([2, 1, 6, 100, 0, 0, 0, 1, 2])).toEqual(Array(3).fill('runes own'));
    expect(await resultsOf([2, 1, 6, 100, 0, later + 3, 1, 1, 2])).toEqual(Array(3).fill('runes own'));
    expect(await resultsOf([20, later, 20, 7])).toEqual([`runes ${later}:7`, `runes ${later}:7`, 'none']);
  });

  it('unless they can never succeed', async () => {
    expect([open, closed, full, named].map((rune) => rune !== undefined)).toEqual([true, true, true, true]);
    const name = named?.name ?? 0n;
    const reveal = [Buffer.concat([Uint8Array.of(commitmentOf(name).length), commitmentOf(name)]), Uint8Array.of(0xc0)];
    const never = [
      [20, partsOf(closed)[0], 20, partsOf(closed)[1]],
      [20, partsOf(full)[0], 20, partsOf(full)[1]],
      // Mints the id 5:900000. Block 5 is confirmed and etches no such rune, so no rune can ever get this id.
      [20, 5, 20, 900_000],
      [2, 1, 4, name, 6, 100],
      [2, 1, 4, FIRST_RESERVED, 6, 100],
    ];
    for (const integers of never) expect(await resultsOf(integers, reveal), integers.join()).toEqual(['none', 'none', 'none']);
    expect(await resultsOf([2, 1, 4, name + 10n ** 9n, 6, 100])).toEqual(['runes own', 'runes own', 'none']);
  });
});

describe('a query', () => {
  it.each([
    [{}, 'a query for unconfirmed transactions must have transactions'],
    [{ transactions: [], network: 'moon' as 'main' }, 'unknown network moon'],
    [{ transactions: [{ hex: '0' }] }, 'transactions[0].hex is not hex'],
    [{ transactions: [{ hex: '' }] }, 'transactions[0].hex is not hex'],
    [
      { transactions: [{ hex: '0200' }] },
      'transactions[0].hex is not a transaction: the transaction ends inside of a transaction: it has 2 bytes and would need 4',
    ],
    [
      { transactions: [{ hex: `${hexOf(paying([`${'ab'.repeat(32)}:0`], taproot(1)))}00` }] },
      'transactions[0].hex is not a transaction: the transaction is followed by 1 unexpected bytes',
    ],
  ] as [PendingQuery, string][])('that is malformed is a TypeError: %j', async (query, message) => {
    await expect(mirror.pending(query)).rejects.toThrow(new TypeError(message));
  });

  it('can be aborted', async () => {
    const reason = new Error('enough');
    const query = { transactions: chain.given(chain.mempool(1, random)), network, signal: AbortSignal.abort(reason) } as const;
    await expect(mirror.pending(query)).rejects.toBe(reason);
  });

  it.each([1, 3])('sends %s parallel requests to the mirror, apart from the one for outputs', async (requestsAtOnce) => {
    const pools = Array.from({ length: 5 }, () => chain.mempool(random(2 ** 31), random));
    let [running, most] = [0, 0];
    const counted =
      <Args extends unknown[], Result>(ask: (...args: Args) => Promise<Result>) =>
      async (...args: Args): Promise<Result> => {
        running += 1;
        most = Math.max(most, running);
        await turn();
        return ask(...args).finally(() => {
          running -= 1;
        });
      };
    const slow = { ...reads, etching: counted(reads.etching), activity: counted(reads.activity) };
    for (const pool of pools) {
      const query = { transactions: chain.given(pool), network } as const;
      expect(await pendingRunes(query, slow, { ...PENDING_LIMITS, requestsAtOnce })).toEqual(await pendingRunes(query, reads));
    }
    expect(most).toBe(requestsAtOnce);
  });

  it('is not changed by a transaction with many inputs', async () => {
    const { outpoint, height } = newestOutput();
    const wide = paying(
      Array.from({ length: 20 }, (_, i) => `${'ab'.repeat(32)}:${i}`),
      taproot(1),
    );
    const given = [wide, paying([outpoint], taproot(1))].map((one) => ({ hex: hexOf(one), inputs: one.inputs.map(() => ({ height })) }));
    const { transactions } = await pendingRunes({ transactions: given, network }, reads, { ...PENDING_LIMITS, lookUps: 4 });
    expect(transactions.map(({ result }) => result)).toEqual(['unknown', 'runes']);
  });

  it('of a mirror that cannot be read is a MirrorError', async () => {
    const none = new Mirror('http://host/', { fetch: async () => new Response('', { status: 404 }) });
    await expect(none.pending({ transactions: [] })).rejects.toMatchObject({ name: 'MirrorError', statusCode: 503 });
  });
});

it('the example of docs/client.md finds parents and heights on an Esplora server, which must be on the same chain', async () => {
  const newest = newestOutput();
  const parent = paying([newest.outpoint], taproot(1));
  const child = paying([`${parent.txid}:0`, `${'ab'.repeat(32)}:0`], taproot(7));
  // Transactions of strangers to the same address: of many inputs, of a parent that cannot be read, and one that cannot be read itself.
  const ids = Array.from({ length: 1200 }, (_, i) => `${String(i).padStart(64, '0')}:0`);
  const strange = [ids, [`${'cd'.repeat(32)}:0`], [`${'ab'.repeat(32)}:7`]].map((inputs) => paying(inputs, taproot(7)));
  const [wide, orphan, hidden] = strange.map(({ txid }) => txid);
  const pool = [parent, child, ...strange];
  let tipHash = chain.hash;
  let requests = 0;
  const server = createServer(({ url = '' }, response) => {
    requests += 1;
    const [, , kind, id = '', what] = url.split('/');
    const transactionOf = (txid: string) => {
      const inputs = pool.find((one) => one.txid === txid)?.inputs;
      const vin = inputs?.map((outpoint) => ({ txid: outpoint.slice(0, 64), prevout: { scriptpubkey: '' } }));
      const height = chain.outputs.get(`${txid}:0`)?.height ?? 1;
      return { txid, vin, status: inputs === undefined ? { confirmed: true, block_height: height } : { confirmed: false } };
    };
    if (id === 'cd'.repeat(32) || (id === hidden && what === 'hex')) response.writeHead(429).end('slow down');
    else if (kind === 'block-height') response.end(Number(id) === chain.tip ? tipHash : '');
    else if (what === 'hex') response.end(pool.flatMap((one) => (one.txid === id ? hexOf(one) : [])).join());
    else response.end(JSON.stringify(kind === 'address' ? [...strange, child].map(({ txid }) => transactionOf(txid)) : transactionOf(id)));
  });
  const [host, esplora] = [await startServer(out), await listening(server)];
  try {
    const example = exampleBelow('Those of an address', out, [
      ['https://mirror.example.org', host.url],
      ['https://mempool.space', esplora.url],
      [/bc1pry0[^']*/, addressOf(taproot(7), NETWORKS.regtest, hash256) ?? ''],
      ["'main'", "'regtest'"],
    ]);
    const run = () => promisify(execFile)(process.execPath, [example]);
    const { stdout, stderr } = await run();
    expect(stderr).toBe('');
    for (const one of [wide, orphan, hidden]) expect(stdout).toMatch(new RegExp(`^${one} may move any runes: `, 'm'));
    expect(stdout).toContain(`${hidden} may move any runes: tx/${hidden}/hex: status 429`);
    expect(requests).toBeLessThanOrEqual(1002);
    expect(stdout.match(new RegExp(`^${child.txid} [+][0-9.]+ [A-Z•]+ \\{$`, 'gm'))).toHaveLength(newest.held.length);
    tipHash = 'ab'.repeat(32);
    await expect(run()).rejects.toMatchObject({
      stdout: expect.not.stringContaining(child.txid),
      stderr: expect.stringContaining('another chain: try again'),
    });
  } finally {
    await host.close();
    await esplora.close();
  }
});

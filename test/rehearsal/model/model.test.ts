import { readFileSync } from 'node:fs';
import { decompress } from 'fzstd';
import { describe, expect, it } from 'vitest';
import { addressOf } from './address.ts';
import { hexOfId, merkleRoot, outpointKey, outpointText, parseBlock, parseOutpoint } from './block.ts';
import { Heights } from './heights.ts';
import { blockBytes, type ChainTransaction, InventedChain, message, nameHex, push, SCRIPTS } from './inventedChain.ts';
import { Model, type TransactionRows } from './model.ts';
import { FIRST_RESERVED, lettersOf } from './names.ts';
import { decipher } from './runestone.ts';

const FIXTURES = new URL('../../fixtures/indexing/', import.meta.url);

/** Reads lines of JSON. Numbers of 16 or more digits become strings, because a double cannot represent them. */
function lines<T>(name: string): T[] {
  const text = readFileSync(new URL(name, FIXTURES), 'utf8').replace(/([:[,])(\d{16,})(?=[,\]}])/g, '$1"$2"');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

interface Chain {
  test: string;
  chain: 'mainnet' | 'regtest';
  /** False for one chain: its expected state comes from an ord that does not index runes. */
  index_runes: boolean;
  blocks: string[];
  asserts: { height: number; runes: Record<string, unknown>[]; balances: [string, [string, string][]][] }[];
}

interface ExpectedMessage {
  edicts?: { id: { block: number; tx: number }; amount: number | string; output: number }[];
  etching?: Record<string, unknown> & { terms?: Record<string, unknown> };
  mint?: { block: number | string; tx: number };
  pointer?: number;
}

interface MessageCase {
  name: string;
  outputs: string[];
  expected:
    | null
    | { runestone: ExpectedMessage }
    | { cenotaph: { flaw: string; mint?: { block: number; tx: number }; etching?: number | string } };
}

const text = (value: bigint | number | string | null | undefined) => (value === null || value === undefined ? null : String(value));
const idText = (id: { block: number | string; tx: number } | undefined) => (id === undefined ? null : `${id.block}:${id.tx}`);

describe('the rules of ord', () => {
  const chains = lines<Chain>('blocks.ndjson');

  it.each(chains)('chain $test', ({ chain, index_runes, blocks, asserts }) => {
    const model = new Model(chain);
    let checked = 0;
    for (const [height, hex] of blocks.entries()) {
      model.apply(Buffer.from(hex, 'hex'), height);
      for (const { runes, balances } of asserts.filter((each) => each.height === height)) {
        checked++;
        if (!index_runes) continue;
        expect(modelRunes(model)).toEqual(runes);
        const held = [...model.outputs()].filter(({ spent }) => !spent);
        const actual = held.map((output) => [output.outpoint, output.held.map(({ rune, amount }) => [rune.id, String(amount)])]);
        expect(actual.sort()).toEqual([...balances].sort());
      }
    }
    expect(checked).toBe(asserts.length);
  });

  it('has all chains', () => {
    expect(chains).toHaveLength(55);
    expect(chains.reduce((sum, { asserts }) => sum + asserts.length, 0)).toBe(96);
  });

  const messages = lines<MessageCase>('messages.ndjson');

  it('has all messages', () => {
    expect(messages).toHaveLength(216);
  });

  it.each(messages)('message $name', ({ outputs, expected }) => {
    const actual = decipher(outputs.map((hex) => Buffer.from(hex, 'hex')));
    if (expected === null) expect(actual).toBeNull();
    else if ('cenotaph' in expected) {
      const { flaw, mint, etching } = expected.cenotaph;
      expect(actual).toEqual({ kind: 'cenotaph', flaw, mint: idText(mint), name: etching === undefined ? null : BigInt(etching) });
    } else {
      expect(actual?.kind).toBe('runestone');
      expect(messageTexts(actual)).toEqual(expectedTexts(expected.runestone));
    }
  });
});

function modelRunes(model: Model): Record<string, unknown>[] {
  return model.runes.map((rune) => {
    const { amount, cap, heightStart, heightEnd, offsetStart, offsetEnd } = rune.terms ?? {};
    const terms = {
      amount: text(amount),
      cap: text(cap),
      height_start: text(heightStart),
      height_end: text(heightEnd),
      offset_start: text(offsetStart),
      offset_end: text(offsetEnd),
    };
    return {
      id: rune.id,
      block: rune.block,
      burned: String(rune.counts.burned),
      divisibility: rune.divisibility,
      etching: rune.txid,
      mints: String(rune.counts.mints),
      number: rune.number,
      premine: String(rune.premine),
      rune: String(rune.name),
      spacers: rune.spacers,
      symbol: rune.symbol,
      terms: rune.terms === null ? null : terms,
      timestamp: rune.timestamp,
      turbo: rune.turbo,
    };
  });
}

function messageTexts(actual: ReturnType<typeof decipher>): unknown {
  if (actual?.kind !== 'runestone') return null;
  const { edicts, etching, mint, pointer } = actual;
  const terms = etching?.terms && Object.fromEntries(Object.entries(etching.terms).map(([key, value]) => [key, text(value)]));
  return {
    edicts: edicts.map(({ id, amount, output }) => [id, text(amount), output]),
    etching: etching && { ...etching, premine: text(etching.premine), name: text(etching.name), terms },
    mint,
    pointer,
  };
}

function expectedTexts({ edicts = [], etching, mint, pointer }: ExpectedMessage): unknown {
  const { terms, rune, premine, divisibility = null, spacers = null, symbol = null, turbo = false } = etching ?? {};
  const [heightStart, heightEnd] = (terms?.['height'] ?? []) as (number | null)[];
  const [offsetStart, offsetEnd] = (terms?.['offset'] ?? []) as (number | null)[];
  const amounts = { amount: text(terms?.['amount'] as number), cap: text(terms?.['cap'] as number) };
  const bounds = { heightStart: text(heightStart), heightEnd: text(heightEnd), offsetStart: text(offsetStart), offsetEnd: text(offsetEnd) };
  const names = { premine: text(premine as number), name: text(rune as number) };
  return {
    edicts: edicts.map(({ id, amount, output }) => [idText(id), text(amount), output]),
    etching: etching ? { ...names, divisibility, spacers, symbol, turbo, terms: terms ? { ...amounts, ...bounds } : null } : null,
    mint: idText(mint),
    pointer: pointer ?? null,
  };
}

describe('the bytes of blocks', () => {
  it.each([
    { height: 849_236, messages: 1813 },
    { height: 866_342, messages: 3949 },
  ])('block $height of mainnet', ({ height, messages }) => {
    const bytes = decompress(readFileSync(new URL(`blocks/${height}.bin.zst`, FIXTURES)));
    const block = parseBlock(bytes);
    expect(merkleRoot(block.transactions)).toBe(block.merkleRoot);
    expect(block.hash).toMatch(/^0{19}/);
    const read = block.transactions.map(({ scripts }) => decipher(scripts)).filter((each) => each !== null);
    expect(read).toHaveLength(messages);
    expect(read.filter(({ kind }) => kind === 'cenotaph')).toEqual([]);
    expect(() => parseBlock(bytes.subarray(0, bytes.length - 1))).toThrow(RangeError);
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(() => parseBlock(longer)).toThrow('behind its last transaction');
    const model = new Model('mainnet');
    model.apply(bytes, height);
    expect(model.tip).toEqual({ height, hash: block.hash, time: block.time });
  });

  it('writes and reads outpoints', () => {
    for (const vout of [0, 1, 255, 256, 70_000, 0xffffffff]) {
      const written = `${'00ff80'.repeat(10)}a1b2:${vout}`;
      expect(outpointText(parseOutpoint(written))).toBe(written);
      expect(hexOfId(parseOutpoint(written).slice(0, 32))).toBe(written.slice(0, 64));
    }
  });
});

// Examples from BIP 173, BIP 350, BIP 86, BIP 16 and the first block of Bitcoin.
const ADDRESSES = [
  ['76a91462e907b15cbf27d5425399ebf6f0fb50ebb88f1888ac', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'],
  ['76a914000000000000000000000000000000000000000088ac', '1111111111111111111114oLvT2'],
  ['a914748284390f9e263a4b766a75d0633c50426eb87587', '3CK4fEwbMP7heJarmU4eqA3sMbVJyEnU3V'],
  ['0014751e76e8199196d454941c45d1b3a323f1433bd6', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
  [
    '512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
  ],
  [
    '5128751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6',
    'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y',
  ],
  ['6002751e', 'bc1sw50qgdz25j'],
  ['5210751e76e8199196d454941c45d1b3a323', 'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs'],
  ['51024e73', 'bc1pfeessrawgf'],
  ['0015751e76e8199196d454941c45d1b3a323f1433bd6aa', null],
  ['6102751e', null],
  [`21${'02'.repeat(33)}ac`, null],
  ['6a5d00', null],
  ['', null],
] as const;

describe('addresses', () => {
  it.each(ADDRESSES)('%s is %s', (script, address) => {
    expect(addressOf(Buffer.from(script, 'hex'), { hrp: 'bc', key: 0, script: 5 })).toBe(address);
  });

  it('differ by network', () => {
    const test = { key: 0x6f, script: 0xc4 };
    const program = Buffer.from('00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262', 'hex');
    expect(addressOf(program, { hrp: 'tb', ...test })).toBe('tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7');
    const key = Buffer.from('76a914243f1394f44554f4ce3fd68649c19adc483ce92488ac', 'hex');
    expect(addressOf(key, { hrp: 'tb', ...test })).toBe('mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn');
    const hash = Buffer.from('a9144e9f39ca4688ff102128ea4ccda34105324305b087', 'hex');
    expect(addressOf(hash, { hrp: 'bcrt', ...test })).toBe('2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc');
  });
});

describe('heights of outputs', () => {
  it('has the same entries as a Map', () => {
    const heights = new Heights();
    const expected = new Map<string, number>();
    // Uses only eight transaction ids, so that searches collide with other entries and removed entries.
    const key = (i: number) => outpointKey('abcdefgh'.charAt(i % 8).repeat(32), i >> 3);
    for (let step = 0; step < 60_000; step++) {
      const each = key((step * 7919) % 20_011);
      if (step % 3 === 2) {
        heights.delete(each);
        expected.delete(each);
      } else {
        heights.set(each, step);
        expected.set(each, step);
      }
    }
    expect(heights.size).toBe(expected.size);
    for (let i = 0; i < 20_011; i++) expect(heights.get(key(i))).toBe(expected.get(key(i)));
  });
});

/** Applies blocks to a model and collects the rows. `spend` returns the outpoint of an earlier transaction. */
class Directed {
  readonly rows: TransactionRows[] = [];
  readonly model = new Model('regtest', { onRows: (each) => this.rows.push(each) });
  #hash = '00'.repeat(32);
  #height = 0;

  /** Adds a block. Returns the txids. */
  block(...transactions: ChainTransaction[]): string[] {
    const { bytes, hash, txids } = blockBytes(this.#hash, 1000 + this.#height, transactions);
    this.model.apply(bytes, this.#height++);
    this.#hash = hash;
    return txids;
  }

  /** Returns the rows of the last transaction: operation, rune, address, receiver, amount, output. */
  last(): unknown[][] {
    return (this.rows.at(-1)?.rows ?? []).map((row) => [row.operation, row.rune, row.address, row.receiver, row.amount, row.output]);
  }
}

const COIN = { outpoint: `${'11'.repeat(32)}:0` };
const addressIn = (script: string) => addressOf(Buffer.from(script, 'hex'), { hrp: 'bcrt', key: 0x6f, script: 0xc4 });

describe('rows', () => {
  const A = SCRIPTS.key(1);
  const B = SCRIPTS.taproot(2);
  const NONE = SCRIPTS.bare(3);
  const a = addressIn(A);
  const b = addressIn(B);

  /**
   * Makes a chain whose block 1 etches rune 1:1 with a premine of 100. Output 0 gives 60 to A, output 1 gives 30 to no
   * address, and output 2 gives 6 to B. 4 burn.
   */
  function etched(...terms: number[]): { chain: Directed; outpoint: (vout: number) => { outpoint: string } } {
    const chain = new Directed();
    chain.block({ inputs: [], outputs: [] });
    const [txid = ''] = chain
      .block(
        { inputs: [], outputs: [] },
        {
          inputs: [COIN],
          outputs: [A, NONE, B, SCRIPTS.burn(), message(2, 3, 6, 100, ...terms, 22, 2, 0, 0, 0, 60, 0, 0, 0, 30, 1, 0, 0, 4, 3)],
        },
      )
      .slice(1);
    return { chain, outpoint: (vout) => ({ outpoint: `${txid}:${vout}` }) };
  }

  it('of a premine name the receiving outputs and the burned units', () => {
    expect(etched().chain.last()).toEqual([
      ['etching', '1:1', null, null, null, null],
      ['receive', '1:1', a, null, 60n, 0],
      ['receive', '1:1', null, null, 30n, 1],
      ['burn', '1:1', null, null, 4n, 3],
      ['receive', '1:1', b, null, 6n, 2],
    ]);
  });

  it('of a move have each part with its origin', () => {
    const { chain, outpoint } = etched(8, 9, 10, 7);
    const edicts = [1, 1, 80, 1, 0, 0, 15, 0, 0, 0, 3, 2];
    chain.block({
      inputs: [outpoint(0), outpoint(1), outpoint(2)],
      outputs: [B, NONE, SCRIPTS.burn(), message(20, 1, 20, 1, 0, ...edicts)],
    });
    expect(chain.last()).toEqual([
      ['mint', '1:1', null, null, 7n, null],
      ['receive', '1:1', null, null, 80n, 1],
      ['send', '1:1', a, null, 60n, 1],
      ['send', '1:1', null, null, 20n, 1],
      ['receive', '1:1', b, null, 15n, 0],
      ['send', '1:1', null, b, 10n, 0],
      ['send', '1:1', b, b, 5n, 0],
      ['burn', '1:1', b, null, 1n, 2],
      ['burn', '1:1', null, null, 2n, 2],
      ['receive', '1:1', b, null, 5n, 0],
    ]);
    const rune = chain.model.runes[0];
    if (rune === undefined) throw new Error('the rune is missing');
    expect(chain.model.supply(rune)).toEqual({
      current: 100n + 7n - 4n - 3n,
      premine: 100n,
      minted: 7n,
      mints: 1,
      mintPercentage: '11.1111',
      mintable: true,
      burned: 7n,
      burnRows: 3,
      rows: 15,
      unaddressed: 80n,
    });
    expect(chain.model.holders(rune)).toEqual([{ address: b, amount: 20n }]);
    expect(chain.model.holders(rune, 1)).toEqual([
      { address: a, amount: 60n },
      { address: b, amount: 6n },
    ]);
    expect([a, b, 'x'].map((address) => chain.model.holding(rune, String(address)))).toEqual([0n, 20n, null]);
    const spent = chain.model.output(outpoint(0).outpoint);
    expect(spent).toMatchObject({ address: a, spent: true, spentHeight: 2, held: [{ amount: 60n }], location: { height: 1, txIndex: 1 } });
  });

  it('of a cenotaph are burns, the etching, the mint and its burn', () => {
    const { chain, outpoint } = etched(8, 9, 10, 7);
    chain.block({ inputs: [outpoint(1), outpoint(0)], outputs: [B, message(20, 1, 20, 1, 126, 0)] });
    expect(chain.last()).toEqual([
      ['burn', '1:1', null, null, 30n, null],
      ['burn', '1:1', a, null, 60n, null],
      ['mint', '1:1', null, null, 7n, null],
      ['burn', '1:1', null, null, 7n, null],
    ]);
  });

  it('include mints of nothing, and there is no move for an edict without runes', () => {
    const { chain, outpoint } = etched(8, 9);
    chain.block({ inputs: [outpoint(2)], outputs: [A, B, message(20, 1, 20, 1, 0, 1, 1, 0, 0, 0, 0, 5, 1, 7, 7, 5, 1)] });
    expect(chain.last()).toEqual([
      ['mint', '1:1', null, null, 0n, null],
      ['receive', '1:1', a, null, 6n, 0],
      ['send', '1:1', b, a, 6n, 0],
    ]);
  });

  it('are summed if there are more than 10,000', () => {
    for (const extra of [0, 1]) {
      const chain = new Directed();
      chain.block({ inputs: [], outputs: [] });
      const [first = ''] = chain.block({ inputs: [COIN], outputs: [A, message(2, 1, 6, 5000 + extra)] });
      const edicts = Array.from({ length: 50 }, (_, i) => (i === 0 ? [1, 0, 1, 101] : [0, 0, 1, 101])).flat();
      const outputs = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? A : NONE));
      chain.block({ inputs: [{ outpoint: `${first}:0` }], outputs: [...outputs, message(0, ...edicts)] });
      const rows = chain.last();
      expect(chain.rows.at(-1)?.folded).toBe(extra === 1);
      expect(chain.rows.at(-1)?.rows.map(({ eventIndex }) => eventIndex)).toEqual(rows.map((_, i) => i));
      if (extra === 0) {
        expect(rows).toHaveLength(10_000);
        expect(rows[1]).toEqual(['send', '1:0', a, a, 1n, 0]);
      } else {
        const to = (i: number) => (i % 2 === 0 ? a : null);
        expect(rows).toEqual([
          ...outputs.map((_, i) => ['receive', '1:0', to(i), null, i === 0 ? 51n : 50n, i]),
          ...outputs.map((_, i) => ['send', '1:0', a, to(i), i === 0 ? 51n : 50n, i]),
        ]);
      }
    }
  });
});

const NAME = 99246114928149462n;
const REVEALED = push(nameHex(NAME));

describe('a name is etched only with its commitment', () => {
  it.each([
    { what: '6 confirmations', blocks: 5, etched: true },
    { what: '5 confirmations', blocks: 4, etched: false },
    { what: 'an annex behind', witness: [REVEALED, 'c0', '50'], etched: true },
    { what: 'an annex in place of the control block', witness: [REVEALED, '50'], etched: false },
    { what: 'the script alone', witness: [REVEALED], etched: false },
    { what: 'other instructions before', witness: [`ac00${push('aa')}${REVEALED}ff`, 'c0'], etched: true },
    { what: 'a cut push before', witness: ['4c', 'c0'], etched: false },
    { what: 'a cut push behind', witness: [`${REVEALED}4cff`, 'c0'], etched: true },
    { what: 'a zero at the end', witness: [push(`${nameHex(NAME)}00`), 'c0'], etched: false },
    { what: 'an output that is not P2TR', script: SCRIPTS.key(1), etched: false },
    { what: 'a witness program of another version', script: `5220${'01'.repeat(32)}`, etched: false },
    { what: 'a reserved name', name: FIRST_RESERVED, witness: [push(nameHex(FIRST_RESERVED)), 'c0'], etched: false },
    { what: 'the last name', name: FIRST_RESERVED - 1n, witness: [push(nameHex(FIRST_RESERVED - 1n)), 'c0'], etched: true },
    { what: 'a name below the minimum', name: 10n ** 16n, witness: [push(nameHex(10n ** 16n)), 'c0'], etched: false },
  ])('$what: $etched', ({ blocks = 9, script = SCRIPTS.taproot(1), witness = [REVEALED, 'c0'], name = NAME, etched }) => {
    const chain = new Directed();
    const [first = ''] = chain.block({ inputs: [COIN], outputs: [script] });
    for (let left = blocks - 1; left > 0; left--) chain.block({ inputs: [], outputs: [] });
    chain.block({ inputs: [{ outpoint: `${first}:0`, witness }], outputs: [script, message(2, 1, 4, name)] });
    expect(chain.model.runes.map((rune) => rune.name)).toEqual(etched ? [name] : []);
    expect(chain.model.rune(lettersOf(name))).toBe(chain.model.runes[0]);
  });
});

/** Sums of amounts, computed from rows. They must agree with the state of the model. */
class Sums {
  readonly balances = new Map<string, bigint>();
  readonly received = new Map<string, bigint>();
  readonly counts = new Map<string, number>();

  add({ txid, rows }: TransactionRows): void {
    for (const [i, { eventIndex, operation, rune, address, amount, output }] of rows.entries()) {
      if (eventIndex !== i) throw new Error(`row ${i} of ${txid} has the index ${eventIndex}`);
      for (const key of [rune, `${operation} ${rune}`]) this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
      if (operation === 'etching' || operation === 'mint') continue;
      const sign = operation === 'receive' ? 1n : -1n;
      const holder = `${rune} ${address}`;
      this.balances.set(holder, (this.balances.get(holder) ?? 0n) + sign * (amount ?? 0n));
      const outpoint = `${txid}:${output} ${rune} ${address}`;
      if (operation === 'receive') this.received.set(outpoint, (this.received.get(outpoint) ?? 0n) + (amount ?? 0n));
    }
  }
}

function checkSums(model: Model, sums: Sums): void {
  const held = new Map<string, bigint>();
  const received = new Map<string, bigint>();
  const byAddress = new Map<string, string[]>();
  for (const { outpoint, address, spent, held: balances } of model.outputs()) {
    for (const { rune, amount } of balances) {
      const holder = `${rune.id} ${address}`;
      held.set(holder, (held.get(holder) ?? 0n) + (spent ? 0n : amount));
      received.set(`${outpoint} ${rune.id} ${address}`, amount);
    }
    if (address !== null) byAddress.set(address, [...(byAddress.get(address) ?? []), ...(spent ? [] : [outpoint])]);
  }
  expect(new Map([...sums.received].sort())).toEqual(new Map([...received].sort()));
  for (const rune of model.runes) {
    const { current, minted, premine, burned, mints, burnRows, rows, unaddressed } = model.supply(rune);
    const holders = model.holders(rune);
    expect(current).toBe(premine + minted - burned);
    expect(current).toBe(holders.reduce((sum, { amount }) => sum + amount, unaddressed));
    expect([mints, burnRows, rows]).toEqual([`mint ${rune.id}`, `burn ${rune.id}`, rune.id].map((key) => sums.counts.get(key) ?? 0));
    expect(unaddressed).toBe(held.get(`${rune.id} null`) ?? 0n);
    for (const { address, amount } of holders) expect(amount).toBe(held.get(`${rune.id} ${address}`));
  }
  // Compares only balances of addresses. Units of a premine or mint can be burned without a row that has an address, so
  // the rows do not determine the sum of outputs without an address.
  const addressed = (each: Map<string, bigint>) => new Map([...each].filter(([key]) => !key.endsWith(' null')).sort());
  expect(addressed(sums.balances)).toEqual(addressed(held));
  for (const [key, amount] of addressed(held)) {
    const [id = '', address = ''] = key.split(' ');
    const rune = model.rune(id);
    expect(rune && model.holding(rune, address)).toBe(amount);
  }
  expect([...model.addresses()].sort()).toEqual([...byAddress.keys()].sort());
  for (const [address, outpoints] of byAddress) {
    expect(
      model
        .outputsOf(address)
        .map(({ outpoint }) => outpoint)
        .sort(),
    ).toEqual(outpoints.sort());
    for (const { amount } of model.balances(address)) expect(amount).toBeGreaterThan(0n);
  }
}

describe('an invented chain', () => {
  it.each([1, 2, 3, 4])('has rows whose sums equal its state (seed %i)', (seed) => {
    const invented = new InventedChain(seed);
    const sums = new Sums();
    const operations = new Map<string, number>();
    const model = new Model(seed === 1 ? 'signet' : 'regtest', {
      onRows: (each) => {
        sums.add(each);
        for (const { operation, address } of each.rows) {
          const key = `${operation} ${address === null ? 'without' : 'with'} address`;
          operations.set(key, (operations.get(key) ?? 0) + 1);
        }
      },
    });
    for (let height = 0; height < 300; height++) {
      invented.grow();
      model.apply(invented.blocks[height] ?? Buffer.alloc(0), height);
      if (height % 50 === 49) checkSums(model, sums);
    }
    // The chain must contain every operation with and without an address. Otherwise the sums would prove little.
    for (const operation of ['receive', 'send', 'burn']) {
      for (const kind of ['with', 'without']) expect(operations.get(`${operation} ${kind} address`) ?? 0).toBeGreaterThan(20);
    }
    for (const operation of ['etching', 'mint']) expect(operations.get(`${operation} without address`)).toBeGreaterThan(50);
    expect(model.runes.filter(({ name }) => name < 10n ** 18n).length).toBeGreaterThan(10);
    expect(model.runes.filter(({ cenotaph }) => cenotaph).length).toBeGreaterThan(0);
    expect([...model.outputs()].filter(({ spent }) => spent).length).toBeGreaterThan(100);
    expect([...model.outputs()].filter(({ held }) => held.length > 1).length).toBeGreaterThan(20);
  });

  it.each([5, 6])('goes back, and forward along the same and other blocks (seed %i)', (seed) => {
    const invented = new InventedChain(seed);
    const rows: TransactionRows[] = [];
    const model = new Model('regtest', { undoBlocks: 70, onRows: (each) => rows.push(each) });
    const digests: string[] = [];
    const holders: unknown[] = [];
    const listed = (height?: number) => model.runes.slice(0, 40).map((rune) => [rune.id, model.holders(rune, height)]);
    const grow = (to: number) => {
      for (let height = digests.length; height < to; height++) {
        if (invented.blocks.length === height) invented.grow();
        model.apply(invented.blocks[height] ?? Buffer.alloc(0), height);
        digests.push(model.digest());
        holders.push(listed());
      }
    };
    const back = (height: number) => {
      model.rewind(height);
      digests.length = holders.length = height + 1;
      rows.splice(0, rows.length, ...rows.filter((each) => each.height <= height));
    };
    grow(120);
    for (const depth of [1, 7, 60, 70]) {
      const before = [...digests];
      const tip = before.length - 1;
      const told = rows.filter(({ height }) => height > tip - depth);
      for (const height of [tip, tip - 1, tip - depth]) {
        const then = new Set((holders[height] as [string, unknown][]).map(([id]) => id));
        expect((listed(height) as [string, unknown][]).filter(([id]) => then.has(id))).toEqual(holders[height]);
      }
      back(tip - depth);
      expect(model.digest()).toBe(before[tip - depth]);
      grow(tip + 1);
      expect(digests).toEqual(before);
      expect(rows.filter(({ height }) => height > tip - depth)).toEqual(told);
      back(tip - depth);
      invented.cut(tip - depth + 1);
      grow(tip + 5);
      expect(digests[tip]).not.toBe(before[tip]);
      // Compares with a model that has only seen this branch.
      const fresh = new Model('regtest');
      for (const [height, bytes] of invented.blocks.entries()) fresh.apply(bytes, height);
      expect(model.digest()).toBe(fresh.digest());
    }
    expect(() => model.rewind(model.tip.height - 71)).toThrow('cannot go back');
    expect(() => model.apply(invented.blocks[3] ?? Buffer.alloc(0), model.tip.height + 1)).toThrow('does not follow');
  });
});

/** Tests rules of the protocol that the fixtures do not cover: names, addresses, rows, damaged blocks and hostile transactions. */
import { bech32, bech32m } from '@scure/base';
import { describe, expect, it } from 'vitest';
import { addressOf, hasAddress, scriptOfAddress } from '../../src/runes/address.ts';
import { hashText } from '../../src/runes/bytes.ts';
import type { LedgerRow } from '../../src/runes/ledgerRows.ts';
import { commitmentOf, minimumName, nameNumber, nameText, spacedName } from '../../src/runes/name.ts';
import { NETWORKS } from '../../src/runes/networks.ts';
import { BlockError, readBlock } from '../../src/runes/parseBlock.ts';
import { runeId } from '../../src/runes/runeId.ts';
import { pushes, tapscriptOf } from '../../src/runes/script.ts';
import { hash256, MemoryChain, outpointOf } from '../support/memoryLedger.ts';
import { blockBytes, messageScript, type Transaction, taproot } from '../support/runeBlocks.ts';

const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('names', () => {
  it.each([
    [0n, 'A'],
    [25n, 'Z'],
    [26n, 'AA'],
    [701n, 'ZZ'],
    [2055900680524219742n, 'UNCOMMONGOODS'],
    [6402364363415443603228541259936211926n, 'A'.repeat(27)],
    [2n ** 128n - 1n, 'BCGDENLQRQWDSLRUGSNLBTMFIJAV'],
  ])('%s is %s', (number, text) => {
    expect(nameText(number)).toBe(text);
    expect(nameNumber(text)).toBe(number);
  });

  it.each([
    ['UNCOMMONGOODS', 128, 'UNCOMMON•GOODS'],
    ['AAA', 0b111, 'A•A•A'],
    ['A', 1, 'A'],
  ])('%s with the spacers %d is spelled %s', (text, spacers, spaced) => expect(spacedName(text, spacers)).toBe(spaced));

  // Smallest names that may be etched at some heights: before the first block with runes, and around each step of 17,500 blocks (the block
  // before the step, the step, and the block after it).
  const STEPS = [
    ['AAAAAAAAAAAAA', 'ZZYZXBRKWXVA', 'ZZXZUDIVTVQA'],
    ['AAAAAAAAAAAA', 'ZZYZXBRKWXV', 'ZZXZUDIVTVQ'],
    ['AAAAAAAAAAA', 'ZZYZXBRKWY', 'ZZXZUDIVTW'],
    ['AAAAAAAAAA', 'ZZYZXBRKX', 'ZZXZUDIVU'],
    ['AAAAAAAAA', 'ZZYZXBRL', 'ZZXZUDIW'],
    ['AAAAAAAA', 'ZZYZXBS', 'ZZXZUDJ'],
    ['AAAAAAA', 'ZZYZXC', 'ZZXZUE'],
    ['AAAAAA', 'ZZYZY', 'ZZXZV'],
    ['AAAAA', 'ZZZA', 'ZZYA'],
    ['AAAA', 'ZZZ', 'ZZY'],
    ['AAA', 'AAA', 'AAA'],
    ['AA', 'AA', 'AA'],
    ['A', 'A', 'A'],
  ];
  it.each(STEPS.map((names, step) => [840_000 + 17_500 * step, names] as const))(
    'have the minimum length of mainnet around height %d',
    (height, names) => {
      expect([-1, 0, 1].map((offset) => nameText(minimumName(height + offset, NETWORKS.main)))).toEqual(names);
    },
  );

  it.each([
    [0, NETWORKS.main, 'AAAAAAAAAAAAA'],
    [840_000 + 175_000 - 2, NETWORKS.main, 'AAC'],
    [840_000 + 192_500 - 2, NETWORKS.main, 'AB'],
    [840_000 + 210_000 - 2, NETWORKS.main, 'B'],
    [2 ** 31, NETWORKS.main, 'A'],
    [0, NETWORKS.regtest, 'ZZYZXBRKWXVA'],
    [1, NETWORKS.signet, 'ZZXZUDIVTVQA'],
    [1, NETWORKS.testnet4, 'ZZXZUDIVTVQA'],
  ])('have a minimum length at height %d', (height, network, name) => expect(nameText(minimumName(height, network))).toBe(name));
});

describe('addresses', () => {
  const HASH = '162c5ea71c0b23f5b9022ef047c4a86470a5b070';
  const PROGRAM = '751e76e8199196d454941c45d1b3a323f1433bd6';
  it.each([
    [`76a914${HASH}88ac`, 'main', '132F25rTsvBdp9JzLLBHP5mvGY66i1xdiM'],
    ['76a914243f1394f44554f4ce3fd68649c19adc483ce92488ac', 'signet', 'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn'],
    ['a9144e9f39ca4688ff102128ea4ccda34105324305b087', 'regtest', '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc'],
    [`a914${HASH}87`, 'main', '33iFwdLuRpW1uK1RTRqsoi8rR4NpDzk66k'],
    [`0014${PROGRAM}`, 'main', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    [
      '00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262',
      'testnet4',
      'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7',
    ],
    [
      '512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
      'main',
      'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
    ],
    [`5128${PROGRAM}${PROGRAM}`, 'main', 'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y'],
    ['6002751e', 'main', 'bc1sw50qgdz25j'],
    ['5210751e76e8199196d454941c45d1b3a323', 'main', 'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs'],
    ['', 'main', null],
    ['6a5d00', 'main', null],
    [`21${'02'.repeat(33)}ac`, 'main', null],
    [`5121${'02'.repeat(33)}51ae`, 'main', null],
    [`0013${PROGRAM.slice(2)}`, 'main', null],
    ['510175', 'main', null],
    [`5129${PROGRAM}${PROGRAM}00`, 'main', null],
    [`4f14${PROGRAM}`, 'main', null],
    [`76a914${HASH}88ad`, 'main', null],
    [`a914${HASH}88`, 'main', null],
  ] as const)('of %s on %s is %s', (script, network, address) => {
    expect(addressOf(hex(script), NETWORKS[network], hash256)).toBe(address);
    expect(hasAddress(hex(script))).toBe(address !== null);
    if (address === null) return;
    expect(Buffer.from(scriptOfAddress(address, NETWORKS[network], hash256)!).toString('hex')).toBe(script);
    const other = network === 'main' ? 'regtest' : 'main';
    expect(scriptOfAddress(address, NETWORKS[other], hash256)).toBeUndefined();
    for (let at = 0; at < address.length; at++) {
      const wrong = `${address.slice(0, at)}${address[at] === 'z' ? 'x' : 'z'}${address.slice(at + 1)}`;
      expect(scriptOfAddress(wrong, NETWORKS[network], hash256), wrong).toBeUndefined();
    }
    expect(scriptOfAddress(`1${address}`, NETWORKS[network], hash256)).toBeUndefined();
  });

  it('of every version and length equal those of another encoder', () => {
    const bytes = hash256(Uint8Array.of(1));
    for (let version = 0; version <= 16; version++) {
      for (let length = 2; length <= 40; length++) {
        const script = Uint8Array.of(version === 0 ? 0 : 0x50 + version, length, ...bytes, ...bytes).subarray(0, 2 + length);
        if (!hasAddress(script)) continue;
        const code = version === 0 ? bech32 : bech32m;
        const address = code.encode('bc', [version, ...code.toWords(script.subarray(2))]);
        expect(addressOf(script, NETWORKS.main, hash256)).toBe(address);
      }
    }
  });
});

describe('commitments', () => {
  const [script, control, annex] = [hex('aa'), hex('c0'), hex('50')];
  it.each([
    [[], undefined],
    [[script], undefined],
    [[annex], undefined],
    [[script, control], script],
    [[script, annex], undefined],
    [[script, control, annex], script],
    [[control, script, control], script],
    [[script, new Uint8Array()], script],
  ])('are found in the tapscript of a witness', (witness, found) => expect(tapscriptOf(witness)).toBe(found));

  it.each([
    ['02 abcd', 'abcd', true],
    ['4c02 abcd', 'abcd', true],
    ['4d0200 abcd', 'abcd', true],
    ['4e02000000 abcd', 'abcd', true],
    ['ac 01ff 02 abcd ac', 'abcd', true],
    ['03 abcd00', 'abcd', false],
    ['02 abcd', 'ab', false],
    ['4e ffffffff abcd', 'abcd', false],
    ['05 02abcd 02abcd', 'abcd', false],
    ['02 abcd 05', 'abcd', true],
    ['51', '01', false],
    ['00', '', true],
    ['51', '', false],
  ])('%s pushes %s: %s', (bytes, data, found) => expect(pushes(hex(bytes), hex(data))).toBe(found));
});

/** Returns a transaction that etches a rune with a reserved name and this premine. The message is output 0, and `outputs` follow it. */
const etching = (premine: bigint, outputs: readonly Uint8Array[], fields: readonly (bigint | number)[] = []): Transaction => ({
  inputs: [{ outpoint: outpointOf('11'.repeat(32), 0) }],
  outputs: [messageScript([2, 1, 6, premine, ...fields]), ...outputs],
});

const told = ({ operation, output, address, receiver_address, amount }: LedgerRow) => [
  operation,
  output,
  address,
  receiver_address,
  amount,
];

describe('an etching with a name', () => {
  const name = nameNumber('A'.repeat(13));
  const tapscript = Buffer.concat([Uint8Array.of(0), Uint8Array.of(commitmentOf(name).length), commitmentOf(name)]);
  const control = Uint8Array.of(0xc0);
  const message = messageScript([2, 1, 4, name]);

  /** Makes a chain that commits to names in block 1 and etches them at `height`. Each witness belongs to a separate transaction. */
  function etched(height: number, script: Uint8Array, ...witnesses: Uint8Array[][]): { ids: string[]; asked: number } {
    const chain = new MemoryChain(NETWORKS.regtest);
    const { block } = chain.add(
      blockBytes(1, [{ inputs: [{ outpoint: outpointOf('11'.repeat(32), 0) }], outputs: witnesses.map(() => script) }]),
      1,
    );
    const txid = hashText(block.txids, 32);
    const etchings = witnesses.map((witness, i) => ({
      inputs: [{ outpoint: outpointOf(txid, i), witness }],
      outputs: [message, taproot(1)],
    }));
    chain.add(blockBytes(height, etchings), height);
    return { ids: [...chain.ledger.byId.values()].map(({ row }) => row.id), asked: chain.asked.length };
  }

  it.each([
    ['6 blocks deep', 6, taproot(1), [[tapscript, control]], ['6:1'], 1],
    ['7 blocks deep', 7, taproot(1), [[tapscript, control]], ['7:1'], 1],
    ['5 blocks deep', 5, taproot(1), [[tapscript, control]], [], 1],
    ['with an annex', 6, taproot(1), [[tapscript, control, Uint8Array.of(0x50)]], ['6:1'], 1],
    ['behind other elements', 6, taproot(1), [[control, control, control, tapscript, control]], ['6:1'], 1],
    ['in an output that is not taproot', 6, Buffer.concat([Uint8Array.of(0, 32), new Uint8Array(32)]), [[tapscript, control]], [], 1],
    ['to another name', 6, taproot(1), [[tapscript.subarray(0, -1), control]], [], 0],
    [
      'twice in a block, where the first one counts',
      6,
      taproot(1),
      [
        [tapscript, control],
        [tapscript, control],
      ],
      ['6:1'],
      2,
    ],
    [
      'first in vain, then well',
      6,
      taproot(1),
      [
        [control, control],
        [tapscript, control],
      ],
      ['6:2'],
      1,
    ],
  ])('needs a commitment: %s', (_, height, script, witnesses, ids, asked) => {
    expect(etched(height, script, ...witnesses)).toEqual({ ids, asked });
  });
});

describe('rows', () => {
  const [alice, bob] = [taproot(1), taproot(2)];
  const [ALICE, BOB] = [alice, bob].map((script) => addressOf(script, NETWORKS.regtest, hash256));
  const nobody = Uint8Array.of(0x51);

  /** Makes a chain with one rune. Alice has 100 units in output 1. A script without an address has 50 units in output 2. */
  function started(): { chain: MemoryChain; alice: Uint8Array; nobody: Uint8Array } {
    const chain = new MemoryChain(NETWORKS.regtest);
    const { rows } = chain.add(blockBytes(1, [etching(150n, [alice, nobody], [0, 0, 0, 100, 1, 0, 0, 50, 2])]), 1);
    expect(rows.map(told)).toEqual([
      ['etching', null, null, null, null],
      ['receive', 1, ALICE, null, 100n],
      ['receive', 2, null, null, 50n],
    ]);
    const outpoint = (output: number) => outpointOf(rows[0]?.tx_id ?? '', output);
    return { chain, alice: outpoint(1), nobody: outpoint(2) };
  }

  it('exist for every kind of move', () => {
    const { chain, ...from } = started();
    const message = messageScript([0, 1, 1, 70, 1, 0, 0, 40, 2, 0, 0, 15, 0, 0, 0, 1, 3]);
    // Output 0 is the message. Output 1 belongs to Bob, output 2 has no address, and output 3 is another OP_RETURN. Bob gets the units that
    // no edict moves.
    const inputs = [{ outpoint: from.nobody }, { outpoint: from.alice }];
    const { rows } = chain.add(blockBytes(2, [{ inputs, outputs: [message, bob, nobody, Uint8Array.of(0x6a)] }]), 2);
    expect(rows.map(told)).toEqual([
      ['receive', 1, BOB, null, 70n],
      ['send', 1, null, BOB, 50n],
      ['send', 1, ALICE, BOB, 20n],
      ['receive', 2, null, null, 40n],
      ['send', 2, ALICE, null, 40n],
      ['burn', 0, ALICE, null, 15n],
      ['burn', 3, ALICE, null, 1n],
      ['receive', 1, BOB, null, 24n],
      ['send', 1, ALICE, BOB, 24n],
    ]);
    expect(rows.map(({ event_index }) => event_index)).toEqual(rows.map((_, i) => i));
    expect(new Set(rows.map(({ rune_id }) => rune_id))).toEqual(new Set(['1:1']));
  });

  it('of a cenotaph are burns of each input, then the etching, then mint and burn', () => {
    const { chain, ...from } = started();
    const mintable = chain.add(
      blockBytes(2, [{ inputs: [{ outpoint: outpointOf('22'.repeat(32), 0) }], outputs: [messageScript([2, 3, 8, 9, 10, 7]), nobody] }]),
      2,
    );
    expect(mintable.rows.map(told)).toEqual([['etching', null, null, null, null]]);
    // Tag 126 makes the message a cenotaph. The message has no name, so it etches nothing.
    const inputs = [{ outpoint: from.alice }, { outpoint: from.nobody }];
    const { rows } = chain.add(blockBytes(3, [{ inputs, outputs: [messageScript([2, 1, 20, 2, 20, 1, 126, 0]), bob] }]), 3);
    expect(rows.map((row) => [row.rune_id, ...told(row)])).toEqual([
      ['1:1', 'burn', null, ALICE, null, 100n],
      ['1:1', 'burn', null, null, null, 50n],
      ['2:1', 'mint', null, null, null, 7n],
      ['2:1', 'burn', null, null, null, 7n],
    ]);
    expect(chain.ledger.outputs.size).toBe(0);
  });

  it('of a cenotaph have a mint of zero, but no burn of it', () => {
    const { chain } = started();
    chain.add(blockBytes(2, [{ inputs: [{ outpoint: outpointOf('22'.repeat(32), 0) }], outputs: [messageScript([2, 3, 8, 1])] }]), 2);
    const { rows } = chain.add(
      blockBytes(3, [{ inputs: [{ outpoint: outpointOf('44'.repeat(32), 0) }], outputs: [messageScript([20, 2, 20, 1, 126, 0])] }]),
      3,
    );
    expect(rows.map(told)).toEqual([['mint', null, null, null, 0n]]);
  });

  it.each([
    [9_999, 10_000],
    [10_000, 2],
  ])('of a premine in %d moves have no senders', (moves, emitted) => {
    const chain = new MemoryChain(NETWORKS.regtest);
    const edicts = Array.from({ length: moves - 1 }, () => [0, 0, 1, 1]).flat();
    expect(chain.add(blockBytes(1, [etching(10n ** 9n, [alice], [0, ...edicts])]), 1).rows.length).toBe(emitted);
  });

  it('of a transaction without a receiving output are burns without an output', () => {
    const { chain, ...from } = started();
    const { rows } = chain.add(blockBytes(2, [{ inputs: [{ outpoint: from.alice }], outputs: [Uint8Array.of(0x6a)] }]), 2);
    expect(rows.map(told)).toEqual([['burn', null, ALICE, null, 100n]]);
  });

  it('of a coinbase follow its message', () => {
    const chain = new MemoryChain(NETWORKS.regtest);
    const { rows } = chain.add(blockBytes(0, [], [messageScript([2, 1, 6, 5]), alice]), 0);
    expect(rows.map((row) => [row.rune_id, ...told(row)])).toEqual([
      ['0:0', 'etching', null, null, null, null],
      ['0:0', 'receive', 1, ALICE, null, 5n],
    ]);
  });

  it('are absent in blocks below the first block with runes', () => {
    const chain = new MemoryChain(NETWORKS.main);
    expect(chain.add(blockBytes(839_999, [etching(5n, [alice])]), 839_999).rows).toEqual([]);
    expect(chain.ledger.runes).toBe(0);
    expect(chain.add(blockBytes(840_000, []), 840_000).changes.runes.map(({ row }) => row.spaced_name)).toEqual(['UNCOMMON•GOODS']);
  });

  it.each([
    [10_000, 0, 10_000],
    [10_001, 1, 3],
    [10_002, 0, 2],
  ])('of a transaction with %d moves are single rows up to 10,000', (rows, burns, emitted) => {
    const chain = new MemoryChain(NETWORKS.regtest);
    const [etched] = chain.add(blockBytes(1, [etching(10n ** 9n, [alice])]), 1).rows;
    const moves = Array.from({ length: (rows - burns) / 2 - 1 }, (_, i) => [0, 0, i + 1, 1]).flat();
    // The first edict has the id 1:1. If `burns` is true, the last edict burns 3 units.
    const integers = [0, 1, 1, ...moves.slice(2), ...(burns ? [0, 0, 3, 0] : [])];
    const inputs = [{ outpoint: outpointOf(etched?.tx_id ?? '', 1) }];
    const { rows: told } = chain.add(blockBytes(2, [{ inputs, outputs: [messageScript(integers), bob] }]), 2);
    expect(told.length).toBe(emitted);
    const sum = (operation: string) => told.reduce((sum, row) => sum + (row.operation === operation ? (row.amount ?? 0n) : 0n), 0n);
    expect([sum('receive'), sum('send'), sum('burn')]).toEqual([
      10n ** 9n - 3n * BigInt(burns),
      10n ** 9n - 3n * BigInt(burns),
      3n * BigInt(burns),
    ]);
  });

  it('of a billion moves need memory only for the outputs', () => {
    const chain = new MemoryChain(NETWORKS.regtest);
    const premine = 2n ** 100n;
    const shares = [0, 0, 0, premine / 2n, 1, 0, 0, premine / 4n, 2, 0, 0, 0, 3];
    const [etched] = chain.add(blockBytes(1, [etching(premine, [alice, nobody, bob], shares)]), 1).rows;
    const inputs = [1, 2, 3].map((output) => ({ outpoint: outpointOf(etched?.tx_id ?? '', output) }));
    const [count, edicts] = [20_000, 50_000];
    const toAll = [0, 0, 1, count + 1];
    const integers = [0, 1, 1, 1, count + 1, ...new Array<number[]>(edicts - 1).fill(toAll).flat()];
    const outputs = [...new Array<Uint8Array>(count).fill(bob), messageScript(integers)];
    const { rows, changes } = chain.add(blockBytes(2, [{ inputs, outputs }]), 2);
    // Each edict gives 1 unit from the first input to each output. Output 0 gets the rest.
    expect(changes.created.length).toBe(count);
    expect(changes.created[1]?.balances).toEqual([{ rune: runeId(1, 1), amount: BigInt(edicts) }]);
    const of = (operation: string) => rows.filter((row) => row.operation === operation);
    expect([of('receive').length, of('send').length, rows.length]).toEqual([count, count + 2, 2 * count + 2]);
    for (const operation of ['receive', 'send']) expect(of(operation).reduce((sum, { amount }) => sum + (amount ?? 0n), 0n)).toBe(premine);
  });
});

describe('a damaged block', () => {
  const witness = [Uint8Array.of(1, 2), Uint8Array.of(3)];
  const inputs = [{ outpoint: outpointOf('33'.repeat(32), 1), witness }];
  const good = blockBytes(0, [{ inputs, outputs: [messageScript([20, 1]), taproot(1)] }, etching(1n, [taproot(2)])]);
  const read = (bytes: Uint8Array) => readBlock(bytes, hash256);

  it('is distinct from a valid block', () =>
    expect(read(good).transactions.map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [1, 1],
      [1, 2],
      [1, 2],
    ]));

  it('is refused if any part is missing', () => {
    for (let length = 0; length < good.length; length++)
      expect(() => read(good.subarray(0, length)), `${length} bytes`).toThrow(BlockError);
  });

  it('is refused if a bit of its transactions is wrong', () => {
    const from = Buffer.from(good).indexOf(Uint8Array.of(2, 1, 2, 1, 3));
    const to = from + 5;
    for (let at = 36; at < good.length; at++) {
      // Skips the time, target and nonce, which only change the hash. Skips the bytes of witnesses, because the merkle root does not cover
      // them.
      if ((at >= 68 && at < 80) || (at >= from && at < to)) continue;
      const bytes = Uint8Array.from(good);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
      expect(() => read(bytes), `byte ${at}`).toThrow(BlockError);
    }
  });

  it.each([
    ['has bytes behind its end', Buffer.concat([good, Uint8Array.of(0)]), /1 unexpected bytes after its last transaction/],
    ['has no transactions', Buffer.concat([good.subarray(0, 80), Uint8Array.of(0)]), /cannot have 0 transactions/],
    ['claims billions of transactions', Buffer.concat([good.subarray(0, 80), hex('ffffffffffffffff7f')]), /transactions/],
    ['has a count in a long form', Buffer.concat([good.subarray(0, 80), hex('fd0300'), good.subarray(81)]), /not in its shortest form/],
  ])('is refused if it %s', (_, bytes, message) => expect(() => read(bytes)).toThrow(message));

  it('is refused if its last transaction is repeated, which keeps the merkle root', () => {
    const last = Buffer.from(good).subarray(Buffer.from(good).lastIndexOf(hex(`0200000001${'11'.repeat(32)}`)));
    const repeated = Buffer.concat([good, last]);
    repeated[80] = 4;
    expect(() => read(repeated)).toThrow(/merkle root/);
  });
});

it('mints succeed from the start height to the block below the end height, by height or by offset', () => {
  // Tags 12 and 14 are heights of start and end, 16 and 18 the offsets from the etching in block 1.
  for (const terms of [
    [12, 3, 14, 5],
    [16, 2, 18, 4],
    [12, 3, 16, 1, 14, 9, 18, 4],
  ]) {
    const chain = new MemoryChain(NETWORKS.regtest);
    const inputs = [{ outpoint: outpointOf('11'.repeat(32), 0) }];
    chain.add(blockBytes(1, [{ inputs, outputs: [messageScript([2, 3, 8, 9, 10, 7, ...terms]), taproot(1)] }]), 1);
    for (const height of [2, 3, 4, 5, 6]) {
      const mint = { inputs: [{ outpoint: outpointOf('22'.repeat(32), height) }], outputs: [messageScript([20, 1, 20, 1]), taproot(1)] };
      const minted = chain.add(blockBytes(height, [mint]), height).rows.some(({ operation }) => operation === 'mint');
      expect([terms, height, minted]).toEqual([terms, height, height === 3 || height === 4]);
    }
  }
});

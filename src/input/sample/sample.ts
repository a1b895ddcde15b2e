/**
 * The sample: rows in the form of a pull from a node (docs/rows.md), with a complete history.
 *
 * Block 840,000 is real, and has three of the first runes on Bitcoin. All other blocks are invented. Their random
 * numbers have a fixed seed, so that every run on every machine gives the same bytes. Invented transactions spend only
 * outputs of the sample, and conserve the total amount of each rune.
 */
import { createHash } from 'node:crypto';
import { nameText, reservedName } from '../../runes/name.ts';
import { FIRST_INVENTED, INVENTED_HASH_START } from './sampleMarks.ts';

// --- Random numbers with a fixed seed --------------------------------------------------------------------------------

const sha256 = (text: string): string => createHash('sha256').update(`rune-activity-mirror sample 1/${text}`).digest('hex');

/**
 * Returns a mulberry32 generator of numbers from 0 (inclusive) to 1 (exclusive). A seed always gives the same numbers.
 */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = mulberry32(0x72756e65);
/** Separate generator for the positions of transactions, so that changed events do not change tx ids. */
const randomPlace = mulberry32(0x9dcc59e8);

/** Separate generator for ordinary blocks, so that a change to the code of these blocks changes no other block. */
const randomDay = mulberry32(0x0da75eed);

const within = (from: number, to: number, draw: () => number): number => from + Math.floor(draw() * (to - from + 1));
const between = (from: number, to: number): number => within(from, to, random);

/** Returns text that looks like a regtest address. The checksum is wrong, so nobody can own the address. */
function newAddress(): string {
  const letters = Array.from({ length: random() < 0.8 ? 38 : 58 }, () => 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'[between(0, 31)]);
  return `bcrt1${letters.length === 38 ? 'q' : 'p'}${letters.join('')}`;
}

const wallets = Array.from({ length: 40 }, newAddress);

/** Returns a new address or, in half of the calls, one of 40 addresses that receive runes repeatedly. */
const someAddress = (): string => (random() < 0.5 ? (wallets[between(0, wallets.length - 1)] ?? '') : newAddress());

// --- Invented runes --------------------------------------------------------------------------------------------------

const MAX = 2n ** 128n - 1n;

interface Rune {
  readonly spaced: string;
  /** Number of a real rune. Invented runes have numbers from 9000000 on, which no real rune has. */
  readonly number?: number;
  readonly turbo?: true;
  readonly cenotaph?: true;
  readonly divisibility: number;
  readonly premine?: bigint;
  readonly symbol?: string;
  /** Amount per mint in smallest units, and maximum number of mints. */
  readonly terms?: readonly [amount: bigint, cap: bigint | number];
  /** Heights between which mints are allowed. In `offsets`, they are counted from the height of the etching. */
  readonly heights?: readonly [start: number | undefined, end: number];
  readonly offsets?: readonly [start: number | undefined, end: number];
}

/** Edge cases: largest possible premine, no decimals, and a symbol that CSV must quote. */
const ALPHA: Rune = { spaced: 'SYNTHETIC•ALPHA', divisibility: 0, premine: MAX, symbol: '"' };
const BRAVO: Rune = { spaced: 'SYNTHETIC•BRAVO', divisibility: 2, premine: 2_100_000_000n, symbol: 'ᚱ', terms: [50_000n, 1_000] };
const CHARLIE: Rune = {
  spaced: 'SYNTHETIC•CHARLIE',
  divisibility: 8,
  premine: 1n,
  symbol: '🧪',
  terms: [7n, 1_000],
  heights: [undefined, FIRST_INVENTED + 8],
};
const DELTA: Rune = {
  spaced: 'SYNTHETIC•DELTA',
  divisibility: 18,
  premine: 10n ** 30n,
  symbol: ',',
  terms: [10n ** 18n, 1_000],
  offsets: [0, 52_560],
};
/** Edge cases: no premine, so that the etching has one record; a single mint of the largest amount; 38 decimals. */
const ECHO: Rune = { spaced: 'SYNTHETIC•ECHO', divisibility: 38, symbol: '¤', terms: [MAX, 1] };
const MAIN: readonly Rune[] = [ALPHA, BRAVO, CHARLIE, DELTA, ECHO];
/** Runes without a symbol. There are 22 of them, so that the etchings of a block need more than one page of 20. */
const SERIES: readonly Rune[] = Array.from({ length: 22 }, (_, i) => ({
  spaced: `SYNTHETIC•SERIES•${String.fromCharCode(65 + i).repeat(2)}`,
  divisibility: i,
  premine: 10n ** BigInt(i),
}));

/** Rune of the ordinary blocks: turbo, with an open mint. */
const FOXTROT: Rune = {
  spaced: 'SYNTHETIC•FOXTROT',
  turbo: true,
  divisibility: 5,
  premine: 500_000_000n,
  symbol: '🦊',
  terms: [1_000_000n, 100_000],
  offsets: [undefined, 52_560],
};
/** Rune whose mint is not open yet. */
const GOLF: Rune = {
  spaced: 'SYNTHETIC•GOLF',
  divisibility: 0,
  premine: 18n,
  symbol: '⛳',
  terms: [1n, 72],
  heights: [2_010_000, 2_020_000],
};
/** Rune etched by a malformed message, so it has only a name. */
const HOTEL: Rune = { spaced: 'SYNTHETIC•HOTEL', cenotaph: true, divisibility: 0 };
/**
 * Rune whose etching gives no name. It gets a reserved name, which follows from the height and the index of the
 * transaction.
 */
const UNNAMED: Rune = { spaced: '', divisibility: 3, premine: 21_000n, symbol: '?' };
const LATER: Readonly<Record<number, Rune>> = { 20: FOXTROT, 45: HOTEL, 80: UNNAMED, 110: GOLF };

// --- Invented transactions: events in order of event_index, and the outputs that they spend --------------------------

interface Event {
  readonly rune: Rune;
  readonly operation: 'etching' | 'mint' | 'burn' | 'send' | 'receive';
  readonly amount?: bigint;
  readonly output?: number;
  readonly address?: string | undefined;
  readonly receiver_address?: string | undefined;
}

interface Transaction {
  readonly events: readonly Event[];
  readonly spent: readonly Output[];
}

interface Output {
  readonly outpoint: string;
  readonly address: string | undefined;
  readonly rune: Rune;
  readonly amount: bigint;
}

/** Unspent outputs of invented transactions, oldest first. */
const unspent: Output[] = [];

/** Removes and returns a random unspent output that matches and has an address; undefined if there is none. */
function take(matches: (output: Output) => boolean): Output | undefined {
  const found = unspent.filter((output) => output.address !== undefined && matches(output));
  const output = found[between(0, found.length - 1)];
  if (output !== undefined) unspent.splice(unspent.indexOf(output), 1);
  return output;
}

/** Returns an etching: one event, or two if the rune has a premine. */
function etch(rune: Rune, address?: string, output = 1): Transaction {
  const { premine: amount } = rune;
  const etching: Event = { rune, operation: 'etching' };
  if (amount === undefined) return { events: [etching], spent: [] };
  return { events: [etching, { rune, operation: 'receive', amount, output, address: address ?? someAddress() }], spent: [] };
}

/** Returns a mint of two events: the mint, and the receipt of its amount. */
function mint(rune: Rune): Transaction {
  const amount = rune.terms?.[0] ?? 0n;
  const receive: Event = { rune, operation: 'receive', amount, output: 1, address: someAddress() };
  return { events: [{ rune, operation: 'mint', amount }, receive], spent: [] };
}

/** Returns a transaction that burns the complete amount of an output with less than 1 % of its rune's premine. */
function burn(): Transaction {
  const output = take(({ rune, amount }) => amount * 100n < (rune.premine ?? MAX));
  if (output === undefined) throw new Error('no output can be burned');
  const { rune, amount, address } = output;
  return { events: [{ rune, operation: 'burn', amount, address }], spent: [output] };
}

/** Divides an amount into random parts of at least 1. */
function parts(amount: bigint, count: number): bigint[] {
  let left = amount;
  return Array.from({ length: count }, (_, i) => {
    const others = BigInt(count - i);
    const share = (left * BigInt(between(50, 150))) / (100n * others);
    const part = others === 1n ? left : share < 1n ? 1n : share;
    left -= part;
    return part;
  });
}

/**
 * Returns a transaction that transfers up to three runes of `from` to `outputs` outputs. For each output, it has one
 * event `receive`, and then one event `send` per sender. Some receivers have no address.
 */
function move(outputs: number, senders = 1, from = MAIN): Transaction {
  const isLarge = ({ amount }: Output) => amount >= BigInt(4 * outputs);
  const runes = from.filter((rune) => unspent.filter((output) => output.rune === rune && isLarge(output)).length > senders).slice(0, 3);
  const moved = Array.from({ length: outputs }, (_, i) => runes[i] ?? runes[between(0, runes.length - 1)] ?? ALPHA);
  const amounts: { readonly address: string | undefined; readonly amount: bigint }[][] = moved.map(() => []);
  const spent: Output[] = [];
  for (const rune of runes) {
    const receivers = [...moved.keys()].filter((i) => moved[i] === rune);
    for (let sender = 0; sender < senders; sender += 1) {
      const input = take((output) => output.rune === rune && isLarge(output));
      if (input === undefined) throw new Error('no unspent output of the rune has enough units for the transfer');
      spent.push(input);
      const shares = parts(input.amount, receivers.length);
      for (const [i, output] of receivers.entries()) amounts[output]?.push({ address: input.address, amount: shares[i] ?? 0n });
    }
  }
  const events = amounts.flatMap((sent, output) => {
    const rune = moved[output] ?? ALPHA;
    const to = random() < 0.03 ? undefined : someAddress();
    const amount = sent.reduce((sum, part) => sum + part.amount, 0n);
    const receive: Event = { rune, operation: 'receive', amount, output, address: to };
    return [receive, ...sent.map((part): Event => ({ ...part, rune, operation: 'send', output, receiver_address: to }))];
  });
  return { events, spent };
}

const both = (one: Transaction, other: Transaction): Transaction => ({
  events: [...one.events, ...other.events],
  spent: [...one.spent, ...other.spent],
});

/**
 * Function that makes a transaction. The caller calls makers in chain order, because a transaction spends outputs of
 * earlier transactions.
 */
type Maker = () => Transaction;
const times = (count: number, make: (i: number) => Transaction): Maker[] => Array.from({ length: count }, (_, i) => () => make(i));
const mints = (count: number): Maker[] => times(count, (i) => mint([BRAVO, CHARLIE, DELTA][i % 3] ?? BRAVO));

// --- The real block --------------------------------------------------------------------------------------------------

const BLOCK_840000 = {
  height: 840_000,
  hash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
  timestamp: 1_713_571_767,
};

/** Rune number 0, which no transaction etched. The sample has no mints of this rune. */
const UNCOMMON_GOODS: Rune = {
  spaced: 'UNCOMMON•GOODS',
  number: 0,
  divisibility: 0,
  symbol: '⧉',
  terms: [1n, MAX],
  heights: [840_000, 1_050_000],
  turbo: true,
};

/** Returns two etchings with their premines. The real block has more transactions. */
function firstEtchings(): Transfers[] {
  const fehu: Rune = {
    spaced: 'Z•Z•Z•Z•Z•FEHU•Z•Z•Z•Z•Z',
    number: 1,
    divisibility: 2,
    premine: 11_000_000_000n,
    symbol: 'ᚠ',
    terms: [100n, 1_111_111],
    turbo: true,
  };
  const dog: Rune = { spaced: 'DOG•GO•TO•THE•MOON', number: 3, divisibility: 5, premine: 10_000_000_000_000_000n, symbol: '🐕' };
  return [
    {
      tx_index: 1,
      tx_id: '2bb85f4b004be6da54f766c17c1e855187327112c231ef2ff35ebad0ea67c69e',
      ...etch(fehu, 'bc1p8w9n4v298668ut2fqwukxamxsr3ssc7lxcja8e6zjgec4euj3ksswckxz6', 0),
    },
    {
      tx_index: 3,
      tx_id: 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375',
      ...etch(dog, 'bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t', 1),
    },
  ];
}

// --- Invented blocks -------------------------------------------------------------------------------------------------

/**
 * Transactions of each block. A comment gives the height of the block and its number of records. Most numbers are near
 * the page sizes 20 and 60, where errors are most likely.
 */
const BLOCKS: readonly (readonly Maker[])[] = [
  /* 2000001:  20 */ [...[ALPHA, BRAVO, CHARLIE, DELTA].map((rune) => () => etch(rune)), ...mints(6)],
  /* 2000002:   1 */ [() => etch(ECHO)],
  /* 2000003:  21 */ [() => move(7, 2)],
  /* 2000004:  60 */ [() => mint(ECHO), () => move(10), ...mints(19)],
  /* 2000005:   0 */ [],
  /* 2000006:  61 */ [() => move(30), burn],
  /* 2000007: 437 */ [...mints(11), () => move(107, 2), ...times(11, burn), () => both(move(30), burn()), ...mints(11)],
  /* 2000008: 500 */ [...SERIES.map((rune) => () => etch(rune)), ...mints(65), () => move(148), ...times(30, burn)],
  /* 2000009: 121 */ [() => move(60), burn],
  /* 2000010:   2 */ [() => mint(BRAVO)],
];

/** Number of blocks after those in BLOCKS. Each has a few mints, transfers and burns, as an ordinary block has. */
const ORDINARY_BLOCKS = 190;

/** Returns the transactions of an ordinary block. */
function ordinaryBlock(i: number): readonly Maker[] {
  const rune = LATER[i];
  const etching = rune === undefined ? [] : [() => etch(rune)];
  const others = Array.from({ length: within(0, 4, randomDay) }, (): Maker => {
    const kind = randomDay();
    const open = i > 20 && randomDay() < 0.6 ? FOXTROT : randomDay() < 0.5 ? BRAVO : DELTA;
    if (kind < 0.5) return () => mint(open);
    return kind < 0.94 ? () => move(within(2, 4, randomDay), 1, [open]) : burn;
  });
  return [...etching, ...others];
}

const FIRST_NUMBER = 9_000_000;

type Cell = string | number | bigint | undefined;
type Row = Record<string, Cell>;

/** Formats rows as CSV like PostgreSQL's `\copy ... csv header`: NULL is an empty field, and an empty text is `""`. */
function csv(rows: readonly Row[]): string {
  const field = (value: Cell): string => {
    if (value === undefined) return '';
    return value === '' || /[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  };
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row).map(field))];
  return lines.map((line) => `${line.join(',')}\n`).join('');
}

interface Transfers extends Transaction {
  readonly tx_index: number;
  readonly tx_id: string;
}

interface Block {
  readonly height: number;
  readonly hash: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly transactions: readonly Transfers[];
}

/** Returns all blocks by ascending height. Timestamps of invented blocks follow the real block's, ten minutes apart. */
function allBlocks(): Block[] {
  const ordinary = Array.from({ length: ORDINARY_BLOCKS }, (_, i) => ordinaryBlock(i));
  const invented = [...BLOCKS, ...ordinary].map((makers, i): Block => {
    const height = FIRST_INVENTED + i;
    let tx_index = 0;
    return {
      height,
      hash: `${INVENTED_HASH_START}${sha256(`block ${height}`).slice(INVENTED_HASH_START.length)}`,
      timestamp: BLOCK_840000.timestamp + 600 * (i + 1),
      transactions: makers.map((make) => {
        tx_index += within(1, 9, randomPlace);
        const tx_id = sha256(`transaction ${height}:${tx_index}`);
        const made = make();
        for (const { rune, operation, amount = 0n, output, address } of made.events)
          if (operation === 'receive') unspent.push({ outpoint: `${tx_id}:${output}`, address, rune, amount });
        return { tx_index, tx_id, ...made };
      }),
    };
  });
  return [{ ...BLOCK_840000, transactions: firstEtchings() }, ...invented];
}

/**
 * Returns the ledger and the runes as CSV. Rows are in chain order, and columns in the order of the indexer's tables.
 */
export function sampleTables(): { readonly ledger: string; readonly runes: string } {
  const ids = new Map<Rune, string>();
  const ledger: Row[] = [];
  const runes: Row[] = [];
  const addRune = (rune: Rune, id: string, at: Row & { readonly block_height: number; readonly tx_index: number }, timestamp: number) => {
    ids.set(rune, id);
    const { divisibility, premine = 0n, symbol, terms: [terms_amount, terms_cap] = [] } = rune;
    const [[terms_height_start, terms_height_end], [terms_offset_start, terms_offset_end]] = [rune.heights ?? [], rune.offsets ?? []];
    const number = rune.number ?? FIRST_NUMBER + [...ids.keys()].filter((other) => other.number === undefined).length - 1;
    const spaced_name = rune.spaced === '' ? nameText(reservedName(at.block_height, at.tx_index)) : rune.spaced;
    const names = { id, number, name: spaced_name.replaceAll('•', ''), spaced_name };
    const terms = { terms_amount, terms_cap, terms_height_start, terms_height_end, terms_offset_start, terms_offset_end };
    const turbo = rune.turbo === true ? 't' : 'f';
    const cenotaph = rune.cenotaph === true ? 't' : 'f';
    runes.push({ ...names, ...at, divisibility, premine, symbol, ...terms, turbo, cenotaph, timestamp });
  };
  const first = { block_hash: BLOCK_840000.hash, block_height: BLOCK_840000.height, tx_index: 0, tx_id: '' };
  addRune(UNCOMMON_GOODS, '1:0', first, 0);
  for (const { height: block_height, hash: block_hash, timestamp, transactions } of allBlocks()) {
    for (const { tx_index, tx_id, events, spent } of transactions) {
      const at = { block_hash, block_height, tx_index, tx_id };
      // The first row of a transaction lists the outputs that it spends.
      const inputs = spent.map(({ outpoint, address }) => `${outpoint}:${address}`).join(',');
      for (const [event_index, { rune, operation, amount, output, address, receiver_address }] of events.entries()) {
        if (operation === 'etching') addRune(rune, `${block_height}:${tx_index}`, at, timestamp);
        const place = { rune_id: ids.get(rune), block_hash, block_height, tx_index, event_index, tx_id };
        const own = event_index === 0 && inputs !== '' ? inputs : undefined;
        ledger.push({ ...place, output, address, receiver_address, amount, operation, timestamp, spent: own });
      }
    }
  }
  return { ledger: csv(ledger), runes: csv(runes) };
}

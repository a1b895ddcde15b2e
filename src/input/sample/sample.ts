/**
 * The sample: records in the format of the indexer's tables `ledger` and `runes`.
 *
 * Block 840,000 is real: two of the first runes on Bitcoin. All other blocks are made up from a fixed seed, so that
 * every run on every machine gives the same bytes.
 */
import { createHash } from 'node:crypto';
import { FIRST_INVENTED, INVENTED_HASH_START } from './sampleMarks.ts';

// --- Random numbers with a fixed seed --------------------------------------------------------------------------------

const sha256 = (text: string): string => createHash('sha256').update(`rune-activity-mirror sample 1/${text}`).digest('hex');

/** Returns the mulberry32 generator. Its numbers from 0 (inclusive) to 1 (exclusive) are always the same for a seed. */
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

const between = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));

/** Returns an amount of 1 to 36 digits, so that sums of a few amounts stay below 2^128. */
const someAmount = (): bigint => BigInt(Array.from({ length: between(1, 36) }, () => between(1, 9)).join(''));

/** Returns text that looks like a regtest address. The checksum is wrong, so nobody can own the address. */
function someAddress(): string {
  const letters = Array.from({ length: random() < 0.8 ? 38 : 58 }, () => 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'[between(0, 31)]);
  return `bcrt1${letters.length === 38 ? 'q' : 'p'}${letters.join('')}`;
}

// --- Invented runes --------------------------------------------------------------------------------------------------

const MAX = 2n ** 128n - 1n;

interface Rune {
  readonly spaced: string;
  /** Number of a real rune. Invented runes are numbered from 9000000 on, which no real rune has. */
  readonly number?: number;
  readonly turbo?: true;
  readonly divisibility: number;
  readonly premine?: bigint;
  readonly symbol?: string;
  /** Amount per mint, and allowed number of mints. */
  readonly terms?: readonly [amount: bigint, cap: number];
}

/** Edge cases: largest possible premine, no decimals, and a symbol that CSV must quote. */
const ALPHA: Rune = { spaced: 'SYNTHETIC•ALPHA', divisibility: 0, premine: MAX, symbol: '"' };
const BRAVO: Rune = { spaced: 'SYNTHETIC•BRAVO', divisibility: 2, premine: 2_100_000_000n, symbol: 'ᚱ', terms: [50_000n, 1_000] };
const CHARLIE: Rune = { spaced: 'SYNTHETIC•CHARLIE', divisibility: 8, premine: 1n, symbol: '🧪', terms: [7n, 1_000] };
const DELTA: Rune = { spaced: 'SYNTHETIC•DELTA', divisibility: 18, premine: 10n ** 30n, symbol: ',', terms: [10n ** 18n, 1_000] };
/** Edge cases: no premine, so that the etching has one record; a single mint of the largest amount; 38 decimals. */
const ECHO: Rune = { spaced: 'SYNTHETIC•ECHO', divisibility: 38, symbol: '¤', terms: [MAX, 1] };
const MAIN = [ALPHA, BRAVO, CHARLIE, DELTA, ECHO];
/** Runes without a symbol. There are 22 of them, so that the etchings of a block need more than one page of 20. */
const SERIES: readonly Rune[] = Array.from({ length: 22 }, (_, i) => ({
  spaced: `SYNTHETIC•SERIES•${String.fromCharCode(65 + i).repeat(2)}`,
  divisibility: i,
  premine: 10n ** BigInt(i),
}));

// --- Invented transactions: lists of events in order of event_index --------------------------------------------------

interface Event {
  readonly rune: Rune;
  readonly operation: 'etching' | 'mint' | 'burn' | 'send' | 'receive';
  readonly amount?: bigint;
  readonly output?: number;
  readonly address?: string | undefined;
  readonly receiver_address?: string | undefined;
}

type Transaction = readonly Event[];

/** Returns the events of an etching: 1 event, or 2 with a premine. */
function etch(rune: Rune, address?: string, output = 1): Transaction {
  const { premine: amount } = rune;
  const etching: Event = { rune, operation: 'etching' };
  if (amount === undefined) return [etching];
  return [etching, { rune, operation: 'receive', amount, output, address: address ?? someAddress() }];
}

/** Returns 2 events: the mint, and its receiver. */
const mint = (rune: Rune): Transaction => {
  const amount = rune.terms?.[0] ?? 0n;
  return [
    { rune, operation: 'mint', amount },
    { rune, operation: 'receive', amount, output: 1, address: someAddress() },
  ];
};

const burn = (): Transaction => [{ rune: pick(), operation: 'burn', amount: someAmount(), address: someAddress() }];

/** Returns transfers: for each output, one receive and then one send per sender. Some receivers have no address. */
function move(outputs: number, senders = 1): Transaction {
  const from = Array.from({ length: senders }, someAddress);
  return Array.from({ length: outputs }, (_, output) => {
    const rune = pick();
    const to = random() < 0.03 ? undefined : someAddress();
    const parts = from.map((address) => ({ address, amount: someAmount() }));
    const amount = parts.reduce((sum, part) => sum + part.amount, 0n);
    const receive: Event = { rune, operation: 'receive', amount, output, address: to };
    return [receive, ...parts.map((part): Event => ({ ...part, rune, operation: 'send', output, receiver_address: to }))];
  }).flat();
}

const pick = (): Rune => MAIN[between(0, MAIN.length - 1)] ?? ALPHA;
const times = (count: number, make: (i: number) => Transaction): Transaction[] => Array.from({ length: count }, (_, i) => make(i));
const mints = (count: number): Transaction[] => times(count, (i) => mint([BRAVO, CHARLIE, DELTA][i % 3] ?? BRAVO));

// --- The real block --------------------------------------------------------------------------------------------------

const BLOCK_840000 = {
  height: 840_000,
  hash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
  timestamp: 1_713_571_767,
};

/** Two etchings with their premines. The real block has more. */
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
      events: etch(fehu, 'bc1p8w9n4v298668ut2fqwukxamxsr3ssc7lxcja8e6zjgec4euj3ksswckxz6', 0),
    },
    {
      tx_index: 3,
      tx_id: 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375',
      events: etch(dog, 'bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t', 1),
    },
  ];
}

// --- Invented blocks -------------------------------------------------------------------------------------------------

/** Transactions of each height. Record counts are near the page sizes 20 and 60, where errors are most likely. */
const blocks = (): Transaction[][] => [
  /* 2000001:  20 */ [etch(ALPHA), etch(BRAVO), etch(CHARLIE), etch(DELTA), ...mints(6)],
  /* 2000002:   1 */ [etch(ECHO)],
  /* 2000003:  21 */ [move(7, 2)],
  /* 2000004:  60 */ [mint(ECHO), move(10), ...mints(19)],
  /* 2000005:   0 */ [],
  /* 2000006:  61 */ [move(30), burn()],
  /* 2000007: 437 */ [...mints(11), move(107, 2), ...times(11, burn), [...move(30), ...burn()], ...mints(11)],
  /* 2000008: 500 */ [...SERIES.map((rune) => etch(rune)), ...mints(65), move(148), ...times(30, burn)],
  /* 2000009: 121 */ [move(60), burn()],
  /* 2000010:   2 */ [mint(BRAVO)],
];

const FIRST_NUMBER = 9_000_000;

type Cell = string | number | bigint | undefined;
type Row = Record<string, Cell>;

/** Formats CSV like PostgreSQL's `\copy ... csv header`: NULL is an empty field, an empty string is `""`. */
function csv(rows: readonly Row[]): string {
  const field = (value: Cell): string => {
    if (value === undefined) return '';
    return value === '' || /[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  };
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row).map(field))];
  return lines.map((line) => `${line.join(',')}\n`).join('');
}

/** Transaction with its position in a block. */
interface Transfers {
  readonly tx_index: number;
  readonly tx_id: string;
  readonly events: Transaction;
}

interface Block {
  readonly height: number;
  readonly hash: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly transactions: readonly Transfers[];
}

/** Returns all blocks, ascending. Invented blocks follow the real block in time, one every ten minutes. */
function allBlocks(): Block[] {
  const invented = blocks().map((transactions, i): Block => {
    const height = FIRST_INVENTED + i;
    let tx_index = 0;
    return {
      height,
      hash: `${INVENTED_HASH_START}${sha256(`block ${height}`).slice(INVENTED_HASH_START.length)}`,
      timestamp: BLOCK_840000.timestamp + 600 * (i + 1),
      transactions: transactions.map((events) => {
        tx_index += between(1, 9);
        return { tx_index, tx_id: sha256(`transaction ${height}:${tx_index}`), events };
      }),
    };
  });
  return [{ ...BLOCK_840000, transactions: firstEtchings() }, ...invented];
}

/** Returns both tables as CSV. Rows are in chain order, columns in the order of the indexer's tables. */
export function sampleTables(): { readonly ledger: string; readonly runes: string } {
  const ids = new Map<Rune, string>();
  const ledger: Row[] = [];
  const runes: Row[] = [];
  for (const { height: block_height, hash: block_hash, timestamp, transactions } of allBlocks()) {
    for (const { tx_index, tx_id, events } of transactions) {
      for (const [event_index, { rune, operation, amount, output, address, receiver_address }] of events.entries()) {
        if (operation === 'etching') {
          const id = `${block_height}:${tx_index}`;
          ids.set(rune, id);
          const { spaced: spaced_name, divisibility, premine = 0n, symbol, terms: [terms_amount, terms_cap] = [] } = rune;
          const number = rune.number ?? FIRST_NUMBER + [...ids.keys()].filter((other) => other.number === undefined).length - 1;
          const names = { id, number, name: spaced_name.replaceAll('•', ''), spaced_name };
          const supply = { divisibility, premine, symbol, terms_amount, terms_cap };
          const heights = { terms_height_start: undefined, terms_height_end: undefined };
          const offsets = { terms_offset_start: undefined, terms_offset_end: undefined };
          const turbo = rune.turbo === true ? 't' : 'f';
          const at = { block_hash, block_height, tx_index, tx_id };
          runes.push({ ...names, ...at, ...supply, ...heights, ...offsets, turbo, cenotaph: 'f', timestamp });
        }
        const event = { rune_id: ids.get(rune), block_hash, block_height, tx_index, event_index, tx_id };
        ledger.push({ ...event, output, address, receiver_address, amount, operation, timestamp });
      }
    }
  }
  return { ledger: csv(ledger), runes: csv(runes) };
}

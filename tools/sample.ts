/**
 * The sample command: writes the sample data of this project.
 *
 *   840000-first-etchings.ndjson   real: two of the first runes on Bitcoin, as the Runes API returned them
 *   synthetic/ledger.csv           invented: records in the format of the indexer's `ledger` table
 *   synthetic/runes.csv            invented: the runes of these records
 *
 * The invented data comes from a fixed seed, so every run on every machine writes the same bytes.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Command, type Flags, HELP, LOG } from '../src/cli/flags.ts';
import type { Log } from '../src/cli/log.ts';
import { BuildError, messageOf } from '../src/errors.ts';

// --- Real data: block 840000 -----------------------------------------------------------------------------------------

const BLOCK = {
  block_hash: '0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5',
  block_height: 840_000,
  timestamp: 1_713_571_767,
};

/** In served order: the later transaction first. */
const ETCHINGS = [
  {
    rune: { id: '840000:3', number: 3, name: 'DOGGOTOTHEMOON', spaced_name: 'DOG•GO•TO•THE•MOON' },
    tx_id: 'e79134080a83fe3e0e06ed6990c5a9b63b362313341745707a2bff7d788a1375',
    tx_index: 3,
    premine: { amount: '100000000000.00000', vout: 1, address: 'bc1pry0ne0yf5pkgqsszmytmqkpzs4aflhr8tfptz9sydqrhxexgujcqqler2t' },
  },
  {
    rune: { id: '840000:1', number: 1, name: 'ZZZZZFEHUZZZZZ', spaced_name: 'Z•Z•Z•Z•Z•FEHU•Z•Z•Z•Z•Z' },
    tx_id: '2bb85f4b004be6da54f766c17c1e855187327112c231ef2ff35ebad0ea67c69e',
    tx_index: 1,
    premine: { amount: '110000000.00', vout: 0, address: 'bc1p8w9n4v298668ut2fqwukxamxsr3ssc7lxcja8e6zjgec4euj3ksswckxz6' },
  },
];

/**
 * Makes two records per etching (newest first): the received premine, then the etching. Key order is as in dialect
 * hiro.
 */
function firstEtchings(): string {
  const { block_hash, block_height, timestamp } = BLOCK;
  const activities = ETCHINGS.flatMap(({ rune, tx_id, tx_index, premine: { amount, vout, address } }) => {
    const location = { block_hash, block_height, tx_id, tx_index, timestamp };
    return [
      { rune, operation: 'receive', location: { ...location, vout, output: `${tx_id}:${vout}` }, address, amount },
      { rune, operation: 'etching', location },
    ];
  });
  return activities.map((activity) => `${JSON.stringify(activity)}\n`).join('');
}

// --- Random numbers with a fixed seed --------------------------------------------------------------------------------

const sha256 = (text: string): string => createHash('sha256').update(`rune-activity-mirror sample 1/${text}`).digest('hex');

/** The mulberry32 generator: numbers from 0 (included) to 1 (excluded), always the same for a seed. */
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

/** Returns an integer from `from` to `to`, both included. */
const between = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));

/** Returns an amount of 1 to 36 digits, so that sums of a few stay below 2^128. */
const someAmount = (): bigint => BigInt(Array.from({ length: between(1, 36) }, () => between(1, 9)).join(''));

/** Returns text like a regtest address. Its checksum is wrong, so nobody can own it. */
function someAddress(): string {
  const letters = Array.from({ length: random() < 0.8 ? 38 : 58 }, () => 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'[between(0, 31)]);
  return `bcrt1${letters.length === 38 ? 'q' : 'p'}${letters.join('')}`;
}

// --- Invented runes --------------------------------------------------------------------------------------------------

const MAX = 2n ** 128n - 1n;

interface Rune {
  readonly spaced: string;
  readonly divisibility: number;
  readonly premine?: bigint;
  readonly symbol?: string;
  /** Amount per mint, and number of mints allowed. */
  readonly terms?: readonly [amount: bigint, cap: number];
}

/** Edge cases: largest possible premine, no decimals, and a symbol that CSV must quote. */
const ALPHA: Rune = { spaced: 'SYNTHETIC•ALPHA', divisibility: 0, premine: MAX, symbol: '"' };
const BRAVO: Rune = { spaced: 'SYNTHETIC•BRAVO', divisibility: 2, premine: 2_100_000_000n, symbol: 'ᚱ', terms: [50_000n, 1_000] };
const CHARLIE: Rune = { spaced: 'SYNTHETIC•CHARLIE', divisibility: 8, premine: 1n, symbol: '🧪', terms: [7n, 1_000] };
const DELTA: Rune = { spaced: 'SYNTHETIC•DELTA', divisibility: 18, premine: 10n ** 30n, symbol: ',', terms: [10n ** 18n, 1_000] };
/** Edge cases: no premine, so its etching has one record; and a single mint of the largest amount, with 38 decimals. */
const ECHO: Rune = { spaced: 'SYNTHETIC•ECHO', divisibility: 38, symbol: '¤', terms: [MAX, 1] };
const MAIN = [ALPHA, BRAVO, CHARLIE, DELTA, ECHO];
/** Runes without a symbol. There are 22, so that the etchings of a block need more than one page of 20. */
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

/** Makes 1 event, or 2 with a premine. */
const etch = (rune: Rune): Transaction => {
  const { premine: amount } = rune;
  const etching: Event = { rune, operation: 'etching' };
  if (amount === undefined) return [etching];
  return [etching, { rune, operation: 'receive', amount, output: 1, address: someAddress() }];
};

/** Makes 2 events: the mint and its receiver. */
const mint = (rune: Rune): Transaction => {
  const amount = rune.terms?.[0] ?? 0n;
  return [
    { rune, operation: 'mint', amount },
    { rune, operation: 'receive', amount, output: 1, address: someAddress() },
  ];
};

/** Makes 1 event. */
const burn = (): Transaction => [{ rune: pick(), operation: 'burn', amount: someAmount(), address: someAddress() }];

/**
 * Makes outputs * (1 + senders) events: per output one receive, then a send of each sender. Some outputs have no
 * address.
 */
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

// --- Invented blocks -------------------------------------------------------------------------------------------------

/** Far above the tip of the chain, so that nobody mistakes these blocks for real ones. */
const FIRST_HEIGHT = 2_000_001;

/** One entry per height. The totals are near the page sizes 20 and 60, where builds are most likely to go wrong. */
const blocks = (): Transaction[][] => [
  /* 2000001:  20 */ [etch(ALPHA), etch(BRAVO), etch(CHARLIE), etch(DELTA), ...mints(6)],
  /* 2000002:   1 */ [etch(ECHO)],
  /* 2000003:  21 */ [move(7, 2)],
  /* 2000004:  60 */ [mint(ECHO), move(10), ...mints(19)],
  /* 2000005:   0 */ [],
  /* 2000006:  61 */ [move(30), burn()],
  /* 2000007: 437 */ [...mints(11), move(107, 2), ...times(11, burn), [...move(30), ...burn()], ...mints(11)],
  /* 2000008: 500 */ [...SERIES.map(etch), ...mints(65), move(148), ...times(30, burn)],
  /* 2000009: 121 */ [move(60), burn()],
  /* 2000010:   2 */ [mint(BRAVO)],
];

type Cell = string | number | bigint | undefined;
type Row = Record<string, Cell>;

/** Makes CSV like PostgreSQL's `\copy ... csv header`: NULL is an empty field, an empty string is `""`. */
function csv(rows: readonly Row[]): string {
  const field = (value: Cell): string => {
    if (value === undefined) return '';
    return value === '' || /[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  };
  const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row).map(field))];
  return lines.map((line) => `${line.join(',')}\n`).join('');
}

/** Makes both tables as CSV. Rows are in chain order, columns in the order of the indexer's tables. */
function tables(): { ledger: string; runes: string } {
  const ids = new Map<Rune, string>();
  const ledger: Row[] = [];
  const runes: Row[] = [];
  for (const [i, transactions] of blocks().entries()) {
    const block_height = FIRST_HEIGHT + i;
    const block_hash = `00000000f00d${sha256(`block ${block_height}`).slice(12)}`;
    const timestamp = BLOCK.timestamp + 600 * (block_height - BLOCK.block_height);
    let tx_index = 0;
    for (const events of transactions) {
      tx_index += between(1, 9);
      const tx_id = sha256(`transaction ${block_height}:${tx_index}`);
      const at = { block_hash, block_height, tx_index, tx_id };
      for (const [event_index, { rune, operation, amount, output, address, receiver_address }] of events.entries()) {
        if (operation === 'etching') {
          const id = `${block_height}:${tx_index}`;
          ids.set(rune, id);
          const { spaced: spaced_name, divisibility, premine = 0n, symbol, terms: [terms_amount, terms_cap] = [] } = rune;
          // No real rune has a number from 9000000 on.
          const names = { id, number: 9_000_000 + runes.length, name: spaced_name.replaceAll('•', ''), spaced_name };
          const supply = { divisibility, premine, symbol, terms_amount, terms_cap };
          const heights = { terms_height_start: undefined, terms_height_end: undefined };
          const offsets = { terms_offset_start: undefined, terms_offset_end: undefined };
          runes.push({ ...names, ...at, ...supply, ...heights, ...offsets, turbo: 'f', cenotaph: 'f', timestamp });
        }
        const event = { rune_id: ids.get(rune), block_hash, block_height, tx_index, event_index, tx_id };
        ledger.push({ ...event, output, address, receiver_address, amount, operation, timestamp });
      }
    }
  }
  return { ledger: csv(ledger), runes: csv(runes) };
}

// --- The command -----------------------------------------------------------------------------------------------------

export const SAMPLE_COMMAND: Command = {
  call: 'npm run sample --',
  about: 'Writes the sample data of this project: two real etchings, and invented records. Every run writes the same bytes.',
  flags: [{ name: 'to', value: 'DIR', byDefault: 'input', about: 'The folder for the files; existing ones are replaced.' }, LOG, HELP],
  examples: [{ args: '--to sample', about: 'Writes into the folder sample.' }],
  exits: ['done', 'usage', 'buildFailed'],
};

/** Runs the command. Rejects with a BuildError when a file cannot be written. */
export async function writeSample(flags: Flags, log: Log): Promise<void> {
  flags.choice('log', ['text', 'json']);
  const to = flags.one('to') ?? 'input';
  const { ledger, runes } = tables();
  const files = { '840000-first-etchings.ndjson': firstEtchings(), 'synthetic/ledger.csv': ledger, 'synthetic/runes.csv': runes };
  for (const [name, text] of Object.entries(files)) {
    const path = join(to, name);
    try {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    } catch (error) {
      throw new BuildError(`the sample cannot be written: ${messageOf(error)}`, ['Choose another folder with --to.']);
    }
    const bytes = Buffer.byteLength(text);
    log.info('written', `${path}  ${bytes} bytes`, { path, bytes });
  }
}

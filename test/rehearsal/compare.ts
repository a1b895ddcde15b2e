/**
 * Compares the answers of a mirror with the model: every output, balance, holder and supply, and answers to random requests of all kinds.
 */
import { hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { randomNumbers } from '../../bench/random.ts';
import {
  activityBody,
  activityOf,
  balanceOf,
  etchingBody,
  holderOf,
  listedOutput,
  listOf,
  outputBody,
  tipOf,
  type Window,
} from './expected.ts';
import type { Answers, TransactionRows } from './model/model.ts';
import type { Rune } from './model/runes.ts';
import type { RowStore } from './rows.ts';

/** Largest page size of a build. */
const PAGE = 60;

/** Largest number of blocks by which the list of a rune's holders may lag behind the tip, according to docs/api.md. */
const OLDEST_RANKING = 152;

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A mirror, or anything else that answers GET requests like one. */
export interface Mirror {
  get(target: string): Promise<Answer>;
}

/**
 * Adds up the hashes of all answers. The order of the requests does not matter: if two mirrors answer the same requests with the same
 * bytes, their sums are equal.
 */
export class AnswerSum {
  #sum = 0n;

  /** Wraps a mirror, and adds its answers to the sum. */
  of(mirror: Mirror): Mirror {
    return {
      get: async (target) => {
        const answer = await mirror.get(target);
        this.#sum += BigInt(`0x${hash('sha256', `${target}\n${answer.status}\n${answer.body}`)}`);
        return answer;
      },
    };
  }

  toString(): string {
    return BigInt.asUintN(256, this.#sum).toString(16).padStart(64, '0');
  }
}

/** Wraps a mirror that may escape characters outside of ASCII, and returns its answers without these escapes. */
export const unescaped = (mirror: Mirror): Mirror => ({
  get: async (target) => {
    const { status, body } = await mirror.get(target);
    return { status, body: body.replace(/\\u(?!00[0-7])[0-9a-f]{4}/g, (code) => JSON.parse(`"${code}"`) as string) };
  },
});

/** Wraps a mirror of dialect `hiro`, and returns its answers in dialect `contract`. */
export const inContract = (mirror: Mirror): Mirror => ({
  get: async (target) => {
    const { status, body } = await mirror.get(target);
    return { status, body: status === 200 ? JSON.stringify(contractOf(JSON.parse(body))) : body };
  },
});

/** Dialects differ in the prefix of hashes, the outputs of records, the unit of caps, and the order of fields. */
function contractOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(contractOf);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, one]): [string, unknown] => {
    if (typeof one !== 'string') return [key, contractOf(one)];
    if (key === 'output') return [key, `0x${'vout' in value ? one.slice(0, 64) : one}`];
    if (key === 'cap') return [key, String(BigInt(one.replace('.', '')))];
    return [key, key === 'block_hash' || key === 'tx_id' ? `0x${one}` : one];
  });
  const order = ['rune', 'address', 'receiver_address', 'amount', 'operation', 'location'];
  const inLocation = ['block_hash', 'block_height', 'tx_id', 'tx_index', 'vout', 'output', 'timestamp'];
  const sorted = 'operation' in value ? order : 'vout' in value ? inLocation : [];
  return Object.fromEntries(sorted.length === 0 ? fields : fields.sort(([a], [b]) => sorted.indexOf(a) - sorted.indexOf(b)));
}

/** Number of differences to keep for each kind of request, so that one fault does not hide the others. */
const MOST_OF_KIND = 4;

/** Counts the comparisons and the differences, and keeps the first differences. */
export class Differences {
  readonly first: string[] = [];
  readonly #kinds = new Map<string, number>();
  count = 0;
  compared = 0;

  constructor(readonly most = 20) {}

  add(height: number, subject: string, expected: string, got: string): void {
    this.count++;
    const kind = subject.replace(/[?].*/, '').replace(/[^/]*[0-9A-Z•:][^/]*/g, '*');
    const known = this.#kinds.get(kind) ?? 0;
    this.#kinds.set(kind, known + 1);
    if (this.first.length >= this.most || known >= MOST_OF_KIND) return;
    const at = [...expected].findIndex((_, i) => expected[i] !== got[i]);
    const from = Math.max(0, (at === -1 ? expected.length : at) - 60);
    const part = (text: string) => `${from > 0 ? '…' : ''}${text.slice(from, from + 200)}`;
    this.first.push(`height ${height}, ${subject}\n  expected ${part(expected)}\n  got      ${part(got)}`);
  }
}

/** Lists that a mirror may lack. `operations` are the lists of a block's records of one operation. */
type ListKind = 'operations' | 'etchings' | 'activity' | 'balances' | 'outputs';

/** The mirror to compare, the expected state (`model` and `rows`), and the differences found. */
export interface Compared {
  readonly model: Answers;
  readonly rows: RowStore;
  readonly mirror: Mirror;
  readonly differences: Differences;
  /** Lists that the mirror does not have. */
  readonly lacks?: readonly ListKind[];
  /** Returns the block of a rune's list of holders if that is not the tip. Undefined if any block will do. */
  readonly rankedAt?: (rune: Rune) => number | undefined;
}

const path = (...parts: readonly string[]): string => `/runes/v1/${parts.map(encodeURIComponent).join('/').replaceAll('%3A', ':')}`;
const windowed = (target: string, { offset, limit }: Window): string => `${target}?offset=${offset}&limit=${limit}`;

/**
 * `window` is the part of the list to compare, or undefined for all pages. `first` has fields at the beginning of the answer that most
 * lists lack.
 */
interface ListForm {
  readonly window?: Window | undefined;
  readonly first?: Readonly<Record<string, string>> | undefined;
}

const FIRST_PAGE: Window = { offset: 0, limit: PAGE };

/** Returns the windows of all pages of a list. An empty list has one page. */
const pagesOf = (total: number): Window[] =>
  Array.from({ length: Math.max(1, Math.ceil(total / PAGE)) }, (_, i) => ({ offset: PAGE * i, limit: PAGE }));

function listBody(window: Window, total: number, entry: (index: number) => string, first: Readonly<Record<string, string>> = {}): string {
  const count = Math.max(0, Math.min(window.limit, total - window.offset));
  const results = Array.from({ length: count }, (_, i) => entry(window.offset + i));
  return listOf(window, total, results, first);
}

class Comparison {
  #asked = 0;

  constructor(readonly of: Compared) {}

  get height(): number {
    return this.of.model.tip.height;
  }

  /** Checks the answer to a request. `expected` is its body, or only its total, or undefined for status 404. */
  async check(target: string, expected: string | { readonly total: number } | undefined): Promise<void> {
    this.judge(target, await this.ask(target), expected);
  }

  async ask(target: string): Promise<Answer> {
    // Answers from files never wait for I/O, so without a pause no timer or signal could run.
    if (this.#asked++ % 100 === 0) await setImmediate();
    return this.of.mirror.get(target).catch((error: unknown) => ({ status: 0, body: String(error) }));
  }

  judge(target: string, { status, body }: Answer, expected: string | { readonly total: number } | undefined): void {
    const { differences } = this.of;
    differences.compared++;
    if (expected === undefined) {
      if (status !== 404) differences.add(this.height, target, 'status 404', `status ${status} ${body}`);
    } else if (typeof expected !== 'string') {
      const got = /"total":([0-9]+)/.exec(body)?.[1];
      if (got !== String(expected.total)) differences.add(this.height, target, `total ${expected.total}`, body);
    } else if (status !== 200 || body !== expected) {
      differences.add(this.height, target, expected, status === 200 ? body : `status ${status} ${body}`);
    }
  }

  /**
   * Checks one window of a list, or all of its pages. `total` is the expected number of entries, and `entry` returns an expected entry by
   * its index.
   */
  async list(target: string, total: number, entry: (index: number) => string, { window, first }: ListForm = {}): Promise<void> {
    for (const one of window ? [window] : pagesOf(total)) {
      await this.check(windowed(target, one), listBody(one, total, entry, first));
    }
  }

  /** Checks one window of a rune's holders, or all of its pages. The answer may be about an older block, whose height it then names. */
  async holders(rune: Rune, window?: Window, name = rune.id): Promise<void> {
    const { model, differences } = this.of;
    const target = path('etchings', name, 'holders');
    const first = window ?? FIRST_PAGE;
    const answer = await this.ask(windowed(target, first));
    const old = /^\{"block_height":([0-9]+),/.exec(answer.body)?.[1];
    const height = old === undefined ? this.height : Number(old);
    const { rankedAt } = this.of;
    const isRight = rankedAt === undefined ? height >= this.height - OLDEST_RANKING : height === (rankedAt(rune) ?? this.height);
    if (height > this.height || !isRight) {
      const expected = rankedAt === undefined ? `at most ${OLDEST_RANKING} blocks ago` : `after block ${rankedAt(rune) ?? this.height}`;
      differences.add(this.height, target, `a ranking ${expected}`, answer.body);
      return;
    }
    const holders = model.holders(rune, height);
    const entry = (index: number) => {
      const { address = '', amount = 0n } = holders[index] ?? {};
      return holderOf(rune, address, amount);
    };
    const tip: Readonly<Record<string, string>> = old === undefined ? {} : { block_height: old };
    this.judge(windowed(target, first), answer, listBody(first, holders.length, entry, tip));
    if (window !== undefined) return;
    for (const page of pagesOf(holders.length).slice(1)) {
      await this.check(windowed(target, page), listBody(page, holders.length, entry, tip));
    }
  }

  async balances(address: string, window?: Window): Promise<void> {
    const balances = this.of.model.balances(address);
    const entry = (index: number) => (balances[index] ? balanceOf(balances[index], address) : '');
    const target = path('addresses', address, 'balances');
    await this.list(target, balances.length, entry, { window });
  }

  /** Checks an output. A mirror may not know what an output held if its transaction has too many records. */
  async output(outpoint: string, written = outpoint): Promise<void> {
    const { model } = this.of;
    const [target, found] = [path('outputs', written), model.output(outpoint)];
    const answer = await this.ask(target);
    if (!answer.body.endsWith('"held":null}') || found?.spent === false)
      return this.judge(target, answer, outputBody(model, outpoint, found));
    const expected = outputBody(model, outpoint, null).replace(/}$/, ',"held":null}');
    const { body } = await this.ask(path('transactions', outpoint.split(':')[0] ?? '', 'activity'));
    const total = Number(/"total":([0-9]+)/.exec(body)?.[1]);
    this.judge(target, total > MOST_READ ? answer : { status: 200, body: `held is null, but there are ${total} records` }, expected);
  }

  async outputs(address: string, window?: Window): Promise<void> {
    const outputs = this.of.model.outputsOf(address);
    const entry = (index: number) => (outputs[index] ? listedOutput(outputs[index]) : '');
    const target = path('addresses', address, 'outputs');
    await this.list(target, outputs.length, entry, { window, first: tipOf(this.of.model) });
  }
}

/** Compares the records of a transaction whose rows are sums. The order of the records does not matter. */
async function compareFolded(comparison: Comparison, { model, rows }: Compared, index: number): Promise<void> {
  const transaction = rows.transaction(index);
  const target = path('transactions', transaction.txid, 'activity');
  const got: string[] = [];
  for (const window of pagesOf(transaction.rows.length)) {
    const { body } = await comparison.ask(windowed(target, window));
    const { results = [] } = JSON.parse(body) as { readonly results?: readonly unknown[] };
    got.push(...results.map((record) => JSON.stringify(record)));
  }
  const expected = transaction.rows.map((row) => activityOf(model, row, transaction, true));
  const text = (records: readonly string[]) => [...records].sort().join('\n');
  comparison.judge(`${target}, in any order`, { status: 200, body: text(got) }, text(expected));
}

/**
 * Largest number of records that a mirror reads to find the runes of a spent output: 25 pages of 60. The records are those of the
 * transaction that created the output.
 */
const MOST_READ = 1500;

/**
 * Compares all unspent outputs, balances, holders, etchings and supplies with the model. Reads the unspent outputs from the lists of
 * addresses, and requests only outputs without an address one by one. If `spent` is true, requests every output that ever existed.
 */
export async function compareAll(compared: Compared, spent: boolean): Promise<void> {
  const comparison = new Comparison(compared);
  const { model, rows, lacks = [] } = compared;
  const { body } = await comparison.ask(path());
  const height = /"block_height":[0-9]+/.exec(body)?.[0] ?? body;
  comparison.judge(path(), { status: 200, body: height }, `"block_height":${model.tip.height}`);
  for (const index of rows.folded) await compareFolded(comparison, compared, index);
  const etchings = model.etchings();
  await comparison.list(path('etchings'), etchings.length, (index) => (etchings[index] ? etchingBody(model, etchings[index]) : ''));
  const addresses = [...model.addresses()].sort();
  if (!lacks.includes('balances')) {
    // Requests lists in the order in which files have them, so that the mirror reads each part of a file only once.
    const runes = [...model.runes].sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const rune of runes) await comparison.holders(rune);
    for (const address of addresses) await comparison.balances(address);
  }
  if (lacks.includes('outputs')) return;
  for (const address of addresses) await comparison.outputs(address);
  const outpoints: string[] = [];
  for (const { outpoint, address, spent: isSpent } of model.outputs()) {
    if (spent || (!isSpent && address === null)) outpoints.push(outpoint);
  }
  for (const outpoint of outpoints.sort()) {
    await comparison.output(outpoint);
  }
}

/** Subjects that random requests may ask for. */
export interface Candidates {
  readonly addresses: readonly string[];
  readonly runes: readonly Rune[];
  readonly outpoints: readonly string[];
  /** Range of the transactions with rows, by index: from `first` to `end` - 1. */
  readonly transactions: readonly [first: number, end: number];
  /** The longest lists. A random request chooses them more often than other lists. */
  readonly longest: { readonly addresses: readonly string[]; readonly runes: readonly Rune[] };
}

/** Number of the longest lists of each kind. */
const LONGEST = 10;

/** Returns all transactions, outputs and lists that a mirror must have. */
export function allCandidates(model: Answers, rows: RowStore): Candidates {
  const addresses = [...model.addresses()];
  const outpoints: string[] = [];
  for (const { outpoint } of model.outputs()) outpoints.push(outpoint);
  const runes = [...model.runes].sort((a, b) => b.counts.rows - a.counts.rows).slice(0, LONGEST);
  const longest = addresses
    .map((address) => ({ address, total: rows.ofAddress(address, 0, 0).total }))
    .sort((a, b) => b.total - a.total)
    .slice(0, LONGEST)
    .map(({ address }) => address);
  return { addresses, runes: model.runes, outpoints, transactions: [0, rows.transactions], longest: { addresses: longest, runes } };
}

/** Returns the subjects of the last `count` transactions, and `gone`: outpoints of replaced blocks. */
export function newCandidates(model: Answers, rows: RowStore, count: number, gone: readonly string[], { longest }: Candidates): Candidates {
  const first = Math.max(0, rows.transactions - count);
  const addresses = new Set<string>();
  const runes = new Set<Rune>();
  const outpoints = new Set(gone);
  for (let index = first; index < rows.transactions; index++) {
    const transaction = rows.transaction(index);
    for (const { address, rune } of transaction.rows) {
      const found = model.rune(rune);
      if (address !== null) addresses.add(address);
      if (found) runes.add(found);
    }
    for (const outpoint of outpointsOf(transaction)) outpoints.add(outpoint);
  }
  return { addresses: [...addresses], runes: [...runes], outpoints: [...outpoints], transactions: [first, rows.transactions], longest };
}

/** Returns the outpoints that occur in the rows of a transaction. */
export const outpointsOf = ({ txid, rows }: TransactionRows): string[] =>
  rows.flatMap(({ output }) => (output === null ? [] : [`${txid}:${output}`]));

const OPERATIONS = ['etching', 'mint', 'burn', 'send', 'receive'] as const;

/** Compares the answers to random requests of all kinds with the model. The same seed and model give the same requests. */
export async function compareRandom(compared: Compared, candidates: Candidates, count: number, seed: number): Promise<void> {
  const comparison = new Comparison(compared);
  const { model, rows, lacks = [] } = compared;
  for (const list of lacks) {
    const target = {
      operations: `${path('blocks', '1', 'activity')}?operation_type=send`,
      etchings: path('etchings'),
      activity: path('etchings', '1:1', 'activity'),
      balances: path('addresses', 'nobody', 'balances'),
      outputs: path('addresses', 'nobody', 'outputs'),
    }[list];
    const { status } = await comparison.ask(target);
    comparison.judge(target, { status: 200, body: String(status) }, list === 'operations' ? '400' : '501');
  }
  const next = randomNumbers(seed);
  const below = (limit: number) => Math.floor(next() * limit);
  const any = <T>(from: readonly T[], instead: T): T => from[below(from.length)] ?? instead;
  const { addresses, runes, outpoints, transactions, longest } = candidates;
  const nobody = `0x${'0'.repeat(64)}`;
  const windowOf = (total: number): Window => ({
    limit: next() < 0.3 ? PAGE : 1 + below(PAGE),
    offset: next() < 0.4 ? 0 : below(total + 3),
  });
  const rune = (): Rune | undefined => (next() < 0.2 ? any(longest.runes, undefined) : any(runes, undefined));
  /** Returns one of the forms in which a request may name a rune, at random. */
  const nameOf = ({ id, number, letters, spacedName }: Rune): string =>
    any([id, String(number), letters, spacedName, letters.toLowerCase(), spacedName.replaceAll('•', '.')], id);
  const address = (): string => (next() < 0.2 ? any(longest.addresses, '') : any(addresses, '')) || 'nobody';
  const hashOf = (hash: string): string => any([`0x${hash}`, hash, hash.toUpperCase()], hash);

  const kinds: (() => Promise<unknown>)[] = [];
  /** Adds a kind of requests, unless they need a list that the mirror lacks. */
  const add = (list: ListKind | undefined, check: () => Promise<unknown>) => {
    if (list === undefined || !lacks.includes(list)) kinds.push(check);
  };
  add(undefined, async () => {
    const [from, end] = transactions;
    const index = from + below(end - from);
    const { txid, rows: own } = rows.transaction(index);
    const window = windowOf(own.length);
    const expected = activityBody(model, window, rows.ofTransaction(index, window.offset, window.limit));
    await comparison.check(windowed(path('transactions', hashOf(txid), 'activity'), window), expected);
  });
  add(undefined, async () => {
    const [from, end] = transactions;
    const height = next() < 0.8 ? rows.transaction(from + below(end - from)).height : below(model.tip.height + 3);
    const isKnown = height >= rows.transaction(0).height && height <= model.tip.height;
    const name = isKnown && next() < 0.5 ? hashOf(model.block(height).hash) : String(height);
    const operation = next() < 0.4 && !lacks.includes('operations') ? any([...OPERATIONS], 'mint') : undefined;
    const window = windowOf(rows.ofBlock(height, 0, 0, operation).total);
    const target = windowed(path('blocks', name, 'activity'), window) + (operation === undefined ? '' : `&operation_type=${operation}`);
    await comparison.check(target, activityBody(model, window, rows.ofBlock(height, window.offset, window.limit, operation)));
  });
  add('etchings', async () => {
    const window = windowOf(model.runes.length);
    const total = model.runes.length;
    // Rune numbers ascend with height and transaction index, and the list begins with the newest rune.
    const entry = (index: number) => {
      const found = model.runes[total - 1 - index];
      return found ? etchingBody(model, found) : '';
    };
    await comparison.list(path('etchings'), total, entry, { window });
  });
  add('etchings', async () => {
    const found = rune();
    if (found) await comparison.check(path('etchings', nameOf(found)), etchingBody(model, found));
    else await comparison.check(path('etchings', '7:999999'), undefined);
  });
  add('activity', async () => {
    const found = rune();
    if (!found) return;
    const window = windowOf(rows.ofRune(found.id, 0, 0).total);
    const expected = activityBody(model, window, rows.ofRune(found.id, window.offset, window.limit), false);
    await comparison.check(windowed(path('etchings', nameOf(found), 'activity'), window), expected);
  });
  add('activity', async () => {
    const owner = address();
    const found = any(model.balances(owner), undefined)?.rune ?? rune();
    if (!found) return;
    const window = windowOf(rows.ofRuneAndAddress(found.id, owner, 0, 0).total);
    const expected = activityBody(model, window, rows.ofRuneAndAddress(found.id, owner, window.offset, window.limit), false);
    await comparison.check(windowed(path('etchings', nameOf(found), 'activity', owner), window), expected);
  });
  add('balances', async () => {
    const found = rune();
    if (found) await comparison.holders(found, windowOf(Math.min(found.counts.rows, 1000)), nameOf(found));
  });
  add('balances', async () => {
    const owner = address();
    const found = next() < 0.7 ? any(model.balances(owner), undefined)?.rune : rune();
    if (!found) return;
    const amount = model.holding(found, owner);
    const expected = amount === null ? undefined : holderOf(found, owner, amount);
    await comparison.check(path('etchings', nameOf(found), 'holders', owner), expected);
  });
  add('activity', async () => {
    const owner = address();
    const window = windowOf(rows.ofAddress(owner, 0, 0).total);
    const expected = activityBody(model, window, rows.ofAddress(owner, window.offset, window.limit));
    await comparison.check(windowed(path('addresses', owner, 'activity'), window), expected);
  });
  add('balances', async () => {
    const owner = address();
    await comparison.balances(owner, windowOf(model.balances(owner).length));
  });
  add('outputs', async () => {
    const owner = address();
    await comparison.outputs(owner, windowOf(model.outputsOf(owner).length));
  });
  add('outputs', async () => {
    const outpoint = next() < 0.05 ? `${nobody.slice(2)}:${below(3)}` : any(outpoints, `${nobody.slice(2)}:0`);
    const written = next() < 0.5 ? outpoint : `0x${outpoint}`;
    await comparison.output(outpoint, written);
  });
  add(undefined, async () => {
    const window = windowOf(2);
    const target = any([path('transactions', nobody, 'activity'), path('addresses', 'nobody', 'activity')], '');
    await comparison.check(windowed(target, window), listOf(window, 0, []));
  });
  for (let i = 0; i < count; i++) await kinds[i % kinds.length]?.();
}

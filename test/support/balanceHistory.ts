/**
 * Generates a chain of invented receipts, sends and burns, as one ledger file per block and a runes table. Also
 * computes the API's answers about balances and holders, without code of the program.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits } from '../../src/limits.ts';
import type { Random } from './history.ts';
import { hex } from './records.ts';

interface Rune {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  spaced: string;
  readonly height: number;
  readonly tx: number;
  readonly decimals: number;
}
type Operation = 'etching' | 'mint' | 'receive' | 'send' | 'burn';
interface Event {
  readonly rune: string;
  readonly operation: Operation;
  readonly address: string;
  readonly amount: bigint;
  readonly tx: number;
}
interface Block {
  fork: number;
  events: Event[];
}

/** First height. Levels of lists (src/format/levels.ts) end at 4,032 and at multiples of 144 and 16. */
const FIRST = 3990;
const MOST = 2n ** 128n - 1n;
/** Some addresses need escapes in JSON, CSV or keys. The last two sort differently by bytes and by UTF-16. */
const ADDRESSES = [...Array.from({ length: 9 }, (_, i) => `bc1q${i}`), '3"x', 'a%b*(1)', 'A b', 'Äé', '\ue000x', '😀'];

/** The limits that influence answers. */
type ListLimits = Pick<Limits, 'listPage' | 'listLevels'>;

export class BalanceHistory {
  readonly #random: Random;
  readonly #isWrong: boolean;
  readonly blocks = new Map<number, Block>();
  runes: Rune[] = [];
  /** Height of an etching whose ledger file is missing. Without this file, a build cannot compute balances. */
  hidden: number | undefined;
  #serial = 0;
  #tip = FIRST;

  /** If `isWrong` is true, addresses may send more than they have. */
  constructor(random: Random, isWrong: boolean) {
    this.#random = random;
    this.#isWrong = isWrong;
    for (const distance of [1, 1, 1, 1, 1, undefined, undefined]) this.append(distance);
  }

  #upTo(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[this.#upTo(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  get tip(): number {
    return Math.max(...this.blocks.keys());
  }

  #etch(height: number, tx: number): Rune {
    const name = [...String(this.#serial + 1000)].map((digit) => 'QWERTYUIOP'[Number(digit)]).join('');
    this.#serial += 1;
    const spaced = this.#upTo(2) === 0 ? name : `${name[0]}•${name.slice(1)}`;
    return { id: `${height}:${tx}`, number: this.runes.length, name, spaced, height, tx, decimals: this.#upTo(3) * 19 };
  }

  #fill(height: number): Event[] {
    const events: Event[] = [];
    // Units that each address has after the lower blocks and after the events of this block so far.
    const has = this.#sums(height - 1);
    for (let tx = 1; tx <= 2 + this.#upTo(9); tx += 1) {
      // The first block contains an etching, so that it has the rune with number 0.
      if (this.runes.length === 0 || this.#upTo(12) === 0) {
        const rune = this.#etch(height, tx);
        this.runes.push(rune);
        events.push({ rune: rune.id, operation: 'etching', address: '', amount: 0n, tx });
        continue;
      }
      const rune = this.runes[this.#upTo(2) === 0 ? 0 : this.#upTo(this.runes.length)]?.id ?? '';
      const address = this.#upTo(9) === 0 ? '' : this.#pick(ADDRESSES);
      const most = has.get(rune)?.get(address) ?? 0n;
      let operation: Operation = this.#pick(['receive', 'receive', 'receive', 'send', 'send', 'burn', 'mint'] as const);
      let amount = [0n, 1n, BigInt(this.#upTo(50)), 10n ** 18n, MOST][this.#upTo(12)] ?? BigInt(this.#upTo(9));
      if (operation === 'send' || operation === 'burn') {
        if (this.#upTo(2) === 0) amount = most > MOST || most < 0n ? 1n : most;
        if (!this.#isWrong && amount > most) operation = 'receive';
      }
      const change = operation === 'receive' ? amount : operation === 'mint' ? 0n : -amount;
      if (!has.has(rune)) has.set(rune, new Map());
      has.get(rune)?.set(address, most + change);
      events.push({ rune, operation, address: operation === 'mint' ? '' : address, amount, tx });
    }
    return events;
  }

  /** Adds a block, by default at a random distance. */
  append(distance = 1 + this.#upTo([1, 3, 20, 160][this.#upTo(4)] ?? 1)): void {
    this.#tip += distance;
    this.blocks.set(this.#tip, { fork: 0, events: this.#fill(this.#tip) });
  }

  /** Skips about a month of blocks, so that the lowest level ends at another height. */
  leap(): void {
    this.append(2000 + this.#upTo(2200));
  }

  #heights(): number[] {
    return [...this.blocks.keys()].sort((a, b) => a - b);
  }

  /** Replaces blocks. Runes that they etched no longer exist. */
  #replace(heights: readonly number[]): void {
    const [lowest] = heights;
    if (lowest === undefined) return;
    this.show();
    this.runes = this.runes.filter(({ height }) => height < lowest);
    for (const height of heights) {
      const block = this.blocks.get(height);
      if (block !== undefined) this.blocks.set(height, { fork: block.fork + 1, events: [] });
    }
    for (const height of heights) {
      const block = this.blocks.get(height);
      if (block !== undefined) block.events = this.#fill(height);
    }
  }

  reorg(): void {
    this.#replace(
      this.#heights()
        .slice(1)
        .slice(-1 - this.#upTo(3)),
    );
  }

  hide(): void {
    const { height } = this.#pick(this.runes);
    if (height < this.tip) this.hidden = height;
  }

  show(): void {
    this.hidden = undefined;
  }

  /** Removes up to three of the newest blocks. */
  shorten(): void {
    this.show();
    for (let i = this.#upTo(3); i >= 0 && this.blocks.size > 3; i -= 1) {
      const last = this.tip;
      this.blocks.delete(last);
      this.runes = this.runes.filter(({ height }) => height < last);
      this.#tip = this.tip;
    }
  }

  /** Removes an event of any block, if addresses may send more than they have. */
  correct(): void {
    const block = this.blocks.get(this.#pick(this.#heights()));
    if (block === undefined) return;
    const at = this.#upTo(block.events.length);
    if (block.events[at]?.operation !== 'etching' && block.events.length > 1 && this.#isWrong) block.events.splice(at, 1);
  }

  /** Corrects a row of the runes table. */
  rename(): void {
    const rune = this.#pick(this.runes);
    rune.spaced = rune.spaced === rune.name ? `${rune.name[0]}•${rune.name.slice(1)}` : rune.name;
  }

  write(folder: string): void {
    mkdirSync(folder, { recursive: true });
    const files = new Map<string, string>();
    for (const [height, { fork, events }] of this.blocks) {
      if (height === this.hidden) continue;
      const rows = events.map(({ rune, operation, address, amount, tx }) => {
        const cell = `"${address.replaceAll('"', '""')}"`;
        const ids = [rune, hex(`block ${height} ${fork}`), height, tx, 0, hex(`tx ${height} ${fork} ${tx}`)];
        return [
          ...ids,
          '',
          address === '' ? '' : cell,
          '',
          operation === 'etching' ? '' : amount,
          operation,
          1_700_000_000 + height,
        ].join();
      });
      files.set(`ledger-${height}.csv`, [LEDGER, ...rows, ''].join('\n'));
    }
    const runes = this.runes.map((r) =>
      [
        r.id,
        r.number,
        r.name,
        r.spaced,
        hex(`b${r.height}`),
        r.height,
        r.tx,
        hex(`t${r.id}`),
        r.decimals,
        0,
        '$,,,,,,,f,f',
        r.height,
      ].join(),
    );
    files.set('runes.csv', [RUNES, ...runes, ''].join('\n'));
    for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
  }

  /** Returns the units by rune and address after all events up to a height. The address '' stands for no address. */
  #sums(last: number): Map<string, Map<string, bigint>> {
    const sums = new Map<string, Map<string, bigint>>();
    for (const [height, { events }] of this.blocks) {
      if (height > last) continue;
      for (const { rune, operation, address, amount } of events) {
        if (operation === 'etching' || operation === 'mint') continue;
        const holders = sums.get(rune) ?? new Map<string, bigint>();
        sums.set(rune, holders);
        holders.set(address, (holders.get(address) ?? 0n) + (operation === 'receive' ? amount : -amount));
      }
    }
    return sums;
  }

  /** Returns the units by rune and address, without the units that have no address. */
  sums(last = this.tip): Map<string, Map<string, bigint>> {
    const all = this.#sums(last);
    for (const holders of all.values()) holders.delete('');
    return all;
  }

  /**
   * Returns the list of holders of a rune, in which a document has at most `page` entries. In an archive, the list may
   * be that after an older block, with this block's height. The newest two levels cause this: if the list before one of
   * them is longer than a page, and more entries than a page change in this level, the archive has no newer list. In
   * layout `files`, a short range of blocks has more such levels, which begin at a multiple of a step above the lowest
   * block.
   */
  holders(
    rune: Rune,
    { listPage: page, listLevels: { steps, unsettled } }: ListLimits,
    lowest = 0,
  ): { readonly block_height?: number; readonly results: readonly object[] } {
    const at = (height: number) => this.sums(height).get(rune.id) ?? new Map<string, bigint>();
    const lengthAt = (height: number) => [...at(height).values()].filter((units) => units > 0n).length;
    const multiples = steps.map((step) => Math.max(Math.floor((this.tip + 1 - unsettled) / step) * step, 0));
    const ends = [...multiples.map((multiple) => multiple - 1), this.tip];
    const [ranked = -1] = ends.slice(-3);
    const begins = steps.map((step) => Math.ceil(lowest / step) * step).filter((begin, i) => begin <= (multiples[i] ?? 0));
    let [below, height]: [number, number | undefined] = [ranked, undefined];
    const newest = [...begins.map((begin) => begin - 1), ...ends.slice(-2)].filter((end) => end > ranked && end >= lowest);
    for (const end of newest.sort((a, b) => a - b)) {
      const [before, after] = [at(below), at(end)];
      const changed = [...after].filter(([address, units]) => (before.get(address) ?? 0n) !== units).length;
      if (changed > page && lengthAt(below) > page) height ??= lengthAt(ranked) > page ? ranked : below;
      below = end;
    }
    const all = [...at(height ?? this.tip)].filter(([, units]) => units > 0n);
    all.sort(([a, x], [b, y]) => (x === y ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : x > y ? -1 : 1));
    const results = all.map(([address, units]) => ({ balance: shown(units, rune.decimals), address }));
    return height === undefined ? { results } : { block_height: height, results };
  }

  /** Returns the list of balances of an address. */
  balances(address: string): object[] {
    const sums = this.sums();
    const all = this.runes.map((rune) => ({ rune, units: sums.get(rune.id)?.get(address) ?? 0n })).filter(({ units }) => units > 0n);
    all.sort((a, b) => (a.units === b.units ? a.rune.height - b.rune.height || a.rune.tx - b.rune.tx : a.units > b.units ? -1 : 1));
    return all.map(({ rune: { id, number, name, spaced, decimals }, units }) => ({
      rune: { id, number, name, spaced_name: spaced },
      balance: shown(units, decimals),
      address,
    }));
  }

  /** Returns a holder, or undefined if the address never had any of the rune. */
  holder(rune: Rune, address: string): object | undefined {
    const units = this.sums().get(rune.id)?.get(address);
    return units === undefined ? undefined : { balance: shown(units > 0n ? units : 0n, rune.decimals), address };
  }

  get addresses(): readonly string[] {
    return ADDRESSES;
  }
}

/** Formats units with exactly this number of decimals. */
function shown(units: bigint, decimals: number): string {
  const text = String(units).padStart(decimals + 1, '0');
  return decimals === 0 ? text : `${text.slice(0, -decimals)}.${text.slice(-decimals)}`;
}

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';

export const BALANCE_CHANGES = [
  'append',
  'append',
  'append',
  'leap',
  'reorg',
  'shorten',
  'correct',
  'rename',
  'hide',
  'show',
  'show',
] as const;

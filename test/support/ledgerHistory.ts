/**
 * Generates a chain of invented etchings, mints, receipts, sends and burns, as one ledger file per block and a runes
 * table. Also computes the API's answers about etchings, activity, balances and holders, without code of the program.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits } from '../../src/limits.ts';
import { ActivityOracle } from './activityOracle.ts';
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
  symbol: string;
  readonly turbo: boolean;
  readonly premine: bigint;
  /** Terms in this order: amount, cap, height_start, height_end, offset_start, offset_end. */
  readonly terms: readonly (bigint | undefined)[];
}
type Operation = 'etching' | 'mint' | 'receive' | 'send' | 'burn';
interface Event {
  readonly rune: string;
  readonly operation: Operation;
  readonly address: string;
  readonly receiver: string;
  readonly amount: bigint;
  readonly tx: number;
  /** Position in the transaction. A receipt has the output with this index. */
  readonly index: number;
}
interface Block {
  fork: number;
  events: Event[];
}

/** First height. Levels of lists (src/format/levels.ts) end at 4,032 and at multiples of 144 and 16. */
const FIRST = 3990;
const MOST = 2n ** 128n - 1n;
/**
 * Some addresses need escapes in JSON, CSV or keys, or look like parts of the keys of other lists. The last two sort
 * differently by bytes and by UTF-16.
 */
const ADDRESSES = [
  ...['bc1q0', 'bc1q1', 'bc1q2', 'bc1q3', 'bc1q4', '1:0', '840000:1:bc1pa'],
  '3"x',
  'a%b*(1)',
  'A b',
  'Äé',
  '\ue000x',
  '😀',
];

/** The limits that influence answers. */
type ListLimits = Pick<Limits, 'listPage' | 'listLevels'>;

export class LedgerHistory {
  readonly #random: Random;
  readonly #isWrong: boolean;
  readonly blocks = new Map<number, Block>();
  runes: Rune[] = [];
  /** Heights of blocks whose ledger file is missing. Without the file of an etching, a build cannot compute balances. */
  readonly hidden = new Set<number>();
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

  /** The blocks whose ledger file is not missing. */
  get #seen(): [number, Block][] {
    return [...this.blocks].filter(([height]) => !this.hidden.has(height));
  }

  /** Highest and lowest block whose ledger file is not missing. */
  get tip(): number {
    return Math.max(...this.#seen.map(([height]) => height));
  }

  get lowest(): number {
    return Math.min(...this.#seen.map(([height]) => height));
  }

  /** True if the build has the blocks of all etchings. */
  get isWhole(): boolean {
    const heights = new Set(this.#seen.map(([height]) => height));
    return this.runes.every(({ height }) => heights.has(height));
  }

  #term(): bigint | undefined {
    return this.#upTo(3) === 0 ? undefined : BigInt(this.#upTo(6));
  }

  #etch(height: number, tx: number): Rune {
    const name = [...String(this.#serial + 1000)].map((digit) => 'QWERTYUIOP'[Number(digit)]).join('');
    this.#serial += 1;
    const spaced = this.#upTo(2) === 0 ? name : `${name[0]}•${name.slice(1)}`;
    const start = this.#term();
    return {
      id: `${height}:${tx}`,
      number: this.runes.length,
      name,
      spaced,
      height,
      tx,
      decimals: this.#upTo(3) * 19,
      symbol: ['¤', '"', '🜏', '\\'][this.#upTo(4)] ?? '',
      turbo: this.#upTo(2) === 0,
      premine: this.#upTo(4) === 0 ? MOST : BigInt(this.#upTo(1000)),
      terms:
        this.#upTo(4) === 0
          ? Array.from({ length: 6 }, () => undefined)
          : [
              this.#upTo(5) === 0 ? MOST : BigInt(this.#upTo(50)),
              this.#upTo(4) === 0 ? undefined : this.#upTo(6) === 0 ? MOST : BigInt(this.#upTo(5)),
              start === undefined ? undefined : start + BigInt(height),
              this.#upTo(3) === 0 ? BigInt(height + this.#upTo(9)) : this.#upTo(6) === 0 ? 2n ** 64n - 1n : undefined,
              this.#term(),
              this.#upTo(3) === 0 ? BigInt(this.#upTo(9)) : undefined,
            ],
    };
  }

  /** Draws the events of a block. If `etches` is false, none of them is an etching. */
  #fill(height: number, etches = true): Event[] {
    const events: Event[] = [];
    // Units that each address has after the lower blocks and after the events of this block so far.
    const has = this.#sums([...this.blocks].filter(([other]) => other < height));
    for (let tx = 1; tx <= 1 + this.#upTo(5); tx += 1) {
      // The first block contains an etching, so that it has the rune with number 0.
      if (etches && (this.runes.length === 0 || this.#upTo(9) === 0)) {
        const rune = this.#etch(height, tx);
        this.runes.push(rune);
        events.push({ rune: rune.id, operation: 'etching', address: '', receiver: '', amount: 0n, tx, index: 0 });
        continue;
      }
      const last = this.#upTo(this.#upTo(6) === 0 ? 12 : 3);
      for (let index = 0; index <= last; index += 1) events.push(this.#draw(has, tx, index));
    }
    return events;
  }

  /** Draws an event of a known rune, and adds it to the units that addresses have. */
  #draw(has: Map<string, Map<string, bigint>>, tx: number, index: number): Event {
    const rune = (this.#upTo(2) === 0 ? this.runes[0] : this.#pick(this.runes)) ?? this.#pick(this.runes);
    let operation: Operation = this.#pick(['receive', 'receive', 'receive', 'send', 'send', 'burn', 'mint'] as const);
    const address = operation === 'mint' || this.#upTo(9) === 0 ? '' : this.#pick(ADDRESSES);
    const most = has.get(rune.id)?.get(address) ?? 0n;
    let amount = [0n, 1n, BigInt(this.#upTo(50)), 10n ** 18n, MOST][this.#upTo(12)] ?? BigInt(this.#upTo(9));
    if (operation === 'mint') amount = rune.terms[0] ?? 1n;
    if (operation === 'send' || operation === 'burn') {
      if (this.#upTo(2) === 0) amount = most > MOST || most < 0n ? 1n : most;
      if (!this.#isWrong && amount > most) operation = 'receive';
    }
    const change = operation === 'receive' ? amount : operation === 'mint' ? 0n : -amount;
    if (!has.has(rune.id)) has.set(rune.id, new Map());
    has.get(rune.id)?.set(address, most + change);
    return { rune: rune.id, operation, address, receiver: operation === 'send' ? this.#pick(ADDRESSES) : '', amount, tx, index };
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

  /** Removes the file of an older block. */
  hide(): void {
    this.hidden.add(this.#pick(this.#heights().slice(0, -1)));
  }

  /** Removes the files of the oldest blocks, as if a build had only the last blocks. */
  slide(): void {
    for (const height of this.#heights().slice(0, 1 + this.#upTo(3))) this.hidden.add(height);
  }

  show(): void {
    this.hidden.clear();
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

  /** Changes any block, if addresses may send more than they have: removes an event, or draws all events again. */
  correct(): void {
    const [height, block] = this.#pick([...this.blocks]);
    if (!this.#isWrong || block.events.some(({ operation }) => operation === 'etching')) return;
    if (this.#upTo(2) === 0 && block.events.length > 1) block.events.splice(this.#upTo(block.events.length), 1);
    else this.blocks.set(height, { fork: block.fork + 100, events: this.#fill(height, false) });
  }

  /** Corrects a row of the runes table. */
  rename(): void {
    const rune = this.#pick(this.runes);
    rune.symbol = String.fromCodePoint(0x21 + this.#upTo(90));
    rune.spaced = rune.spaced === rune.name ? `${rune.name[0]}•${rune.name.slice(1)}` : rune.name;
  }

  write(folder: string): void {
    mkdirSync(folder, { recursive: true });
    const files = new Map<string, string>();
    const quoted = (text: string) => (text === '' ? '' : `"${text.replaceAll('"', '""')}"`);
    for (const [height, block] of this.#seen) {
      const rows = rowsOf(height, block).map((row) =>
        [...Object.values({ ...row, address: quoted(row.address), receiver_address: quoted(row.receiver_address) })].join(),
      );
      files.set(`ledger-${height}.csv`, [LEDGER, ...rows, ''].join('\n'));
    }
    const runes = this.runes.map((r) =>
      [
        ...[
          r.id,
          r.number,
          r.name,
          r.spaced,
          hex(`b${r.height}`),
          r.height,
          r.tx,
          hex(`t${r.id}`),
          r.decimals,
          r.premine,
          quoted(r.symbol),
        ],
        ...r.terms.map((term) => term ?? ''),
        ...[r.turbo ? 't' : 'f', 'f', 1_700_000_000 + r.height],
      ].join(),
    );
    files.set('runes.csv', [RUNES, ...runes, ''].join('\n'));
    for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
  }

  /** Returns the units by rune and address after all events of some blocks. The address '' stands for no address. */
  #sums(blocks: readonly [number, Block][]): Map<string, Map<string, bigint>> {
    const sums = new Map<string, Map<string, bigint>>();
    for (const [, { events }] of blocks) {
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
    const all = this.#sums(this.#seen.filter(([height]) => height <= last));
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

  /** Returns the model of activity, which answers in dialect `hiro`. */
  activity(): ActivityOracle {
    return new ActivityOracle(
      this.#seen.flatMap(([height, block]) => rowsOf(height, block)),
      this.runes.map(({ spaced, decimals, ...rune }) => ({ ...rune, spaced_name: spaced, divisibility: decimals })),
    );
  }

  /** Returns the expected etchings in the answers of the API, newest first. */
  etchings(dialect: 'contract' | 'hiro'): { readonly rune: Rune; readonly json: string }[] {
    const { tip, isWhole } = this;
    const events = this.#seen.flatMap(([, block]) => block.events);
    return this.runes
      .map((rune) => ({ rune, json: jsonOf(rune, isWhole ? events.filter((event) => event.rune === rune.id) : undefined, tip, dialect) }))
      .sort((a, b) => b.rune.height - a.rune.height || b.rune.tx - a.rune.tx);
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

function rowsOf(height: number, { fork, events }: Block) {
  return events.map(({ rune, operation, address, receiver, amount, tx, index }) => ({
    rune_id: rune,
    block_hash: hex(`block ${height} ${fork}`),
    block_height: height,
    tx_index: tx,
    event_index: index,
    tx_id: hex(`tx ${height} ${fork} ${tx}`),
    output: operation === 'receive' ? String(index) : '',
    address,
    receiver_address: receiver,
    amount: operation === 'etching' ? '' : String(amount),
    operation,
    timestamp: 1_700_000_000 + height,
  }));
}

function jsonOf(rune: Rune, events: readonly Event[] | undefined, tip: number, dialect: 'contract' | 'hiro'): string {
  const scale = 10n ** BigInt(rune.decimals);
  const decimal = (units: bigint): string => {
    const size = units < 0n ? -units : units;
    const rest = rune.decimals === 0 ? '' : `.${(size % scale).toString().padStart(rune.decimals, '0')}`;
    return `${units < 0n ? '-' : ''}${size / scale}${rest}`;
  };
  const [amount, cap, from, to, after, before] = rune.terms;
  const number = (term: bigint | undefined) => (term === undefined ? 'null' : String(term));
  const quoted = (text: string | undefined) => (text === undefined ? 'null' : `"${text}"`);
  const terms =
    `{"amount":${quoted(amount === undefined ? undefined : decimal(amount))},"cap":${quoted(cap === undefined ? undefined : dialect === 'hiro' ? decimal(cap) : String(cap))},` +
    `"height_start":${number(from)},"height_end":${number(to)},"offset_start":${number(after)},"offset_end":${number(before)}}`;
  let supply = `{"premine":"${decimal(rune.premine)}"}`;
  if (events !== undefined) {
    const sum = (operation: string) => events.filter((e) => e.operation === operation).reduce((total, e) => total + e.amount, 0n);
    const count = (operation: string) => events.filter((e) => e.operation === operation).length;
    const [minted, burned, mints] = [sum('mint'), sum('burn'), BigInt(count('mint'))];
    // Caps are so small that a double is exact, or so large that the share rounds to 0.
    const share = cap === undefined || cap === 0n ? 0 : Number(mints) / Number(cap);
    const next = BigInt(tip + 1);
    const isOpen =
      cap !== undefined &&
      mints < cap &&
      next >= (from ?? 0n) &&
      next >= (after === undefined ? 0n : BigInt(rune.height) + after) &&
      next < (to ?? 2n ** 200n) &&
      next < (before === undefined ? 2n ** 200n : BigInt(rune.height) + before);
    supply =
      `{"current":"${decimal(rune.premine + minted - burned)}","minted":"${decimal(minted)}","total_mints":"${mints}",` +
      `"mint_percentage":"${(share * 100).toFixed(4)}","mintable":${isOpen},"burned":"${decimal(burned)}","total_burns":"${count('burn')}",` +
      `"premine":"${decimal(rune.premine)}"}`;
  }
  const prefix = dialect === 'contract' ? '0x' : '';
  return (
    `{"id":"${rune.id}","name":"${rune.name}","spaced_name":"${rune.spaced}","number":${rune.number},"divisibility":${rune.decimals},` +
    `"symbol":${JSON.stringify(rune.symbol)},"turbo":${rune.turbo},"mint_terms":${terms},"supply":${supply},` +
    `"location":{"block_hash":"${prefix}${hex(`b${rune.height}`)}","block_height":${rune.height},"tx_id":"${prefix}${hex(`t${rune.id}`)}",` +
    `"tx_index":${rune.tx},"timestamp":${1_700_000_000 + rune.height}}}`
  );
}

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';

export const LEDGER_CHANGES = [
  'append',
  'append',
  'append',
  'leap',
  'reorg',
  'shorten',
  'correct',
  'rename',
  'hide',
  'slide',
  'show',
  'show',
] as const;

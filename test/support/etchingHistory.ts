/**
 * Generates a chain of invented etchings, mints and burns, as one ledger file per block and a runes table.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from './history.ts';
import { hex } from './records.ts';

interface Rune {
  readonly id: string;
  readonly number: number;
  readonly name: string;
  readonly spaced: string;
  readonly height: number;
  readonly tx: number;
  readonly decimals: number;
  symbol: string;
  readonly turbo: boolean;
  readonly premine: bigint;
  /** Terms in this order: amount, cap, height_start, height_end, offset_start, offset_end. */
  readonly terms: readonly (bigint | undefined)[];
}
interface Event {
  readonly rune: string;
  readonly operation: 'etching' | 'mint' | 'burn' | 'receive';
  readonly amount?: bigint;
  readonly tx: number;
}
interface Block {
  fork: number;
  events: Event[];
}

/**
 * First height. From here, an archive gets one, two or three levels (src/format/levels.ts), which end at 4,096 and at
 * multiples of 64, some blocks below the tip.
 */
const FIRST = 4080;
const MOST = 2n ** 128n - 1n;
const TERMS = ['amount', 'cap', 'height_start', 'height_end', 'offset_start', 'offset_end'] as const;

export class EtchingHistory {
  readonly #random: Random;
  readonly blocks = new Map<number, Block>();
  runes: Rune[] = [];
  #serial = 0;
  #tip = FIRST - 1;
  /** Heights of blocks whose ledger file is missing. */
  readonly hidden = new Set<number>();

  constructor(random: Random) {
    this.#random = random;
    this.append();
    this.append();
  }

  #upTo(n: number): number {
    return Math.floor(this.#random() * n);
  }

  get tip(): number {
    return Math.max(...[...this.blocks.keys()].filter((height) => !this.hidden.has(height)));
  }

  #term(): bigint | undefined {
    return this.#upTo(3) === 0 ? undefined : BigInt(this.#upTo(6));
  }

  #etch(height: number, tx: number): Rune {
    const number = this.runes.length;
    // Writes each digit of the serial number as a letter, so that names are unique.
    const name = [...(this.#serial + 1000).toString(10)].map((digit) => 'QWERTYUIOP'[Number(digit)]).join('');
    this.#serial += 1;
    const start = this.#term();
    return {
      id: `${height}:${tx}`,
      number,
      name,
      spaced: this.#upTo(2) === 0 ? name : `${name[0]}•${name.slice(1)}`,
      height,
      tx,
      decimals: this.#upTo(3) * 19,
      symbol: ['¤', '"', '🜏', '\\'][this.#upTo(4)] ?? '',
      turbo: this.#upTo(2) === 0,
      premine: this.#upTo(4) === 0 ? MOST : BigInt(this.#upTo(1000)),
      terms:
        this.#upTo(4) === 0
          ? TERMS.map(() => undefined)
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

  #fill(height: number): Event[] {
    const events: Event[] = [];
    for (let tx = 1; tx <= 1 + this.#upTo(4); tx += 1) {
      // The first block contains an etching, so that it has the rune with number 0.
      const isEtching = this.runes.length === 0 || this.#upTo(3) === 0;
      if (isEtching) {
        const rune = this.#etch(height, tx);
        this.runes.push(rune);
        events.push({ rune: rune.id, operation: 'etching', tx });
        continue;
      }
      const rune = this.runes[this.#upTo(this.runes.length)];
      if (rune === undefined) continue;
      const operation = (['mint', 'mint', 'burn', 'receive'] as const)[this.#upTo(4)] ?? 'mint';
      const amount = operation === 'mint' ? (rune.terms[0] ?? 1n) : this.#upTo(9) === 0 ? MOST : BigInt(this.#upTo(30));
      events.push({ rune: rune.id, operation, amount, tx });
    }
    return events;
  }

  append(): void {
    this.#tip += this.#tip < FIRST ? 1 : 1 + this.#upTo(this.#upTo(3) === 0 ? 60 : 3);
    this.blocks.set(this.#tip, { fork: 0, events: this.#fill(this.#tip) });
  }

  /** Replaces the newest blocks. Runes that they etched no longer exist. */
  reorg(): void {
    const heights = [...this.blocks.keys()]
      .sort((a, b) => a - b)
      .slice(1)
      .slice(-1 - this.#upTo(3));
    const lowest = heights[0];
    if (lowest === undefined) return;
    this.runes = this.runes.filter(({ height }) => height < lowest);
    for (const height of heights) {
      const block = this.blocks.get(height);
      if (block !== undefined) this.blocks.set(height, { fork: block.fork + 1, events: this.#fill(height) });
    }
  }

  /** Removes the newest blocks. */
  shorten(): void {
    const heights = [...this.blocks.keys()].sort((a, b) => a - b);
    const last = heights.at(-1);
    if (heights.length < 4 || last === undefined) return;
    this.blocks.delete(last);
    this.hidden.delete(last);
    this.runes = this.runes.filter(({ height }) => height < last);
    this.#tip = last - 1;
  }

  /** Corrects a row of the runes table. */
  correct(): void {
    const rune = this.runes[this.#upTo(this.runes.length)];
    if (rune !== undefined) rune.symbol = String.fromCodePoint(0x21 + this.#upTo(90));
  }

  /** Removes the file of an older block. */
  hide(): void {
    const heights = [...this.blocks.keys()].sort((a, b) => a - b);
    const height = heights[this.#upTo(heights.length - 1)];
    if (height !== undefined && heights.length > 3) this.hidden.add(height);
  }

  show(): void {
    this.hidden.clear();
  }

  write(folder: string): void {
    mkdirSync(folder, { recursive: true });
    const files = new Map<string, string>();
    for (const [height, { fork, events }] of this.blocks) {
      if (this.hidden.has(height)) continue;
      const rows = events.map(({ rune, operation, amount, tx }) =>
        [
          rune,
          hex(`block ${height} ${fork}`),
          height,
          tx,
          0,
          hex(`tx ${height} ${fork} ${tx}`),
          '',
          '',
          '',
          amount ?? '',
          operation,
          1_700_000_000 + height,
        ].join(),
      );
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
        r.premine,
        `"${r.symbol.replaceAll('"', '""')}"`,
      ]
        .concat(r.terms.map((term) => String(term ?? '')))
        .concat([r.turbo ? 't' : 'f', 'f', String(1_700_000_000 + r.height)])
        .join(),
    );
    files.set('runes.csv', [RUNES, ...runes, ''].join('\n'));
    for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
  }
}

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';

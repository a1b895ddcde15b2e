/** Generates a chain of invented activity with every possible event, as one ledger file per block and a runes table. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ActivityOracle, type LedgerRow, type RuneRow } from './activityOracle.ts';
import type { Random } from './history.ts';
import { hex } from './records.ts';

/**
 * First height. From here, the lists get one to four levels (src/format/levels.ts), which end at 4,032 and at multiples
 * of 144 and 16, some blocks below the tip.
 */
const FIRST = 3995;
/** `1:0` and `840000:1:bc1pa` look like parts of the keys of other lists. The last address is not ASCII. */
export const ADDRESSES = ['bc1pa', 'bc1pb', 'tb1q', '1:0', '840000:1:bc1pa', 'ümlaut 🜏'];
const OPERATIONS = ['mint', 'burn', 'send', 'receive'] as const;

export const RUNES: readonly RuneRow[] = ['1:0', '840000:1', '840000:2', '3995:4294967295'].map((id, number) => ({
  id,
  number,
  name: `RUNE${'ABCD'[number]}`,
  spaced_name: `RUNE•${'ABCD'[number]}`,
  divisibility: number * 5,
}));

export class ActivityHistory {
  readonly #random: Random;
  readonly #blocks = new Map<number, { fork: number; rows: LedgerRow[] }>();
  /** Heights of blocks whose file is missing. */
  readonly #hidden = new Set<number>();

  constructor(random: Random) {
    this.#random = random;
    for (let i = 0; i < 2; i += 1) this.append();
  }

  #upTo(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#upTo(items.length)] as T;
  }

  get #heights(): number[] {
    return [...this.#blocks.keys()].sort((a, b) => a - b);
  }

  #fill(height: number, fork: number): void {
    const rows: LedgerRow[] = [];
    for (let tx = 1; tx <= 1 + this.#upTo(4); tx += 1) {
      for (let event = 0; event <= this.#upTo(this.#upTo(4) === 0 ? 12 : 3); event += 1) {
        const operation = this.#pick(OPERATIONS);
        const hasAddress = operation !== 'mint' && this.#upTo(5) > 0;
        rows.push({
          rune_id: this.#pick(RUNES).id,
          block_hash: hex(`block ${height} ${fork}`),
          block_height: height,
          tx_index: tx * 3,
          event_index: event,
          tx_id: hex(`tx ${height} ${fork} ${tx}`),
          output: operation === 'receive' ? String(event) : '',
          address: hasAddress ? this.#pick(ADDRESSES) : '',
          receiver_address: operation === 'send' ? this.#pick(ADDRESSES) : '',
          amount: String(this.#upTo(1e9)),
          operation,
          timestamp: 1_700_000_000 + height,
        });
      }
    }
    this.#blocks.set(height, { fork, rows });
  }

  /** Adds blocks. The gaps between their heights are so large that a build joins levels of the last build. */
  append(): void {
    for (let i = 0; i < 3; i += 1) {
      const last = this.#heights.at(-1) ?? FIRST - 1;
      this.#fill(last + 1 + this.#upTo(this.#upTo(6) === 0 ? 90 : 9), 0);
    }
  }

  /** Replaces the newest blocks. */
  reorg(): void {
    for (const height of this.#heights.slice(-1 - this.#upTo(3))) this.#fill(height, (this.#blocks.get(height)?.fork ?? 0) + 1);
  }

  /** Changes the records of any block, so the pages of all blocks above it move. */
  correct(): void {
    this.#fill(this.#pick(this.#heights), this.#upTo(1000));
  }

  shorten(): void {
    const last = this.#heights.at(-1);
    if (this.#blocks.size < 3 || last === undefined) return;
    this.#blocks.delete(last);
    this.#hidden.delete(last);
  }

  /** Removes the oldest blocks, as if a build had only the last blocks. */
  slide(): void {
    for (const height of this.#heights.slice(0, Math.min(1 + this.#upTo(3), this.#blocks.size - 3))) {
      this.#blocks.delete(height);
      this.#hidden.delete(height);
    }
  }

  /** Removes the file of an older block. */
  hide(): void {
    if (this.#blocks.size > 3) this.#hidden.add(this.#pick(this.#heights.slice(0, -1)));
  }

  show(): void {
    this.#hidden.clear();
  }

  write(folder: string): void {
    mkdirSync(folder, { recursive: true });
    const csv = (rows: readonly object[]) =>
      [Object.keys(rows[0] ?? {}).join(), ...rows.map((row) => Object.values(row).join()), ''].join('\n');
    const more = (rune: RuneRow) => ({ block_hash: hex(rune.id), block_height: 1, tx_index: rune.number, tx_id: hex(rune.name) });
    const files = new Map([['runes.csv', csv(RUNES.map((rune) => ({ ...rune, ...more(rune), timestamp: 1 })))]]);
    for (const [height, { rows }] of this.#blocks) if (!this.#hidden.has(height)) files.set(`ledger-${height}.csv`, csv(rows));
    for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name));
    for (const [name, text] of files) writeFileSync(join(folder, name), text);
  }

  oracle(): ActivityOracle {
    const seen = [...this.#blocks].filter(([height]) => !this.#hidden.has(height));
    return new ActivityOracle(
      seen.flatMap(([, { rows }]) => rows),
      RUNES,
    );
  }
}

export const ACTIVITY_CHANGES = ['append', 'append', 'append', 'append', 'reorg', 'shorten', 'correct', 'slide', 'hide', 'show'] as const;

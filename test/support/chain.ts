/** An invented chain, which tests change, and its input files: one for each block. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeFiles } from './build.ts';
import { type Activity, hex, ndjson, record } from './records.ts';

const OPERATIONS = ['receive', 'send', 'mint', 'burn'] as const;

export interface ChainBlock {
  /** Different forks have different blocks at the same height, with other hashes and transactions. */
  readonly fork: number;
  /** Number of records of each transaction. */
  readonly sizes: readonly number[];
  /** Amount of each record. A new amount changes only the records of the block, not its hash. */
  readonly amount: number;
}

/** Returns the records of a block, newest first. */
function recordsOf(height: number, { fork, sizes, amount }: ChainBlock): Activity[] {
  const records = sizes.flatMap((size, tx) => {
    const id = `0x${hex(`tx ${height} ${fork} ${tx}`)}`;
    return Array.from({ length: size }, (_, event) =>
      record(height, tx + 1, {
        // Names have multi-byte characters, and addresses hardly compress.
        rune: { id: '840000:1', number: 1, name: 'TESTRUNE', spaced_name: 'TEST•RUNE' },
        address: `bc1p${hex(`${id} ${event}`).slice(0, 40)}`,
        amount: `${amount}.${event}`,
        operation: OPERATIONS[(event * 7 + tx) % 11] ?? 'receive',
        location: { block_hash: `0x${hex(`block ${height} ${fork}`)}`, tx_id: id, output: id, vout: event },
      }),
    );
  });
  return records.sort((a, b) => b.location.tx_index - a.location.tx_index);
}

export class Chain {
  readonly blocks = new Map<number, ChainBlock>();
  readonly #folder: string;
  #written = new Map<number, ChainBlock>();

  /** `folder` is where the input is written. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  get tip(): number {
    return Math.max(...this.blocks.keys());
  }

  /** Heights, ascending. */
  get heights(): number[] {
    return [...this.blocks.keys()].sort((a, b) => a - b);
  }

  set(height: number, sizes: readonly number[], more: Partial<ChainBlock> = {}): void {
    this.blocks.set(height, { fork: 0, amount: 1, ...more, sizes });
  }

  /** Replaces the newest blocks by others. */
  reorganise(depth: number, fork: number): void {
    for (const height of this.heights.slice(-depth)) {
      const { sizes = [], amount = 1 } = this.blocks.get(height) ?? {};
      this.blocks.set(height, { fork, amount, sizes: [...sizes, 1] });
    }
  }

  /** Writes the changed files. */
  write(): void {
    const name = (height: number) => `${height}.ndjson`;
    for (const height of this.#written.keys()) if (!this.blocks.has(height)) rmSync(join(this.#folder, name(height)));
    for (const [height, block] of this.blocks) {
      if (this.#written.get(height) !== block) writeFiles(this.#folder, { [name(height)]: ndjson(recordsOf(height, block)) });
    }
    this.#written = new Map(this.blocks);
  }
}

/**
 * Fills a chain with heights around a multiple of 4,096, so that tables have three levels; with gaps; with a block of many transactions;
 * and with a transaction of many records.
 */
export function fill(chain: Chain, random: () => number, { blocks = 60, large = 330 } = {}): void {
  let height = 4080;
  for (let i = 0; i < blocks; i += 1) {
    height += i % 9 === 4 ? 3 : i % 13 === 7 ? 17 : 1;
    const sizes = Array.from({ length: 1 + Math.floor(random() * 8) }, () => (random() < 0.1 ? 15 : 1 + Math.floor(random() * 2)));
    if (i === 20)
      chain.set(
        height,
        Array.from({ length: large }, () => 1),
      );
    else chain.set(height, i === 30 ? [2, 90, 1] : sizes);
  }
}

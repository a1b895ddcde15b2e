/**
 * A small chain and its files, with every possible change of both. Each change leaves the files consistent: a
 * transaction is in only one block, and all copies of a block are equal.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Activity, hex, ndjson, record } from './records.ts';

interface Tx {
  readonly id: string;
  readonly records: number;
}

interface Block {
  /** Increases when another block at this height replaces the block. */
  fork: number;
  /** Edition of the block. It is part of the amounts, so a new edition changes the records but not the block's hash. */
  edition: number;
  /** Transactions in the order of the chain. */
  txs: Tx[];
}

const FORMS = ['ndjson', 'array', 'csv', 'responses'] as const;
type Form = (typeof FORMS)[number];

/** Returns a random number in [0, 1). */
export type Random = () => number;

export class History {
  readonly #random: Random;
  readonly blocks = new Map<number, Block>();
  /** Heights of the blocks that each file contains, in the order of the file. */
  readonly files = new Map<string, { form: Form; heights: number[] }>();
  #tip = 100;
  #serial = 0;

  constructor(random: Random) {
    this.#random = random;
    for (let i = 0; i < 3; i += 1) this.addFile();
  }

  #upTo(n: number): number {
    return Math.floor(this.#random() * n);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#upTo(items.length)];
  }

  #newTx(): Tx {
    this.#serial += 1;
    // Most transactions have at most one page of records. Some have several pages of 2 or 4 records, with various
    // operations.
    return { id: hex(`tx ${this.#serial}`), records: this.#upTo(4) === 0 ? 3 + this.#upTo(8) : 1 + this.#upTo(2) };
  }

  #newBlock(): number {
    this.#tip += 1 + this.#upTo(2);
    this.blocks.set(this.#tip, { fork: 0, edition: 0, txs: Array.from({ length: 1 + this.#upTo(4) }, () => this.#newTx()) });
    return this.#tip;
  }

  addFile(): void {
    this.#serial += 1;
    const form = this.#pick(FORMS) ?? 'ndjson';
    const heights = Array.from({ length: 1 + this.#upTo(3) }, () => this.#newBlock());
    this.files.set(`${form}-${this.#serial}`, { form, heights });
  }

  append(): void {
    this.#pick([...this.files.values()])?.heights.push(this.#newBlock());
  }

  /** Replaces the newest blocks. Some of their transactions are mined again, each in the next block. */
  reorg(): void {
    const heights = [...this.blocks.keys()].sort((a, b) => b - a).slice(0, 1 + this.#upTo(3));
    const orphans: Tx[] = [];
    for (const height of heights) {
      const block = this.blocks.get(height);
      if (block === undefined) continue;
      block.fork += 1;
      const left = block.txs.filter(() => this.#random() < 0.5);
      const again = orphans.splice(0);
      orphans.push(...block.txs.filter((tx) => !left.includes(tx)));
      block.txs = [...again, ...left, this.#newTx()];
    }
  }

  shrink(): void {
    const block = this.#pick([...this.blocks.values()].filter((b) => b.txs.length > 1));
    block?.txs.pop();
  }

  grow(): void {
    const block = this.#pick([...this.blocks.values()]);
    if (block === undefined) return;
    const [first, ...rest] = block.txs;
    if (first !== undefined) block.txs = [{ ...first, records: first.records + 1 + this.#upTo(5) }, ...rest];
  }

  edit(): void {
    const block = this.#pick([...this.blocks.values()]);
    if (block !== undefined) block.edition += 1;
  }

  moveTx(): void {
    const from = this.#pick([...this.blocks.values()].filter((b) => b.txs.length > 1));
    const to = this.#pick([...this.blocks.values()]);
    const tx = from?.txs.shift();
    if (tx !== undefined) to?.txs.push(tx);
  }

  moveBlock(): void {
    const from = this.#pick([...this.files.values()].filter((f) => f.heights.length > 1));
    const height = from?.heights.shift();
    const to = this.#pick([...this.files.values()].filter((f) => height !== undefined && !f.heights.includes(height)));
    if (height !== undefined) to?.heights.push(height);
  }

  /** Copies a block into a second file. */
  copyBlock(): void {
    const height = this.#pick([...this.blocks.keys()]);
    const to = this.#pick([...this.files.values()].filter((f) => height !== undefined && !f.heights.includes(height)));
    if (height !== undefined) to?.heights.push(height);
  }

  rename(): void {
    const name = this.#pick([...this.files.keys()]);
    const file = this.files.get(name ?? '');
    if (name === undefined || file === undefined) return;
    this.files.delete(name);
    this.#serial += 1;
    this.files.set(`${file.form}-${this.#serial}`, file);
  }

  deleteFile(): void {
    if (this.files.size < 2) return;
    const name = this.#pick([...this.files.keys()]);
    if (name !== undefined) this.files.delete(name);
    this.#forget();
  }

  changeForm(): void {
    const file = this.#pick([...this.files.values()]);
    if (file !== undefined) file.form = this.#pick(FORMS) ?? 'ndjson';
  }

  /** Drops blocks that no file contains. Their transactions may be mined again. */
  #forget(): void {
    const held = new Set([...this.files.values()].flatMap((f) => f.heights));
    for (const height of this.blocks.keys()) if (!held.has(height)) this.blocks.delete(height);
  }

  /** Returns a block's records in served order (src/engine/render/servedOrder.ts). */
  #records(height: number): Activity[] {
    const block = this.blocks.get(height);
    if (block === undefined) return [];
    const records = block.txs.flatMap((tx, i) =>
      Array.from({ length: tx.records }, (_, event) =>
        record(height, i + 1, {
          amount: `${block.edition}.${event}`,
          operation: (['receive', 'send', 'mint'] as const)[(event + i) % 3] ?? 'receive',
          location: { block_hash: `0x${hex(`block ${height} ${block.fork}`)}`, tx_id: `0x${tx.id}`, output: `0x${tx.id}`, vout: event },
        }),
      ),
    );
    return records.sort((a, b) => b.location.tx_index - a.location.tx_index);
  }

  /**
   * Writes the files whose content differs from `written` (content by path), and removes files that no longer exist.
   * With `isWanted`, writes only blocks for which it returns true, and only files with such a block.
   */
  write(folder: string, written: Map<string, string>, isWanted: (height: number) => boolean = () => true): void {
    const wanted = new Map<string, string>();
    for (const [name, file] of this.files) {
      const heights = file.heights.filter(isWanted);
      if (heights.length === 0) continue;
      const blocks = heights.map((height) => this.#records(height));
      for (const [path, text] of contentsOf(name, file.form, blocks)) wanted.set(path, text);
    }
    for (const path of [...written.keys()].filter((p) => !wanted.has(p))) {
      rmSync(join(folder, path));
      written.delete(path);
    }
    for (const [path, text] of wanted) {
      if (written.get(path) === text) continue;
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
      written.set(path, text);
    }
  }
}

/** All kinds of changes, by name. */
export const CHANGES = [
  'addFile',
  'append',
  'reorg',
  'shrink',
  'grow',
  'edit',
  'moveTx',
  'moveBlock',
  'copyBlock',
  'rename',
  'deleteFile',
  'changeForm',
] as const;

const PAGE = 3;

function contentsOf(name: string, form: Form, blocks: readonly Activity[][]): [string, string][] {
  const records = blocks.flat();
  switch (form) {
    case 'ndjson':
      return [[`${name}.ndjson`, ndjson(records)]];
    case 'array':
      return [[`${name}.json`, JSON.stringify(records)]];
    case 'csv':
      return [[`${name}.csv`, csv(records)]];
    case 'responses': {
      // Writes the pages alternately to two files.
      const pages = blocks.flatMap((list) =>
        Array.from({ length: Math.ceil(list.length / PAGE) }, (_, i) => ({
          limit: PAGE,
          offset: i * PAGE,
          total: list.length,
          results: list.slice(i * PAGE, (i + 1) * PAGE),
        })),
      );
      const half = (rest: number) => ndjson(pages.filter((_, i) => i % 2 === rest));
      return [[`${name}/a.json`, half(0)] as [string, string], [`${name}/b.json`, half(1)] as [string, string]].filter(
        ([, text]) => text !== '',
      );
    }
  }
}

const COLUMNS = [
  'rune_id,rune_number,rune_name,rune_spaced_name,address,receiver_address,amount,operation',
  'block_hash,block_height,tx_id,tx_index,vout,output,timestamp',
].join();

const csv = (records: readonly Activity[]): string =>
  [
    COLUMNS,
    ...records.map(({ rune, address, amount, operation, location: l }) =>
      [rune.id, rune.number, rune.name, rune.spaced_name, address, '', amount, operation, l.block_hash, l.block_height, l.tx_id, l.tx_index]
        .concat([l.vout, l.output, l.timestamp])
        .join(),
    ),
    '',
  ].join('\n');

/**
 * Random histories of an invented chain (test/rehearsal/chain.ts) and of its input files. The model computes the rows of the files, and
 * what a mirror of them answers.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Limits } from '../../src/limits.ts';
import { ChainMaker } from '../rehearsal/chain.ts';
import { activityOf, listOf } from '../rehearsal/expected.ts';
import { CountedRows } from '../rehearsal/model/countedRows.ts';
import { type Answers, Model, type TransactionRows } from '../rehearsal/model/model.ts';
import type { Row } from '../rehearsal/model/rows.ts';
import type { Rune } from '../rehearsal/model/runes.ts';
import { writeFiles } from './build.ts';
import { csv, flatRow, ledgerRows, runesOf } from './modelRows.ts';
import { indexWith } from './nodeRows.ts';

/** `node` is the ledger with the outputs that transactions spend. All other forms have no spent outputs. */
const FORMS = ['ledger', 'ndjson', 'array', 'flat', 'responses'] as const;
type Form = (typeof FORMS)[number] | 'node';

/**
 * Addresses that need escapes in JSON, CSV or keys, or look like parts of the keys of other lists. The last two sort differently by bytes
 * and by UTF-16.
 */
const ODD = ['1:0', '840000:1:bc1pa', '3"x', 'a%b*(1)', 'A b', 'Äé', '\ue000x', '😀'];

/**
 * Changes of the chain, then of its files and rows. Those of `files` histories need rows without spent outputs. A change of the chain mends
 * all rows, so it should come first.
 */
export const OF_CHAIN = ['append', 'append', 'reorg', 'shorten', 'leap'] as const;
export const CHANGES = {
  node: [...OF_CHAIN, 'moveBlock', 'renameFile', 'correctRune', 'spend'],
  files: [
    ...OF_CHAIN,
    ...(['show', 'moveBlock', 'copyBlock', 'renameFile', 'changeForm', 'correctRune', 'addFile', 'mend'] as const),
    ...(['dropRow', 'addRow', 'changeAmount', 'moveTransaction', 'deleteFile', 'slide'] as const),
  ],
} as const;
export type Change = (typeof CHANGES)['node' | 'files'][number];

export interface HistoryOptions {
  readonly kind: 'node' | 'files';
  /** Number of blocks at the beginning. */
  readonly blocks: number;
  /** Levels of lists (src/format/levels.ts) end at 4,032 and at multiples of 144 and 16. */
  readonly first?: number;
  /** Approximate number of rows of a block. */
  readonly rows?: number;
}

export class ModelHistory {
  readonly #random: () => number;
  readonly #kind: 'node' | 'files';
  readonly #maker: ChainMaker;
  /** Height of the lowest block. No reorganisation replaces it. */
  readonly #first: number;
  readonly #model: Model;
  /** The rows of each block with runes. */
  readonly #blocks = new Map<number, TransactionRows[]>();
  /** Rows that differ from those of the chain. */
  readonly #edits = new Map<number, TransactionRows[]>();
  /** Heights of the blocks that each file has, in the order of the file. */
  readonly #files = new Map<string, { form: Form; heights: number[] }>();
  /** Heights of blocks that are in no file. */
  readonly #hidden = new Set<number>();
  readonly #written = new Map<string, string>();
  #serial = 0;

  constructor(random: () => number, { kind, blocks, first = 3990, rows = 12 }: HistoryOptions) {
    this.#random = random;
    this.#kind = kind;
    this.#first = first;
    this.#maker = new ChainMaker({ seed: this.upTo(2 ** 31), blocks: 400, rows, first });
    this.#model = new Model('regtest', {
      undoBlocks: 20_000,
      onRows: (transaction) => this.#blocks.set(transaction.height, [...(this.#blocks.get(transaction.height) ?? []), transaction]),
      // Spent outputs name their addresses, so these must be possible.
      renamed: (address) =>
        kind === 'files' && address.charCodeAt(12) % 3 === 0 ? (ODD[address.charCodeAt(14) % ODD.length] ?? '') : address,
    });
    this.#make(blocks);
    this.#place();
  }

  /** Returns a random integer below `limit`. */
  upTo(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.upTo(items.length)];
  }

  /** Heights of the blocks with rows that are in a file, ascending. */
  get heights(): number[] {
    return [...this.#blocks.keys()].filter((height) => !this.#hidden.has(height)).sort((a, b) => a - b);
  }

  /** True if the files have the blocks of all etchings. */
  get isWhole(): boolean {
    return this.#model.runes.every(({ height }) => !this.#hidden.has(height));
  }

  /** True if spent outputs are wrong, so that the mirror does not verify. */
  get isWrong(): boolean {
    return this.#kind === 'node' && this.#edits.size > 0;
  }

  /** All transactions with rows that are in a file. */
  get transactions(): TransactionRows[] {
    return this.heights.flatMap((height) => this.#rowsOf(height));
  }

  /** What a mirror of the files answers. */
  get answers(): Answers {
    return this.#edits.size === 0 && this.#hidden.size === 0 ? this.#model : new CountedRows(this.#model, this.transactions, this.isWhole);
  }

  change(name: Change): void {
    this[name]();
    this.#place();
  }

  /** Adds blocks up to this height, the last one of a history of `files` with rows. */
  appendTo(height: number): void {
    this.#make(height - this.#maker.height);
    this.#place();
  }

  /** Adds up to three blocks. */
  append(): void {
    this.#make(1 + this.upTo(3));
  }

  /** Skips about a month of blocks, so that the lowest level ends at another height. */
  leap(): void {
    for (let left = 1 + this.upTo(this.upTo(3) === 0 ? 4200 : 160); left > 0; left -= 1) this.#next(true);
    this.#make(1);
  }

  /** Replaces the newest blocks. The first of them have the same transactions as before. */
  reorg(): void {
    const depth = 1 + this.upTo(this.upTo(3) === 0 ? 25 : 4);
    const fork = this.#rewind(depth);
    this.#maker.rewind(fork, ++this.#serial, fork + 1 + this.upTo(depth));
    this.#make(depth + this.upTo(2));
  }

  shorten(): void {
    const fork = this.#rewind(1 + this.upTo(3));
    this.#maker.rewind(fork, ++this.#serial, fork + 1);
    this.#make(0);
  }

  addFile(): void {
    this.#serial += 1;
    this.#files.set(`${this.#serial}`, { form: this.#kind === 'node' ? 'node' : (this.pick(FORMS) ?? 'ledger'), heights: [] });
    this.append();
    this.#place(`${this.#serial}`);
  }

  moveBlock(): void {
    const from = this.pick([...this.#files.values()].filter(({ heights }) => heights.length > 1));
    const height = from?.heights.shift();
    const to = this.pick([...this.#files.values()].filter(({ heights }) => height !== undefined && !heights.includes(height)));
    if (height !== undefined) (to ?? from)?.heights.push(height);
  }

  /** Copies a block into a second file. */
  copyBlock(): void {
    const height = this.pick(this.heights);
    const to = this.pick([...this.#files.values()].filter(({ heights }) => height !== undefined && !heights.includes(height)));
    if (height !== undefined) to?.heights.push(height);
  }

  renameFile(): void {
    const [name, file] = this.pick([...this.#files]) ?? [];
    if (name === undefined || file === undefined) return;
    this.#files.delete(name);
    this.#files.set(`${++this.#serial}`, file);
  }

  changeForm(): void {
    const file = this.pick([...this.#files.values()]);
    if (file !== undefined) file.form = this.pick(FORMS) ?? 'ledger';
  }

  /** Removes a file. Its blocks are gone, except the newest one and those that another file has. */
  deleteFile(): void {
    const name = this.pick([...this.#files.keys()]);
    if (name === undefined || this.#files.size < 2) return;
    const gone = this.#files.get(name)?.heights ?? [];
    this.#files.delete(name);
    const held = new Set([...this.#files.values()].flatMap(({ heights }) => heights));
    this.#hide(gone.filter((height) => !held.has(height)));
  }

  /** Removes the oldest blocks, as if a build had only the last blocks. */
  slide(): void {
    this.#hide(this.heights.slice(0, 1 + this.upTo(5)));
  }

  show(): void {
    this.#hidden.clear();
  }

  dropRow(): void {
    this.#edit((rows) => rows.slice(0, -1));
  }

  /** Adds a receipt that no transaction made. */
  addRow(): void {
    this.#edit((rows) => {
      const last = rows.at(-1)!;
      return [...rows, { ...last, eventIndex: last.eventIndex + 1, operation: 'receive', receiver: null, amount: BigInt(this.upTo(1e6)) }];
    });
  }

  /** Lets an address send more than it has. */
  changeAmount(): void {
    this.#edit(
      (rows) => [...rows.slice(0, -1), { ...rows.at(-1)!, amount: 2n ** 128n - 1n }],
      ({ operation, address }) => operation === 'send' && address !== null,
    );
  }

  /** Moves a transaction without an etching to another block, as its last one. */
  moveTransaction(): void {
    const from = this.pick(this.heights.filter((height) => this.#rowsOf(height).length > 1)) ?? 0;
    const to = this.pick(this.heights.filter((height) => height !== from));
    const moved = this.pick(this.#rowsOf(from).filter(({ rows }) => rows.every(isPlain)));
    if (to === undefined || moved === undefined) return;
    const there = this.#rowsOf(to);
    const { height, blockHash, timestamp, txIndex } = there.at(-1)!;
    this.#edits.set(
      from,
      this.#rowsOf(from).filter((one) => one !== moved),
    );
    this.#edits.set(to, [...there, { ...moved, height, blockHash, timestamp, txIndex: txIndex + 1 }]);
  }

  /** Leaves out a spent output, or changes its address, but no record. */
  spend(): void {
    for (let i = this.upTo(4); i >= 0; i -= 1) {
      const height = this.pick(this.heights.filter((one) => this.#rowsOf(one).some(({ spent }) => spent.length > 0)));
      if (height === undefined) return;
      const changed = (spent: readonly string[]) =>
        this.upTo(2) === 0 ? spent.slice(1) : spent.map((one) => `${one.split(':').slice(0, 2).join(':')}:bcrt1other${i}`);
      this.#edits.set(
        height,
        this.#rowsOf(height).map((one) => ({ ...one, spent: changed(one.spent) })),
      );
    }
  }

  mend(): void {
    this.#edits.clear();
  }

  /** Corrects a row of the table of runes. */
  correctRune(): void {
    const rune = this.pick(this.#model.runes);
    if (rune === undefined) return;
    const symbol = String.fromCodePoint(0x21 + this.upTo(90));
    const spacedName = rune.spacedName === rune.letters ? `${rune.letters[0]}•${rune.letters.slice(1)}` : rune.letters;
    Object.assign(rune, { symbol, spacedName });
  }

  /** Changes the rows of a transaction whose last row fits. */
  #edit(changed: (rows: readonly Row[]) => readonly Row[], isFit = isPlain): void {
    const fits = ({ rows }: TransactionRows) => rows.length > 1 && isFit(rows.at(-1)!);
    const height = this.pick(this.heights.filter((one) => this.#rowsOf(one).some(fits))) ?? 0;
    const all = this.#rowsOf(height);
    const one = this.pick(all.filter(fits));
    if (one !== undefined)
      this.#edits.set(
        height,
        all.map((each) => (each === one ? { ...one, rows: changed(one.rows) } : each)),
      );
  }

  #rowsOf(height: number): TransactionRows[] {
    return this.#edits.get(height) ?? this.#blocks.get(height) ?? [];
  }

  /** Hides blocks, except the newest one. */
  #hide(heights: readonly number[]): void {
    const newest = this.heights.at(-1);
    for (const height of heights) if (height !== newest) this.#hidden.add(height);
  }

  #next(isEmpty: boolean): void {
    const { bytes, height } = this.#maker.next(isEmpty);
    this.#model.apply(bytes, height);
  }

  /** Makes at least this many blocks. The last one of a history of `files` has rows, because its height is the height of the mirror. */
  #make(count: number): void {
    for (let i = 0; i < count || (this.#kind === 'files' && !this.#blocks.has(this.#maker.height)); i += 1) this.#next(false);
  }

  /** Removes blocks of the model, and what depends on them. Returns the height of the last block that is left. */
  #rewind(depth: number): number {
    const fork = Math.max(this.#maker.height - depth, this.heights[5] ?? this.#first);
    this.#model.rewind(fork);
    this.mend();
    for (const height of this.#blocks.keys()) if (height > fork) this.#blocks.delete(height);
    this.show();
    return fork;
  }

  /** Puts each block that is in no file into one, and drops blocks and files that are gone. */
  #place(into?: string): void {
    const shown = new Set(this.heights);
    for (const [name, file] of this.#files) {
      file.heights = file.heights.filter((height) => shown.has(height));
      for (const height of file.heights) shown.delete(height);
      if (file.heights.length === 0 && name !== into) this.#files.delete(name);
    }
    for (const height of shown) {
      if (into === undefined && (this.#files.size === 0 || this.upTo(4) === 0))
        this.#files.set(`${++this.#serial}`, { form: this.#kind === 'node' ? 'node' : (this.pick(FORMS) ?? 'ledger'), heights: [] });
      (this.#files.get(into ?? '') ?? [...this.#files.values()].at(-1))?.heights.push(height);
    }
  }

  /** Writes the files that differ from those before, and removes files that are gone. */
  write(folder: string): void {
    const files = this.files();
    for (const path of this.#written.keys()) if (!files.has(path)) rmSync(join(folder, path));
    for (const [path, text] of files) if (this.#written.get(path) !== text) writeFiles(folder, { [path]: text });
    this.#written.clear();
    for (const [path, text] of files) this.#written.set(path, text);
  }

  /** Returns the text of each file. With `isWanted`, the files have only blocks for which it returns true. */
  files(isWanted: (height: number) => boolean = () => true): Map<string, string> {
    const files = new Map(Object.entries({ 'runes.csv': runesOf(this.#model) }));
    for (const [name, { form, heights }] of this.#files) {
      const blocks = heights.filter(isWanted).map((height) => this.#rowsOf(height));
      if (blocks.length > 0) for (const [path, text] of contentsOf(name, form, blocks, this.#model)) files.set(path, text);
    }
    if (this.#kind === 'node') {
      const sources = [{ rules: 'ord', blocks: [[Math.min(...this.#blocks.keys()), this.#model.tip.height]] }];
      const { height, hash } = this.#model.tip;
      files.set('index.json', indexWith({ sources, tip: { height, hash }, network: 'regtest' }));
    }
    return files;
  }

  /** Returns the block of a rune's list of holders if that is not the tip. */
  rankedAt(rune: Rune, limits: Pick<Limits, 'listPage' | 'listLevels'>, layout: string): number | undefined {
    return rankedAt(this.answers, rune, limits, layout === 'files' ? (this.heights[0] ?? 0) : 0);
  }
}

const isPlain = ({ operation }: Row): boolean => operation !== 'etching' && operation !== 'mint';

/**
 * Returns the block of a rune's list of holders if that is not the tip. In an archive, the newest two levels cause this: if the list before
 * one of them is longer than a page, and more entries than a page change in this level, the archive has no newer list. In layout `files`, a
 * short range of blocks has more such levels, which begin at a multiple of a step above the lowest block.
 */
function rankedAt(
  answers: Pick<Answers, 'holders' | 'tip'>,
  rune: Rune,
  { listPage: page, listLevels: { steps, unsettled } }: Pick<Limits, 'listPage' | 'listLevels'>,
  lowest = 0,
): number | undefined {
  const tip = answers.tip.height;
  const at = (height: number) => new Map(height < rune.height ? [] : answers.holders(rune, height).map((one) => [one.address, one.amount]));
  const multiples = steps.map((step) => Math.max(Math.floor((tip + 1 - unsettled) / step) * step, 0));
  const ends = [...multiples.map((multiple) => multiple - 1), tip];
  const [ranked = -1] = ends.slice(-3);
  const begins = steps.map((step) => Math.ceil(lowest / step) * step).filter((begin, i) => begin <= (multiples[i] ?? 0));
  const newest = [...begins.map((begin) => begin - 1), ...ends.slice(-2)].filter((end) => end > ranked && end >= lowest);
  let [below, height]: [number, number | undefined] = [ranked, undefined];
  for (const end of newest.sort((a, b) => a - b)) {
    const [before, after] = [at(below), at(end)];
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter((one) => (before.get(one) ?? 0n) !== (after.get(one) ?? 0n));
    if (changed.length > page && before.size > page) height ??= at(ranked).size > page ? ranked : below;
    below = end;
  }
  return height;
}

/** Returns the paths and texts of a file with these blocks. */
function contentsOf(name: string, form: Form, blocks: readonly (readonly TransactionRows[])[], model: Model): [string, string][] {
  const served = (transactions: readonly TransactionRows[]) =>
    [...transactions].reverse().flatMap((one) => [...one.rows].reverse().map((row) => activityOf(model, row, one, true)));
  const transactions = blocks.flat();
  switch (form) {
    case 'node':
    case 'ledger':
      return [[`${form}-${name}.csv`, csv(transactions.flatMap((one) => ledgerRows(one, form === 'node')))]];
    case 'ndjson':
      return [
        [
          `${name}.ndjson`,
          blocks
            .flatMap(served)
            .map((record) => `${record}\n`)
            .join(''),
        ],
      ];
    case 'array':
      return [[`${name}.json`, `[${blocks.flatMap(served).join()}]`]];
    case 'flat':
      return [[`flat-${name}.csv`, csv(transactions.flatMap((one) => one.rows.map((row) => flatRow(row, one, model))))]];
    case 'responses': {
      // Writes the pages alternately to two files.
      const pages = blocks.flatMap((block) => {
        const records = served(block);
        return Array.from({ length: Math.ceil(records.length / 7) }, (_, i) =>
          listOf({ limit: 7, offset: 7 * i }, records.length, records.slice(7 * i, 7 * i + 7)),
        );
      });
      const half = (rest: number) =>
        pages
          .filter((_, i) => i % 2 === rest)
          .map((page) => `${page}\n`)
          .join('');
      return (['a', 'b'] as const).flatMap((one, i) => (half(i) === '' ? [] : [[`${name}/${one}.json`, half(i)] as [string, string]]));
    }
  }
}

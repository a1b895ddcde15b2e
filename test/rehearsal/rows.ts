/**
 * Stores the rows of the model on disk. Records in memory which list has which rows, so memory grows with the number of rows, but not with
 * their text.
 */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { TransactionRows } from './model/model.ts';
import type { Row } from './model/rows.ts';

/** Number of bytes to buffer before a write. */
const CHUNK_BYTES = 1 << 20;

/** A row and its transaction. */
interface PlacedRow {
  readonly row: Row;
  readonly transaction: TransactionRows;
}

/** Rows of a part of a list, the last row of the chain first, or undefined if the order of some rows is not defined. */
export interface RowWindow {
  readonly total: number;
  readonly rows: readonly PlacedRow[] | undefined;
}

/** A list: the indexes of the transactions that have its rows, ascending. A transaction occurs once for each of these rows. */
type List = number[];

interface Wanted {
  readonly offset: number;
  readonly limit: number;
  readonly fits: (placed: PlacedRow) => boolean;
  readonly isExact: boolean;
}

const text = (transaction: TransactionRows): string =>
  JSON.stringify(transaction, (_, value: unknown) => (typeof value === 'bigint' ? { big: String(value) } : value));

const parse = (json: string): TransactionRows =>
  JSON.parse(json, (_, value: unknown) =>
    typeof value === 'object' && value !== null && 'big' in value ? BigInt(String(value.big)) : value,
  ) as TransactionRows;

export class RowStore {
  readonly #file: number;
  /** Offset of each transaction in the file. One more entry has the end of the last transaction. */
  readonly #offsets: number[] = [0];
  readonly #heights: number[] = [];
  readonly #byRune = new Map<string, List>();
  readonly #byAddress = new Map<string, List>();
  readonly #byBlock = new Map<number, List>();
  #folded: number[] = [];
  #pending: Buffer[] = [];
  #written = 0;
  /** Number of rows of all transactions. */
  count = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'w+');
  }

  /** Returns the indexes of transactions with summed rows, which have no order. */
  get folded(): readonly number[] {
    return this.#folded;
  }

  /** Number of transactions. */
  get transactions(): number {
    return this.#heights.length;
  }

  add(transaction: TransactionRows): void {
    const bytes = Buffer.from(text(transaction));
    const at = this.#offsets.at(-1) ?? 0;
    this.#pending.push(bytes);
    this.#offsets.push(at + bytes.length);
    this.#heights.push(transaction.height);
    this.count += transaction.rows.length;
    if (transaction.folded) this.#folded.push(this.#heights.length - 1);
    for (const list of this.#listsOf(transaction)) list.push(this.#heights.length - 1);
    if (at + bytes.length - this.#written > CHUNK_BYTES) this.#flush();
  }

  /** Removes the transactions of blocks above a height. Returns them from last to first. */
  rewind(height: number): TransactionRows[] {
    const removed: TransactionRows[] = [];
    while ((this.#heights.at(-1) ?? -1) > height) {
      const transaction = this.transaction(this.#heights.length - 1);
      for (const list of this.#listsOf(transaction)) list.pop();
      this.count -= transaction.rows.length;
      this.#heights.pop();
      this.#offsets.pop();
      removed.push(transaction);
    }
    this.#folded = this.#folded.filter((index) => index < this.#heights.length);
    this.#flush();
    this.#written = this.#offsets.at(-1) ?? 0;
    return removed;
  }

  transaction(index: number): TransactionRows {
    this.#flush();
    const [from = 0, to = 0] = [this.#offsets[index], this.#offsets[index + 1]];
    const bytes = Buffer.allocUnsafe(to - from);
    for (let done = 0; done < bytes.length; ) done += readSync(this.#file, bytes, done, bytes.length - done, from + done);
    return parse(bytes.toString());
  }

  ofBlock(height: number, offset: number, limit: number, operation?: string): RowWindow {
    const list = this.#byBlock.get(height) ?? [];
    const fits = ({ row }: PlacedRow) => operation === undefined || row.operation === operation;
    return this.#window(list, { offset, limit, fits, isExact: operation === undefined });
  }

  ofTransaction(index: number, offset: number, limit: number): RowWindow {
    return this.#window([index], { offset, limit, fits: () => true, isExact: false });
  }

  ofRune(id: string, offset: number, limit: number): RowWindow {
    return this.#window(this.#byRune.get(id) ?? [], { offset, limit, fits: ({ row }) => row.rune === id, isExact: true });
  }

  ofAddress(address: string, offset: number, limit: number): RowWindow {
    const list = this.#byAddress.get(address) ?? [];
    return this.#window(list, { offset, limit, fits: ({ row }) => row.address === address, isExact: true });
  }

  ofRuneAndAddress(id: string, address: string, offset: number, limit: number): RowWindow {
    const [rune = [], own = []] = [this.#byRune.get(id), this.#byAddress.get(address)];
    const fits = ({ row }: PlacedRow) => row.rune === id && row.address === address;
    return this.#window(rune.length < own.length ? rune : own, { offset, limit, fits, isExact: false });
  }

  close(): void {
    closeSync(this.#file);
  }

  /** Returns the lists that have rows of a transaction. A list occurs once for each of these rows. */
  #listsOf({ height, rows }: TransactionRows): List[] {
    return rows.flatMap(({ rune, address }) => [
      listOf(this.#byBlock, height),
      listOf(this.#byRune, rune),
      ...(address === null ? [] : [listOf(this.#byAddress, address)]),
    ]);
  }

  /**
   * Returns a window of a list, with the last transaction and its last row first. If `isExact` is true, the list names a transaction
   * exactly once for each row that `fits`. Then transactions outside of the window need not be read.
   */
  #window(list: List, { offset, limit, fits, isExact }: Wanted): RowWindow {
    const rows: PlacedRow[] = [];
    let isOrdered = true;
    let total = 0;
    for (let i = list.length - 1; i >= 0; ) {
      const index = list[i] ?? 0;
      let count = 0;
      for (; list[i] === index; i--) count++;
      if (isExact && (total + count <= offset || total >= offset + limit)) {
        total += count;
        continue;
      }
      const transaction = this.transaction(index);
      const fitting = [...transaction.rows].reverse().flatMap((row) => (fits({ row, transaction }) ? [{ row, transaction }] : []));
      const wanted = fitting.slice(Math.max(0, offset - total), Math.max(0, offset + limit - total));
      if (wanted.length > 0 && transaction.folded) isOrdered = false;
      rows.push(...wanted);
      total += fitting.length;
    }
    return { total, rows: isOrdered ? rows : undefined };
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const bytes = Buffer.concat(this.#pending);
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#file, bytes, done, bytes.length - done, this.#written + done);
    this.#written += bytes.length;
    this.#pending = [];
  }
}

function listOf<Key>(lists: Map<Key, List>, key: Key): List {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

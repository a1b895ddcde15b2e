import type { Rune } from './runes.ts';

type Operation = 'etching' | 'mint' | 'burn' | 'send' | 'receive';

/** A row of the ledger. Amounts are in the smallest unit. `output` is an index in the transaction. */
export interface Row {
  eventIndex: number;
  readonly operation: Operation;
  /** Id of the rune. */
  readonly rune: string;
  readonly address: string | null;
  readonly receiver: string | null;
  readonly amount: bigint | null;
  readonly output: number | null;
}

/**
 * Some units of a rune that a transaction can distribute. They come from an input (whose address may be null), or from a premine or a mint.
 */
export interface Entry {
  readonly amount: bigint;
  readonly address: string | null;
  readonly fresh: boolean;
}

/** An output that gets runes. `burns` is true for an OP_RETURN, where the runes burn. */
export interface Target {
  readonly index: number;
  readonly address: string | null;
  readonly burns: boolean;
}

const MOST_ROWS = 10_000;

/**
 * Collects the rows of one transaction. Each rune has a queue of entries, which are the amounts that the transaction can distribute. A move
 * takes units from the front of the queue.
 */
export class TransactionLedger {
  readonly #queues = new Map<Rune, { entries: Entry[]; next: number }>();
  #rows: Row[] = [];
  /** Sums of rows, by key. Null unless the transaction has more than MOST_ROWS rows. */
  #sums: { receives: Map<string, Row>; others: Map<string, Row> } | null = null;

  get folded(): boolean {
    return this.#sums !== null;
  }

  /** Puts an entry at the end of a rune's queue. */
  enqueue(rune: Rune, entry: Entry): void {
    const queue = this.#queues.get(rune);
    if (queue === undefined) this.#queues.set(rune, { entries: [entry], next: 0 });
    else queue.entries.push(entry);
  }

  etching(rune: Rune): void {
    this.#add({ operation: 'etching', rune: rune.id });
  }

  mint(rune: Rune, amount: bigint): void {
    this.#add({ operation: 'mint', rune: rune.id, amount });
  }

  /** Moves a positive amount from the queue to an output, and adds the rows. If `target` is null, the amount burns. */
  move(rune: Rune, amount: bigint, target: Target | null): void {
    const burns = target === null || target.burns;
    const output = target?.index ?? null;
    if (!burns) this.#add({ operation: 'receive', rune: rune.id, address: target.address, amount, output });
    for (const entry of this.#take(rune, amount)) {
      if (burns) this.#add({ operation: 'burn', rune: rune.id, address: entry.address, amount: entry.amount, output });
      else if (!entry.fresh) {
        const { address } = entry;
        this.#add({ operation: 'send', rune: rune.id, address, receiver: target.address, amount: entry.amount, output });
      }
    }
  }

  /** Returns the rows in order. If rows are summed, the order is etching and mint, then the sums of receives, then the other sums. */
  finish(): Row[] {
    const { receives, others } = this.#sums ?? { receives: new Map<string, Row>(), others: new Map<string, Row>() };
    const rows = [...this.#rows, ...receives.values(), ...others.values()];
    for (const [i, row] of rows.entries()) row.eventIndex = i;
    return rows;
  }

  /** Yields entries from the front of a queue until they make up the amount. If the last entry is larger, its rest stays at the front. */
  *#take(rune: Rune, amount: bigint): Generator<Entry> {
    const queue = this.#queues.get(rune);
    for (let left = amount; left > 0n; ) {
      const entry = queue?.entries[queue.next];
      if (queue === undefined || entry === undefined) throw new Error(`the entries of ${rune.id} are less than what moves`);
      const taken = entry.amount < left ? entry.amount : left;
      if (taken === entry.amount) queue.next++;
      else queue.entries[queue.next] = { ...entry, amount: entry.amount - taken };
      left -= taken;
      yield { ...entry, amount: taken };
    }
  }

  #add(fields: Pick<Row, 'operation' | 'rune'> & Partial<Row>): void {
    const row: Row = { eventIndex: 0, address: null, receiver: null, amount: null, output: null, ...fields };
    if (this.#sums !== null) {
      this.#fold(row);
      return;
    }
    this.#rows.push(row);
    if (this.#rows.length <= MOST_ROWS) return;
    const rows = this.#rows;
    this.#rows = [];
    this.#sums = { receives: new Map(), others: new Map() };
    for (const each of rows) this.#fold(each);
  }

  #fold(row: Row): void {
    if (this.#sums === null || row.operation === 'etching' || row.operation === 'mint') {
      this.#rows.push(row);
      return;
    }
    // The key needs no operation, because an output never both burns and receives runes.
    const sums = row.operation === 'receive' ? this.#sums.receives : this.#sums.others;
    const key = JSON.stringify([row.rune, row.operation === 'receive' ? null : row.address, row.receiver, row.output]);
    const before = sums.get(key);
    sums.set(key, before === undefined ? row : { ...before, amount: (before.amount ?? 0n) + (row.amount ?? 0n) });
  }
}

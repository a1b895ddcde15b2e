/**
 * Allocates the runes of a transaction from its **entries** (spent outputs, premine and mint) to its outputs. A transaction may have
 * hundreds of thousands of edicts, and each may give runes to all outputs, which makes a billion moves. So moves are stored in pieces, such
 * as "this entry gives amount A to each of these outputs": an edict makes at most three, plus two for each entry that it empties.
 */
import type { RuneId } from './runeId.ts';

/** Used as output index for runes that are burned because no output can receive them. Sorts after all indexes. */
export const NOWHERE = Number.MAX_SAFE_INTEGER;

/** Remaining amount of one rune from one source: a spent output, the premine or a mint. */
interface Entry {
  /** Script of the spent output, empty if the script has no address. Undefined for a premine or a mint. */
  readonly sender: Uint8Array | undefined;
  left: bigint;
}

export interface Piece {
  readonly queue: Queue;
  readonly sender: Uint8Array | undefined;
  /** Index of the output if `count` is 1. Otherwise the index of the first output in `Allocation.destinations`. */
  readonly first: number;
  readonly count: number;
  /** Amount for each output, above 0. */
  readonly amount: bigint;
  /** False if this piece continues the move of the previous piece. */
  readonly begins: boolean;
}

/** Entries of one rune. A move takes its amount from the first entry that has an amount left, then from the next. */
export interface Queue {
  readonly rune: RuneId;
  readonly entries: Entry[];
  front: number;
  left: bigint;
  readonly pieces: Piece[];
}

export class Allocation {
  /** Pieces in the order of the moves. */
  readonly pieces: Piece[] = [];
  readonly #queues = new Map<RuneId, Queue>();
  #destinations: number[] | undefined;

  /** `burns` has a boolean per output: true for an OP_RETURN, which burns runes. */
  constructor(readonly burns: readonly boolean[]) {}

  /** Indexes of the outputs that are not an OP_RETURN. */
  get destinations(): readonly number[] {
    this.#destinations ??= [...this.burns.keys()].filter((output) => !this.burns[output]);
    return this.#destinations;
  }

  /** Returns the queues of all runes, ascending by rune id. */
  queues(): Queue[] {
    return [...this.#queues.values()].sort((a, b) => a.rune - b.rune);
  }

  /** Adds an amount to the runes that edicts can move. */
  add(rune: RuneId, amount: bigint, sender?: Uint8Array): void {
    if (amount === 0n) return;
    let queue = this.#queues.get(rune);
    if (!queue) {
      queue = { rune, entries: [], front: 0, left: 0n, pieces: [] };
      this.#queues.set(rune, queue);
    }
    queue.entries.push({ sender, left: amount });
    queue.left += amount;
  }

  /**
   * Applies an edict. Amount 0 means the remaining amount of the rune. If `output` is the number of outputs, the edict applies to each
   * output without OP_RETURN. Each gets `amount`, until no runes are left. With amount 0, each gets an equal share.
   */
  edict(rune: RuneId, amount: bigint, output: number): void {
    const queue = this.#queues.get(rune);
    if (!queue || queue.left === 0n) return;
    if (output < this.burns.length) return void this.#move(queue, amount === 0n || amount > queue.left ? queue.left : amount, output);
    const outputs = BigInt(this.destinations.length);
    if (outputs === 0n) return;
    if (amount === 0n) {
      const [share, remainder] = [queue.left / outputs, queue.left % outputs];
      this.#moveEach(queue, share + 1n, 0, Number(remainder));
      if (share > 0n) this.#moveEach(queue, share, Number(remainder), Number(outputs - remainder));
    } else {
      const full = queue.left / amount < outputs ? Number(queue.left / amount) : Number(outputs);
      this.#moveEach(queue, amount, 0, full);
      if (full < outputs && queue.left > 0n) this.#moveEach(queue, queue.left, full, 1);
    }
  }

  /** Moves the remaining amount of every rune to one output, or burns it. */
  rest(output = NOWHERE): void {
    for (const queue of this.queues()) if (queue.left > 0n) this.#move(queue, queue.left, output);
  }

  /** Burns each entry separately, as a cenotaph does. */
  burn(): void {
    for (const queue of this.queues()) for (const { left } of [...queue.entries]) this.#move(queue, left, NOWHERE);
  }

  /** Moves an amount to one output. The caller must check that the queue has this amount. */
  #move(queue: Queue, amount: bigint, output: number): void {
    let begins = true;
    for (let missing = amount; missing > 0n; begins = false) {
      const entry = frontOf(queue);
      const taken = entry.left < missing ? entry.left : missing;
      this.#give(queue, entry, { first: output, count: 1, amount: taken, begins });
      missing -= taken;
    }
  }

  /** Moves an amount to each of `count` outputs, from index `first` of `destinations` on. */
  #moveEach(queue: Queue, amount: bigint, first: number, count: number): void {
    for (let at = first; at < first + count; ) {
      const entry = frontOf(queue);
      const enough = entry.left / amount;
      const served = enough < BigInt(first + count - at) ? Number(enough) : first + count - at;
      if (served > 1) this.#give(queue, entry, { first: at, count: served, amount, begins: true });
      else this.#move(queue, amount, this.destinations[at] ?? NOWHERE);
      at += Math.max(served, 1);
    }
  }

  #give(queue: Queue, entry: Entry, part: Pick<Piece, 'first' | 'count' | 'amount' | 'begins'>): void {
    const given = part.count === 1 ? part.amount : part.amount * BigInt(part.count);
    entry.left -= given;
    queue.left -= given;
    const piece = { queue, sender: entry.sender, ...part };
    queue.pieces.push(piece);
    this.pieces.push(piece);
  }

  /** Returns the index of the output that gets the nth amount of a piece, where `n` counts from 0. */
  outputOf(piece: Piece, n: number): number {
    return piece.count === 1 ? piece.first : (this.destinations[piece.first + n] ?? NOWHERE);
  }

  isBurned(output: number): boolean {
    return this.burns[output] ?? true;
  }

  /** Sums pieces by output, ascending. Takes time in proportion to the pieces and the outputs, not to the moves. */
  sums(pieces: readonly Piece[]): [output: number, amount: bigint][] {
    const [only] = pieces;
    if (only && pieces.length === 1 && only.count === 1) return [[only.first, only.amount]];
    const sums = new Map<number, bigint>();
    /** Amount of a destination minus the amount of the previous destination, by index in `destinations`. */
    const steps = new Map<number, bigint>();
    for (const { first, count, amount } of pieces) {
      if (count === 1) add(sums, first, amount);
      else {
        add(steps, first, amount);
        add(steps, first + count, -amount);
      }
    }
    let [at, each] = [0, 0n];
    for (const [next, step] of [...steps].sort(([a], [b]) => a - b)) {
      if (each > 0n) for (; at < next; at++) add(sums, this.destinations[at] ?? NOWHERE, each);
      at = next;
      each += step;
    }
    return [...sums].sort(([a], [b]) => a - b);
  }
}

function add(sums: Map<number, bigint>, key: number, amount: bigint): void {
  sums.set(key, (sums.get(key) ?? 0n) + amount);
}

/** Returns the first entry that has an amount left. The caller must check that one exists. */
function frontOf(queue: Queue): Entry {
  for (; ; queue.front++) {
    const entry = queue.entries[queue.front];
    if (!entry) throw new Error(`no entry has the ${queue.left} units that are left of rune ${queue.rune}`);
    if (entry.left > 0n) return entry;
  }
}

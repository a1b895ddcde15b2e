/** Converts the moves of a transaction to rows of the table `ledger`. Defines the rows of the tables `ledger` and `runes`. */
import { groupBy } from '../groupBy.ts';
import { type Allocation, NOWHERE, type Piece } from './allocation.ts';
import type { RuneNames } from './name.ts';
import type { RuneId } from './runeId.ts';

/** Row of the table `ledger`. Hashes are lower-case hex as Bitcoin displays them. Amounts are in smallest units. */
export interface LedgerRow {
  readonly rune_id: string;
  readonly block_hash: string;
  readonly block_height: number;
  readonly tx_index: number;
  readonly event_index: number;
  readonly tx_id: string;
  readonly output: number | null;
  readonly address: string | null;
  readonly receiver_address: string | null;
  readonly amount: bigint | null;
  readonly operation: 'etching' | 'mint' | 'receive' | 'send' | 'burn';
  readonly timestamp: number;
  /**
   * Outputs with runes that the transaction spends, in the order of its inputs, separated by commas: `txid:vout:address`, or `txid:vout`
   * without an address. Only the transaction's first row has them. Null if there are none.
   */
  readonly spent: string | null;
}

/** Row of the table `runes`. */
export interface RuneRow extends RuneNames {
  readonly block_hash: string;
  readonly block_height: number;
  readonly tx_index: number;
  readonly tx_id: string;
  readonly divisibility: number;
  readonly premine: bigint;
  readonly symbol: string;
  readonly terms_amount: bigint | null;
  readonly terms_cap: bigint | null;
  readonly terms_height_start: bigint | null;
  readonly terms_height_end: bigint | null;
  readonly terms_offset_start: bigint | null;
  readonly terms_offset_end: bigint | null;
  readonly turbo: boolean;
  /** Null if unknown. No answer of the API depends on it. */
  readonly cenotaph: boolean | null;
  readonly timestamp: number;
}

/** What differs between the rows of a transaction. */
export interface Event {
  readonly rune: RuneId;
  readonly operation: LedgerRow['operation'];
  readonly output?: number | undefined;
  /** Script of the spent output that had the amount. Undefined for a premine or a mint, and for received amounts. */
  readonly sender?: Uint8Array | undefined;
  readonly amount?: bigint;
}

type Emit = (event: Event) => void;

/** Maximum number of rows of a transaction. A transaction that needs more gets sums instead (docs/files.md). */
const MAX_ROWS = 10_000;

/** Emits the rows of all moves. `others` is the number of the transaction's other rows. `addressOf` returns null for no address. */
export function emitMoves(allocation: Allocation, emit: Emit, addressOf: (script: Uint8Array) => string | null, others: number): void {
  const { pieces } = allocation;
  let rows = others;
  for (const { first, count, sender, begins } of pieces)
    rows += count === 1 && allocation.isBurned(first) ? 1 : (begins ? count : 0) + (sender ? count : 0);
  if (rows > MAX_ROWS) return void emitSums(allocation, emit, addressOf);
  for (const [i, piece] of pieces.entries()) {
    const { rune } = piece.queue;
    for (let n = 0; n < piece.count; n++) {
      const output = allocation.outputOf(piece, n);
      if (piece.begins && !allocation.isBurned(output)) emit({ rune, operation: 'receive', output, amount: amountOfMove(pieces, i) });
      emitGiven(allocation, emit, piece, output, piece.amount);
    }
  }
}

/** Returns the amount that an output gets in the move that begins with this piece. A move may continue in later pieces. */
function amountOfMove(pieces: readonly Piece[], index: number): bigint {
  let amount = pieces[index]?.amount ?? 0n;
  for (let next = pieces[index + 1], i = index + 1; next && !next.begins; next = pieces[++i]) amount += next.amount;
  return amount;
}

/** Emits the `burn` or `send` row of an amount. A premine or mint that is not burned has neither: nobody sent it. */
function emitGiven(allocation: Allocation, emit: Emit, { queue: { rune }, sender }: Piece, output: number, amount: bigint): void {
  if (allocation.isBurned(output)) emit({ rune, operation: 'burn', output: output === NOWHERE ? undefined : output, sender, amount });
  else if (sender) emit({ rune, operation: 'send', output, sender, amount });
}

/** Emits a row per sum: received amounts by rune and output, then sent or burned amounts by rune, sender and output. */
function emitSums(allocation: Allocation, emit: Emit, addressOf: (script: Uint8Array) => string | null): void {
  const queues = allocation.queues();
  for (const { rune, pieces } of queues)
    for (const [output, amount] of allocation.sums(pieces))
      if (!allocation.isBurned(output)) emit({ rune, operation: 'receive', output, amount });
  for (const { pieces } of queues) {
    // Groups keep the order of their first pieces.
    const given = pieces.filter(({ sender, first, count }) => sender || (count === 1 && allocation.isBurned(first)));
    for (const some of groupBy(given, ({ sender }) => (sender ? addressOf(sender) : null)).values())
      for (const [output, amount] of allocation.sums(some)) if (some[0]) emitGiven(allocation, emit, some[0], output, amount);
  }
}

/** Interface of the ledger, which has all runes and all unspent outputs with runes, and the changes that a block makes to it. */
import type { RuneRow } from './ledgerRows.ts';
import type { RuneId } from './runeId.ts';
import type { Terms } from './runestone.ts';

/** Unspent output that has runes. */
export interface RuneOutput {
  /** Script of the output. Empty if the script has no address. */
  readonly script: Uint8Array;
  /** Amounts above 0, ascending by rune. */
  readonly balances: readonly { readonly rune: RuneId; readonly amount: bigint }[];
}

/** Parts of a rune that mints depend on. */
export interface Mintable {
  /** Block in the rune's id. */
  readonly block: number;
  readonly terms: Terms | undefined;
  readonly mints: number;
}

/** Ledger before the indexed block. Methods are synchronous, so a ledger on disk preloads data or reads synchronously. */
export interface Ledger {
  /** Returns an unspent output by its outpoint, the 36 bytes at `at`: transaction id in the hash function's byte order, and index. */
  output(bytes: Uint8Array, at: number): RuneOutput | undefined;
  rune(id: RuneId): Mintable | undefined;
  nameTaken(name: bigint): boolean;
  /** Number of runes, which is the number of the next rune. */
  readonly runes: number;
}

/** Rune that a block adds. */
export interface NewRune extends Mintable {
  readonly id: RuneId;
  readonly name: bigint;
  readonly row: RuneRow;
}

export interface NewOutput extends RuneOutput {
  /** 36 bytes: transaction id in the byte order of the hash function, and index of the output. */
  readonly outpoint: Uint8Array;
}

/** Changes that a block makes to the ledger. Outputs that the block both creates and spends are in neither list. */
export interface Changes {
  /** Spent outpoints of 36 bytes. All are in the ledger. */
  readonly spent: readonly Uint8Array[];
  readonly created: readonly NewOutput[];
  /** New runes in the order of their numbers, with their mints in this block. */
  readonly runes: readonly NewRune[];
  /** Mints of this block by rune, except mints of the block's new runes. */
  readonly mints: ReadonlyMap<RuneId, number>;
}

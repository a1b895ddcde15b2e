/** The ledger: unspent outputs with runes and all runes of earlier blocks, and the changes that a block makes. */
import type { Terms } from './message.ts';
import type { RuneRow } from './rows.ts';
import type { RuneId } from './runeId.ts';

/** An amount of one rune, above 0. */
interface Balance {
  readonly rune: RuneId;
  readonly amount: bigint;
}

/** An unspent output that has runes. */
export interface RuneOutput {
  /** Its script; empty when the script has no address. */
  readonly script: Uint8Array;
  /** Ascending by rune. */
  readonly balances: readonly Balance[];
}

/** The parts of a rune that mints depend on. */
export interface Mintable {
  /** The block of its id. */
  readonly block: number;
  readonly terms: Terms | undefined;
  readonly mints: number;
}

/**
 * The state after all blocks before the indexed one. Methods are synchronous: a ledger on disk loads ahead or blocks.
 */
export interface Ledger {
  /**
   * Returns the runes of an unspent output. Its outpoint (transaction id in byte order of hashing, index) is the 36
   * bytes at `at`.
   */
  output(bytes: Uint8Array, at: number): RuneOutput | undefined;
  rune(id: RuneId): Mintable | undefined;
  nameTaken(name: bigint): boolean;
  /** Number of runes; the next rune gets this number. */
  readonly runes: number;
}

/** A rune that a block adds. */
export interface NewRune extends Mintable {
  readonly id: RuneId;
  readonly name: bigint;
  readonly row: RuneRow;
}

export interface NewOutput extends RuneOutput {
  /** 36 bytes. */
  readonly outpoint: Uint8Array;
}

/** The changes that a block makes to the ledger. Outputs that it both creates and spends are in neither list. */
export interface Changes {
  /** Spent outpoints of 36 bytes, all in the ledger. */
  readonly spent: readonly Uint8Array[];
  readonly created: readonly NewOutput[];
  /** New runes in order of their numbers, with their mints in this block. */
  readonly runes: readonly NewRune[];
  /** Mints of this block by rune, without those of its new runes. */
  readonly mints: ReadonlyMap<RuneId, number>;
}

import type { Terms } from './runestone.ts';

/** Counts of a rune since its etching. A change replaces the object and does not modify it. */
export interface Counts {
  /** Number of valid mints, which equals the number of `mint` rows. */
  readonly mints: number;
  readonly burned: bigint;
  /** Number of `burn` rows. */
  readonly burnRows: number;
  /** Number of all rows. */
  readonly rows: number;
  /** Sum of the units that unspent outputs without an address have. */
  readonly unaddressed: bigint;
}

/** A rune. `block` and `tx` make its id. `height` and `txIndex` are the position of its etching, which differs from the id only for 1:0. */
export interface Rune {
  readonly id: string;
  readonly block: number;
  readonly tx: number;
  readonly number: number;
  readonly name: bigint;
  readonly letters: string;
  readonly spacedName: string;
  readonly spacers: number;
  readonly divisibility: number;
  /** Null if the etching has no symbol. */
  readonly symbol: string | null;
  readonly premine: bigint;
  readonly terms: Terms | null;
  readonly turbo: boolean;
  readonly cenotaph: boolean;
  readonly height: number;
  readonly txIndex: number;
  readonly txid: string;
  /** Time of the etching's block in seconds since 1970. 0 for 1:0. */
  readonly timestamp: number;
  counts: Counts;
}

export const NO_COUNTS: Counts = { mints: 0, burned: 0n, burnRows: 0, rows: 0, unaddressed: 0n };

/** Returns the symbol that tables and answers show: none for a rune that a cenotaph etched. Without NUL characters. */
export const shownSymbol = ({ symbol, cenotaph }: Pick<Rune, 'symbol' | 'cenotaph'>): string =>
  (symbol ?? (cenotaph ? '' : '¤')).replaceAll('\0', '');

/** Orders runes by id: by block, then by transaction. */
export function compareRunes(a: Rune, b: Rune): number {
  return a.block - b.block || a.tx - b.tx;
}

/** Returns true if a mint in a block of this height would succeed. */
export function mintable(rune: Rune, height: number): boolean {
  const { terms, block } = rune;
  if (terms === null) return false;
  const since = (offset: bigint | null) => (offset === null ? [] : [BigInt(block) + offset]);
  const at = (absolute: bigint | null) => (absolute === null ? [] : [absolute]);
  const now = BigInt(height);
  return (
    [...since(terms.offsetStart), ...at(terms.heightStart)].every((start) => now >= start) &&
    [...since(terms.offsetEnd), ...at(terms.heightEnd)].every((end) => now < end) &&
    BigInt(rune.counts.mints) < (terms.cap ?? 0n)
  );
}

/** Returns the amount of one mint. */
export function mintAmount(rune: Rune): bigint {
  return rune.terms?.amount ?? 0n;
}

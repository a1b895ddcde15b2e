/** Calculates with amounts of runes: decimal strings that are too large for numbers. Needs no browser. */

import { isMintOpen, type MintWindow, mintWindow } from '../../runes/mintTerms.ts';
import type { Etching } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';

export const decimalsOf = (amounts: readonly (string | undefined)[]): number =>
  amounts.reduce((most, amount) => Math.max(most, amount?.split('.')[1]?.length ?? 0), 0);

/** Returns an amount in units of 10^-decimals. Ignores digits beyond these decimals. */
export function unitsOf(amount: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  return BigInt(`${whole}${fraction.slice(0, decimals).padEnd(decimals, '0')}`);
}

/** Returns the share of an amount in another, as a number from 0 to 1. Undefined if the other is 0. */
export function shareOf(part: string, whole: string): number | undefined {
  const decimals = decimalsOf([part, whole]);
  const [a, b] = [unitsOf(part, decimals), unitsOf(whole, decimals)];
  return b <= 0n ? undefined : Number((a * 10n ** 12n) / b) / 1e12;
}

/** Formats a share as a percentage with two decimals: `12.50%`, `<0.01%`. */
export function percent(share: number): string {
  if (share === 0 || share === 1) return `${share * 100}%`;
  if (share > 0 && share < 0.0001) return '<0.01%';
  // Rounds down, so that a share below 1 is never shown as 100%.
  return `${(share < 1 ? Math.floor(share * 10_000) / 100 : share * 100).toFixed(2)}%`;
}

export interface Mint extends MintWindow {
  /** Amount of each mint. */
  readonly amount: string;
  /** Largest number of mints. Undefined if the terms have no cap. Then ord allows no mints. */
  readonly cap: bigint | undefined;
}

/**
 * Returns the mint of a rune. Undefined if the rune was etched without terms. The form of a cap depends on the dialect.
 */
export function mintOf({ mint_terms: terms, divisibility, location }: Etching, dialect: 'contract' | 'hiro'): Mint | undefined {
  if (Object.values(terms).every((term) => term === null)) return undefined;
  return {
    amount: terms.amount ?? '0',
    cap: terms.cap === null ? undefined : unitsOf(terms.cap, dialect === 'hiro' ? divisibility : 0),
    ...mintWindow(location.block_height, [terms.height_start, terms.offset_start], [terms.height_end, terms.offset_end]),
  };
}

/**
 * Returns whether the block after `tip` may mint, and a short text. `mints` is undefined if the mirror does not count
 * them.
 */
export function stateOfMint(mint: Mint, mints: bigint | undefined, tip: number): { isOpen: boolean; text: string } {
  const { cap = 0n, start, end } = mint;
  if (isMintOpen(mint, tip + 1, mints ?? 0n, cap))
    return { isOpen: true, text: end === undefined ? 'Open' : `Open until block ${groupDigits(end - 1n)}` };
  const reason = () => {
    if (cap === 0n) return 'Closed: the terms allow no mints';
    if (mints !== undefined && mints >= cap) return 'Closed: all mints are made';
    return end !== undefined && tip + 1 >= end ? `Closed since block ${groupDigits(end)}` : `Opens at block ${groupDigits(start ?? 0n)}`;
  };
  return { isOpen: false, text: reason() };
}

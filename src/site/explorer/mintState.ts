/** The mint of a rune: its terms, and whether it is open. Uses no DOM. */

import { isMintOpen, type MintWindow, mintWindow } from '../../runes/mintTerms.ts';
import type { Etching, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { shareOf, unitsOf } from './amountMath.ts';

export interface Mint extends MintWindow {
  readonly amount: string;
  /** Maximum number of mints. Undefined if the terms have no cap; then ord allows no mints. */
  readonly cap: bigint | undefined;
}

/**
 * Returns the mint of a rune. Undefined if the rune was etched without terms. In dialect `hiro`, the cap has decimals,
 * like an amount.
 */
export function mintOf({ mint_terms: terms, divisibility, location }: Etching, dialect: 'contract' | 'hiro'): Mint | undefined {
  if (Object.values(terms).every((term) => term === null)) return undefined;
  return {
    amount: terms.amount ?? '0',
    cap: terms.cap === null ? undefined : unitsOf(terms.cap, dialect === 'hiro' ? divisibility : 0),
    ...mintWindow(location.block_height, [terms.height_start, terms.offset_start], [terms.height_end, terms.offset_end]),
  };
}

/** Returns the last block in which the rune can be minted, or text if there is none. */
export const lastBlock = ({ end }: MintWindow): bigint | string => (end === undefined ? 'no limit' : end === 0n ? 'none' : end - 1n);

/**
 * Returns whether the rune can be minted in the block after `tip`, and a short text about it. `mints` is the number of
 * mints so far, or undefined if the mirror does not count them.
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

/** The mint of a rune as of the highest block of the mirror. */
export interface MintNow extends Mint {
  readonly isOpen: boolean;
  /** True if no mint can be valid any more. */
  readonly isOver: boolean;
  readonly text: string;
  /** Mints so far, mints until the cap is reached, minted share of the cap. Undefined without a cap or a count. */
  readonly mints?: bigint;
  readonly left?: bigint;
  readonly share?: number;
}

/** Returns the mint of a rune and its state. Undefined if the rune was etched without terms. */
export function mintNow(etching: Etching, { dialect, tip }: Pick<MirrorManifest, 'dialect' | 'tip'>): MintNow | undefined {
  const mint = mintOf(etching, dialect);
  if (mint === undefined) return undefined;
  const { total_mints } = etching.supply;
  const mints = total_mints === undefined ? undefined : BigInt(total_mints);
  const highest = tip?.height ?? 0;
  const left = mints === undefined || mint.cap === undefined || mint.cap < mints ? undefined : mint.cap - mints;
  const state = {
    ...stateOfMint(mint, mints, highest),
    isOver: left === 0n || mint.cap === undefined || (mint.end !== undefined && highest + 1 >= mint.end),
  };
  if (mints === undefined || left === undefined) return { ...mint, ...state };
  const share = shareOf(String(mints), String(mint.cap));
  return { ...mint, ...state, mints, left, ...(share === undefined ? {} : { share }) };
}

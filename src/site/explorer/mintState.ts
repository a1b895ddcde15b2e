/** The mint of a rune: its terms, and whether it is open. Uses no DOM. */
import { isMintOpen, type MintWindow, mintWindow } from '../../runes/mintTerms.ts';
import type { Etching, MirrorManifest } from '../../serve/client/mirrorClient.ts';
import { groupDigits } from '../formatValues.ts';
import { shareOf, unitsOf } from './amountMath.ts';

/** The terms of a rune's mint, and its state in the block after the highest block of the mirror. */
export interface Mint extends MintWindow {
  readonly amount: string;
  /** Maximum number of mints. Undefined if the terms have no cap; then ord allows no mints. */
  readonly cap: bigint | undefined;
  readonly isOpen: boolean;
  /** True if no mint can be valid any more. */
  readonly isOver: boolean;
  readonly text: string;
  /** Mints so far; undefined if the mirror does not count them. */
  readonly mints: bigint | undefined;
  /** Mints until the cap is reached, and the minted share of the cap. Undefined without a cap or a count. */
  readonly left: bigint | undefined;
  readonly share: number | undefined;
}

/** Returns the mint of a rune. Undefined if the rune was etched without terms. In dialect `hiro`, the cap has decimals, like an amount. */
export function mintOf(
  { mint_terms: terms, divisibility, location, supply }: Etching,
  { dialect, tip }: Pick<MirrorManifest, 'dialect' | 'tip'>,
): Mint | undefined {
  if (Object.values(terms).every((term) => term === null)) return undefined;
  const cap = terms.cap === null ? undefined : unitsOf(terms.cap, dialect === 'hiro' ? divisibility : 0);
  const window = mintWindow(location.block_height, [terms.height_start, terms.offset_start], [terms.height_end, terms.offset_end]);
  const mints = supply.total_mints === undefined ? undefined : BigInt(supply.total_mints);
  const next = (tip?.height ?? 0) + 1;
  const left = mints === undefined || cap === undefined || cap < mints ? undefined : cap - mints;
  const isOver = left === 0n || cap === undefined || (window.end !== undefined && next >= window.end);
  const isOpen = isMintOpen(window, next, mints ?? 0n, cap);
  const share = left === undefined ? undefined : shareOf(String(mints), String(cap));
  const text = isOpen ? openText(window) : closedText(window, cap ?? 0n, mints, next);
  return { amount: terms.amount ?? '0', cap, ...window, isOpen, isOver, text, mints, left, share };
}

const openText = ({ end }: MintWindow): string => (end === undefined ? 'Open' : `Open until block ${groupDigits(end - 1n)}`);

function closedText({ start = 0n, end }: MintWindow, cap: bigint, mints: bigint | undefined, next: number): string {
  if (cap === 0n) return 'Closed: the terms allow no mints';
  if (mints !== undefined && mints >= cap) return 'Closed: all mints are made';
  return end !== undefined && next >= end ? `Closed since block ${groupDigits(end)}` : `Opens at block ${groupDigits(start)}`;
}

/** Returns the last block in which the rune can be minted, or text if there is none. */
export const lastBlock = ({ end }: MintWindow): bigint | string => (end === undefined ? 'no limit' : end === 0n ? 'none' : end - 1n);

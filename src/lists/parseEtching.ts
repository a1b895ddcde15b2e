/** Parses the JSON of etchings that lists/etchings.ts renders, for verification. */
import type { Dialect } from '../pages/mirrorOptions.ts';
import type { Etching, Term } from './etchings.ts';

interface Fields extends Omit<Etching, 'counts' | 'premine'> {
  readonly mint_terms: { readonly amount: string | null; readonly cap: string | null };
  readonly supply: { readonly premine: string };
  readonly location: Pick<Etching, 'block_hash' | 'block_height' | 'tx_id' | 'tx_index' | 'timestamp'>;
}

/**
 * Parses an etching without its counts. Does not check the values: the caller must render them with `renderEtching` and
 * compare the texts. Throws for text that is not JSON of an etching.
 */
export function parseEtching(text: string, dialect: Dialect): Omit<Etching, 'counts'> {
  const { id, name, spaced_name, number, divisibility, symbol, turbo, mint_terms, supply, location } = JSON.parse(text) as Fields;
  const unprefixed = (hex: string) => (dialect === 'contract' ? hex.replace(/^0x/, '') : hex);
  return {
    id,
    name,
    spaced_name,
    number,
    divisibility,
    symbol,
    turbo,
    terms_amount: unitsOf(mint_terms.amount),
    terms_cap: unitsOf(mint_terms.cap),
    terms_height_start: termOf(text, 'height_start'),
    terms_height_end: termOf(text, 'height_end'),
    terms_offset_start: termOf(text, 'offset_start'),
    terms_offset_end: termOf(text, 'offset_end'),
    premine: unitsOf(supply.premine) ?? '',
    ...location,
    block_hash: unprefixed(location.block_hash),
    tx_id: unprefixed(location.tx_id),
  };
}

const unitsOf = (amount: string | null): Term => (amount === null ? null : BigInt(amount.replace('.', '')).toString());

/** Returns the digits of a term. Finds them in the text, because JSON.parse would round long numbers. */
const termOf = (text: string, key: string): Term => new RegExp(`"${key}":([0-9]+)`).exec(text)?.[1] ?? null;

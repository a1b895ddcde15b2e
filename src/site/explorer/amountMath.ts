/** Calculates with amounts of runes: decimal strings, because they are too large for numbers. Uses no DOM. */
import { shiftDecimals } from '../../pages/decimalAmounts.ts';

export const decimalsOf = (amounts: readonly (string | undefined)[]): number =>
  amounts.reduce((most, amount) => Math.max(most, amount?.split('.')[1]?.length ?? 0), 0);

/** Converts an amount to units of 10^-decimals. Ignores further decimals of the amount. */
export function unitsOf(amount: string, decimals: number): bigint {
  const [whole = '', fraction = ''] = amount.split('.');
  return BigInt(`${whole}${fraction.slice(0, decimals).padEnd(decimals, '0')}`);
}

export function compareAmounts(a: string, b: string): number {
  const decimals = decimalsOf([a, b]);
  const [first, second] = [unitsOf(a, decimals), unitsOf(b, decimals)];
  return first < second ? -1 : first > second ? 1 : 0;
}

export function addDecimals(amounts: readonly string[]): string {
  const decimals = decimalsOf(amounts);
  return shiftDecimals(
    amounts.reduce((sum, amount) => sum + unitsOf(amount, decimals), 0n),
    decimals,
  );
}

/** Returns the fraction `part` / `whole`, usually from 0 to 1. Undefined if `whole` is 0, or an amount is undefined. */
export function shareOf(part: string | undefined, whole: string | undefined): number | undefined {
  if (part === undefined || whole === undefined) return undefined;
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

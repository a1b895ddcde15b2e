/** Counts the numbers and amounts of mints and burns of each rune again, from records. */
import type { Counts, Etching } from '../lists/etchings.ts';
import type { Activity } from './checkBlock.ts';

/**
 * Mints and burns of a rune. `decimals` is the number of decimals of its amounts: -1 if amounts have different numbers
 * of decimals, and undefined without amounts.
 */
export interface Supply extends Counts {
  readonly decimals: number | undefined;
}

export const NO_SUPPLY: Supply = { mints: 0, burns: 0, minted: 0n, burned: 0n, decimals: undefined };

/** Adds the mints and burns of records to the supplies of their runes. */
export function addSupplies(records: readonly Activity[], supplies: Map<string, Supply>): void {
  for (const { rune, operation, amount } of records) {
    if (operation !== 'mint' && operation !== 'burn') continue;
    const units = BigInt(amount?.replace('.', '') ?? 0);
    const decimals = amount === undefined ? undefined : amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
    const one = operation === 'mint' ? { mints: 1, minted: units } : { burns: 1, burned: units };
    supplies.set(rune.id, sumOf({ ...NO_SUPPLY, ...one, decimals }, supplies.get(rune.id)));
  }
}

export function sumOf(a: Supply, b: Supply | undefined): Supply {
  if (b === undefined) return a;
  return {
    mints: a.mints + b.mints,
    burns: a.burns + b.burns,
    minted: a.minted + b.minted,
    burned: a.burned + b.burned,
    decimals: a.decimals === undefined || a.decimals === b.decimals ? b.decimals : b.decimals === undefined ? a.decimals : -1,
  };
}

/** Returns the counts of a rune; undefined when its amounts have another number of decimals than the rune. */
export const countsOf = ({ decimals, ...counts }: Supply, { divisibility }: Pick<Etching, 'divisibility'>): Counts | undefined =>
  decimals === undefined || decimals === divisibility ? counts : undefined;

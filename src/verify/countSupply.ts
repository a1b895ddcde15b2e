/** Computes the numbers and amounts of mints and burns of each rune again, from records. */
import type { Counts, Etching } from '../lists/etchings.ts';
import type { Activity } from './checkBlock.ts';

/**
 * Mints and burns of a rune so far. `decimals` is the number of decimals of its amounts; -1 if amounts have different
 * numbers of decimals.
 */
interface Sums {
  mints: number;
  burns: number;
  minted: bigint;
  burned: bigint;
  decimals: number | undefined;
}

const noSums = (): Sums => ({ mints: 0, burns: 0, minted: 0n, burned: 0n, decimals: undefined });

export class SupplyRecount {
  readonly #runes = new Map<string, Sums>();
  /** Runes with mints or burns since `takeTouched` was called last. */
  #touched = new Set<string>();

  add(records: readonly Activity[]): void {
    for (const { rune, operation, amount } of records) {
      const sums = this.#runes.get(rune.id) ?? noSums();
      this.#runes.set(rune.id, sums);
      if (operation !== 'mint' && operation !== 'burn') continue;
      this.#touched.add(rune.id);
      sums[`${operation}s`] += 1;
      if (amount === undefined) continue;
      const decimals = amount.includes('.') ? amount.length - amount.indexOf('.') - 1 : 0;
      sums.decimals = sums.decimals === undefined || sums.decimals === decimals ? decimals : -1;
      sums[operation === 'mint' ? 'minted' : 'burned'] += BigInt(amount.replace('.', ''));
    }
  }

  /** Sets the counts of a rune at the start (startOutputs.ts), instead of adding the records of older blocks. */
  begin(rune: string, counts: Counts): void {
    this.#runes.set(rune, { ...counts, decimals: undefined });
  }

  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched;
    this.#touched = new Set();
    return touched;
  }

  clear(): void {
    this.#runes.clear();
  }

  get ids(): Iterable<string> {
    return this.#runes.keys();
  }

  /** Returns the counts of a rune; undefined when its amounts have another number of decimals than the rune. */
  countsOf({ id, divisibility }: Pick<Etching, 'id' | 'divisibility'>): Counts | undefined {
    const { decimals, ...counts } = this.#runes.get(id) ?? noSums();
    return decimals === undefined || decimals === divisibility ? counts : undefined;
  }
}

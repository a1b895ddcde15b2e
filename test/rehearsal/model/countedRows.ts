import type { Answers, Holder, Model, Supply, TransactionRows } from './model.ts';
import { compareRunes, type Rune } from './runes.ts';

/**
 * Answers of a mirror whose rows differ from those of the chain: some are missing, wrong or invented. Sums what the rows say. It knows no
 * outputs.
 */
export class CountedRows implements Answers {
  readonly #model: Model;
  readonly #transactions: readonly TransactionRows[];
  readonly #hasSupplies: boolean;
  readonly #sums = new Map<number, Map<string, Map<string, bigint>>>();

  constructor(model: Model, transactions: readonly TransactionRows[], hasSupplies: boolean) {
    this.#model = model;
    this.#transactions = transactions;
    this.#hasSupplies = hasSupplies;
  }

  get tip() {
    return this.#model.tip;
  }

  get runes() {
    return this.#model.runes;
  }

  block(height: number) {
    return this.#model.block(height);
  }

  rune(text: string) {
    return this.#model.rune(text);
  }

  etchings() {
    return this.#model.etchings();
  }

  addresses(): IterableIterator<string> {
    const addresses = this.#transactions.flatMap(({ rows }) => rows.flatMap(({ address }) => address ?? []));
    return new Set(addresses).values();
  }

  /** Returns the units by rune and address after a block. They are below zero if an address sent more than it had. */
  sums(height = this.tip.height): ReadonlyMap<string, ReadonlyMap<string, bigint>> {
    const known = this.#sums.get(height);
    if (known !== undefined) return known;
    const sums = new Map<string, Map<string, bigint>>();
    this.#sums.set(height, sums);
    for (const transaction of this.#transactions) {
      if (transaction.height > height) continue;
      for (const { rune, operation, address, amount } of transaction.rows) {
        // No rune exists before its etching.
        if (amount === null || address === null || transaction.height < (this.rune(rune)?.height ?? 0)) continue;
        const holders = sums.get(rune) ?? new Map<string, bigint>();
        sums.set(rune, holders);
        holders.set(address, (holders.get(address) ?? 0n) + (operation === 'receive' ? amount : -amount));
      }
    }
    return sums;
  }

  balances(address: string) {
    return this.runes
      .map((rune) => ({ rune, amount: this.holding(rune, address) ?? 0n }))
      .filter(({ amount }) => amount > 0n)
      .sort((a, b) => (a.amount === b.amount ? compareRunes(a.rune, b.rune) : a.amount > b.amount ? -1 : 1));
  }

  holding(rune: Rune, address: string): bigint | null {
    const units = this.sums().get(rune.id)?.get(address);
    return units === undefined ? null : units > 0n ? units : 0n;
  }

  holders(rune: Rune, height = this.tip.height): Holder[] {
    return [...(this.sums(height).get(rune.id) ?? [])]
      .map(([address, amount]) => ({ address, amount }))
      .filter(({ amount }) => amount > 0n)
      .sort((a, b) =>
        a.amount === b.amount ? Buffer.compare(Buffer.from(a.address), Buffer.from(b.address)) : a.amount > b.amount ? -1 : 1,
      );
  }

  supply(rune: Rune): Supply | undefined {
    if (!this.#hasSupplies) return undefined;
    const rows = this.#transactions.flatMap((one) => (one.height < rune.height ? [] : one.rows.filter((row) => row.rune === rune.id)));
    const burns = rows.filter(({ operation }) => operation === 'burn');
    const counts = {
      mints: rows.filter(({ operation }) => operation === 'mint').length,
      burned: burns.reduce((sum, { amount }) => sum + (amount ?? 0n), 0n),
      burnRows: burns.length,
      rows: rows.length,
      unaddressed: 0n,
    };
    return this.#model.supply({ ...rune, counts });
  }

  output(): null {
    return null;
  }

  *outputs(): Generator<never> {}

  outputsOf(): [] {
    return [];
  }
}

import { type Entry, type Row, type Target, TransactionLedger } from './rows.ts';
import { compareRunes, mintAmount, type Rune } from './runes.ts';
import type { Cenotaph, Runestone } from './runestone.ts';

/** The parts of a transaction that concern runes. `mints` and `etches` are the requests of its message that ord's rules allow. */
export interface Transfer {
  readonly message: Runestone | Cenotaph | null;
  /** Runes of the inputs, in order. Each has the address of the spent output. */
  readonly inputs: readonly { rune: Rune; amount: bigint; address: string | null }[];
  readonly mints: Rune | null;
  readonly etches: Rune | null;
  readonly targets: readonly Target[];
  /** Finds a rune that was etched earlier. */
  readonly find: (id: string) => Rune | undefined;
}

export interface Outcome {
  /** Runes of each new output, by index of the output. */
  readonly made: ReadonlyMap<number, ReadonlyMap<Rune, bigint>>;
  readonly burned: ReadonlyMap<Rune, bigint>;
  readonly rows: readonly Row[];
  /** True if the rows are sums, because the transaction would have too many rows. */
  readonly folded: boolean;
}

/** Distributes the runes of a transaction by the rules of ord. Returns the result, with the rows. */
export function transact({ message, inputs, mints, etches, targets, find }: Transfer): Outcome {
  const ledger = new TransactionLedger();
  const unallocated = new Map<Rune, bigint>();
  const made = new Map<number, Map<Rune, bigint>>();
  const burned = new Map<Rune, bigint>();

  const queue = (rune: Rune, entry: Entry): void => {
    if (entry.amount === 0n) return;
    increase(unallocated, rune, entry.amount);
    ledger.enqueue(rune, entry);
  };
  const mint = (rune: Rune): void => {
    ledger.mint(rune, mintAmount(rune));
    queue(rune, { amount: mintAmount(rune), address: null, fresh: true });
  };
  const move = (rune: Rune, amount: bigint, target: Target | null): void => {
    if (amount === 0n) return;
    increase(unallocated, rune, -amount);
    if (target === null || target.burns) increase(burned, rune, amount);
    else {
      const balances = made.get(target.index) ?? new Map<Rune, bigint>();
      made.set(target.index, increase(balances, rune, amount));
    }
    ledger.move(rune, amount, target);
  };
  const moveRest = (target: Target | null): void => {
    for (const rune of [...unallocated.keys()].sort(compareRunes)) move(rune, unallocated.get(rune) ?? 0n, target);
  };
  const finish = (): Outcome => ({ made, burned, rows: ledger.finish(), folded: ledger.folded });

  for (const { rune, amount, address } of inputs) queue(rune, { amount, address, fresh: false });
  if (message?.kind === 'cenotaph') {
    moveRest(null);
    if (etches !== null) ledger.etching(etches);
    if (mints !== null) mint(mints);
    moveRest(null);
    return finish();
  }
  if (etches !== null) {
    ledger.etching(etches);
    queue(etches, { amount: etches.premine, address: null, fresh: true });
  }
  if (mints !== null) mint(mints);

  const receivers = targets.filter(({ burns }) => !burns);
  for (const { id, amount, output } of message?.edicts ?? []) {
    const rune = id === '0:0' || id === etches?.id ? etches : find(id);
    const left = () => (rune ? (unallocated.get(rune) ?? 0n) : 0n);
    if (!rune || left() === 0n) continue;
    const target = targets[output];
    if (target !== undefined) {
      move(rune, amount === 0n ? left() : smaller(amount, left()), target);
      continue;
    }
    if (receivers.length === 0) continue;
    const share = left() / BigInt(receivers.length);
    const remainder = left() % BigInt(receivers.length);
    for (const [i, receiver] of receivers.entries()) {
      if (left() === 0n) break;
      move(rune, amount === 0n ? share + (i < remainder ? 1n : 0n) : smaller(amount, left()), receiver);
    }
  }
  const pointer = message?.pointer ?? null;
  moveRest((pointer === null ? receivers[0] : targets[pointer]) ?? null);
  return finish();
}

function increase(sums: Map<Rune, bigint>, rune: Rune, amount: bigint): Map<Rune, bigint> {
  return sums.set(rune, (sums.get(rune) ?? 0n) + amount);
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

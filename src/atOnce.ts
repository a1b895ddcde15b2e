import { countCrossing, type LimitName } from './limits.ts';

/** Runs at most `most` tasks at the same time. Further tasks wait. */
export class AtOnce {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(
    private readonly most: number,
    /** Name of the limit whose value is `most`. Each task that must wait counts as a crossing of it (limits.ts). */
    private readonly limit?: LimitName,
  ) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.limit !== undefined && this.#running >= this.most) countCrossing(this.limit);
    while (this.#running >= this.most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** Runs `work` on items, some in parallel. After a failure, starts no more, waits for the running ones, and throws it. */
export async function inParallel<T>(items: Iterable<T>, atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items[Symbol.iterator]();
  let failure: { readonly error: unknown } | undefined;
  const worker = async () => {
    for (let next = waiting.next(); !next.done && failure === undefined; next = waiting.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (failure !== undefined) throw failure.error;
}

/** Waits for both promises, even if one rejects. Rejects if one of them rejected. */
export async function bothOf<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return Promise.all([a, b]);
}

/** Runs at most some pieces of work at the same time; others wait for their turn. */
export class AtOnce {
  /** May be changed at any time. */
  most: number;
  #running = 0;
  /** Resolve functions of waiting work. */
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.most = most;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
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

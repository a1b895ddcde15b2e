/** Limits how many tasks run at the same time. Further tasks wait. */
export class AtOnce {
  #running = 0;
  /** Resolve functions of waiting tasks. */
  readonly #waiting: (() => void)[] = [];

  constructor(
    /** Maximum number of tasks at the same time. A lower value does not stop running tasks. */
    public most: number,
  ) {}

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

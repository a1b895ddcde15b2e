/** Calls `work` for each number from `first` to `last`, at most `atOnce` in parallel. Yields the results in order. */
export async function* ahead<T>(first: number, last: number, atOnce: number, work: (number: number) => Promise<T>): AsyncGenerator<T> {
  const started: Promise<T>[] = [];
  let next = first;
  for (;;) {
    for (; next <= last && started.length < atOnce; next++) {
      const result = work(next);
      // `await turn` throws the error later. Until then, the error must not count as an unhandled rejection.
      result.catch(() => undefined);
      started.push(result);
    }
    const turn = started.shift();
    if (turn === undefined) return;
    yield await turn;
  }
}

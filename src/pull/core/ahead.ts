/** Does work for ascending numbers ahead of its use, and yields the results in their order. */
export async function* ahead<T>(first: number, last: number, atOnce: number, work: (number: number) => Promise<T>): AsyncGenerator<T> {
  const started: Promise<T>[] = [];
  let next = first;
  for (;;) {
    for (; next <= last && started.length < atOnce; next++) {
      const result = work(next);
      // The error is thrown when its turn comes.
      result.catch(() => undefined);
      started.push(result);
    }
    const turn = started.shift();
    if (turn === undefined) return;
    yield await turn;
  }
}

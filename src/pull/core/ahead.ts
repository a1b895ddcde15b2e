/** Does work for ascending numbers, `atOnce` in parallel and before the results are needed. Yields these in order. */
export async function* ahead<T>(first: number, last: number, atOnce: number, work: (number: number) => Promise<T>): AsyncGenerator<T> {
  const started: Promise<T>[] = [];
  let next = first;
  for (;;) {
    for (; next <= last && started.length < atOnce; next++) {
      const result = work(next);
      // The error is thrown at its turn. Until then it must not count as unhandled.
      result.catch(() => undefined);
      started.push(result);
    }
    const turn = started.shift();
    if (turn === undefined) return;
    yield await turn;
  }
}

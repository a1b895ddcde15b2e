/** Returns the result of `work`; undefined if it throws. For work whose failure needs no reason. */
export function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

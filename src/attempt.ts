/** Returns the result of `work`, or undefined if `work` throws. Use it only if the caller does not need the error. */
export function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

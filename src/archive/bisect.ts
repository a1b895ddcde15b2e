/**
 * Returns how many of `length` ascending items `isBefore` is true for. It is true for all items up to a position, and
 * false for all others; this finds the position in as many calls as the length has bits.
 */
export function countBefore(length: number, isBefore: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Counts the items for which `isBefore` is true, by binary search among `length` items. `isBefore` must be true for all items up to some
 * index, and false for all items from there on.
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

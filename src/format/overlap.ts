/** An item that has entries in the wanted range. `before` is the number of entries in all items before this one. */
export interface Overlap<Item> {
  readonly item: Item;
  readonly index: number;
  readonly before: number;
}

/** Returns the items that have some of the entries `from` to `to - 1`. Entries are numbered across all items. */
export function overlapping<Item>(items: readonly Item[], countOf: (item: Item) => number, from: number, to: number): Overlap<Item>[] {
  const found: Overlap<Item>[] = [];
  let before = 0;
  for (const [index, item] of items.entries()) {
    const count = countOf(item);
    if (count > 0 && before < to && before + count > from) found.push({ item, index, before });
    before += count;
  }
  return found;
}

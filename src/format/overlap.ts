/**
 * Returns the items that have some of the entries `from` to `to - 1`. Entries are numbered across all items. `before` is the number of
 * entries in all items before this one.
 */
export function overlapping<Item>(items: readonly Item[], countOf: (item: Item) => number, from: number, to: number) {
  const found: { readonly item: Item; readonly index: number; readonly before: number }[] = [];
  let before = 0;
  for (const [index, item] of items.entries()) {
    const count = countOf(item);
    if (count > 0 && before < to && before + count > from) found.push({ item, index, before });
    before += count;
  }
  return found;
}

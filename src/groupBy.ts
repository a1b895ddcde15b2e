/** Groups items by key, in the order in which keys first occur. Node.js 20 has no Map.groupBy. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Splits entries into groups. `isBreak` returns true if a new group begins between two consecutive entries. */
export function runsOf<Entry>(entries: readonly Entry[], isBreak: (before: Entry, after: Entry) => boolean): Entry[][] {
  const runs: Entry[][] = [];
  for (const [i, entry] of entries.entries()) {
    const before = entries[i - 1];
    if (before === undefined || isBreak(before, entry)) runs.push([entry]);
    else runs.at(-1)?.push(entry);
  }
  return runs;
}

/**
 * Finds a window of a complete list with changed entries in the levels above (balances.ts). The first entry of each page is known, and
 * shows which page a change affects. So the new length of each page is known before any page is read, and only pages of the window are
 * read.
 */
import { ArchiveError } from '../format/archiveError.ts';
import { countBefore } from '../format/binarySearch.ts';
import { overlapping } from '../format/overlap.ts';
import type { Window } from '../pages/parseQuery.ts';

/** An entry of a list. Balances are in smallest units. */
export interface Entry {
  /** In the list of an address: the ordinal of the rune (etchings.ts). In the list of a rune: the address. */
  readonly other: string | number;
  /** Balance after the last block of the level. */
  readonly units: bigint;
  /** Balance before the first block of the level; 0 in a complete list. */
  readonly before: bigint;
}

/** A complete list of a level, without the changes of the levels above. */
export interface WholeList<Item extends Entry> {
  readonly total: number;
  /** The first entry of each page. */
  readonly firsts: readonly Item[];
  readonly read: (pages: readonly number[]) => Promise<readonly (readonly Item[])[]>;
}

/** A page of a complete list, with the changes that affect the page. */
interface ChangedPage<Item> {
  readonly size: number;
  readonly removed: Set<string | number>;
  readonly inserted: Item[];
}

/**
 * Finds a window. `levels` has the entries of each level above the complete list, ascending by height. `compare` orders entries with equal
 * balances. Rejects with an ArchiveError for a damaged list.
 */
export async function findWindow<Item extends Entry>(
  { offset, limit }: Window,
  whole: WholeList<Item>,
  levels: readonly (readonly Item[])[],
  pageSize: number,
  compare: (a: Item, b: Item) => number,
): Promise<{ readonly total: number; readonly items: readonly Item[] }> {
  const { firsts } = whole;
  if (firsts.length !== Math.ceil(whole.total / pageSize))
    throw new ArchiveError(`a list of ${whole.total} entries in the archive has ${firsts.length} pages`);
  const order = (a: Item, b: Item): number => (a.units === b.units ? compare(a, b) : a.units > b.units ? -1 : 1);
  const pages: ChangedPage<Item>[] = firsts.map((_, i) => ({
    size: Math.min(pageSize, whole.total - i * pageSize),
    removed: new Set(),
    inserted: [],
  }));
  // An empty list has no page. Adds an empty page, into which the entries below can be inserted.
  if (pages.length === 0) pages.push({ size: 0, removed: new Set(), inserted: [] });
  const pageOf = (item: Item): ChangedPage<Item> | undefined =>
    pages[Math.max(countBefore(firsts.length, (i) => order(firsts[i] ?? item, item) <= 0) - 1, 0)];
  for (const { item, before } of changesIn(levels)) {
    if (before > 0n) pageOf({ ...item, units: before })?.removed.add(item.other);
    if (item.units > 0n) pageOf(item)?.inserted.push(item);
  }

  const lengths = pages.map(({ size, removed, inserted }) => size - removed.size + inserted.length);
  if (lengths.some((length) => length < 0))
    throw new ArchiveError('the levels of the archive remove more entries from a page of a list than the page has');
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const wanted = overlapping(lengths, (length) => length, offset, offset + limit);
  const first = wanted[0]?.before ?? 0;
  const stored = wanted.map(({ index }) => index).filter((i) => (pages[i]?.size ?? 0) > 0);
  const read = new Map((await whole.read(stored)).map((items, i) => [stored[i], items]));
  const items = wanted.flatMap(({ index }) => {
    const { size = 0, removed, inserted = [] } = pages[index] ?? {};
    const page = read.get(index) ?? [];
    const kept = page.filter(({ other }) => removed?.has(other) !== true);
    if (page.length !== size || kept.length !== size - (removed?.size ?? 0))
      throw new ArchiveError('a page of a list in the archive does not have the entries that the list counts and removes');
    return [...kept, ...inserted].sort(order);
  });
  return { total, items: items.slice(offset - first, offset - first + limit) };
}

/** Combines the entries of levels for the same address and rune. Omits entries whose balance after all levels is that before them. */
function changesIn<Item extends Entry>(levels: readonly (readonly Item[])[]): { readonly item: Item; readonly before: bigint }[] {
  const changes = new Map<string | number, { readonly item: Item; readonly before: bigint }>();
  for (const item of levels.flat()) changes.set(item.other, { item, before: changes.get(item.other)?.before ?? item.before });
  return [...changes.values()].filter(({ item, before }) => item.units !== before);
}

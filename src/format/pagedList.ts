/**
 * Lists in documents (documents.ts): any number of entries in an order, found by a key. A level has the entries of its blocks, and the list
 * continues in the next level.
 *
 * The head of a list, whose key continues with `!`, has the entries of the list in the level. But a list of more than `page` entries
 * (ListTables) has them in pages (`pageKey`), and its head has only their number. The head sorts after the pages, because a build writes
 * them as a stream and knows this number only at the end.
 */
import type { Archive } from './archiveReader.ts';
import { damaged, findDocuments, pageKey } from './documents.ts';
import type { DocumentLevel } from './levels.ts';
import { overlapping } from './overlap.ts';

export const headKey = (key: string): string => `${key}!`;
export const keyOfHead = (head: string): string => head.slice(0, -1);

/** The number of entries in pages, as the only value of a head. An entry of a list is never a plain number. */
const LENGTH = /^[1-9][0-9]{0,14}$/;

/** Returns the number of entries that are in pages. Undefined for a head that has the entries itself. */
export const lengthIn = (head: readonly string[]): number | undefined =>
  head.length === 1 && LENGTH.test(head[0] ?? '') ? Number(head[0]) : undefined;

export interface PagedList<Entry> {
  /** Number of entries in all levels. */
  readonly total: number;
  /** Reads the entries `from` to `to - 1`. `to` must not exceed the total. Rejects with an ArchiveError for damage. */
  read(from: number, to: number): Promise<Entry[]>;
}

/**
 * Finds a list, which begins in the first of `levels`. An unknown list has no entries. Also reads the pages that probably have the entries
 * from `offset` on, so that they take no further round of requests, unless the levels before theirs have more than a page. `parse` returns
 * the entries of a document, of at most `size` entries. Rejects with an ArchiveError for damaged files.
 */
export async function findPagedList<Level extends DocumentLevel, Entry>(
  archive: Archive,
  levels: readonly Level[],
  key: string,
  offset: number,
  parse: (values: readonly string[], level: Level) => readonly Entry[],
  size = archive.root.lists?.page ?? 1,
): Promise<PagedList<Entry>> {
  const near = Math.floor(offset / size);
  const ahead = [...new Set([Math.max(near - 1, 0), near])];
  const found = await Promise.all(
    levels.map(async (level) => {
      const [head, ...pages] = await findDocuments(archive, level, [headKey(key), ...ahead.map((page) => pageKey(key, page))]);
      if (head === undefined) return [];
      const count = lengthIn(head);
      // A head that has the entries itself is the only page.
      if (count === undefined) return [{ level, count: head.length, each: head.length, known: new Map([[0, head]]) }];
      return [{ level, count, each: size, known: new Map(ahead.map((page, i) => [page, pages[i]])) }];
    }),
  );
  const parts = found.flat();

  const readPart = async ({ level, count, each, known }: (typeof parts)[number], from: number, to: number): Promise<Entry[]> => {
    const first = Math.floor(from / each);
    const numbers = Array.from({ length: Math.ceil(to / each) - first }, (_, i) => first + i);
    const missing = numbers.filter((page) => known.get(page) === undefined);
    const keys = missing.map((page) => pageKey(key, page));
    const read = await findDocuments(archive, level, keys);
    const entries = numbers.flatMap((page) => {
      const values = known.get(page) ?? read[missing.indexOf(page)];
      if (values?.length !== Math.min(each, count - page * each)) throw damaged();
      return parse(values, level);
    });
    return entries.slice(from - first * each, to - first * each);
  };
  return {
    total: parts.reduce((sum, { count }) => sum + count, 0),
    read: async (from, to) => {
      const wanted = overlapping(parts, ({ count }) => count, from, to).map(({ item, before }) =>
        readPart(item, Math.max(from - before, 0), Math.min(to - before, item.count)),
      );
      return (await Promise.all(wanted)).flat();
    },
  };
}

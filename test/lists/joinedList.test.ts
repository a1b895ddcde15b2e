/**
 * Tests lists that are stored as a complete list and as changes to it. Each window equals that of the merged list, and needs only the pages
 * that have its entries.
 */
import { describe, expect, it } from 'vitest';
import { isArchiveError } from '../../src/format/archiveError.ts';
import { findWindow, type WholeList } from '../../src/lists/rankedWindow.ts';
import { randomFor } from '../support/seed.ts';

interface Item {
  readonly other: number;
  readonly units: bigint;
  readonly before: bigint;
}

const byOther = (a: Item, b: Item) => a.other - b.other;
/** Sorts balances like the API: by units, then by the number of the other party. */
const sorted = (balances: ReadonlyMap<number, bigint>): [number, bigint][] =>
  [...balances].filter(([, units]) => units > 0n).sort(([a, x], [b, y]) => (x === y ? a - b : x > y ? -1 : 1));

const random = randomFor('windows of joined lists');
const upTo = (n: number) => Math.floor(random() * n);

/** Makes a stored list with this page size. Counts the pages that are read. */
function wholeList(balances: ReadonlyMap<number, bigint>, pageSize: number) {
  const items = sorted(balances).map(([other, units]) => ({ other, units, before: 0n }));
  const read: number[] = [];
  const pageOf = (page: number) => items.slice(page * pageSize, (page + 1) * pageSize);
  const whole: WholeList<Item> = {
    total: items.length,
    firsts: items.filter((_, i) => i % pageSize === 0),
    read: async (pages) => {
      read.push(...pages);
      return pages.map(pageOf);
    },
  };
  return { whole, read };
}

/** Changes balances like the blocks of a level. Some changes have no effect, like a receipt of 0 units. */
function changed(balances: Map<number, bigint>, count: number, others: number): Item[] {
  const before = new Map(balances);
  const touched = new Set(Array.from({ length: count }, () => upTo(others)));
  for (const other of touched) balances.set(other, [0n, -3n, balances.get(other) ?? 0n, BigInt(upTo(9))][upTo(6)] ?? BigInt(upTo(9)));
  return [...touched].map((other) => ({ other, units: balances.get(other) ?? 0n, before: before.get(other) ?? 0n }));
}

describe('a window of a stored list with changes', () => {
  it('equals that of the merged list, for lists around the size of a page, and all windows', async () => {
    for (let round = 0; round < 140; round += 1) {
      const pageSize = 1 + upTo(4);
      const length = [0, 1, pageSize - 1, pageSize, pageSize + 1, 7 * pageSize, 7 * pageSize + 1][round % 7] ?? 0;
      const others = length + 4;
      const balances = new Map(Array.from({ length }, (_, other) => [other, BigInt(1 + upTo(9))] as const));
      const { whole, read } = wholeList(balances, pageSize);
      const levels = Array.from({ length: upTo(4) }, () => changed(balances, [0, 1, pageSize, others][upTo(4)] ?? 0, others));
      const expected = sorted(balances);
      for (let offset = 0; offset <= expected.length + 1; offset += 1) {
        const limit = 1 + upTo(expected.length + 1);
        read.length = 0;
        const found = await findWindow({ limit, offset }, whole, levels, pageSize, byOther);
        expect(found.total).toBe(expected.length);
        expect(found.items.map(({ other, units }) => [other, units])).toEqual(expected.slice(offset, offset + limit));
        // Maximum number of pages to read: the pages of the window, one more page, and one for each change.
        const entries = levels.reduce((sum, level) => sum + level.length, 0);
        expect(read.length).toBeLessThanOrEqual(Math.ceil(limit / pageSize) + 1 + entries);
      }
    }
  });

  it('of ten million entries reads one page, or two at the end of a page', async () => {
    const pageSize = 600;
    const total = 10_000_000;
    const at = (n: number): Item => ({ other: n, units: BigInt(total - n), before: 0n });
    const read: number[] = [];
    const whole: WholeList<Item> = {
      total,
      firsts: Array.from({ length: Math.ceil(total / pageSize) }, (_, page) => at(page * pageSize)),
      read: async (pages) => {
        read.push(...pages);
        return pages.map((page) => Array.from({ length: pageSize }, (_, i) => at(page * pageSize + i)));
      },
    };
    const { items } = await findWindow({ limit: 60, offset: 5_000_100 }, whole, [], pageSize, byOther);
    expect([items.length, items[0]?.other, read]).toEqual([60, 5_000_100, [8333]]);
    const moved = { other: 0, units: 7n, before: BigInt(total) };
    const after = await findWindow({ limit: 60, offset: 5_000_360 }, whole, [[moved]], pageSize, byOther);
    expect([after.total, after.items[0]?.other, read]).toEqual([total, 5_000_361, [8333, 8333, 8334]]);
  });

  it.each<[string, (whole: WholeList<Item>) => Partial<WholeList<Item>>]>([
    ['without a page', () => ({ read: async () => [] })],
    ['with a page that lacks an entry', ({ read }) => ({ read: async (pages) => (await read(pages)).map((page) => page.slice(1)) })],
    ['with a page of another place', ({ read }) => ({ read: (pages) => read(pages.map((page) => page + 1)) })],
    ['with another total', ({ total }) => ({ total: total + 10 })],
    ['without the first entries of pages', () => ({ firsts: [] })],
  ])('is refused %s', async (_, damage) => {
    const balances = new Map([5n, 4n, 3n, 2n, 1n].map((units, other) => [other, units] as const));
    const { whole } = wholeList(balances, 2);
    const removed = { other: 0, units: 0n, before: 5n };
    const error: unknown = await findWindow({ limit: 2, offset: 0 }, { ...whole, ...damage(whole) }, [[removed]], 2, byOther).catch(
      (caught: unknown) => caught,
    );
    expect(isArchiveError(error)).toBe(true);
  });
});

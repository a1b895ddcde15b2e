/** Tests that `sortedRows` returns the same rows in the same order, whether it sorts all at once or in several parts. */
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rowParts, sortedRows } from '../../src/duckdb/sortedRows.ts';
import { int, literal, MOST_PARTS, Store } from '../../src/duckdb/store.ts';
import { crossings } from '../../src/limits.ts';
import { temporaryFolder } from '../support/build.ts';
import '../support/seed.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '100MB', threads: 2, scratch: temporaryFolder() });
});
afterAll(() => store.close());

async function sorted(rows: string, sortedAtOnce: number, most?: string): Promise<unknown[]> {
  const all: unknown[] = [];
  const unsorted = { rows, key: 'key', within: 'place', ...(most === undefined ? {} : { most }) };
  // The last column marks the end of the stream.
  for await (const chunk of sortedRows(unsorted, { keptRecords: 1, sortedAtOnce }, store))
    all.push(...chunk.getRows().map((row) => row.slice(0, -1)));
  return all;
}

describe('sorted rows', () => {
  it('come in the order of key and place, in any number of parts', async () => {
    const key = fc.oneof(fc.constantFrom('', "it's", 'a', 'a b', 'aa', 'a\0', 'a\0b'), fc.string({ maxLength: 3 }));
    const before = crossings.get('sortedAtOnce') ?? 0;
    await fc.assert(
      fc.asyncProperty(fc.array(key, { minLength: 1, maxLength: 60 }), fc.integer({ min: 1, max: 70 }), async (keys, most) => {
        const rows = `SELECT * FROM (VALUES ${keys.map((one, place) => `(${literal(one)}, ${place})`).join(', ')}) AS t(key, place)`;
        const expected = keys
          .map((one, place) => [one, place] as const)
          .sort(([a, i], [b, j]) => Buffer.compare(Buffer.from(a), Buffer.from(b)) || i - j);
        expect(await sorted(rows, most)).toEqual(expected);
        // Uses more parts than the rows need, as when only an upper bound of the number of rows is known.
        expect(await sorted(rows, most, `${keys.length + 40}`)).toEqual(expected);
      }),
      { numRuns: 60 },
    );
    expect(crossings.get('sortedAtOnce') ?? 0).toBeGreaterThan(before);
  });

  it.each([1, 11, 12, 13, 50])(
    'come in order from more parts than files at once and from fewer, with %d of 100 rows in a part',
    async (most) => {
      const rows = 'SELECT lpad((i * 37 % 100)::VARCHAR, 2, $$0$$) AS key, i AS place FROM range(100) AS r(i)';
      const keys = (await sorted(rows, most)).map((row) => Number((row as [string])[0]));
      expect(keys).toEqual(Array.from({ length: 100 }, (_, i) => i));
    },
  );

  it.each([1, 7, 60, 300])(
    'come in order by hashes, from several queries and however uneven the hashes are, with %d in a part',
    async (most) => {
      const half = 'SELECT (i * i * 7 % 200)::UBIGINT AS key, i AS place FROM range(100) AS r(i)';
      const rows = [half, half.replace('range(100)', 'range(100, 250)')];
      const all: unknown[] = [];
      for await (const chunk of sortedRows(
        { rows, key: 'key', within: 'place', hashEnd: 1000 },
        { keptRecords: 1, sortedAtOnce: most },
        store,
      ))
        all.push(...chunk.getRows().map((row) => row.slice(0, 2).map(Number)));
      const expected = Array.from({ length: 250 }, (_, i) => [(i * i * 7) % 200, i] as const);
      expect(all).toEqual(expected.sort(([a, i], [b, j]) => a - b || i - j));
    },
  );

  it('are kept in memory in small groups for each file, however many rows there are', async () => {
    const folder = join(temporaryFolder(), 'parts');
    const rows = `SELECT i AS key, (i % ${MOST_PARTS})::INTEGER AS part FROM range(200_000) AS r(i)`;
    await store.writeRows(rows, folder, { by: 'part', rowBytes: 512 });
    const groups = `SELECT max(row_group_num_rows) AS number FROM parquet_metadata(${literal(`${folder}/*/*.parquet`)})`;
    expect((await store.number(groups)) * MOST_PARTS * 512).toBeLessThanOrEqual(2 * store.memory);
  });

  it('have all rows of a key in one part', async () => {
    const rows = "SELECT key, place FROM range(3000) AS t(place), (VALUES ('only')) AS k(key)";
    expect(await sorted(rows, 10)).toHaveLength(3000);
  });

  it.each([7, 90, 400])('are divided into parts of whole keys, ascending and of few rows, with at most about %d rows', async (most) => {
    // Each of 40 keys has 10 rows, far from each other.
    const rows = 'SELECT i * 7 % 40 AS key, i AS place FROM range(400) AS r(i)';
    const parts: { first: number; last: number; rows: number; whole: number }[] = [];
    for await (const part of rowParts({ rows, key: 'key' }, { keptRecords: 1, sortedAtOnce: most }, store)) {
      // Another query may run before the next part, and read the part again.
      const sql = `SELECT min(key) AS first, max(key) AS last, count(*) AS rows, count(DISTINCT key) * 10 AS whole FROM (${part})`;
      parts.push(await store.row(sql, { first: int, last: int, rows: int, whole: int }));
    }
    expect(parts.reduce((sum, part) => sum + part.rows, 0)).toBe(400);
    for (const [i, part] of parts.entries()) {
      expect(part.rows).toBe(part.whole);
      expect(part.first).toBeGreaterThan(parts[i - 1]?.last ?? -1);
      expect(part.rows).toBeLessThanOrEqual(Math.max(3 * most, 10));
    }
  });

  it('are empty for an empty table', async () => {
    expect(await sorted("SELECT '' AS key, 0 AS place WHERE false", 1)).toEqual([]);
  });
});

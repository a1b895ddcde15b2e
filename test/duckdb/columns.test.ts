/** Tests columns of DuckDB's chunks: values that were read from a chunk stay the same after the chunk is freed. */
import { join } from 'node:path';
import { setImmediate as tick } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Blobs, readBlobs, readBytes, readDoubles } from '../../src/duckdb/columns.ts';
import { int, nullable, Store, text } from '../../src/duckdb/store.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { writeRows } from '../support/nodeRows.ts';
import { check } from '../support/outputs.ts';
import { extended, memoryOf } from '../support/runeChains.ts';
import { integersFor } from '../support/seed.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const ROWS = 200_000;
const TEXTS = ['short', 'in place too', 'x'.repeat(13), 'y'.repeat(700)];
/**
 * Invented rows with one number of each type and a blob. Blobs are alternately short, so that the row contains them, and long, so that they
 * are stored elsewhere.
 */
const query = (sign: string) => `SELECT ${sign}i::DOUBLE AS d, (${sign}(i % 100))::TINYINT AS t,
  encode('${sign}' || i || ['${TEXTS.join("', '")}'][1 + i % ${TEXTS.length}]) AS b FROM range(${ROWS}) t(i)`;
const blobOf = (row: number) => `${row}${TEXTS[row % TEXTS.length]}`;

function textOf(blobs: Blobs, from: number, to: number): string {
  const [begin = 0, end = 0] = [blobs.offsets[from], blobs.offsets[to]];
  const bytes = Buffer.alloc(end - begin);
  blobs.copyTo(bytes, 0, from, to);
  return bytes.toString('latin1');
}

describe('columns', () => {
  it('are copies: a change of a column does not change the chunk', async () => {
    const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: temporaryFolder() });
    try {
      for await (const chunk of store.stream(`${query('')} LIMIT 9`)) {
        const [doubles, bytes] = [readDoubles(chunk, 0), readBytes(chunk, 1)];
        expect([doubles.length, bytes.length]).toEqual([9, 9]);
        doubles.fill(77);
        bytes.fill(77);
        expect([...readDoubles(chunk, 0)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
        expect([...readBytes(chunk, 1)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      }
    } finally {
      store.close();
    }
  });

  it('keep their values after their chunk was collected and its memory was used again', async () => {
    const store = await Store.open({ memoryLimit: '1GB', threads: 2, scratch: temporaryFolder() });
    try {
      const columns: { count: number; doubles: Float64Array; bytes: Uint8Array; blobs: Blobs }[] = [];
      for await (const chunk of store.stream(query(''))) {
        columns.push({ count: chunk.rowCount, doubles: readDoubles(chunk, 0), bytes: readBytes(chunk, 1), blobs: readBlobs(chunk, 2) });
      }
      for (let i = 0; i < 3; i += 1) {
        collect();
        await tick();
        for await (const chunk of store.stream(query('-'))) if (chunk.rowCount === 0) throw new Error('an empty chunk');
      }
      let row = 0;
      for (const { count, doubles, bytes, blobs } of columns) {
        const rows = Array.from({ length: count }, (_, i) => row + i);
        expect([...doubles]).toEqual(rows);
        expect([...bytes]).toEqual(rows.map((i) => i % 100));
        expect(textOf(blobs, 0, count)).toBe(rows.map(blobOf).join(''));
        expect(textOf(blobs, 3, Math.min(count, 9))).toBe(rows.slice(3, 9).map(blobOf).join(''));
        row += count;
      }
      expect(row).toBe(ROWS);
    } finally {
      store.close();
    }
  });
});

describe('rows', () => {
  let store: Store;
  beforeAll(async () => {
    store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: temporaryFolder() });
  });
  afterAll(() => store.close());

  it('have the values of the requested columns', async () => {
    const sql = `SELECT 7::BIGINT AS height, 2::TINYINT AS small, 'ab' AS hash, NULL AS digest, true AS other`;
    expect(await store.row(sql, { height: int, small: int, hash: text, digest: nullable(text) })).toEqual({
      height: 7,
      small: 2,
      hash: 'ab',
      digest: undefined,
    });
    expect(await store.rows(`${sql} WHERE false`, { misspelt: int })).toEqual([]);
  });

  it.each([
    ['SELECT 1 AS height', { hieght: int }, 'the column hieght is missing in the result of SELECT 1 AS height'],
    ['SELECT NULL::BIGINT AS height', { height: int }, 'the column height is NULL in the result of SELECT NULL::BIGINT AS height'],
    [`SELECT 'x' AS height`, { height: int }, `the column height has x, not integer, in the result of SELECT 'x' AS height`],
    ['SELECT 1.5::DOUBLE AS height', { height: int }, 'the column height has 1.5, not integer'],
    ['SELECT 9007199254740993 AS height', { height: int }, 'the column height has 9007199254740993, not integer'],
    ['SELECT 1 AS hash', { hash: nullable(text) }, 'the column hash has 1, not text'],
  ])('of %s without %j are refused', async (sql, columns, message) => {
    await expect(store.rows(sql, columns)).rejects.toThrow(message);
  });

  it('have texts with any code point at the start, in streams, too', async () => {
    const codes = `FROM range(${0xd800}) AS r(code) UNION ALL FROM range(${0xe000}, ${0x110000}) AS r(code)`;
    const sql = (tail: string) => `SELECT code::INTEGER AS code, chr(code::INTEGER) || '${tail}' AS t FROM (${codes})`;
    const rows = await store.rows(sql(''), { code: int, t: text });
    expect(rows.length).toBe(0x110000 - 0x800);
    expect(rows.filter(({ code, t }) => t !== String.fromCodePoint(code))).toEqual([]);
    // Texts of more than 12 bytes are stored elsewhere than short texts.
    for await (const chunk of store.stream(`${sql('a long text')} WHERE code BETWEEN ${0xf000} AND ${0x10800}`))
      expect(chunk.getRows().filter(([code, t]) => t !== `${String.fromCodePoint(Number(code))}a long text`)).toEqual([]);
  });

  it('that cannot be appended throw the first error, and the table can be created again', async () => {
    const columns = { name: 'VARCHAR', size: 'BIGINT' } as const;
    await expect(
      store.append('made', columns, [
        ['a', 1],
        ['b', 'x'],
      ]),
    ).rejects.toThrow('Cannot convert x to a BigInt');
    const made = await store.append('made', columns, [['c', 3]]);
    expect(await store.rows(`SELECT * FROM ${made}`, { name: text, size: int })).toEqual([{ name: 'c', size: 3 }]);
  });
});

describe('the tables of builds and of verification', () => {
  it('have columns of the types that their values need', async () => {
    const found: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const kind of ['table', 'view'] as 'table'[]) {
      const create = Store.prototype[kind];
      vi.spyOn(Store.prototype, kind).mockImplementation(async function (this: Store, ...given) {
        const table = await create.apply(this, given);
        const columns = await this.rows(`DESCRIBE ${table}`, { column_name: text, column_type: text });
        found[`${table}`] = columns.map((column) => `${column.column_name} ${column.column_type}`);
        expected[`${table}`] = Object.entries(table.columns).map(([name, type]) => `${name} ${type}`);
        return table;
      });
    }
    try {
      const next = integersFor('columns');
      const blocks = extended([], 24, next, 3);
      const [input, out] = [join(temporaryFolder(), 'in'), join(temporaryFolder(), 'out')];
      for (const count of [20, 24]) {
        writeRows(memoryOf(blocks.slice(0, count)), input);
        await testBuild(out, { inputs: [input], lists: true, parquet: true });
      }
      await check(out);
    } finally {
      vi.restoreAllMocks();
    }
    expect(new Set(Object.keys(found).map((name) => name.replace(/_[0-9]+$/, ''))).size).toBeGreaterThanOrEqual(26);
    expect(found).toEqual(expected);
  });
});

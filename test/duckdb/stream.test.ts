/** Tests that a stream of a query has all rows in order, or fails with DuckDB's error. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { temporaryFolder } from '../support/build.ts';

let store: Store;
const folder = temporaryFolder();
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '1GB', threads: 2, scratch: folder });
  const path = join(folder, 'rows.parquet');
  await store.run(`COPY (SELECT i, sha256(i::VARCHAR) AS s FROM range(400_000) AS t(i)) TO '${path}' (ROW_GROUP_SIZE 20000)`);
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 2);
  writeFileSync(join(folder, 'damaged.parquet'), bytes.fill(0x55, middle, middle + 20_000));
});
afterAll(() => store.close());

async function rowsOf(sql: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const chunk of store.stream(sql)) for (const [value] of chunk.getRows()) found.push(value);
  return found;
}

it.each([0, 1, 2047, 2048, 2049, 100_000])('has all %i rows in order', async (count) => {
  const expected = Array.from({ length: count }, (_, i) => i);
  expect(await rowsOf(`SELECT i::INTEGER FROM range(${count}) AS t(i)`)).toEqual(expected);
  expect(await rowsOf(`FROM (SELECT (i * 7919) % ${count} AS v FROM range(${count}) AS t(i) ORDER BY v)`)).toEqual(expected.map(BigInt));
});

const failing = (at: number, what: string) =>
  `CASE WHEN i = ${at} THEN error('of row ${at}') ELSE i::VARCHAR END AS v FROM ${what} AS t(i)`;

it.each([
  ['at the first row', `SELECT ${failing(0, 'range(300_000)')}`, 'of row 0'],
  ['in the middle', `SELECT ${failing(200_000, 'range(300_000)')}`, 'of row 200000'],
  ['at the last row', `SELECT ${failing(299_999, 'range(300_000)')}`, 'of row 299999'],
  ['after a sort', `SELECT ${failing(250_000, '(SELECT i FROM range(300_000) AS r(i) ORDER BY i)')}`, 'of row 250000'],
  ['in a damaged Parquet file', `SELECT s FROM '${join(folder, 'damaged.parquet')}'`, 'Out of buffer'],
])('fails with the error %s', async (_, sql, message) => {
  await expect(rowsOf(sql)).rejects.toThrow(message);
  expect(await rowsOf('SELECT 1')).toEqual([1]);
});

it('fails if another query ends the stream', async () => {
  const stream = store.stream('SELECT i FROM range(1_000_000) AS t(i)');
  await stream.next();
  await store.run('CREATE TEMP TABLE other AS SELECT 1 AS v');
  await expect(
    (async () => {
      for await (const _ of stream);
    })(),
  ).rejects.toThrow();
});

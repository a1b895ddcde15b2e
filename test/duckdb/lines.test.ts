/** Tests lines of JSON in temporary files. In each thread, DuckDB reads them with a buffer that is as large as the longest line. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LineFile } from '../../src/disk/lineFile.ts';
import { readLines } from '../../src/duckdb/readFilesSql.ts';
import { Store, text } from '../../src/duckdb/store.ts';
import { temporaryFolder } from '../support/build.ts';

it('are read at any length, with only the memory that the longest line needs', async () => {
  const folder = temporaryFolder();
  const store = await Store.open({ memoryLimit: '300MB', threads: 2, scratch: folder });
  const read = async (values: readonly string[]) => {
    const lines = new LineFile(join(folder, 'lines.ndjson'));
    for (const value of values) lines.add(JSON.stringify({ value }));
    lines.end();
    const rows = await store.rows(`SELECT value FROM ${readLines(lines, `value: 'VARCHAR'`)}`, { value: text });
    return rows.map((row) => row.value);
  };
  const long = ['a', '€'.repeat(1_000_000), 'b'];
  expect(await read(long)).toEqual(long);
  // The file has 70 MB. Buffers as large as the file would need more memory than the store has.
  const many = Array.from({ length: 700 }, (_, i) => String(i).padEnd(100_000));
  expect((await read(many)).length).toBe(many.length);
  store.close();
});

it('a line is written completely if the buffer has no space for its line feed', () => {
  const file = join(temporaryFolder(), 'list');
  const list = new LineFile(file);
  const lines = ['a'.repeat(2 ** 15 - 1), 'b'.repeat(2 ** 15), 'c'];
  for (const line of lines) list.add(line);
  list.end();
  expect(readFileSync(file, 'utf8') === `${lines.join('\n')}\n`).toBe(true);
});

/**
 * Tests rows of unspent outputs. The rows of an output with several runes become one value, even if they are in two
 * chunks.
 */
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { joinRunes, ListRows, MADE, textOf } from '../../src/lists/outputRows.sql.ts';
import { temporaryFolder } from '../support/build.ts';
import { randomFor } from '../support/seed.ts';

/** A number of more than 64 bits. */
const LARGE = 2n ** 127n + 7n;

it('outputs with any number of rows are read completely, in order, for each address', async () => {
  const random = randomFor('rows of outputs');
  const below = (count: number) => Math.floor(random() * count);
  const store = await Store.open({ memoryLimit: '100MB', threads: 2, scratch: temporaryFolder() });
  const expected: string[] = [];
  const cells: string[] = [];
  for (let i = 0; i < 3000; i += 1) {
    const [key, output] = [`address${Math.floor(i / 700)}`, `${String(i).padStart(64, '0')}:${below(12)}`];
    const place = `["${output}",840000,"${'ab'.repeat(32)}",1,1700000000`;
    // Each rune has one to three rows. Its name has characters that are not ASCII.
    const runes = Array.from({ length: 1 + below(3) }, (_, rune) => ({
      head: `["840000:${rune + 1}",${rune},"RUNE","R•UNE",0`,
      rows: 1 + (i % 5 === 0 ? below(3) : 0),
    }));
    expected.push(`${key} ${[place, ...runes.map(({ head, rows }) => `${head},"${LARGE * BigInt(rows)}"]`)].join()}]`);
    for (const [rune, { head, rows }] of runes.entries())
      for (let row = 0; row < rows; row += 1) cells.push(`('${key}', ${MADE}, 0, 0, '${place},${head},"${LARGE}"]]', ${i}, ${rune}, '')`);
  }
  try {
    await store.run(
      `CREATE TEMP TABLE made AS SELECT * FROM (VALUES ${cells.join(', ')}) AS t(key, kind, first, page, text, sort, number, id)`,
    );
    const rows = new ListRows('SELECT * FROM made ORDER BY hash(text)', store);
    const found: string[] = [];
    await rows.next();
    for (let { key } = rows; key !== undefined; key = rows.key) {
      while (rows.isAt(key, MADE)) found.push(`${key} ${textOf(await rows.takeOutput())}`);
    }
    expect(cells.length).toBeGreaterThan(3 * 2048);
    expect(found).toEqual(expected);
  } finally {
    store.close();
  }
});

it('only adjacent rows of the same rune are added up', () => {
  const rune = (id: string, units: string) => `["${id}",1,"A","A",0,"${units}"]`;
  expect(joinRunes([rune('1:1', '1'), rune('1:1', '20'), rune('1:2', '5')])).toEqual([rune('1:1', '21'), rune('1:2', '5')]);
});

/** Tests the runes of unspent outputs. An output has each of its runes once, in order, also if several records have a rune. */
import { expect, it } from 'vitest';
import { Store, text } from '../../src/duckdb/store.ts';
import { columns } from '../../src/duckdb/table.ts';
import { selectOutputs } from '../../src/lists/unspentOutputs.sql.ts';
import { temporaryFolder } from '../support/build.ts';
import { randomFor } from '../support/seed.ts';

/** Almost the largest amount, which two of add up to more than any integer type of DuckDB has. */
const LARGE = 2n ** 128n - 7n;

it('outputs have the sums of their records, for each rune, unless they are spent', async () => {
  const random = randomFor('rows of outputs');
  const below = (count: number) => Math.floor(random() * count);
  const store = await Store.open({ memoryLimit: '100MB', threads: 2, scratch: temporaryFolder() });
  const [expected, cells]: [string[], string[]] = [[], []];
  for (let i = 0; i < 700; i += 1) {
    const output = `${String(i).padStart(64, '0')}:${below(12)}`;
    const records = Array.from({ length: 1 + below(3) }, () => (i % 5 === 0 ? 1 + below(3) : 1));
    for (const [rune, count] of records.entries())
      for (let row = 0; row < count; row += 1) cells.push(`(false, '${output}', 840000, 1, 170, 'ann', '1:${rune}', '${LARGE}')`);
    const isSpent = i % 7 === 0;
    if (isSpent) cells.push(`(true, '${output}', NULL, NULL, NULL, 'ann', NULL, NULL)`);
    // The numbers of runes descend.
    const runes = records.map((count, rune) => `["1:${rune}",${9 - rune},"A","A•B",0,"${LARGE * BigInt(count)}"]`);
    if (!isSpent) expected.push(`${output} ann 840000,"hash",1,170 ${runes.reverse().join('\t')}`);
  }
  try {
    const names = `is_spent, "output", block_height, tx_index, "timestamp", address, rune_id, amount`;
    await store.run(
      `CREATE TEMP TABLE of_level AS SELECT * FROM (VALUES ${cells.join(', ')}) AS t(${names}) ORDER BY hash("output" || rune_id)`,
    );
    const blocks = await store.table(
      'blocks',
      columns('block_height BIGINT, block_hash VARCHAR'),
      `SELECT 840000 AS block_height, 'hash' AS block_hash`,
    );
    const runes = await store.table(
      'runes',
      columns('id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, divisibility BIGINT'),
      `SELECT '1:' || i AS id, 9 - i AS number, 'A' AS name, 'A•B' AS spaced_name, 0 AS divisibility FROM range(3) AS t(i)`,
    );
    await selectOutputs('FROM of_level', { blocks, runes } as unknown as Parameters<typeof selectOutputs>[1], store);
    const sql = `SELECT concat_ws(' ', "output", address, place, runes) AS line FROM part_made ORDER BY "output"`;
    expect((await store.rows(sql, { line: text })).map(({ line }) => line)).toEqual(expected);
    expect(await store.number('SELECT count(*) AS number FROM part_spent')).toBe(0);
  } finally {
    store.close();
  }
});

/**
 * Tests that a large source is divided by ranges of blocks if the rows of its blocks are scattered. Otherwise, each range would scan the
 * complete source.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { scatteredRanges } from '../../../src/input/makeActivity.ts';
import { LIMITS } from '../../../src/limits.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild, treeOfRecords } from '../../support/build.ts';
import { limitsWith } from '../../support/limits.ts';

it.each([
  ['block by block', 'block_height', false],
  ['in pairs of blocks that overlap', 'block_height // 2, i', false],
  // The row `i = 0` of each block comes after all other rows of the table, so the last rows have all blocks.
  ['in two passes', 'i = 0, block_height', false],
  ['in no order', 'hash(i, block_height)', true],
])('rows of blocks %s are scattered or not', async (_, order, expected) => {
  const store = await Store.open({ memoryLimit: '100MB', threads: 2, scratch: temporaryFolder() });
  try {
    // The block of height 1 is far below the others. This gap must not change how much the blocks seem to overlap.
    await store.run(`CREATE TEMP TABLE rows AS FROM (SELECT 1 AS block_height, 0 AS i UNION ALL
      SELECT 100000 + height, i FROM range(300) AS h(height), range(20) AS r(i)) ORDER BY ${order}`);
    const blocks = 'SELECT block_height, count(*) AS records FROM rows GROUP BY block_height';
    const ranges = await scatteredRanges(blocks, 'rows', { store, limits: limitsWith({ servedAtOnce: 500 }) });
    expect(ranges?.length).toBe(expected ? 13 : undefined);
    expect(await scatteredRanges(blocks, 'rows', { store, limits: LIMITS })).toBeUndefined();
  } finally {
    store.close();
  }
});

it('reads a ledger in any order of rows', async () => {
  const work = temporaryFolder();
  const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
  await testBuild(join(work, 'out'), { inputs: CONFORMANCE_INPUTS });
  const store = await Store.open({ memoryLimit: '500MB', threads: 2, scratch: join(work, 'scratch') });
  // Uses the smallest row groups that DuckDB writes. Each of them has rows of most blocks.
  const groups = { csv: 'HEADER', parquet: 'FORMAT parquet, ROW_GROUP_SIZE 2048' };
  for (const [form, options] of Object.entries(groups)) {
    mkdirSync(join(work, form));
    const file = join(work, form, `ledger.${form}`);
    await store.run(`COPY (FROM read_csv('${ledger}', all_varchar = true) ORDER BY hash(tx_id, event_index)) TO '${file}' (${options})`);
    // With the smallest limit, there are more ranges than files.
    for (const limits of [LIMITS, ...[1000, 30].map((servedAtOnce) => limitsWith({ servedAtOnce, batchRecords: 500 }))]) {
      await testBuild(join(work, `from-${form}`), { inputs: [file, runes], full: true, limits });
      expect(treeOfRecords(join(work, `from-${form}`))).toEqual(treeOfRecords(join(work, 'out')));
    }
  }
  store.close();
});

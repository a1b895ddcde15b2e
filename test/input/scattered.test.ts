/** A large source whose blocks are scattered over its rows is sorted, because each batch of blocks would scan all of it. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { crossings, LIMITS, limitsWith } from '../../src/limits.ts';
import { CONFORMANCE_INPUTS, temporaryFolder, testBuild, treeOfRecords } from '../support/build.ts';

it('reads a ledger in any order of rows', async () => {
  const work = temporaryFolder();
  const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
  await testBuild(join(work, 'out'), { inputs: CONFORMANCE_INPUTS });
  const store = await Store.open({ memoryLimit: '500MB', threads: 2, scratch: join(work, 'scratch') });
  // In the smallest groups of rows that DuckDB writes, each of which has most blocks.
  const groups = { csv: 'HEADER', parquet: 'FORMAT parquet, ROW_GROUP_SIZE 2048' };
  for (const [form, options] of Object.entries(groups)) {
    mkdirSync(join(work, form));
    const file = join(work, form, `ledger.${form}`);
    await store.run(`COPY (FROM read_csv('${ledger}', all_varchar = true) ORDER BY hash(tx_id, event_index)) TO '${file}' (${options})`);
    for (const limits of [LIMITS, limitsWith({ unsortedRecords: 1000, batchRecords: 500 })]) {
      crossings.clear();
      await testBuild(join(work, `from-${form}`), { inputs: [file, runes], full: true, limits });
      expect(crossings.has('unsortedRecords')).toBe(limits !== LIMITS);
      expect(treeOfRecords(join(work, `from-${form}`))).toEqual(treeOfRecords(join(work, 'out')));
    }
  }
  store.close();
});

/** Tests the error when spilled data has used up DuckDB's share of the disk. */
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { temporaryFolder } from '../support/build.ts';

it('says that the disk is full, not that the memory limit is too low', async () => {
  const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: temporaryFolder() });
  try {
    // DuckDB's default is nine tenths of the free space.
    await store.run(`SET max_temp_directory_size = '1MB'`);
    await expect(store.run('CREATE TEMP TABLE t AS SELECT sha256(i::VARCHAR) AS v FROM range(2_000_000) AS r(i)')).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(/^the disk of the cache folder is full: .*failed to offload/),
      details: ['Free some space, or use another folder with --cache.'],
    });
  } finally {
    store.close();
  }
});

/** Tests database files: which statements write to the file, and queries of tables with deleted rows. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { attachDatabase } from '../../src/duckdb/lockDatabase.ts';
import { int, Store } from '../../src/duckdb/store.ts';
import { temporaryFolder } from '../support/build.ts';

const FILE = { name: 'data', what: 'the file' };

/** Runs `work` in a store with the database file of a folder, then closes the store. */
async function withDatabase<T>(folder: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(folder, 'scratch') });
  try {
    await attachDatabase(store, { ...FILE, path: join(folder, 'data.duckdb') });
    return await work(store);
  } finally {
    store.close();
  }
}

it('changes in a database file are dropped without a checkpoint, however many they are', async () => {
  const folder = temporaryFolder();
  await withDatabase(folder, (store) => store.run('CREATE TABLE data.rows AS SELECT 1::BIGINT AS number; CHECKPOINT data'));
  await withDatabase(folder, async (store) => {
    // Writes 32 MB. By default, DuckDB makes a checkpoint after 16 MB.
    await store.run('DELETE FROM data.rows; INSERT INTO data.rows SELECT (hash(range) >> 1)::BIGINT FROM range(4_000_000)');
    await store.run('CREATE TABLE data.more AS SELECT 1 AS number');
  });
  await withDatabase(folder, async (store) => {
    expect(await store.rows('FROM data.rows', { number: int })).toEqual([{ number: 1 }]);
    expect(await store.number(`SELECT count(*) AS number FROM duckdb_tables() WHERE table_name = 'more'`)).toBe(0);
  });
}, 60_000);

// Checks that DuckDB's optimizer row_group_pruner is off: it omits rows of such a table.
it('the first rows of an order are right in a table with deleted rows', async () => {
  await withDatabase(temporaryFolder(), async (store) => {
    await store.run('CREATE TABLE data.rows AS SELECT range AS number FROM range(10); CHECKPOINT data');
    await store.run('DELETE FROM data.rows WHERE number IN (4, 5)');
    await store.run('INSERT INTO data.rows VALUES (4), (5)');
    await store.run('DELETE FROM data.rows WHERE number > 4');
    expect(await store.rows('FROM data.rows ORDER BY number DESC LIMIT 1', { number: int })).toEqual([{ number: 4 }]);
  });
});

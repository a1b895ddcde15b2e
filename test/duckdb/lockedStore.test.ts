/** Tests that a store for untrusted files can open no files except the given ones, and how a store fails to open. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, it, vi } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { rowsOf, temporaryFolder } from '../support/build.ts';

it('refuses all other files, the network, extensions and other settings', async () => {
  const work = temporaryFolder();
  const [given, other] = [join(work, 'given.csv'), join(work, 'other.csv')];
  for (const path of [given, other]) writeFileSync(path, 'a\n1\n');
  const store = await Store.open({ memoryLimit: '300MB', threads: 1, scratch: join(work, 'scratch'), only: [given] });
  expect(await rowsOf(`FROM read_csv('${given}')`, store)).toEqual([{ a: 1 }]);
  for (const sql of [
    `FROM read_csv('${other}')`,
    `FROM read_csv('${work}/*.csv')`,
    `FROM read_text('/etc/passwd')`,
    `FROM glob('${work}/*')`,
    `FROM read_parquet('http://127.0.0.1:9/x.parquet')`,
    `COPY (SELECT 1) TO '${join(work, 'new.csv')}'`,
    `ATTACH '${join(work, 'new.db')}'`,
    'INSTALL httpfs',
    'LOAD httpfs',
    'SET enable_external_access = true',
    `SET allowed_paths = ['${other}']`,
    `SET memory_limit = '9GB'`,
  ])
    await expect(store.run(sql), sql).rejects.toThrow();
  store.close();
});

it('closes DuckDB if it cannot connect to it, and says so', async () => {
  const connect = vi.spyOn(DuckDBInstance.prototype, 'connect').mockRejectedValue(new Error('Failed to connect'));
  const close = vi.spyOn(DuckDBInstance.prototype, 'closeSync');
  try {
    const opening = Store.open({ memoryLimit: '300MB', threads: 1, scratch: temporaryFolder() });
    await expect(opening).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining('DuckDB cannot start') });
    expect(close).toHaveBeenCalledOnce();
  } finally {
    connect.mockRestore();
    close.mockRestore();
  }
});

/**
 * Tests input with 200,000 files, because an operator may have a file for each block. A function call can have only about 125,000
 * arguments, so code that passes a file per argument would fail.
 */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { FILES, selectFiles } from '../../src/input/changedFiles.ts';
import { groupAlike } from '../../src/input/rawSource.ts';
import type { Recognised } from '../../src/input/recognise.ts';
import { temporaryFolder } from '../support/build.ts';

const MANY = 200_000;

it('a build finds the changed files among many', async () => {
  const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
  const rows = `SELECT i AS id, 'in/' || i AS name, 'activity' AS form, 1 AS size, '1' AS mtime, '1' AS ctime, '1' AS inode, '' AS digest`;
  const before = await store.view('files', FILES, `${rows} FROM range(${MANY}) r(i)`);
  const { touched, gone } = await selectFiles([{ path: import.meta.filename, name: 'in/new' }], before, store);
  store.close();
  expect([touched.map(({ id }) => id), gone.length]).toEqual([[MANY], MANY]);
});

it('a build reads many files of one format together', () => {
  const files = Array.from({ length: MANY }, (_, id) => ({ id, form: 'activity', format: 'array' }) as unknown as Recognised);
  expect([...groupAlike(files)].map((group) => group.length)).toEqual([MANY]);
});

/**
 * Tests input with 200,000 files, because a pull from a server writes a file for each block. A function call can have
 * only about 125,000 arguments, so code that passes a file per argument would fail.
 */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { FILES, selectFiles } from '../../src/input/changedFiles.ts';
import { groupAlike, type Numbered } from '../../src/input/rawSource.ts';
import { plan } from '../../src/pull/planBlocks.ts';
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
  const files = Array.from({ length: MANY }, (_, id) => ({ id, form: 'activity', layout: 'array' }) as unknown as Numbered);
  expect([...groupAlike(files)].map((group) => group.length)).toEqual([MANY]);
});

it('a pull joins many files into one', () => {
  const files = Array.from({ length: MANY }, (_, i) => ({ path: `${i}`, first: i, last: i, digest: '' }));
  const source = { first: 0, begin: 0, last: MANY + 10, has: () => true };
  const wanted = { from: undefined, to: MANY - 1 };
  const { units } = plan({ wanted, source, confirmations: 6, perFile: MANY, files, stale: new Set() });
  expect(units).toEqual([{ first: 0, last: MANY - 1 }]);
});

/** Tests the errors when spilled data has used up DuckDB's share of the disk, and when a disk fails. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { unreadable } from '../../src/input/unreadable.ts';
import { failedBuild, temporaryFolder, writeFiles } from '../support/build.ts';
import { ndjson, record } from '../support/records.ts';

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

/** A file of Linux that fails with EIO when its beginning is read or written. */
const FAILING = '/proc/self/mem';

it.each([
  ['a read', `FROM read_json('${FAILING}', columns = {a: 'VARCHAR'})`, `Could not read from file "${FAILING}"`],
  ['a write', `COPY (SELECT 1) TO '${FAILING}' (USE_TMP_FILE false)`, `Could not write file "${FAILING}"`],
  // No file fails only when it is synced, so the statement raises the message that DuckDB has then.
  ['a sync', `SELECT error('Original error: fsync failed!')`, 'fsync failed!'],
])('says that a disk failed, not that it is full, after %s', async (_, sql, reason) => {
  const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: temporaryFolder() });
  try {
    await expect(store.run(sql)).rejects.toMatchObject({ exitCode: 3, message: expect.stringMatching(`^a disk failed: .*${reason}`) });
  } finally {
    store.close();
  }
});

it('names the folder of a state that the disk cannot read', async () => {
  const work = temporaryFolder();
  writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
  mkdirSync(join(work, 'cache'));
  symlinkSync(FAILING, join(work, 'cache/state.duckdb'));
  const { exitCode, message } = await failedBuild(join(work, 'out'), { inputs: [join(work, 'a.ndjson')], cache: join(work, 'cache') });
  expect([exitCode, message]).toEqual([
    3,
    expect.stringMatching(/^the cache folder .*cache cannot be used, because its disk failed: Could not read/),
  ]);
  const failure = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
  expect(unreadable('in/a.csv', failure)).toMatchObject({ exitCode: 3, message: 'in/a.csv cannot be read: EIO: i/o error, read' });
});

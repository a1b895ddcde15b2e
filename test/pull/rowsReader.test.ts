/** Processes that read rows of other mirrors share the memory of the pull. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { LIMITS } from '../../src/limits.ts';
import { RowsReader } from '../../src/pull/mirror/rows/rowsReader.ts';
import { temporaryFolder } from '../support/build.ts';

/** Ids of the processes that this one has started to read rows. */
const readers = (): string[] =>
  readdirSync('/proc/self/task').flatMap((thread) =>
    readFileSync(`/proc/self/task/${thread}/children`, 'utf8')
      .split(' ')
      .filter((pid) => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('readRows')),
  );

it.each([
  ['less memory than one needs', 200e6, 1],
  ['500 MB', 500e6, 1],
  ['1 GB', 1e9, 2],
])('with %s, as many run at once as fit, and the others wait', async (_, memory, most) => {
  const folder = temporaryFolder();
  const reader = new RowsReader(LIMITS, memory);
  const request = (name: number) => ({ parts: [], hasSpent: false, first: 0, last: 0, to: join(folder, `${name}.parquet`) });
  const reads = [1, 2, 3, 4].map((name) => reader.read(request(name)));
  // A process is started in the call, so all that may run are there.
  expect(readers()).toHaveLength(most);
  expect(await Promise.all(reads)).toEqual(reads.map(() => ({ rows: 0, blocks: [] })));
  expect(readers()).toHaveLength(most);
  reader.close();
  await vi.waitFor(() => expect(readers()).toEqual([]));
});

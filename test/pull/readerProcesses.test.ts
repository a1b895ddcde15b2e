/** Tests that the processes that read rows of other mirrors share the memory limit of the pull. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { Store } from '../../src/duckdb/store.ts';
import { LIMITS } from '../../src/limits.ts';
import { RowsReader } from '../../src/pull/mirror/rows/readerProcesses.ts';
import { copyTable, ledgerForm, RUNES } from '../../src/rows/rowsForm.ts';
import { temporaryFolder } from '../support/build.ts';

/** Returns the ids of the processes that this process has started to read rows. */
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
])('with %s, as many run in parallel as fit, and the others wait', async (_, memory, most) => {
  const folder = temporaryFolder();
  const reader = new RowsReader(LIMITS, memory);
  const request = (name: number) => ({ parts: [], hasSpent: false, first: 0, last: 0, to: join(folder, `${name}.parquet`) });
  const reads = [1, 2, 3, 4].map((name) => reader.read(request(name)));
  // A call starts its process immediately. So all processes that the limit allows exist before the first result.
  expect(readers()).toHaveLength(most);
  expect(await Promise.all(reads)).toEqual(reads.map(() => ({ rows: 0, blocks: [] })));
  expect(readers()).toHaveLength(most);
  reader.close();
  await vi.waitFor(() => expect(readers()).toEqual([]), 60_000);
});

it('writes the same bytes for the same rows, whatever their files and row groups', async () => {
  const folder = temporaryFolder();
  const at = (name: string): string => join(folder, `${name}.parquet`);
  const store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: join(folder, 'scratch') });
  // A row group has 40,960 rows. The first block has 30,001 rows, so it ends within a row group.
  const cells = ledgerForm(false).fields.map(({ column, kind }) => {
    const values: Readonly<Record<string, string>> = { block_height: 'i // 30001', event_index: 'i', rune_id: `'1:1'` };
    return `(${values[column] ?? (kind === 'integer' ? '1' : `sha256('${column} ' || i)`)})::${kind === 'integer' ? 'BIGINT' : 'VARCHAR'} AS "${column}"`;
  });
  const rows = (where: string): string => `SELECT ${cells.join(', ')} FROM range(70000) r(i) WHERE ${where}`;
  const { order } = ledgerForm(false);
  await store.run(copyTable(rows('true'), order, at('whole')));
  await store.run(copyTable(rows('i < 30001'), order, at('first')));
  await store.run(copyTable(rows('i >= 30001'), order, at('rest')));
  await store.run(`COPY (FROM '${at('whole')}') TO '${at('other')}' (FORMAT parquet, ROW_GROUP_SIZE 6000)`);
  const rune = RUNES.fields.map(
    ({ column, kind }) =>
      `${{ id: `'1:1'`, name: `'A'`, spaced_name: `'A'`, divisibility: '0', number: '0' }[column] ?? 'NULL'}::${kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR'} AS "${column}"`,
  );
  await store.run(copyTable(`SELECT ${rune.join(', ')}`, RUNES.order, at('runes')));
  store.close();
  const reader = new RowsReader(LIMITS, 1e9);
  const read = async (
    name: string,
    parts: readonly (readonly [name: string, rows: number, first: number, last: number])[],
  ): Promise<Buffer> => {
    const files = parts.map(([file, count, first, last]) => ({ path: at(file), rows: count, first, last }));
    const { rows: written } = await reader.read({ parts: files, runes: at('runes'), hasSpent: false, first: 0, last: 2, to: at(name) });
    expect(written).toBe(70_000);
    return readFileSync(at(name));
  };
  const whole = readFileSync(at('whole'));
  expect((await read('of-whole', [['whole', 70_000, 0, 2]])).equals(whole)).toBe(true);
  expect(
    (
      await read('of-parts', [
        ['first', 30_001, 0, 0],
        ['rest', 39_999, 1, 2],
      ])
    ).equals(whole),
  ).toBe(true);
  expect((await read('of-other', [['other', 70_000, 0, 2]])).equals(whole)).toBe(true);
  reader.close();
});

/** Tests the processes that read rows of other mirrors: they share the memory limit of the pull, and refuse wrong rows. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FieldKind } from '../../src/contract/fields.ts';
import { Store } from '../../src/duckdb/store.ts';
import { LIMITS } from '../../src/limits.ts';
import { RowsReader } from '../../src/pull/mirror/rows/readerProcesses.ts';
import { ledgerForm, RUNES } from '../../src/rows/rowsForm.ts';
import { temporaryFolder } from '../support/build.ts';
import { until } from '../support/until.ts';

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
  writeFileSync(join(folder, 'none.parquet'), 'PAR1PAR1');
  const none = {
    path: join(folder, 'none.parquet'),
    kind: 'files',
    rows: 0,
    hasSpent: false,
    first: 0,
    last: 0,
    runes: [] as string[],
  } as const;
  const reads = [1, 2, 3, 4].map(() => reader.read(none).catch(() => 'refused'));
  // The kernel's list may leave out a child for a moment while another one starts or ends.
  let seen = 0;
  const look = () => {
    seen = Math.max(seen, readers().length);
    return seen;
  };
  // A call starts its process immediately. So all processes that the limit allows exist before the first result, but a new one has its
  // command line only when it has begun.
  await until(() => look() >= most);
  expect(await Promise.all(reads)).toEqual(reads.map(() => 'refused'));
  look();
  reader.close();
  await until(() => readers().length === 0);
  expect(seen).toBe(most);
});

describe('a file with what no build accepts is refused', () => {
  const [ledger, runes] = [ledgerForm(true), RUNES];
  const hex = (digit: string): string => `'${digit.repeat(64)}'`;
  /** Two blocks with two transactions each, and the runes of their rows. */
  const good = {
    ledger: {
      ...{ block_height: 'i // 4', tx_index: '1 - i // 2 % 2', event_index: '1 - i % 2', timestamp: '1', operation: `'mint'` },
      ...{ rune_id: `'1:1'`, amount: `'0'`, block_hash: `sha256('block ' || i // 4)`, tx_id: `sha256('transaction ' || i // 2)` },
    },
    runes: { id: `i || ':1'`, number: 'i', name: `'A' || i`, spaced_name: `'A' || i`, divisibility: '38', premine: `'0'` },
  } as const;
  const wrong: Readonly<Record<FieldKind, readonly string[]>> = {
    integer: ['-1', '9007199254740992'],
    text: [`repeat('x', 201)`],
    hash: [`'ab'`, `'0x' || ${hex('a')}`, hex('A'), `''`],
    hashOrNone: [`'ab'`, hex('A')],
    output: [],
    spent: [`'x'`, `${hex('a')} || ':01'`, `${hex('a')} || ':4,'`],
    operation: [`'steal'`, `'Mint'`],
    amount: [],
    units: [`'340282366920938463463374607431768211456'`, `'1.5'`, `'01'`, `'-1'`],
    count: [`'340282366920938463463374607431768211456'`, `'x'`],
    flag: [],
  };
  type Table = keyof typeof good;
  const formOf = (table: Table) => (table === 'ledger' ? ledger : runes);
  const cellOf = (table: Table, column: string): string => (good[table] as Readonly<Record<string, string>>)[column] ?? 'NULL';
  /** A table, a column, its values, and why the file is refused. */
  const cases: (readonly [Table, string, string, RegExp])[] = [
    ...(['ledger', 'runes'] as const).flatMap((table) =>
      formOf(table).fields.flatMap(({ column, kind, required }) =>
        [...wrong[kind], ...(required ? ['NULL'] : [])].map((cell): (typeof cases)[number] => {
          // A wrong value of the columns by which rows are sorted is noticed by its place.
          const why = new RegExp(`cells in the column ${column} |${formOf(table).order.join().includes(column) ? 'not sorted' : '-'}$`);
          return [table, column, `CASE WHEN i = 5 THEN ${cell} ELSE ${cellOf(table, column)} END`, why];
        }),
      ),
    ),
    ['ledger', 'output', '1099511627776', /the output 1099511627776/],
    ['ledger', 'block_hash', `sha256('block ' || i % 4)`, /two blocks/],
    ['ledger', 'block_hash', hex('a'), /two blocks/],
    ['ledger', 'tx_id', `sha256('transaction ' || i)`, /two transactions/],
    ['ledger', 'tx_id', hex('a'), /a transaction in two places/],
    ['ledger', 'tx_id', `sha256('transaction ' || i // 2 % 3)`, /a transaction in two places/],
    ['ledger', 'block_height', '9 + i // 4', /rows of other blocks/],
    ['ledger', 'event_index', '1', /not sorted/],
    // All rows are mints. So if one has units, its transaction loses them, and if it receives units, it creates them.
    ['ledger', 'amount', `CASE WHEN i = 5 THEN '1' ELSE '0' END`, /block 1 does not conserve/],
    ['runes', 'divisibility', '39', /the divisibility 39/],
    ['runes', 'id', `'1:1'`, /a rune twice/],
    ['runes', 'block_height', '9', /runes of other blocks/],
  ];
  let store: Store;
  let reader: RowsReader;
  let folder: string;
  const write = (table: Table, name: string, change: Readonly<Record<string, string>> = {}, more = ''): Promise<void> => {
    const type = { integer: 'BIGINT', flag: 'BOOLEAN' } as Readonly<Record<string, string>>;
    const cells = formOf(table).fields.map(
      ({ column, kind }) => `(${change[column] ?? cellOf(table, column)})::${type[kind] ?? 'VARCHAR'} AS "${column}"`,
    );
    return store.run(`COPY (SELECT ${cells.join(', ')} FROM range(8) r(i)) TO '${join(folder, name)}' (FORMAT parquet${more})`);
  };
  /** Reads the file `name`, and returns why it is refused. */
  const faultOf = async (table: Table, name: string): Promise<string | undefined> => {
    const kind = table === 'ledger' ? ('files' as const) : ('runes' as const);
    const runes = table === 'ledger' ? [join(folder, 'runes.parquet')] : [];
    const request = { path: join(folder, name), kind, rows: 8, hasSpent: true, first: 0, last: 1, runes };
    return reader.read(request).then(
      () => undefined,
      (error: Error) => error.message,
    );
  };
  beforeAll(async () => {
    folder = temporaryFolder();
    store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: join(folder, 'scratch') });
    reader = new RowsReader(LIMITS, 500e6);
    await write('runes', 'runes.parquet');
  });
  afterAll(() => {
    store.close();
    reader.close();
  });

  it('but not a file with what all builds accept', async () => {
    await write('ledger', 'ledger.parquet');
    expect([await faultOf('ledger', 'ledger.parquet'), await faultOf('runes', 'runes.parquet')]).toEqual([undefined, undefined]);
  });

  it('in each column, and in each place', async () => {
    const found: (readonly [string, string, string, string | undefined])[] = [];
    for (const [i, [table, column, cell]] of cases.entries()) {
      await write(table, `${i}.parquet`, { [column]: cell });
      found.push([table, column, cell, await faultOf(table, `${i}.parquet`)]);
    }
    expect(found).toEqual(cases.map(([table, column, cell, why]) => [table, column, cell, expect.stringMatching(why)]));
  });

  it('and a file in other encodings, whose lengths are not checked', async () => {
    await write('ledger', 'v2.parquet', {}, ', PARQUET_VERSION v2');
    expect(await faultOf('ledger', 'v2.parquet')).toContain('other encodings');
  });

  it.runIf(process.platform === 'linux')('and its process has a limit of the system for its memory', async () => {
    await until(() => readers().length > 0);
    const limits = readers().map((pid) => /^Max data size +([0-9]+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1]);
    expect(limits).toEqual(['1536000000']);
  });
});

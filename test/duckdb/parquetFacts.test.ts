/** Tests the check of Parquet files before DuckDB reads them: no length in a file decides how much memory is taken. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parquetFacts } from '../../src/duckdb/parquetFacts.ts';
import { int, Store } from '../../src/duckdb/store.ts';
import { temporaryFolder } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { integersFor } from '../support/seed.ts';

const random = integersFor('parquet');

let folder: string;
let store: Store;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = temporaryFolder();
  store = await Store.open({ memoryLimit: '1GB', threads: 1, scratch: at('scratch') });
});
afterAll(() => store.close());

/** Reads files in another process (support/parquetProcess.ts). Returns a line for each file, and its memory in MB. */
function readIn(names: readonly string[]): { readonly lines: string[]; readonly megabytes: number } {
  const process = join(ROOT, 'test/support/parquetProcess.ts');
  const { stdout, stderr } = spawnSync('node', ['--import', 'tsx', process, folder, ...names], { encoding: 'utf8' });
  const lines = stdout.trim().split('\n');
  expect(lines, stderr).toHaveLength(names.length + 1);
  return { lines: lines.slice(0, -1), megabytes: Number(lines.at(-1)) };
}

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
const [I32, I64, BINARY, LIST, STRUCT] = [5, 6, 8, 9, 12];
type Field = readonly [id: number, type: number, value: number | readonly number[]];
/** Returns a struct of Thrift's compact protocol. `value` is a number, or the bytes of a list, text or struct. */
const struct = (...fields: readonly Field[]): number[] => [
  ...fields.flatMap(([id, type, value]) => [type, ...varint(id * 2), ...(typeof value === 'number' ? varint(value * 2) : value)]),
  0,
];
const list = (type: number, length: number, ...entries: readonly (readonly number[])[]): number[] => [
  0xf0 + type,
  ...varint(length),
  ...entries.flat(),
];
const text = (value: string): number[] => [...varint(value.length), ...Buffer.from(value)];

/** Writes a file with this footer. `pages` begin at byte 4. */
function write(name: string, footer: Uint8Array | readonly number[], pages: readonly number[] = []): string {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  writeFileSync(at(name), Buffer.concat([Buffer.from('PAR1'), Buffer.from(pages), Buffer.from(footer), length, Buffer.from('PAR1')]));
  return name;
}

/** The footer of a file with a column of texts. Its pages are one after another from byte 4 on. */
const footer = (rows: number, column: readonly Field[] = []): number[] => {
  const element = struct([1, I32, 6], [3, I32, 0], [4, BINARY, text('a')]);
  const metadata: readonly Field[] = [
    [1, I32, 6],
    [2, LIST, list(I32, 1, [0])],
    [3, LIST, list(BINARY, 1, text('a'))],
    [4, I32, 0],
    [5, I64, rows],
    [6, I64, 10],
    [7, I64, 10],
    [9, I64, 4],
    ...column,
  ];
  const chunk = struct([2, I64, 4], [3, STRUCT, struct(...metadata)]);
  const group = struct([1, LIST, list(STRUCT, 1, chunk)], [2, I64, 10], [3, I64, rows]);
  const schema = list(STRUCT, 2, struct([4, BINARY, text('s')], [5, I32, 1]), element);
  return struct([1, I32, 1], [2, LIST, schema], [3, I64, rows], [4, LIST, list(STRUCT, 1, group)]);
};
const page = (bytes: number, type: number, ...fields: readonly Field[]): number[] => [
  ...struct([1, I32, type], [2, I32, bytes], [3, I32, bytes], ...fields),
  ...Array.from({ length: bytes }, () => 0),
];
const dataPage = (values: number): number[] =>
  page(4 * values, 0, [5, STRUCT, struct([1, I32, values], [2, I32, 0], [3, I32, 3], [4, I32, 3])]);
const dictionary = (values: number, bytes: number): number[] => page(bytes, 2, [7, STRUCT, struct([1, I32, values], [2, I32, 0])]);

/** Number of entries for which DuckDB would allocate 1 to 30 GB, apart from encodings. */
const MANY = 40_000_000;

/** Number of entries of a footer of 8 MB, for which DuckDB would allocate up to 6 GB. */
const LONG = 8_000_000;

/** Lists that DuckDB keeps: the bytes of a footer before the list. */
const LISTS = {
  'key value pairs': [0x59],
  columns: [0x29],
  'row groups': [0x49],
  'column orders': [0x79],
  chunks: [0x49, 0x1c, 0x19],
  'sorting columns': [0x49, 0x1c, 0x49],
  encodings: [0x49, 0x1c, 0x19, 0x1c, 0x3c, 0x29],
  'names of a path': [0x49, 0x1c, 0x19, 0x1c, 0x3c, 0x39],
  'encoding statistics': [0x49, 0x1c, 0x19, 0x1c, 0x3c, 0xd9],
};

describe('a file of DuckDB', () => {
  it.each([
    ['', 'zstd, plain', true],
    [', COMPRESSION snappy, PARQUET_VERSION v2', 'snappy, other encodings', false],
    [', COMPRESSION uncompressed, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT 1', 'unpacked, without dictionaries', true],
    [', COMPRESSION gzip, ROW_GROUP_SIZE 2048', 'gzip, small groups', true],
  ])('has the facts that DuckDB finds, too%s (%s)', async (options, name, isPlain) => {
    const path = at(`${name}.parquet`);
    const rows = `SELECT i, sha256('x' || i // 3) AS h, 'op' || i % 7 AS op, i % 3 = 0 AS f, NULL::BIGINT AS n, i / 7 AS d,
      {'a': i, 'b': [i, i + 1], 'c': map([i], ['x'])} AS nested FROM range(10000) r(i)`;
    await store.run(`COPY (${rows}) TO '${path}' (FORMAT parquet${options})`);
    const facts = parquetFacts(path);
    const found = await store.rows(
      `SELECT sum(total_uncompressed_size)::BIGINT AS bytes FROM parquet_metadata('${path}') GROUP BY row_group_id`,
      { bytes: int },
    );
    expect([facts.rows, facts.isPlain]).toEqual([10_000, isPlain]);
    // DuckDB also counts the headers of pages.
    const bytes = found.reduce((sum, group) => sum + group.bytes, 0);
    expect(facts.unpacked).toBeGreaterThan(bytes * 0.9);
    expect(facts.unpacked).toBeLessThan(bytes);
  });
});

describe('a file that announces more than it has', () => {
  it('is refused before DuckDB allocates it, in each list', () => {
    const names = Object.entries(LISTS).flatMap(([what, head]) => {
      const type = /names/.test(what) ? BINARY : what === 'encodings' ? I32 : STRUCT;
      const few = write(`${what} few`, Buffer.from([...head, ...list(type, MANY), 0, 0, 0, 0]));
      // Here the entries follow, each of one byte.
      const long = write(`${what} long`, Buffer.concat([Buffer.from([...head, ...list(type, LONG)]), Buffer.alloc(LONG + 10)]));
      return what === 'encodings' ? [few] : [few, long];
    });
    const { lines, megabytes } = readIn(names);
    expect(lines.filter((line) => !line.includes('refused: '))).toEqual([]);
    expect(megabytes).toBeLessThan(400);
  });

  it.each<[string, readonly number[], readonly number[], RegExp | undefined]>([
    ['nothing more', footer(3), dataPage(3), undefined],
    ['a dictionary', footer(3), [...dictionary(3, 12), ...dataPage(3)], undefined],
    ['values of a dictionary', footer(3), [...dictionary(2 ** 30, 12), ...dataPage(3)], /a dictionary with 1073741824 values in 12 bytes/],
    ['values of a later dictionary', footer(3), [...dataPage(2), ...dictionary(2 ** 30, 12), ...dataPage(1)], /a dictionary with/],
    [
      'values of a dictionary after less values than rows',
      footer(3, [[5 + 200, I64, 0]]),
      [...dictionary(2 ** 30, 12)],
      /a dictionary with/,
    ],
    ['pages', footer(3), dataPage(2), /impossible sizes|outside of the file|announces|unknown type/],
    [
      'bytes of a page',
      footer(3),
      [...struct([1, I32, 0], [2, I32, 5000], [3, I32, 5000], [5, STRUCT, struct([1, I32, 3], [2, I32, 0])])],
      /impossible sizes/,
    ],
    ['a page of another type', footer(3), page(4, 1), /impossible sizes/],
    ['an offset outside', struct(), [], undefined],
    ['two values of a field', struct([3, I64, 1], [3, I64, 2]), [], /the field 3 of a struct twice/],
    ['another type in a list', struct([5, LIST, list(BINARY, 1, text('a'))]), [], /a list of the wrong type/],
    [
      'too many structs inside each other',
      [...Array.from({ length: 100 }, () => 0xac), ...Array.from({ length: 101 }, () => 0)],
      [],
      /too many structs/,
    ],
    ['too many lists inside each other', [...[0xa9], ...Array.from({ length: 100 }, () => 0x19), 0x10, 0], [], /too many/],
    [
      'columns inside each other',
      struct([2, LIST, list(STRUCT, 1000, ...Array.from({ length: 1000 }, () => struct([4, BINARY, text('a')], [5, I32, 1])))]),
      [],
      /more than 100 columns inside each other/,
    ],
  ])('of %s is refused', (what, bytes, pages, expected) => {
    const path = at(write(what, bytes, pages));
    if (expected === undefined) expect(() => parquetFacts(path)).not.toThrow();
    else expect(() => parquetFacts(path)).toThrow(expected);
  });

  it('refuses anything that is not Parquet', () => {
    for (const [name, content] of [
      ['empty', ''],
      ['short', 'PAR1'],
      ['magic', 'PAR1PAR1'],
      ['long footer', 'PAR1....\xff\xff\xff\x7fPAR1'],
      ['end', `PAR1${'.'.repeat(50)}`],
    ] as const) {
      writeFileSync(at(name), Buffer.from(content, 'latin1'));
      expect(() => parquetFacts(at(name)), name).toThrow(/^(?:it does not begin and end with PAR1|its footer cannot have)/);
    }
  });
});

it('files with random changes never take more than a bounded memory', async () => {
  await store.run(`COPY (SELECT i, sha256('x' || i // 3) AS h, 'op' || i % 7 AS op, {'a': i, 'b': [i]} AS n FROM range(3000) r(i))
    TO '${at('good')}' (FORMAT parquet, ROW_GROUP_SIZE 2048, COMPRESSION zstd)`);
  const good = readFileSync(at('good'));
  const footerAt = good.length - 8 - good.readUInt32LE(good.length - 8);
  const names = Array.from({ length: 300 }, (_, i) => {
    const bytes = Buffer.from(good);
    for (let changes = 1 + random(3); changes > 0; changes--) {
      const where = random(4) > 0 ? footerAt + random(good.length - 8 - footerAt) : 4 + random(footerAt - 4);
      bytes[where] = random(2) > 0 ? random(256) : ([0, 0xff, 0xfc, 0x19, 0x7f, 0x80][random(6)] ?? 0);
    }
    writeFileSync(at(`changed ${i}`), bytes);
    return `changed ${i}`;
  });
  const { lines, megabytes } = readIn(['good', ...names]);
  expect(lines[0]).toBe('good accepted');
  expect(lines.filter((line) => line.includes('refused: ')).length).toBeGreaterThan(30);
  expect(megabytes).toBeLessThan(400);
});

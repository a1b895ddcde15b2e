/**
 * Tests faulty input that a build might not notice, or might report as its own fault. Each build ends with exit code 2 and changes nothing.
 * See also badInput.test.ts.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readCsv } from '../../../src/duckdb/readFilesSql.ts';
import { nullable, Store, text } from '../../../src/duckdb/store.ts';
import { sha256Of } from '../../../src/input/changedFiles.ts';
import { decompress } from '../../../src/input/decompress.ts';
import { discover } from '../../../src/input/discover.ts';
import { ReadProgress } from '../../../src/input/inputProgress.ts';
import type { Reading } from '../../../src/input/rawSource.ts';
import { linesOf, readSource } from '../../../src/input/readSource.ts';
import { recognise } from '../../../src/input/recognise.ts';
import { failedBuild, RecordingLog, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { hex, ndjson, record } from '../../support/records.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: temporaryFolder() });
});
afterAll(() => store.close());

type Files = Readonly<Record<string, string | Uint8Array>>;

/** Returns the message and the details of a refused build, without the path of the test's folder. */
async function refusal(files: Files): Promise<string> {
  const work = temporaryFolder();
  writeFiles(join(work, 'in'), files);
  return refusalOf(work);
}

async function refusalOf(work: string): Promise<string> {
  const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
  expect([error.message, error.exitCode, existsSync(join(work, 'out'))]).toEqual([error.message, 2, false]);
  return [error.message, ...error.details].join(' | ').replaceAll(/[^ ("]*\/in\//g, 'in/');
}

/** Returns a Parquet file of flat records with this many blocks. `more` replaces the SQL expressions of columns. */
async function parquet(blocks: number, more: Readonly<Record<string, string>> = {}, options = ''): Promise<Buffer> {
  const cells: Record<string, string> = {
    rune_id: "'1:0'",
    rune_number: '1',
    rune_name: "'A'",
    rune_spaced_name: "'A'",
    address: "'bc1qexample' || range",
    receiver_address: 'NULL::VARCHAR',
    amount: "'1'",
    operation: "'receive'",
    block_hash: "sha256('block' || range)",
    block_height: 'range + 5',
    tx_id: "sha256('tx' || range)",
    tx_index: '1',
    vout: '0',
    output: "sha256('tx' || range)",
    timestamp: '5',
    ...more,
  };
  const path = join(temporaryFolder(), 'a.parquet');
  const columns = Object.entries(cells).map(([name, cell]) => `${cell} AS "${name}"`);
  await store.run(`COPY (SELECT ${columns.join(', ')} FROM range(${blocks})) TO '${path}' (FORMAT parquet ${options})`);
  return readFileSync(path);
}

/** Reads a table as a build does. Returns the cells of these columns as text, in the order of the rows. */
async function cellsOf(content: string | Uint8Array, columns: readonly string[]): Promise<(string | undefined)[][]> {
  const path = join(temporaryFolder(), 'table');
  writeFileSync(path, content);
  const found = await recognise({ id: 1, file: { path, name: 'in/table' } }, store, dirname(path));
  const reading = { store, limits: { filesPerScan: 9 }, progress: new ReadProgress() } as unknown as Reading;
  const source = await readSource([found], reading);
  const cells = columns.map((column) => `${column}::VARCHAR AS ${column}`);
  const rows = await store.rows(
    `SELECT ${cells} FROM ${source.relation} ORDER BY ${source.order}`,
    Object.fromEntries(columns.map((column) => [column, nullable(text)])),
  );
  await store.run(`DROP ${source.isView ? 'VIEW' : 'TABLE'} ${source.relation}`);
  return rows.map((row) => columns.map((column) => row[column]));
}

const page = (total: number, results: readonly unknown[], offset = 0) => `${JSON.stringify({ limit: 60, offset, total, results })}\n`;
const [one, two, other] = [record(5, 2), record(5, 1), record(6, 1)];

describe('input that could be lost silently', () => {
  it.each<[string, Files, string]>([
    [
      'an array cut after a comma',
      { 'a.json': `[${JSON.stringify(one)},${JSON.stringify(two)},\n` },
      'in/a.json is broken JSON: the array does not end with ]',
    ],
    [
      'an array cut after a comma and a page of spaces',
      { 'a.json': `[${JSON.stringify(one)},${' '.repeat(9000)}` },
      'the array does not end with ]',
    ],
    [
      'a saved response without results beside others',
      { 'a.json': page(1, [other]), 'b.json': page(5, []) },
      'in/b.json response 1: results is empty, though total is 5 and offset is 0',
    ],
    [
      'a file that is there twice in itself',
      { 'a.ndjson': ndjson([one, two, other, one, two, other]) },
      'has every record 2 times in block 5',
    ],
    [
      'the same of blocks that are mixed',
      { 'a.ndjson': ndjson([one, other, two, one, other, two]) },
      'has every record 2 times in block 5',
    ],
  ])('%s', async (_name, files, message) => {
    expect(await refusal(files)).toContain(message);
  });

  it('transactions of mixed blocks, an empty page past the end and an array of responses are valid', async () => {
    const work = temporaryFolder();
    const more = { ...one, amount: '2' };
    writeFiles(work, {
      'in/a.ndjson': ndjson([one, other, more, two]),
      'in/b.json': page(1, [record(7, 1)]) + page(1, [], 60) + page(0, []),
      'in/c.json': `[${JSON.stringify(record(8, 1))}]\n \n`,
    });
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect([manifest.records, manifest.heights]).toEqual([6, [[5, 8]]]);
  });

  it('a saved list of one operation is refused', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.json': page(2, [one, two]), 'in/b.json': page(2, [other, { ...other, operation: 'mint' }]) });
    const log = new RecordingLog();
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], log });
    expect(log.notices.filter((notice) => notice.includes('operation_type'))).toEqual([
      expect.stringMatching(/block 5 .*have records of one operation only \(receive\)/),
    ]);
  });

  it.each(['in/a', 'in'])('a name that is not UTF-8, below %s', async (folder) => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a/a.ndjson': ndjson([one]), [`${folder}/x\ufffd.ndjson`]: ndjson([two]) });
    renameSync(
      join(work, folder, 'x\ufffd.ndjson'),
      Buffer.concat([Buffer.from(join(work, folder, 'x')), Buffer.of(0xff), Buffer.from('.ndjson')]),
    );
    for (const input of ['in', 'in/**/*.ndjson']) {
      const error = await failedBuild(join(work, 'out'), { inputs: [join(work, input)] });
      expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining('has a name that is not UTF-8')]);
    }
  });

  it('a broken symbolic link', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([one]) });
    symlinkSync('gone.ndjson', join(work, 'in/b.ndjson'));
    expect(await refusalOf(work)).toContain('in/b.ndjson" cannot be opened: ENOENT');
  });
});

describe('damaged input', () => {
  const text = ndjson(Array.from({ length: 300 }, (_, i) => record(5, 300 - i)));
  const frame = (name: string) => readFileSync(new URL(`../../fixtures/zstd/${name}.zst`, import.meta.url));
  const unpacked = async (bytes: Uint8Array): Promise<string> => {
    const [path, target] = [join(temporaryFolder(), 'a.zst'), join(temporaryFolder(), 'plain')];
    writeFileSync(path, bytes);
    return decompress({ path, name: 'a.zst' }, 'zstd', target).then(
      () => readFileSync(target, 'utf8'),
      (error: Error) => error.message,
    );
  };

  it('in any byte of a .zst with a checksum is detected', async () => {
    const whole = frame('checked');
    expect(await unpacked(whole)).toBe(text);
    // A larger window size in the frame's header does not change the data, so such a change need not be detected.
    for (let at = 0; at < whole.length; at += 1 + Math.floor(whole.length / 60)) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      const found = await unpacked(bytes);
      expect([at, found === text || /^a\.zst is not a complete zstd file: /.test(found)]).toEqual([at, true]);
    }
    expect(await refusal({ 'a.ndjson.zst': Buffer.concat([whole.subarray(0, -1), Buffer.of((whole.at(-1) ?? 0) ^ 1)]) })).toMatch(
      /^in\/a\.ndjson\.zst is not a complete zstd file: the content of a frame does not match its checksum/,
    );
  });

  it('is not reported for valid frames: without checksum or length, several, empty or skipped', async () => {
    const skipped = Buffer.from('502a4d180300000078797a', 'hex');
    const frames = [frame('unchecked'), skipped, frame('empty'), frame('level-19'), frame('short')];
    expect(await unpacked(Buffer.concat(frames))).toBe(`a\n${text}x`);
    expect(await unpacked(Buffer.concat([...frames, Buffer.from('rubbish')]))).toMatch(/a frame has an unknown magic number/);
    expect(await unpacked(Buffer.from('28b52ffd04ff010000', 'hex'))).toMatch(/its window of .* MiB is larger than 128 MiB/);
  });

  it('in a member of a .gz does not hide later members; zeros at the end are padding', async () => {
    const [first, second] = [gzipSync(ndjson([one, two])), gzipSync(ndjson([other]))];
    const out = join(temporaryFolder(), 'out');
    writeFiles(join(out, '..'), { 'in/a.ndjson.gz': Buffer.concat([first, second, Buffer.alloc(512)]) });
    expect((await testBuild(out, { inputs: [join(out, '../in')] })).manifest.records).toBe(3);
    expect(await refusal({ 'a.ndjson.gz': Buffer.concat([first, Buffer.of(0), second.subarray(1)]) })).toMatch(
      /^in\/a\.ndjson\.gz is not a complete gzip file: it has data that is not gzip from byte \d+ on/,
    );
  });

  it('in a file with a checksum is detected, unless the checksum was changed too', async () => {
    const bytes = await parquet(3, {}, ', COMPRESSION uncompressed');
    const changed = Buffer.from(bytes.toString('latin1').replace('bc1qexample1', 'bc1qexample9'), 'latin1');
    expect(changed.equals(bytes)).toBe(false);
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.parquet': bytes });
    const sha256 = await sha256Of(join(work, 'in/a.parquet'));
    const named = `0-99-${sha256.slice(0, 16)}.parquet`;
    writeFiles(work, { 'in/a.parquet.sha256': `${sha256}  a.parquet\n` });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(await refusal({ 'a.parquet': changed, 'a.parquet.sha256': `${sha256}  a.parquet\n` })).toContain(
      'in/a.parquet is damaged: its SHA-256 is',
    );
    expect(await refusal({ [named]: changed })).toContain(`in/${named} is damaged: its SHA-256 is`);
    expect(await refusal({ 'a.parquet': bytes, 'a.parquet.sha256': 'x' })).toContain('in/a.parquet.sha256 is not a valid checksum file');
  });
});

/** Parquet file of a runes table in base64. The column `number` has an encoding that this project's DuckDB cannot read. */
const BYTE_STREAM_SPLIT =
  'UEFSMRUAFRoVGiwVAhUAFQYVBhwAAAACAAAAAgEDAAAAMTowFQAVHBUcLBUCFRIVBhUGHAAAAAIAAAACAQEAAAAAAAAAFQAVFhUWLBUCFQAVBhUGHAAAAAIAAAACAQEAAABBFQAVFhUWLBUCFQAVBhUGHAAAAAIAAAACAQEAAABBFQAVHBUcLBUCFQAVBhUGHAAAAAIAAAACAQAAAAAAAAAAFQQZbDUAGAZzY2hlbWEVCgAVDCUCGAJpZCUATBwAAAAVBCUCGAZudW1iZXIAFQwlAhgEbmFtZSUATBwAAAAVDCUCGAtzcGFjZWRfbmFtZSUATBwAAAAVBCUCGAxkaXZpc2liaWxpdHkAFgIZHBlcJgAcFQwZJQYAGRgCaWQVABYCFkAWQCYISRwVABUAFQIAPBYGGQYZJgACAAAAJgAcFQQZJQYSGRgGbnVtYmVyFQAWAhZCFkImSEkcFQAVEhUCADwpBhkmAAIAAAAmABwVDBklBgAZGARuYW1lFQAWAhY8FjwmigFJHBUAFQAVAgA8FgIZBhkmAAIAAAAmABwVDBklBgAZGAtzcGFjZWRfbmFtZRUAFgIWPBY8JsYBSRwVABUAFQIAPBYCGQYZJgACAAAAJgAcFQQZJQYAGRgMZGl2aXNpYmlsaXR5FQAWAhZCFkImggJJHBUAFQAVAgA8KQYZJgACAAAAFrwCFgImCBa8AgAoIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjUuMC4xGVwcAAAcAAAcAAAcAAAcAAAApwEAAFBBUjE=';

describe('errors of limits', () => {
  it.each<[string, () => Promise<Files>, RegExp]>([
    [
      'NaN',
      async () => ({ 'a.ndjson': ndjson([one, other]).replace(/"1.50"(?!.*"1.50")/s, 'NaN') }),
      /in\/a\.ndjson line 2: amount "NaN" is not valid JSON/,
    ],
    [
      'Infinity',
      async () => ({ 'a.ndjson': ndjson([one, two]).replace(/"block_height":5(?!.*"block_height":5)/s, '"block_height":-Infinity') }),
      /in\/a\.ndjson line 2: location\.block_height "-Inf.*" is not valid JSON/,
    ],
    ['NaN where there is an object', async () => ({ 'a.ndjson': '{"rune":NaN,"location":{}}\n' }), /in\/a\.ndjson/],
    [
      'text in Parquet that is not UTF-8',
      async () => ({
        'a.parquet': Buffer.from(
          (await parquet(3, {}, ', COMPRESSION uncompressed')).toString('latin1').replace('bc1qexample1', '\u00ffc1qexample1'),
          'latin1',
        ),
      }),
      /^in\/a\.parquet is broken Parquet: Invalid string encoding found/,
    ],
    [
      'an encoding that is not known',
      async () => ({ 'runes.parquet': Buffer.from(BYTE_STREAM_SPLIT, 'base64') }),
      /^in\/runes\.parquet is broken Parquet: /,
    ],
    [
      'a byte that was changed in Parquet',
      async () => {
        const bytes = await parquet(3000);
        bytes.fill(7, 400, 600);
        return { 'a.parquet': await parquet(1, { tx_id: "'y'" }), 'b.parquet': bytes };
      },
      /^in\/b\.parquet is broken Parquet: /,
    ],
  ])('%s', async (_name, files, message) => {
    expect(await refusal(await files())).toMatch(message);
  });

  it('a line longer than the longest string of Node.js', async () => {
    const path = join(temporaryFolder(), 'a.ndjson');
    writeFileSync(path, `${JSON.stringify(one)}\n`);
    const piece = Buffer.alloc(64 * 1024 * 1024, 'a');
    for (let i = 0; i < 3; i += 1) appendFileSync(path, piece);
    const lengths: number[] = [];
    for await (const line of linesOf(path)) lengths.push(line.length);
    expect(lengths).toEqual([Buffer.byteLength(JSON.stringify(one)), 128 * 1024 * 1024 + 1]);
  });
});

it('text in another encoding, and files that are compressed twice or in another way, are named as such', async () => {
  const [csv, bytes] = ['id,number,name,spaced_name,divisibility\n', await parquet(1)];
  const utf16 = Buffer.from(csv, 'utf16le');
  for (const [content, kind] of [
    [Buffer.from(`\ufeff${csv}`, 'utf16le'), 'UTF-16 text'],
    [Buffer.from(`\ufeff${csv}`, 'utf16le').swap16(), 'UTF-16 text'],
    [utf16, 'UTF-16 text'],
    [Buffer.from(utf16).swap16(), 'UTF-16 text'],
    [Buffer.from('\ufeff[{"rune":{}}]', 'utf16le'), 'UTF-16 text'],
    [gzipSync(utf16), 'UTF-16 text in gzip'],
    [gzipSync(gzipSync(csv)), 'gzip in gzip'],
    [gzipSync(bytes), 'Parquet in gzip'],
    [Buffer.from('PK\x03\x04'), 'zip'],
    [gzipSync('BZh91AY'), 'bzip2 in gzip'],
  ] as const)
    await expect(cellsOf(content, [])).rejects.toMatchObject({ exitCode: 2, message: `in/table is ${kind}, which a build does not read` });
});

describe('the header of a CSV file', () => {
  const NAMES = ['id', 'number', 'name', 'spaced_name', 'divisibility'];
  const ROWS = [
    ['1:0', '0', 'A', 'A', '0'],
    ['2:0', '1', 'B', 'line\nbreak', '0'],
  ];
  const quoted = (cell: string) => `"${cell.replaceAll('"', '""')}"`;
  const plain = (cell: string) => (/[",\r\n]/.test(cell) ? quoted(cell) : cell);
  /** CSV whose columns NAMES are followed by more columns, with the texts `more` in the header. */
  const csv = (more: readonly string[], end: string, quote = plain) =>
    [[...NAMES.map(quote), ...more], ...ROWS.map((row) => [...row, ...more.map(() => 'x')].map(plain))]
      .map((row) => `${row.join(',')}${end}`)
      .join('');

  const odd = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'",\r\n \t\0\\\'{}$;_1aäA•😀\u2028\ufeff'), maxLength: 6 }),
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom('', ' ', 'ID', 'source', 'rowid', 'c0', 'filename', 'file_index', 'x'.repeat(10_240), "'); DROP TABLE x; --"),
  );
  const end = fc.constantFrom('\n', '\r\n', '\r');

  it('may have further columns with any names', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(odd, { maxLength: 3 }),
        end,
        fc.constantFrom(plain, quoted),
        fc.boolean(),
        async (more, end, quote, hasMark) => {
          const names = [...NAMES, ...more].filter((name) => name !== '').map((name) => name.toLowerCase());
          const cells = cellsOf(`${hasMark ? '\ufeff' : ''}${csv(more.map(quote), end, quote)}`, NAMES);
          if (new Set(names).size < names.length) await expect(cells).rejects.toThrow(/^in\/table has two columns with the name/);
          else expect(await cells).toEqual(ROWS);
        },
      ),
      { numRuns: Number(process.env['FC_RUNS'] ?? 40) },
    );
  });

  it('is read by DuckDB as by the recogniser, or refused, whatever its text', async () => {
    const refused = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(odd, { minLength: 1, maxLength: 3 }), end, async (more, end) => {
        const content = csv(more, end);
        const path = join(temporaryFolder(), 'table');
        writeFileSync(path, content);
        try {
          expect(await cellsOf(content, NAMES)).toEqual(ROWS);
        } catch (error) {
          expect(error).toMatchObject({ exitCode: 2, message: expect.stringMatching(/^in\/table/) });
          refused.add(more.join());
          return;
        }
        const found = await recognise({ id: 1, file: { path, name: 'in/table' } }, store, path);
        if (found.lineEnd === undefined) throw new Error(`recognised as ${found.form}`);
        const places = Object.fromEntries(found.columns.map((_, i) => [`c${i}`, text]));
        const scan = readCsv([path], Object.keys(places), found.lineEnd, ['header = false']);
        const read = Object.keys(places).map((place) => `'=' || coalesce(${place}, '') AS ${place}`);
        const [header = {}] = await store.rows(`SELECT ${read} FROM ${scan} LIMIT 1`, places);
        expect(Object.values(header)).toEqual(found.columns.map(({ name }) => `=${name}`));
      }),
      // A quotation mark that is never closed, and text after one.
      {
        numRuns: Number(process.env['FC_RUNS'] ?? 40),
        examples: [
          [['"note'], '\n'],
          [['"no"te'], '\r\n'],
        ],
      },
    );
    expect([...refused]).toEqual(expect.arrayContaining(['"note', '"no"te']));
  });

  it('may have more columns than names, but not more text than a build looks at', async () => {
    expect(await cellsOf(`${csv(['', '""', ''], '\n')}\n\n`, NAMES)).toEqual(ROWS);
    await expect(cellsOf(csv(['x'.repeat(2 ** 18)], '\n'), NAMES)).rejects.toThrow('in/table: its first line has more than 256 KB');
  });

  it('is refused beside another file, too', async () => {
    const header =
      'rune_id,rune_number,rune_name,rune_spaced_name,address,receiver_address,amount,operation,block_hash,block_height,tx_id,tx_index,vout,output,timestamp';
    const row = (height: number) => `1:0,0,A,A,,,1,mint,${hex(`${height}`)},${height},${hex(`tx ${height}`)},0,,,5`;
    const whole = `${header},"a\nnote"\r\n${row(5)},x\r\n`;
    const work = temporaryFolder();
    writeFiles(work, {
      'in/a.csv': whole,
      'in/b.csv': `,${header}\n0,${row(6)}\n`,
      'in/c.csv': `${header}\r${row(7)}\r`,
      'in/d.csv': `${header}\r\n${row(8)}\r\n`,
    });
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect([manifest.records, manifest.heights]).toEqual([4, [[5, 8]]]);
    expect(await refusal({ 'a.csv': whole, 'b.csv': `${header},"note\n${row(6)},x\n` })).toMatch(
      /^in\/b\.csv: column 16 of its first line is not valid CSV: "\\"note/,
    );
  });
});

describe('the columns of every form', () => {
  it('have different names, also if their case differs', async () => {
    for (const name of ['address', 'ADDRESS']) {
      const written = await parquet(1, { [name.replace('A', 'B').replace('a', 'b')]: "'other'" }, ', COMPRESSION uncompressed');
      const twice = Buffer.from(written.toString('latin1').replaceAll(/bddress|BDDRESS/g, name), 'latin1');
      expect(await refusal({ 'a.parquet': twice })).toBe(`in/a.parquet has two columns with the name "${name}" | Remove one of them.`);
    }
    const twice = ndjson([one]).replace('"amount"', '"amount":"7","amount"');
    expect(await refusal({ 'a.ndjson': ndjson([other]) + twice })).toMatch(/^in\/a\.ndjson is broken JSON: .*has duplicate key "amount"/);
    // Keys of JSON that differ in case are different keys.
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([one]).replace('"amount"', '"Amount":"7","amount"') });
    expect((await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] })).manifest.records).toBe(1);
  });

  it('may have any type in Parquet without values, and with values only a type that keeps them', async () => {
    const TYPES: readonly (readonly [type: string, value: string, fields?: 'numbers' | 'all'])[] = [
      ['DOUBLE', '1.5'],
      ['FLOAT', '1.5'],
      ['BOOLEAN', 'true'],
      ['JSON', `'"a"'`],
      ['BLOB', `'a'`],
      ['VARCHAR[]', `['a']`],
      ['STRUCT(a VARCHAR)', `{a: 'a'}`],
      ['MAP(VARCHAR, VARCHAR)', `MAP {'a': 'a'}`],
      ['TIMESTAMP', 'now()'],
      ['DATE', 'today()'],
      ['INTERVAL', `'1 day'`],
      ['UUID', 'uuid()'],
      ['HUGEINT', '5'],
      ['UTINYINT', '5', 'numbers'],
      ['DECIMAL(38, 0)', '5', 'numbers'],
      ['VARCHAR', `'5'`, 'all'],
    ];
    for (const column of ['address', 'amount', 'output', 'vout']) {
      for (const [type, value, fields] of TYPES) {
        const read = async (value: string) =>
          cellsOf(await parquet(2, { [column]: `CASE WHEN range = 1 THEN (${value})::${type} END` }), [column]);
        const what = `${column} ${type}`;
        expect(await read('NULL'), what).toEqual([[undefined], [undefined]]);
        if (fields === 'all' || (fields === 'numbers' && ['amount', 'vout'].includes(column)))
          expect(await read(value), what).toEqual([[undefined], ['5']]);
        else
          await expect(read(value), what).rejects.toMatchObject({
            exitCode: 2,
            message: expect.stringMatching(`^in/table: column ${column} has the type "[^"]+", but its values must be `),
          });
      }
      const missing = await parquet(2, { [column]: `CASE WHEN range = 1 THEN 'NaN'::FLOAT END` });
      expect(await cellsOf(missing, [column])).toEqual([[undefined], [undefined]]);
    }
  });
});

describe('input that could hang a build', () => {
  it('links to their own folder are followed once, and named by their plain path', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/b/a.ndjson': ndjson([one]) });
    for (const name of ['a', 'c']) symlinkSync('.', join(work, 'in', name));
    symlinkSync('../b', join(work, 'in/b/again'));
    expect((await discover(['in'], [], work)).map(({ name }) => name)).toEqual(['in/b/a.ndjson']);
    await expect(discover(['in/**/*.ndjson'], [], work)).rejects.toThrow(/reaches the folder .* by more than 100 paths/);
  });

  it('pipes, sockets and devices are refused immediately', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'pipe'));
    execFileSync('mkfifo', [join(work, 'pipe/a')]);
    mkdirSync(join(work, 'socket'));
    const server = createServer().listen(join(work, 'socket/a'));
    await new Promise((resolve) => server.once('listening', resolve));
    for (const [input, kind] of [
      [join(work, 'pipe'), 'a pipe'],
      [join(work, 'pipe/a'), 'a pipe'],
      [join(work, 'pipe/*'), 'a pipe'],
      [join(work, 'socket'), 'a socket'],
      ['/dev/null', 'a device'],
    ] as const) {
      const error = await failedBuild(join(work, 'out'), { inputs: [input] });
      expect([input, error.exitCode, error.message]).toEqual([input, 2, expect.stringContaining(`is not a file but ${kind}`)]);
    }
    server.close();
  });

  it('the keys of an object with many escapes are found in few steps, wherever the text that is looked at ends', async () => {
    const work = temporaryFolder();
    for (const [i, more] of ['', '-'].entries()) {
      writeFiles(work, { [`${i}.ndjson`]: `{"rune":{"a":"b"},"x":"${more}${'\\"'.repeat(200_000)}` });
      const { exec } = RegExp.prototype;
      let steps = 0;
      const counted = vi.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text) {
        steps += 1;
        if (steps > 1000) throw new Error('too many steps');
        return exec.call(this, text);
      });
      expect(await recognise({ id: i, file: { path: join(work, `${i}.ndjson`), name: 'a' } }, store, work)).toMatchObject({
        form: 'activity',
      });
      counted.mockRestore();
    }
    writeFiles(work, { 'b.ndjson': '{"a\\"b" : {"rune":"location"}, "c":["results"], "results":[],"total" :1}' });
    expect(await recognise({ id: 2, file: { path: join(work, 'b.ndjson'), name: 'b' } }, store, work)).toMatchObject({ form: 'envelope' });
  });
});

describe('a file that changes while it is read', () => {
  /** Returns a log that calls `act` when a build reports the event `event`. */
  const when = (event: string, act: () => void) =>
    new (class extends RecordingLog {
      override info(said: string): void {
        if (said === event) act();
      }
    })();

  it('ends the build if another file replaces it, or if it is truncated', async () => {
    const evil = await parquet(50, { tx_id: "repeat('../', 20) || 'evil'", address: "'evil'" });
    const good = await parquet(50);
    for (const change of [
      (path: string) => {
        writeFileSync(`${path}.new`, evil);
        renameSync(`${path}.new`, path);
      },
      (path: string) => writeFileSync(path, good.subarray(0, good.length / 2)),
    ]) {
      const work = temporaryFolder();
      writeFiles(work, { 'in/a.parquet': good });
      const log = when('loaded', () => change(join(work, 'in/a.parquet')));
      const options = { inputs: [join(work, 'in')], log };
      const error = await failedBuild(join(work, 'out'), options);
      expect([error.exitCode, error.message]).toEqual([
        3,
        expect.stringContaining('a.parquet changed while the build was reading it; the output is not finished'),
      ]);
      expect(existsSync(join(work, 'out/runes/v1/manifest.json'))).toBe(false);
      expect(existsSync(join(work, 'out/runes/v1/transactions'))).toBe(false);
      writeFileSync(join(work, 'in/a.parquet'), good);
      const dry = await failedBuild(join(work, 'other'), { ...options, dryRun: true });
      expect(dry.message).toContain('a.parquet changed while the build was reading it; nothing was written');
    }
  });
});

/**
 * Tests the runes table. Builds read all of its columns in every format, check them, join several files, and keep the table in the state.
 */
import { readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { literal, Store } from '../../src/duckdb/store.ts';
import { VERSION } from '../../src/version.ts';
import {
  CONFORMANCE_INPUTS,
  failedBuild,
  filesBelow,
  RecordingLog,
  rowsOf,
  type TestBuild,
  temporaryFolder,
  testBuild,
  writeFiles,
} from '../support/build.ts';
import { hex } from '../support/records.ts';

const LARGEST = 2n ** 128n - 1n;
const COLUMNS =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';

/** A table as psql writes it. It has the rune 1:0 without a transaction, a rune with all terms, a cenotaph, and a rune without terms. */
const PSQL = `${COLUMNS}
1:0,0,UNCOMMONGOODS,UNCOMMON•GOODS,${hex('5')},840000,0,"",0,0,⧉,1,${LARGEST},840000,1050000,,,f,f,0
5:1,1,A,A,${hex('5')},5,1,${hex('a')},38,${LARGEST},"a""b",${LARGEST},0,0,18446744073709551615,9007199254740993,7,t,f,1700000005
5:2,2,B,B,${hex('5')},5,2,${hex('b')},0,0,"",,,,,,,f,t,1700000005
5:3,3,C,C,${hex('5')},5,3,${hex('c')},2,7,¤,,,,,,,f,f,1700000005
`;
const noTerms = {
  terms_amount: null,
  terms_cap: null,
  terms_height_start: null,
  terms_height_end: null,
  terms_offset_start: null,
  terms_offset_end: null,
};
const etched = { block_hash: hex('5'), block_height: 5, timestamp: 1_700_000_005, is_complete: true };
const ROWS = [
  {
    id: '1:0',
    number: 0,
    name: 'UNCOMMONGOODS',
    spaced_name: 'UNCOMMON•GOODS',
    divisibility: 0,
    block_hash: hex('5'),
    block_height: 840_000,
    tx_index: 0,
    tx_id: '0'.repeat(64),
    premine: '0',
    symbol: '⧉',
    turbo: true,
    cenotaph: false,
    ...noTerms,
    terms_amount: '1',
    terms_cap: String(LARGEST),
    terms_height_start: '840000',
    terms_height_end: '1050000',
    timestamp: 0,
    is_complete: true,
  },
  {
    ...etched,
    id: '5:1',
    number: 1,
    name: 'A',
    spaced_name: 'A',
    divisibility: 38,
    tx_index: 1,
    tx_id: hex('a'),
    premine: String(LARGEST),
    symbol: 'a"b',
    turbo: true,
    cenotaph: false,
    terms_amount: String(LARGEST),
    terms_cap: '0',
    terms_height_start: '0',
    terms_height_end: '18446744073709551615',
    terms_offset_start: '9007199254740993',
    terms_offset_end: '7',
  },
  {
    ...etched,
    id: '5:2',
    number: 2,
    name: 'B',
    spaced_name: 'B',
    divisibility: 0,
    tx_index: 2,
    tx_id: hex('b'),
    premine: '0',
    symbol: '',
    turbo: false,
    cenotaph: true,
    ...noTerms,
  },
  {
    ...etched,
    id: '5:3',
    number: 3,
    name: 'C',
    spaced_name: 'C',
    divisibility: 2,
    tx_index: 3,
    tx_id: hex('c'),
    premine: '7',
    symbol: '¤',
    turbo: false,
    cenotaph: false,
    ...noTerms,
  },
];

const LEDGER = `rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp
5:3,${hex('5')},5,3,0,${hex('c')},,,,,etching,1700000005
5:3,${hex('5')},5,3,1,${hex('c')},0,bc1q,,7,receive,1700000005
`;

let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
});
afterAll(() => store.close());

/** Makes an input folder with a ledger and these files. Returns functions that build it and read the runes in the state. */
function inputOf(files: Readonly<Record<string, string>>) {
  const work = temporaryFolder();
  const [input, out] = [join(work, 'in'), join(work, 'out')];
  const put = (more: Readonly<Record<string, string>>) => writeFiles(input, more);
  put({ 'ledger.csv': LEDGER, ...files });
  const build = (more: Partial<TestBuild> = {}) => testBuild(out, { inputs: [input], ...more });
  const refused = async () => {
    const { message, details } = await failedBuild(out, { inputs: [input] });
    return [message, ...details].map((text) => text.replaceAll(/[^ (]*\/in\//g, ''));
  };
  return { input, out, put, build, refused, kept: () => keptRunes(`${out}.cache`) };
}

/** Returns the runes in the state of the last build. */
async function keptRunes(cache: string): Promise<Record<string, unknown>[]> {
  await store.run(`ATTACH ${literal(join(cache, 'state.duckdb'))} AS kept (READ_ONLY)`);
  try {
    return await rowsOf('SELECT * EXCLUDE (source, ordinal) FROM kept.runes ORDER BY number, id', store);
  } finally {
    await store.run('DETACH kept');
  }
}

/** Removes columns from a CSV table. */
const without = (csv: string, ...columns: string[]): string => {
  const [header = '', ...rows] = csv.trimEnd().split('\n');
  const names = header.split(',');
  const cut = (line: string) =>
    line
      .split(',')
      .filter((_, i) => !columns.includes(names[i] ?? ''))
      .join(',');
  return `${[header, ...rows].map(cut).join('\n')}\n`;
};

describe('all columns are kept', () => {
  const parquet = (select: string) => async (input: string) => {
    writeFiles(input, { '.psql/runes.csv': PSQL });
    const rows = `read_csv(${literal(join(input, '.psql/runes.csv'))}, all_varchar = true, header = true, nullstr = '', allow_quoted_nulls = false)`;
    await store.run(`COPY (SELECT ${select} FROM ${rows}) TO ${literal(join(input, 'runes.parquet'))}`);
  };
  it.each<[string, (input: string) => Promise<void> | void]>([
    ['CSV of psql', (input) => writeFiles(input, { 'runes.csv': PSQL })],
    [
      'CSV of other spellings, where an empty string is no value',
      (input) =>
        writeFiles(input, {
          'runes.csv': PSQL.replace(',"",', ',,')
            .replaceAll(',t,f,', ',True,False,')
            .replaceAll(',f,t,', ',FALSE,true,')
            .replaceAll(hex('a'), `0x${hex('a').toUpperCase()}`),
        }),
    ],
    ['Parquet of text', parquet('*')],
    [
      'Parquet with types of its own',
      parquet(`* REPLACE (number::INTEGER AS number, block_height::BIGINT AS block_height, tx_index::DECIMAL(9, 0) AS tx_index,
        terms_height_end::UBIGINT AS terms_height_end, terms_offset_start::DECIMAL(20, 0) AS terms_offset_start, turbo::BOOLEAN AS turbo,
        cenotaph::BOOLEAN AS cenotaph, timestamp::BIGINT AS timestamp)`),
    ],
  ])('of %s', async (_, write) => {
    const { input, build, kept } = inputOf({});
    await write(input);
    // Keeps runes that were etched outside of the range of blocks, because records in the range may need them.
    await build({ blocks: { from: 5, to: 5 } });
    expect(await kept()).toEqual(ROWS);
  });

  it('of the recorded runes', async () => {
    const csv = readFileSync(CONFORMANCE_INPUTS[1] ?? '', 'utf8');
    const { build, kept } = inputOf({ 'runes.csv': csv, 'ledger.csv': LEDGER.replaceAll('5:3', '840000:1') });
    await build();
    const text = (cell: unknown) => (cell === null ? '' : String(cell));
    const [header = '', ...lines] = csv.trimEnd().split('\n');
    const names = header.split(',');
    const rows = await kept();
    expect(rows).toHaveLength(lines.length);
    for (const line of lines.filter((one) => !one.includes('"') && !one.startsWith('1:0,'))) {
      const cells = line.split(',');
      const row = rows.find(({ id }) => id === cells[0]);
      const shown = names.map((name) => (name === 'turbo' || name === 'cenotaph' ? text(row?.[name])[0] : text(row?.[name])));
      expect([...shown, row?.['is_complete']]).toEqual([...cells, true]);
    }
  });
});

describe('a table of the required columns', () => {
  const FIVE = without(
    PSQL,
    ...COLUMNS.split(',').filter((name) => !['id', 'number', 'name', 'spaced_name', 'divisibility'].includes(name)),
  );

  it('is accepted, and its runes are marked as incomplete', async () => {
    const { build, kept } = inputOf({ 'runes.csv': FIVE });
    await build();
    expect(await kept()).toMatchObject(
      ROWS.map(({ id, number }) => ({
        id,
        number,
        premine: null,
        symbol: null,
        tx_id: null,
        turbo: null,
        terms_cap: null,
        is_complete: false,
      })),
    );
  });

  it('does not contradict a table with more columns: values are merged from all files', async () => {
    const { build, kept } = inputOf({
      'a.csv': FIVE,
      'b.csv': without(PSQL, 'premine', 'terms_cap', 'turbo'),
      'c.csv': without(PSQL, 'symbol', 'terms_amount', 'timestamp'),
    });
    await build();
    expect(await kept()).toEqual(ROWS);
  });

  it('is left when another table is removed, whose values the next build no longer has', async () => {
    // More files without runes are unchanged than files with runes are known.
    const ledgerOf = (height: string) =>
      LEDGER.replaceAll(hex('5'), hex(height))
        .replaceAll(hex('c'), hex(`c ${height}`))
        .replaceAll(',5,3,', `,${height},3,`);
    const ledgers = Object.fromEntries(['6', '7', '8'].map((height) => [`${height}.csv`, ledgerOf(height)]));
    const { input, build, kept } = inputOf({ ...ledgers, 'a.csv': FIVE, 'b.csv': PSQL });
    await build();
    expect(await kept()).toEqual(ROWS);
    rmSync(join(input, 'b.csv'));
    await build();
    expect(await kept()).toMatchObject(ROWS.map(({ id }) => ({ id, premine: null, is_complete: false })));
  });

  it('marks rows without values as incomplete in a file with all columns too', async () => {
    const rows = `${COLUMNS}\n5:3,3,C,C,,,,,2,,,,,,,,,,,\n`;
    const { build, put, kept } = inputOf({ 'runes.csv': rows });
    await build();
    expect(await kept()).toMatchObject([{ id: '5:3', tx_id: null, symbol: null, terms_cap: null, is_complete: false }]);
    put({ 'more.csv': PSQL });
    await build();
    expect(await kept()).toEqual(ROWS);
  });
});

describe('a runes table is refused', () => {
  it('if a value breaks its rule', async () => {
    const cells = {
      block_hash: 'x',
      block_height: '-1',
      tx_index: '01',
      tx_id: 'abc',
      premine: '1.5',
      turbo: 'yes',
      cenotaph: '2',
      terms_amount: 'x',
    };
    const more = {
      terms_cap: '-1',
      terms_height_start: '1e5',
      terms_height_end: ' ',
      terms_offset_start: String(LARGEST + 1n),
      timestamp: '1.0',
    };
    const [id = '', ...others] = COLUMNS.split(',');
    const bad: Readonly<Record<string, string>> = { number: '1', name: 'A', spaced_name: 'A', divisibility: '0', ...cells, ...more };
    const { refused } = inputOf({ 'runes.csv': `${COLUMNS}\n1:1,${others.map((name) => bad[name] ?? '').join(',')}\n` });
    expect(id).toBe('id');
    const whole = 'must be an integer from 0 to 2^128 - 1';
    const small = 'must be an integer from 0 to 9007199254740991 (2^53 - 1)';
    expect(await refused()).toEqual(
      [
        'the input has 13 error(s); nothing was written',
        'block_hash "x" must be 64 hex digits, with or without 0x',
        `block_height "-1" ${small}`,
        `tx_index "01" ${small}`,
        'tx_id "abc" must be 64 hex digits, with or without 0x, or empty',
        `premine "1.5" ${whole}, in smallest units`,
        'turbo "yes" must be true or false, or t or f',
        'cenotaph "2" must be true or false, or t or f',
        `terms_amount "x" ${whole}, in smallest units`,
        `terms_cap "-1" ${whole}`,
        `terms_height_start "1e5" ${whole}`,
        `terms_height_end " " ${whole}`,
        `terms_offset_start "${LARGEST + 1n}" ${whole}`,
        `timestamp "1.0" ${small}`,
      ].map((text, i) => (i === 0 ? text : `runes.csv row 1: ${text}`)),
    );
  });

  it('if two files differ, with the names of both files and of the columns', async () => {
    const changed = PSQL.replace(`38,${LARGEST},"a""b"`, '38,1,"a""b"')
      .replace(',"",,,,,,,f,t,', ',"",,5,,,,,f,t,')
      .replace(`${hex('c')},2,7,¤,,,,,,,f,f`, `${hex('d')},3,7,x,,,,,,,t,t`);
    const { refused } = inputOf({ 'a.csv': without(PSQL, 'premine', 'terms_cap', 'symbol'), 'b.csv': changed, 'c.csv': PSQL });
    expect(await refused()).toEqual([
      'the runes tables have 3 error(s)',
      'b.csv and c.csv: rune 5:1 has two rows with different values of premine',
      'b.csv and c.csv: rune 5:2 has two rows with different values of terms_cap',
      expect.stringMatching(/^(?:a\.csv and b|b\.csv and c)\.csv: rune 5:3 has .* values of divisibility, tx_id, symbol, turbo, cenotaph$/),
    ]);
  });
});

it('a state of an earlier format, which lacks columns, is not used', async () => {
  const { out, build, kept } = inputOf({ 'runes.csv': PSQL });
  await build();
  await store.run(`ATTACH ${literal(join(`${out}.cache`, 'state.duckdb'))} AS old; UPDATE old.basis SET program = '${VERSION} 5';
    ALTER TABLE old.runes DROP COLUMN premine; DETACH old`);
  const log = new RecordingLog();
  expect(await build({ log })).toMatchObject({ wasFull: true });
  expect(log.infos.find(({ event }) => event === 'loaded')?.figures).toMatchObject({
    full: `the cache was written by version ${VERSION} 5`,
  });
  expect(await kept()).toEqual(ROWS);
  expect(await build()).toMatchObject({ wasFull: false });
});

it('a value that occurs in no page changes the state but no page', async () => {
  const { out, put, build, kept } = inputOf({ 'runes.csv': PSQL });
  await build();
  const pages = () => filesBelow(out).filter((path) => /\/(?:blocks|transactions|stats|digests)\//.test(path));
  const before = pages().map((path) => [path, statSync(join(out, path)).mtimeMs, statSync(join(out, path)).ino]);
  expect(before.length).toBeGreaterThan(4);
  put({ 'runes.csv': PSQL.replace(',2,7,¤,', ',2,8,$,') });
  const log = new RecordingLog();
  expect(await build({ log })).toMatchObject({ wasFull: false, blocks: { written: 0, gone: 0 } });
  expect(log.infos.find(({ event }) => event === 'loaded')?.figures).toMatchObject({ files_read: 1 });
  expect(pages().map((path) => [path, statSync(join(out, path)).mtimeMs, statSync(join(out, path)).ino])).toEqual(before);
  expect(await kept()).toEqual(ROWS.map((row) => (row.id === '5:3' ? { ...row, premine: '8', symbol: '$' } : row)));
});

/**
 * Tests every kind of bad input. Each build fails with the exact message and exit code 2, and leaves the output folder and the cache
 * unchanged.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { EXIT } from '../../../src/errors.ts';
import { failedBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { type Activity, hex, ndjson, record } from '../../support/records.ts';

type Files = Readonly<Record<string, string | Uint8Array>>;

/** Folder with a build of valid input. All builds of bad input write to this output. */
const good = temporaryFolder();
const goodState = () => ({ out: tree(join(good, 'out')), cache: tree(join(good, 'out.cache')) });
let before: ReturnType<typeof goodState>;
beforeAll(async () => {
  writeFiles(good, { 'good.ndjson': ndjson([record(1, 1)]) });
  await testBuild(join(good, 'out'), { inputs: [join(good, 'good.ndjson')] });
  before = goodState();
});

/** Builds bad input into the output of valid input, which may not change. Returns the messages, without the path of the test's folder. */
async function refusal(files: Files, input = 'in'): Promise<{ message: string; details: readonly string[] }> {
  const work = temporaryFolder();
  writeFiles(work, Object.fromEntries(Object.entries(files).map(([name, text]) => [`in/${name}`, text])));
  const error = await failedBuild(join(good, 'out'), { inputs: [join(work, input)] });
  expect(error.exitCode).toBe(EXIT.badInput);
  expect(goodState()).toEqual(before);
  const folder = new RegExp(`[^ (]*${basename(work)}/in`, 'g');
  const clean = (text: string) => text.replaceAll(folder, 'in');
  return { message: clean(error.message), details: error.details.map(clean) };
}

/** Returns the messages of a refused build as one text. */
async function said(files: Files, input?: string): Promise<string> {
  const { message, details } = await refusal(files, input);
  return [message, ...details].join(' | ');
}

/** Cases of bad input, with what the messages have. */
type Cases = readonly (readonly [name: string, files: Files, message: string | RegExp])[];
const check = async (_: string, files: Files, message: string | RegExp) =>
  typeof message === 'string' ? expect(await said(files)).toContain(message) : expect(await said(files)).toMatch(message);

it('an empty folder stays empty', async () => {
  const work = temporaryFolder();
  writeFiles(work, { 'in/a.ndjson': ndjson([record(5, 2), bad({ amount: 5 })]) });
  await failedBuild(join(work, 'fresh'), { inputs: [join(work, 'in')] });
  expect(readdirSync(work)).toEqual(['in']);
});

const location = (more: object): Partial<Activity> => ({ location: more as Activity['location'] });
const bad = (more: object): object => ({ ...record(5, 1), ...more });
const badLocation = (more: object): object => record(5, 1, location(more));

const INTEGER = 'must be an integer from 0 to 9007199254740991 (2^53 - 1)';
const HASH = 'must be 64 hex digits, with or without 0x';
const AMOUNT = 'must be a decimal string of at most 2^128 - 1 smallest units, with at most 38 decimals';

describe('a field that breaks its rule', () => {
  const rune = { id: '1:0', number: 0, name: 'A', spaced_name: 'A' };
  const CASES: readonly (readonly [name: string, record: object, finding: string])[] = [
    ['amount as a number', bad({ amount: 5 }), `amount 5 ${AMOUNT}`],
    ['amount that is no decimal', bad({ amount: '1e5' }), `amount "1e5" ${AMOUNT}`],
    ['negative amount', bad({ amount: '-1' }), `amount "-1" ${AMOUNT}`],
    [
      'amount over 2^128 - 1',
      bad({ amount: '340282366920938463463374607431768211456' }),
      `amount "340282366920938463463374607431768211456" ${AMOUNT}`,
    ],
    ['39 decimals', bad({ amount: `0.${'1'.repeat(39)}` }), `amount "0.${'1'.repeat(39)}" ${AMOUNT}`],
    ['operation', bad({ operation: 'Mint' }), 'operation "Mint" must be one of etching, mint, burn, send, receive'],
    ['no operation', bad({ operation: undefined }), 'operation is missing'],
    ['address as a number', bad({ address: 7 }), 'address 7 must be a string'],
    ['no rune', bad({ rune: undefined }), 'rune.id is missing'],
    ['rune without a name', bad({ rune: { ...rune, name: null } }), 'rune.name is missing'],
    ['rune number as text', bad({ rune: { ...rune, number: '0' } }), `rune.number "0" ${INTEGER}`],
    ['height as text', badLocation({ block_height: '5' }), `location.block_height "5" ${INTEGER}`],
    ['height with a fraction', badLocation({ block_height: 5.5 }), `location.block_height 5.5 ${INTEGER}`],
    ['negative tx_index', badLocation({ tx_index: -1 }), `location.tx_index -1 ${INTEGER}`],
    ['no timestamp', badLocation({ timestamp: undefined }), 'location.timestamp is missing'],
    ['boolean vout', badLocation({ vout: true }), `location.vout true ${INTEGER}`],
    ['short hash', badLocation({ block_hash: '0xabc' }), `location.block_hash "0xabc" ${HASH}`],
    ['long value', badLocation({ tx_id: 'z'.repeat(5000) }), `location.tx_id "${'z'.repeat(59)}… (5002 characters) ${HASH}`],
    [
      'outpoint against vout',
      badLocation({ vout: 1, output: `${hex('x')}:2` }),
      `location.output "${hex('x').slice(0, 59)}… (68 characters) names output 2, but vout is 1`,
    ],
    [
      'output that is no hex',
      badLocation({ output: 'bc1q' }),
      'location.output "bc1q" must be hex, with or without 0x, or an outpoint txid:vout',
    ],
  ];
  const HALF = CASES.length / 2;
  // Builds the cases in two halves, because a report shows only 20 findings, and a record may have several.
  it.each([
    ['the first ten', CASES.slice(0, HALF)],
    ['the others', CASES.slice(HALF)],
  ])('is found among valid records: %s', async (_, cases) => {
    const { message, details } = await refusal({ 'a.ndjson': ndjson(cases.flatMap(([, wrong]) => [record(5, 2), wrong])) });
    const findings = cases.map(([name, , finding], i) => [name, `in/a.ndjson line ${2 * i + 2}: ${finding}`]);
    const firsts = cases.map(([name], i) => [name, details.find((line) => line.startsWith(`in/a.ndjson line ${2 * i + 2}: `))]);
    expect(firsts).toEqual(findings);
    expect(details.filter((line) => !/ line \d*[02468]: /.test(line))).toEqual([]);
    expect(message).toBe(`the input has ${details.length} error(s); nothing was written`);
  });

  it('a number above 2^53', async () => {
    const text = ndjson([record(5, 1)]).replace('"timestamp":1700000005', '"timestamp":9007199254740993');
    expect((await refusal({ 'a.ndjson': text })).details).toEqual([`in/a.ndjson line 1: location.timestamp 9007199254740992 ${INTEGER}`]);
  });

  it('is named by its line, also after blank lines, by its record in an array, and by its position in a saved response', async () => {
    const wrong = { ...record(5, 1), operation: 'x' };
    const rule = 'operation "x" must be one of etching, mint, burn, send, receive';
    expect((await refusal({ 'a.ndjson': `\n\n${ndjson([record(5, 2)])}\n${ndjson([wrong])}` })).details).toEqual([
      `in/a.ndjson line 5: ${rule}`,
    ]);
    expect((await refusal({ 'a.json': JSON.stringify([record(5, 2), wrong], null, 2) })).details).toEqual([`in/a.json record 2: ${rule}`]);
    const page = { limit: 20, offset: 0, total: 2, results: [record(5, 2), wrong] };
    expect((await refusal({ 'a.json': JSON.stringify(page) })).details).toEqual([`in/a.json line 1 results[1]: ${rule}`]);
    expect((await refusal({ 'a.ndjson.gz': gzipSync(ndjson([record(5, 2), wrong])) })).details).toEqual([`in/a.ndjson.gz line 2: ${rule}`]);
  });

  it('is shown for the first 20 of many faults, in the order of the files, with the number of the others', async () => {
    const many = (height: number, n: number) => ndjson(Array.from({ length: n }, (_, i) => ({ ...record(height, i), operation: `x${i}` })));
    const { message, details } = await refusal({ 'b.ndjson': many(2, 1000), 'a.ndjson': many(1, 3) });
    expect(message).toBe('the input has 1003 error(s); nothing was written');
    expect(details).toHaveLength(21);
    expect(details[2]).toContain('in/a.ndjson line 3: operation "x2"');
    expect(details[3]).toContain('in/b.ndjson line 1: operation "x0"');
    expect(details[20]).toBe('… and 983 more');
  });

  it('in a flat table', async () => {
    const columns =
      'rune_id,rune_number,rune_name,rune_spaced_name,address,receiver_address,amount,operation,block_hash,block_height,tx_id,tx_index,vout,output,timestamp';
    const row = (amount: string, height: string) => `1:0,0,A,A,,,${amount},mint,${hex('b')},${height},${hex('t')},0,,,5`;
    expect((await refusal({ 'a.csv': `${columns}\n${row('1', '7')}\n${row('x', '007')}\n` })).details).toEqual([
      `in/a.csv row 2: amount "x" ${AMOUNT}`,
      `in/a.csv row 2: block_height "007" ${INTEGER}`,
    ]);
  });
});

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES = 'id,number,name,spaced_name,divisibility';
const ledgerRow = (more: Partial<Record<string, string>> = {}) => {
  const cells: Record<string, string> = {
    rune_id: '1:0',
    block_hash: hex('b'),
    block_height: '5',
    tx_index: '0',
    event_index: '0',
    tx_id: hex('t'),
    amount: '7',
    operation: 'mint',
    timestamp: '5',
  };
  return `${LEDGER.split(',')
    .map((name) => more[name] ?? cells[name] ?? '')
    .join(',')}\n`;
};

const WITH_RUNES = { 'runes.csv': `${RUNES}\n1:0,0,A,A,0\n` };
const ledger = (rows: string) => ({ 'ledger.csv': `${LEDGER}\n${rows}` });
it.each<Cases[number]>([
  ['without its runes table', ledger(ledgerRow()), 'in/ledger.csv is a ledger export, but the input has no runes table'],
  [
    'with a runes table of another database',
    { ...ledger(ledgerRow({ rune_id: '9:9' })), ...WITH_RUNES },
    'the runes table has none of the runes of in/ledger.csv, such as "9:9"',
  ],
  [
    'with amounts that are not integers of smallest units',
    { ...ledger(ledgerRow({ amount: '1.5' })), ...WITH_RUNES },
    'in/ledger.csv row 1: amount "1.5" must be an integer from 0 to 2^128 - 1, in smallest units',
  ],
  [
    'with runes tables that contradict each other',
    { ...ledger(ledgerRow()), 'runes1.csv': WITH_RUNES['runes.csv'], 'runes2.csv': `${RUNES}\n1:0,0,A,A,2\n` },
    'the runes tables have 1 error(s) | in/runes1.csv and in/runes2.csv: rune 1:0 has two rows with different values of divisibility',
  ],
  [
    'with invalid cells in the runes table',
    { ...ledger(ledgerRow()), 'runes.csv': `${RUNES}\n1:0,5,A,A,0\n2:0,1x,B,B,0\n3:0,7,C,C,y\n` },
    `in/runes.csv row 2: number "1x" ${INTEGER} | in/runes.csv row 3: divisibility "y" ${INTEGER}`,
  ],
  [
    'with a divisibility above 38',
    { ...ledger(ledgerRow()), 'runes.csv': `${RUNES}\n1:0,0,A,A,39\n` },
    'in/runes.csv: divisibility of rune "1:0" is 39, must be at most 38',
  ],
  [
    'with two records at one event_index',
    { ...ledger(ledgerRow().repeat(2)), ...WITH_RUNES },
    `tx_id ${hex('t')} has 2 records with event_index 0 (in/ledger.csv)`,
  ],
  [
    'with a truncated row',
    { ...ledger(`${ledgerRow()}1:0,${hex('b')}`), ...WITH_RUNES },
    /^in\/ledger\.csv is broken CSV: CSV Error on Line: 3/,
  ],
  [
    'with a quote that never ends is reported in one line, whatever follows',
    { ...ledger(`${ledgerRow()}"${ledgerRow().repeat(2000)}`), ...WITH_RUNES },
    /^in\/ledger\.csv is broken CSV: CSV Error on Line: [0-9]+.{0,450}$/,
  ],
  [
    'without one of its columns',
    { 'ledger.csv': `${LEDGER.replace(',timestamp', '')}\n` },
    /^in.ledger.csv looks like a ledger export but lacks the column\(s\) timestamp .*a ledger export with the columns rune_id, block_hash/,
  ],
  ...['rune_id,amount,Amount', 'rune_id,"amount",amount', 'a,a,b'].map(
    (header) =>
      [
        `with columns of one name: ${header}`,
        { 'ledger.csv': `${header}\n1,2,3\n` },
        /^in.ledger.csv has two columns with the name/,
      ] as const,
  ),
])('a ledger export %s', check);

describe('records that contradict each other', () => {
  const hash = (text: string) => location({ block_hash: hex(text) });
  const tx = location({ tx_id: hex('t') });
  const [first, second] = [record(5, 1), record(5, 1, { amount: '2' })];
  // Hashes and ids are named in their order.
  const ordered = (a: string, b: string) => (hex(a) < hex(b) ? [hex(a), hex(b)] : [hex(b), hex(a)]);
  const [low, high] = ordered('a', 'b');
  const files = low === hex('a') ? ['a', 'b'] : ['b', 'a'];
  it.each<Cases[number]>([
    [
      'a height with two hashes',
      { 'a.ndjson': ndjson([record(5, 1, hash('a'))]), 'b.ndjson': ndjson([record(5, 2, hash('b'))]) },
      `the input contradicts itself about 1 block(s) | block height 5 has two hashes: ${low} (in/${files[0]}.ndjson) and ${high} (in/${files[1]}.ndjson)`,
    ],
    [
      'a hash at two heights',
      { 'a.ndjson': ndjson([record(5, 1, hash('a')), record(6, 1, hash('a'))]) },
      `block hash ${hex('a')} is at two heights: 5 (in/a.ndjson) and 6 (in/a.ndjson)`,
    ],
    [
      'a block that differs between two files',
      { 'a.ndjson': ndjson([record(5, 1)]), 'b.ndjson': ndjson([second, record(5, 0)]) },
      'block 5 differs between in/a.ndjson (1 records) and in/b.ndjson (2 records); one file must have all records of a block',
    ],
    [
      'a block whose records have another order in a second file',
      { 'a.ndjson': ndjson([first, second]), 'b.ndjson': ndjson([second, first]) },
      'block 5 differs between in/a.ndjson (2 records) and in/b.ndjson (2 records); one file must have all records of a block',
    ],
    [
      'a transaction in two blocks',
      { 'a.ndjson': ndjson([record(5, 1, tx)]), 'b.ndjson': ndjson([record(6, 1, tx)]) },
      `the input contradicts itself about 1 transaction(s) | tx_id ${hex('t')} is in two blocks: 5 and 6 (in/a.ndjson, in/b.ndjson)`,
    ],
    [
      'a transaction at two positions of its block',
      { 'a.ndjson': ndjson([record(5, 1, tx), record(5, 2, tx)]) },
      `tx_id ${hex('t')} has two values of tx_index in block 5: 1 and 2 (in/a.ndjson)`,
    ],
    [
      'two transactions at one position of a block',
      { 'a.ndjson': ndjson([record(5, 1, tx), record(5, 1, location({ tx_id: hex('u') }))]) },
      `block 5 has two transactions at tx_index 1: ${ordered('t', 'u').join(' and ')} (in/a.ndjson)`,
    ],
  ])('%s', check);
  it.each([
    ['a separator', { address: 'x\u001fy', receiver_address: 'z' }, { address: 'x', receiver_address: 'y\u001fz' }],
    ['no value', {}, { receiver_address: '\u001e' }],
  ])('a block that differs between two files only in text that looks like %s', async (_, a, b) => {
    const { details } = await refusal({ 'a.ndjson': ndjson([record(5, 1, a)]), 'b.ndjson': ndjson([record(5, 1, b)]) });
    expect(details).toEqual([expect.stringMatching(/^block 5 differs between/)]);
    const page = (more: object) => JSON.stringify({ limit: 60, offset: 0, total: 1, results: [record(5, 1, more)] });
    const saved = await refusal({ 'a.json': page(a), 'b.json': page(b) });
    expect(saved.details).toEqual([
      expect.stringMatching(/^in.a.json: two saved responses of .* have different records at the same offset$/),
    ]);
  });
});

describe('saved responses', () => {
  const page = (offset: number, total: number, results: unknown[]) => JSON.stringify({ limit: 60, offset, total, results });
  const all = Array.from({ length: 5 }, (_, i) => record(5, 9 - i));
  it.each<Cases[number]>([
    [
      'that are not a complete list',
      { '0.json': page(0, 5, all.slice(0, 2)), '3.json': page(3, 5, all.slice(3)) },
      '1 list(s) of saved responses are incomplete | in/0.json: the saved responses of block 5 have 4 of its 5 records; save every page (offset 0 to 4)',
    ],
    [
      'with different records at one offset',
      { 'a.json': page(0, 5, all), 'b.json': page(1, 5, [record(5, 8, { amount: '9' }), all[2]]) },
      'in/a.json: two saved responses of block 5 have different records at the same offset',
    ],
    [
      'with two totals, as of a filtered list',
      { 'a.json': page(0, 5, all), 'b.json': page(0, 2, all.slice(0, 2)) },
      'block 5: saved responses give the totals 2 and 5; is one of them filtered by operation_type?',
    ],
    [
      'without results',
      { 'a.ndjson': `${page(0, 1, [record(5, 1)])}\n{"limit":60,"offset":0,"total":5}\n` },
      'in/a.ndjson response 2: results is missing',
    ],
  ])('%s', check);
});

describe('a file that', () => {
  it('does not exist', async () => {
    expect((await refusal({}, 'missing')).message).toMatch(/^input not found: .*missing$/);
  });
  it('matches no pattern', async () => {
    expect((await refusal({}, '*.parquet')).message).toMatch(/^the input pattern .* matches no file$/);
  });
  const [line, line2 = ''] = ndjson([record(5, 2), record(5, 1)]).split('\n');
  const text = ndjson([record(5, 2)]);
  const responses = `{"limit":20,"offset":0,"total":1e0,"results":[${JSON.stringify(record(5, 1))}]}`;
  it.each<Cases[number]>([
    ['has a backslash in its name', { 'a\\b.ndjson': text }, 'Backslashes in file names are not supported; rename the file.'],
    ['is in an empty folder', { 'README.md': 'x' }, /^the input folder .* has no data files/],
    ['is empty', { 'a.ndjson': '' }, 'in/a.ndjson is empty (0 bytes)'],
    ['is empty after unpacking', { 'a.ndjson.gz': gzipSync('') }, 'in/a.ndjson.gz is empty after unpacking (0 bytes)'],
    ['is an array without records', { 'a.json': ' [ ]\n' }, 'the input has no activity records'],
    ['is a ledger without records', { ...ledger(''), ...WITH_RUNES }, 'the input has no activity records'],
    ['is a runes table alone', WITH_RUNES, 'the input has no activity records'],
    [
      'has an unrecognised format',
      { 'a.json': '{"hello":1,"world":{"rune":2}}' },
      'in/a.json has an unrecognised format: its first JSON object has the keys hello, world | Known formats: JSON with the keys rune and location (activity records), or results and total (saved responses);',
    ],
    ['has unknown columns', { 'a.bin': 'a,b\n1,2\n' }, 'in/a.bin has an unrecognised format: its first line has the columns a, b'],
    [
      'ends within a line',
      { 'a.ndjson': `${line}\n${line2.slice(0, 50)}\n` },
      /^in\/a\.ndjson is broken JSON: line 2: Unterminated string in JSON at position 50/,
    ],
    ['ends within an array', { 'a.json': `[${line},${line2}` }, /^in\/a\.json is broken JSON: /],
    ['has keys of other types', { 'a.ndjson': `${line}\n{"rune":5,"location":[]}\n` }, /^in\/a\.ndjson is broken JSON: .*line 2/],
    [
      'is broken among valid files',
      { 'a.ndjson': text, 'b.ndjson': `${text.slice(0, 80)}\n`, 'c.ndjson': text },
      /^in\/b\.ndjson is broken JSON/,
    ],
    [
      'is not UTF-8',
      { 'a.ndjson': Buffer.concat([Buffer.from(text), Buffer.from(text.replace('bc1qexample', 'bc1q\u00e9'), 'latin1')]) },
      /^in\/a\.ndjson is broken JSON: line 2: not UTF-8/,
    ],
    [
      'has half a character',
      { 'a.ndjson': `${text}${text.replace('bc1qexample', '\\ud800')}` },
      'in/a.ndjson is broken JSON: line 2: an unpaired surrogate (\\ud800 to \\udfff)',
    ],
    [
      'has integers written as fractions',
      { 'a.ndjson': ndjson([record(5, 1)]).replace('"tx_index":1', '"tx_index":1.0') },
      'in/a.ndjson line 1: location.tx_index 1 must be written as a plain integer, without fraction or exponent',
    ],
    [
      'has a total with an exponent',
      { 'a.json': responses },
      'in/a.json line 1 results[0]: total 1 must be written as a plain integer, without fraction or exponent',
    ],
    ['has a total that is text', { 'a.json': responses.replace('1e0', '"1"') }, `in/a.json line 1 results[0]: total "1" ${INTEGER}`],
  ])('%s', check);
  it('is a broken archive', async () => {
    const packed = gzipSync(ndjson(Array.from({ length: 500 }, (_, i) => record(5, i))));
    for (const [name, bytes] of Object.entries({
      half: packed.subarray(0, packed.length / 2),
      trailer: packed.subarray(0, -8),
      crc: Buffer.concat([packed.subarray(0, -8), Buffer.alloc(8)]),
    })) {
      expect((await refusal({ [`${name}.ndjson.gz`]: bytes })).message).toMatch(
        new RegExp(`^in/${name}\\.ndjson\\.gz is not a complete gzip file: `),
      );
    }
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: temporaryFolder() });
    const path = join(temporaryFolder(), 'a.csv.zst');
    await store.run(`COPY (SELECT range AS i, md5(range::VARCHAR) AS t FROM range(1000)) TO '${path}'`);
    store.close();
    expect((await refusal({ 'a.csv.zst': readFileSync(path).subarray(0, -4) })).message).toBe(
      'in/a.csv.zst is not a complete zstd file: unexpected EOF',
    );
  });
  it('is a broken Parquet file, or has inexact numbers', async () => {
    const folder = temporaryFolder();
    const store = await Store.open({ memoryLimit: '500MB', threads: 1, scratch: folder });
    const columns = RUNES.split(',').map((name) => `'1' AS ${name}`);
    await store.run(`COPY (SELECT ${columns.join(', ')}) TO '${folder}/whole.parquet'`);
    await store.run(`COPY (SELECT ${columns.join(', ').replace("'1' AS number", '1.0::DOUBLE AS number')}) TO '${folder}/double.parquet'`);
    await store.run(`COPY (SELECT ${columns.join(', ').replace("'1' AS name", "['a'] AS name")}) TO '${folder}/list.parquet'`);
    await store.run(`COPY (SELECT ${columns.join(', ')}, 5 AS file_row_number) TO '${folder}/number.parquet'`);
    store.close();
    const made = (name: string) => readFileSync(join(folder, `${name}.parquet`));
    for (const [bytes, message] of [
      [made('whole').subarray(0, -4), ' is broken Parquet: it does not begin and end with PAR1'],
      [made('double'), ': column number has the type "DOUBLE", but its values must be an integer, DECIMAL or text (VARCHAR)'],
      [made('list'), ': column name has the type "nested", but its values must be text (VARCHAR)'],
      [made('number'), ' has a column file_row_number, whose name is reserved'],
    ] as const)
      expect((await refusal({ 'a.parquet': bytes })).message).toBe(`in/a.parquet${message}`);
    const cut = await refusal({ 'a.parquet': made('whole').subarray(0, -4) });
    expect(cut.details).toEqual(['The file is damaged or cut off; fetch or write it again.']);
  });
});

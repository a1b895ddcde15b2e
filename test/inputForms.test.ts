/** One data set in every input form makes one tree, byte for byte, in both dialects. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DIALECTS, type Dialect } from '../src/pages/lists.ts';
import { Store } from '../src/store/duckdb.ts';
import {
  CONFORMANCE_INPUTS,
  failedBuild,
  filesBelow,
  RecordingLog,
  temporaryFolder,
  testBuild,
  tree,
  writeFiles,
} from './support/build.ts';
import { type Activity, hex, ndjson, record } from './support/records.ts';

const folder = temporaryFolder();
const reference = new Map<Dialect, Record<string, string>>();

interface Envelope {
  offset: number;
  total: number;
  results: Activity[];
}

/** The largest pages of every block, as saved responses, and the records in them, in served order. */
function saved(dialect: Dialect): { responses: string[]; records: Activity[] } {
  const blocks = join(folder, dialect, 'runes/v1/blocks');
  const pages: { text: string; envelope: Envelope }[] = [];
  for (const path of filesBelow(blocks)) {
    const isShort = /^\d+\.json$/.test(path);
    if (!isShort && !/^\d+\/60\/\d+\.json$/.test(path)) continue;
    const text = readFileSync(join(blocks, path), 'utf8');
    const envelope = JSON.parse(text) as Envelope;
    if (!isShort || envelope.total <= 20) pages.push({ text, envelope });
  }
  const height = (envelope: Envelope) => envelope.results[0]?.location.block_height ?? 0;
  pages.sort((a, b) => height(a.envelope) - height(b.envelope) || a.envelope.offset - b.envelope.offset);
  return { responses: pages.map((p) => p.text), records: pages.flatMap((p) => p.envelope.results) };
}

let store: Store;

/** The recorded data without its one block of 5,000 records, which would be most of the work and shows nothing more. */
const INPUTS = [join(folder, 'ledger.csv'), CONFORMANCE_INPUTS[1] ?? ''];

beforeAll(async () => {
  const rows = readFileSync(CONFORMANCE_INPUTS[0] ?? '', 'utf8').split('\n');
  writeFileSync(INPUTS[0] ?? '', rows.filter((row) => !row.includes(',840001,')).join('\n'));
  for (const dialect of DIALECTS) {
    await testBuild(join(folder, dialect), { inputs: INPUTS, dialect });
    reference.set(dialect, tree(join(folder, dialect)));
  }
  store = await Store.open({ memoryLimit: '1GB', threads: 2, scratch: join(folder, 'scratch') });
  const [ledger, runes] = INPUTS;
  await store.run(`CREATE TABLE ledger AS FROM read_csv('${ledger}', all_varchar = true)`);
  await store.run(`CREATE TABLE runes AS FROM read_csv('${runes}', all_varchar = true)`);
  const digits = "lpad(amount, greatest(length(amount), divisibility::INTEGER + 1)::INTEGER, '0')";
  await store.run(`CREATE TABLE flat AS
    SELECT rune_id, number::INTEGER AS rune_number, name AS rune_name, spaced_name AS rune_spaced_name, address, receiver_address,
      CASE divisibility WHEN '0' THEN amount
        ELSE regexp_replace(${digits}, '(.{' || divisibility || '})$', '.\\1') END AS amount,
      operation, l.block_hash, l.block_height::BIGINT AS block_height, l.tx_id, l.tx_index::USMALLINT AS tx_index,
      output::BIGINT AS vout, CASE WHEN output IS NOT NULL THEN l.tx_id END AS output, l.timestamp::BIGINT AS timestamp,
      event_index::INTEGER AS event_index
    FROM ledger l JOIN runes r ON r.id = l.rune_id`);
});

afterAll(() => {
  store.close();
});

type Files = Record<string, string | Uint8Array> | ((into: string) => Promise<void>);

const copy =
  (sql: string, name: string, options = '') =>
  (into: string) =>
    store.run(`COPY (${sql}) TO '${join(into, name)}' ${options}`);

const FORMS: Readonly<Record<string, () => Files>> = {
  'NDJSON in the contract dialect': () => ({ 'a.ndjson': ndjson(saved('contract').records) }),
  'NDJSON in the hiro dialect': () => ({ 'a.jsonl': ndjson(saved('hiro').records) }),
  'NDJSON with blank lines, Windows line ends and a name that says nothing': () => ({
    data: `\r\n${ndjson(saved('hiro').records).replaceAll('\n', '\r\n\r\n')}`,
  }),
  'a JSON array': () => ({ 'a.json': JSON.stringify(saved('contract').records) }),
  'a JSON array with a byte order mark': () => ({ 'a.json': `\ufeff${JSON.stringify(saved('contract').records)}` }),
  'a pretty-printed JSON array': () => ({ 'a.json': JSON.stringify(saved('hiro').records, null, 2) }),
  gzip: () => ({ 'a.ndjson.gz': gzipSync(ndjson(saved('contract').records)) }),
  zstd: () => async (into: string) => {
    writeFileSync(join(folder, 'plain.ndjson'), ndjson(saved('contract').records));
    await store.run(`COPY (FROM read_csv('${join(folder, 'plain.ndjson')}', columns = {'line': 'VARCHAR'}, delim = '\x07', quote = '', escape = '', header = false, auto_detect = false))
      TO '${join(into, 'a.ndjson.zst')}' (FORMAT csv, header false, delim '\x07', quote '', escape '', compression zstd)`);
  },
  'saved responses, one a file': () => Object.fromEntries(saved('hiro').responses.map((text, i) => [`${i}.json`, text])),
  'saved responses, pretty-printed': () =>
    Object.fromEntries(saved('contract').responses.map((text, i) => [`page-${i}.json`, JSON.stringify(JSON.parse(text), null, 1)])),
  'saved responses, one a line, in no order': () => ({ 'a.ndjson': saved('contract').responses.reverse().join('\n') }),
  'saved responses in an array': () => ({ 'a.json': `[${saved('hiro').responses.join(',')}]` }),
  'a ledger as Parquet, numbers as text': () => async (into: string) => {
    await copy('FROM ledger', 'ledger.parquet')(into);
    await copy('FROM runes', 'runes.parquet')(into);
  },
  'a ledger as Parquet with types of its own, in several files of whole blocks': () => async (into: string) => {
    const typed = `SELECT * REPLACE (block_height::DECIMAL(18, 0) AS block_height, tx_index::BIGINT AS tx_index, event_index::UINTEGER AS event_index,
      operation::ENUM('etching', 'mint', 'burn', 'send', 'receive') AS operation, timestamp::BIGINT AS timestamp) FROM ledger`;
    await copy(`${typed} WHERE block_height::INTEGER % 2 = 0`, 'ledger-even.parquet')(into);
    await copy(`${typed} WHERE block_height::INTEGER % 2 = 1`, 'ledger-odd.parquet')(into);
    await copy('SELECT * REPLACE (number::INTEGER AS number, divisibility::SMALLINT AS divisibility) FROM runes', 'r.parquet')(into);
  },
  'a ledger as CSV, gzipped, with its runes in two files': () => ({
    'export.csv.gz': gzipSync(readFileSync(INPUTS[0] ?? '')),
    ...Object.fromEntries(
      [0, 1].map((part) => {
        const [header, ...rows] = readFileSync(INPUTS[1] ?? '', 'utf8')
          .trimEnd()
          .split('\n');
        return [`runes-${part}.csv`, `${[header, ...rows.filter((_, i) => i % 2 === part || i < 5)].join('\n')}\n`];
      }),
    ),
  }),
  'a flat Parquet table': () => copy('FROM flat', 'a.parquet'),
  'a flat Parquet table in served order without event_index': () =>
    copy('SELECT * EXCLUDE (event_index) FROM flat ORDER BY block_height, tx_index DESC, flat.event_index DESC', 'a.parquet'),
  'a flat CSV table': () => copy('FROM flat', 'a.csv', '(header)'),
  'several forms together, blocks held twice': () => async (into: string) => {
    await copy('FROM flat WHERE block_height < 840025', 'flat.parquet')(into);
    writeFiles(into, { 'rest.ndjson': ndjson(saved('hiro').records.filter((r) => r.location.block_height >= 840_020)) });
  },
};

describe('the recorded data', () => {
  for (const [name, make] of Object.entries(FORMS)) {
    it(`as ${name}`, async () => {
      const work = temporaryFolder();
      const input = join(work, 'input');
      const files = make();
      writeFiles(input, typeof files === 'function' ? { '.keep': '' } : files);
      if (typeof files === 'function') await files(input);
      for (const dialect of DIALECTS) {
        const out = join(work, dialect);
        const log = new RecordingLog();
        await testBuild(out, { inputs: [input], dialect, log });
        expect(tree(out)).toEqual(reference.get(dialect));
        const notices = name.includes('held twice')
          ? ['4 block(s) are in several files with the same records; one copy of each is used']
          : [];
        // Real blocks may have records of one operation only, which cannot be told from a list that was filtered.
        const filtered = name.startsWith('saved responses') ? [expect.stringContaining('have records of one operation only')] : [];
        expect(log.notices).toEqual([...notices, ...filtered]);
      }
    });
  }

  it('in any order of files and with any number of threads', async () => {
    const work = temporaryFolder();
    const { records } = saved('contract');
    const parts = [0, 1, 2].map((part) => ndjson(records.filter((r) => r.location.block_height % 3 === part)));
    for (const [i, order] of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ].entries()) {
      writeFiles(join(work, String(i)), Object.fromEntries(order.map((part, place) => [`${place}.ndjson`, parts[part] ?? ''])));
      await testBuild(join(work, `out-${i}`), { inputs: [join(work, String(i))], threads: [1, 2, 5][i] ?? 1 });
      expect(tree(join(work, `out-${i}`))).toEqual(reference.get('contract'));
    }
  });
});

describe('hundreds of files', () => {
  it('are read in little memory, and named rightly when one is wrong', async () => {
    const work = temporaryFolder();
    const files = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`${1000 + i}.ndjson`, ndjson([record(i, 2), record(i, 1)])]));
    writeFiles(join(work, 'in'), files);
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], memoryLimit: '300MB' });
    expect(manifest).toMatchObject({ heights: [[0, 1199]], records: 2400 });
    writeFiles(join(work, 'in'), { '1300.ndjson': ndjson([record(300, 2), { ...record(300, 1), operation: 'x' }]) });
    const { details } = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(details).toHaveLength(1);
    expect(details[0]).toContain('/in/1300.ndjson line 2: operation "x"');
  });
});

describe('file names', () => {
  it('with the characters of patterns, quotes and other scripts name just that file', async () => {
    const work = temporaryFolder();
    const names = ['a[1].ndjson', 'a1.ndjson', '**.ndjson', 'a?b.ndjson', 'o\'clock "x".ndjson', 'données 记录.ndjson', '{a,b}.ndjson'];
    writeFiles(join(work, 'in'), Object.fromEntries(names.map((name, i) => [name, ndjson([record(i, 1)])])));
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(manifest).toMatchObject({ heights: [[0, 6]], records: 7 });
    for (const [i, name] of names.entries()) {
      const { manifest } = await testBuild(join(work, `one-${i}`), { inputs: [join(work, 'in', name)] });
      expect(manifest).toMatchObject({ heights: [[i, i]], records: 1 });
    }
    const columns =
      'rune_id, 0 AS rune_number, rune_name, rune_spaced_name, address, receiver_address, amount, operation, block_hash, block_height, tx_id, tx_index, vout, output, timestamp';
    await store.run(`COPY (SELECT ${columns} FROM flat WHERE block_height = 840000) TO '${join(work, 'x[0-9].parquet')}'`);
    await store.run(`COPY (SELECT ${columns} FROM flat WHERE block_height = 840002) TO '${join(work, 'x5.parquet')}'`);
    const { manifest: parquet } = await testBuild(join(work, 'parquet'), {
      inputs: [join(work, 'x[0-9].parquet'), join(work, 'x5.parquet')],
    });
    expect(parquet).toMatchObject({
      heights: [
        [840000, 840000],
        [840002, 840002],
      ],
    });
  });

  it('may be columns too: further columns are passed over', async () => {
    const work = temporaryFolder();
    await store.run(`COPY (SELECT *, 'x' AS filename, 'a,"b"' AS "odd, ""name""" FROM flat) TO '${join(work, 'a.csv')}' (header)`);
    await testBuild(join(work, 'out'), { inputs: [join(work, 'a.csv')] });
    expect(tree(join(work, 'out'))).toEqual(reference.get('contract'));
  });
});

describe('the output folder inside the input folder', () => {
  it('is no input', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
    for (let i = 0; i < 2; i += 1) {
      const { manifest } = await testBuild(join(work, 'dist'), { inputs: [work] });
      expect(manifest.records).toBe(1);
    }
  });

  it('is refused as the only input', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'a.ndjson')] });
    const mine = join(work, 'dist/runes/v1/blocks/mine.ndjson');
    writeFileSync(mine, ndjson([record(5, 1)]));
    const { message } = await failedBuild(join(work, 'dist'), { inputs: [mine] });
    expect(message).toBe(`the input ${mine} is in the output or cache folder, whose files builds replace and remove`);
    expect(readFileSync(mine, 'utf8')).toBe(ndjson([record(5, 1)]));
  });
});

describe('saved responses', () => {
  const page = (offset: number, total: number, results: unknown[]) => JSON.stringify({ limit: 60, offset, total, results });
  const total = (out: string, path: string) => (JSON.parse(readFileSync(join(out, 'runes/v1', path), 'utf8')) as Envelope).total;

  it('of transactions only make what they hold', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 1), record(5, 2)];
    writeFiles(work, { 'in/a.json': page(0, 1, [a]), 'in/b.json': page(0, 2, [b, { ...b, amount: '2' }]), 'in/c.json': page(0, 0, []) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(3);
  });

  it('of a block and of its transactions agree', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 2), record(5, 1)];
    writeFiles(work, { 'in/block.json': page(0, 2, [a, b]), 'in/tx.json': page(0, 1, [b]) });
    const log = new RecordingLog();
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], log });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(2);
    expect(log.notices).toEqual([
      '1 record(s) are in several saved responses; one copy of each is used',
      expect.stringContaining('have records of one operation only (receive)'),
    ]);
  });

  it('whose pages happen to hold one transaction each are a block', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 2), record(5, 1)];
    writeFiles(work, { 'in/0.json': page(0, 2, [a]), 'in/1.json': page(1, 2, [b]) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(2);
    expect(total(join(work, 'out'), `transactions/${b.location.tx_id}.json`)).toBe(1);
  });
});

describe('values', () => {
  it('keep every text: quotes, control characters, empty strings, other scripts', async () => {
    const work = temporaryFolder();
    const control = String.fromCharCode(...Array.from({ length: 0x20 }, (_, i) => i + 1));
    const name = `"\\ ${control}\u007f\u2028é😀 },{"rune":`;
    const records = [
      record(7, 3, { rune: { id: '', number: 0, name, spaced_name: '\\u000B' }, address: '' }),
      record(7, 2, { address: name }),
    ];
    writeFiles(work, { 'in.ndjson': ndjson(records) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in.ndjson')] });
    const expected = JSON.stringify({ limit: 20, offset: 0, total: 2, results: records });
    expect(readFileSync(join(work, 'out/runes/v1/blocks/7.json'), 'utf8')).toBe(
      expected.replace('"address":"","amount"', '"address":"","amount"'),
    );
  });

  it('tell vout 0, no vout, null and an outpoint apart, in both dialects', async () => {
    const work = temporaryFolder();
    const id = hex('outpoint');
    const outputs = [
      { vout: 0, output: `0x${id}` },
      { vout: 3, output: `${id}:3` },
      { vout: undefined, output: `0X${id.toUpperCase()}:7` },
      { vout: undefined, output: `0x${id}` },
      { vout: 5, output: undefined },
      { vout: null, output: null },
    ];
    writeFiles(work, {
      'in.ndjson': ndjson(outputs.map((o, i) => ({ ...record(7, 9 - i), location: { ...record(7, 9 - i).location, ...o } }))),
    });
    const expected: Record<Dialect, unknown[]> = {
      contract: [
        [0, `0x${id}`],
        [3, `0x${id}`],
        [7, `0x${id}`],
        [undefined, `0x${id}`],
        [5, undefined],
        [undefined, undefined],
      ],
      hiro: [
        [0, `${id}:0`],
        [3, `${id}:3`],
        [7, `${id}:7`],
        [undefined, id],
        [5, undefined],
        [undefined, undefined],
      ],
    };
    for (const dialect of DIALECTS) {
      const out = join(work, dialect);
      await testBuild(out, { inputs: [join(work, 'in.ndjson')], dialect });
      const { results } = JSON.parse(readFileSync(join(out, 'runes/v1/blocks/7.json'), 'utf8')) as Envelope;
      expect(results.map((r) => [r.location.vout, r.location.output])).toEqual(expected[dialect]);
      expect(JSON.stringify(results)).not.toContain('null');
    }
  });
});

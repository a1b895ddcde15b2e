/** Tests published rows: their files, their list, and verification. rowsBuilds.test.ts tests incremental builds. */
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folderIndex, namesOf, rowsIndex } from '../../../src/contract/rowsSchemas.ts';
import { int, literal, Store } from '../../../src/duckdb/store.ts';
import { MANIFEST_PATH, rowFilePath } from '../../../src/pages/filePaths.ts';
import { rowsIndexFile } from '../../../src/rows/rowsFolder.ts';
import { NODE_LEDGER, RUNES } from '../../../src/rows/rowsForm.ts';
import { CONFORMANCE_INPUTS, RecordingLog, rowsOf, temporaryFolder, testBuild, treeOfRecords, writeFiles } from '../../support/build.ts';
import { built, chain, published } from '../../support/builtRows.ts';
import { FakeNode } from '../../support/fakeNode.ts';
import { writeRows } from '../../support/nodeRows.ts';
import { check, copyOf } from '../../support/outputs.ts';
import { testPull } from '../../support/pull.ts';
import { ndjson, record } from '../../support/records.ts';
import { memoryOf } from '../../support/runeChains.ts';

const work = temporaryFolder();
/** A build that tests read and copy. */
let common: Awaited<ReturnType<typeof built>>;
let store: Store;
beforeAll(async () => {
  common = await built();
  store = await Store.open({ memoryLimit: '500MB', threads: 2, scratch: join(work, 'scratch') });
});
afterAll(() => store.close());

const manifestOf = (out: string) =>
  JSON.parse(readFileSync(join(out, MANIFEST_PATH), 'utf8')) as { rows?: { index: string; sha256: string } };
const indexOf = (out: string) => rowsIndex.parse(JSON.parse(readFileSync(join(out, manifestOf(out).rows?.index ?? ''), 'utf8')));
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
const cells = (rows: readonly Record<string, unknown>[], columns: readonly string[]) =>
  rows.map((row) => `${JSON.stringify(columns.map((column) => row[column] ?? null))}\n`).join('');
const columnsOf = ({ fields }: typeof RUNES) => fields.map(({ column }) => column);

describe('published rows', () => {
  it('are ledger rows in files of a hundred settled blocks, with a list that anyone can compute', async () => {
    const { out, folder } = common;
    const index = indexOf(out);
    const rows = memoryOf(chain).rows.map((row) => ({ ...row, amount: row.amount === null ? null : String(row.amount) }));
    const heights = [...new Set(rows.map(({ block_height }) => block_height))];
    const ranges = heights.map((height) => (height < 100 ? [0, 99] : [height, height]));
    expect(index.files.map(({ first, last }) => [first, last])).toEqual([...new Map(ranges.map((range) => [`${range}`, range])).values()]);
    expect([index.network, index.spent, index.tip]).toEqual(['regtest', true, { height: 107, hash: chain[107]?.hash }]);
    expect(index.sources).toEqual([{ rules: 'ord', blocks: [[0, 107]] }]);
    for (const file of index.files) {
      const path = join(out, rowFilePath(file.first, file.last, file.sha256));
      expect([readFileSync(path).length, sha256(readFileSync(path))]).toEqual([file.bytes, file.sha256]);
      const expected = rows
        .filter(({ block_height: height }) => height >= file.first && height <= file.last)
        .sort((a, b) => a.block_height - b.block_height || b.tx_index - a.tx_index || b.event_index - a.event_index);
      expect([file.rows, file.digest]).toEqual([expected.length, sha256(cells(expected, columnsOf(NODE_LEDGER)))]);
      expect(await rowsOf(`FROM '${path}'`, store)).toEqual(expected);
    }
    const [file] = index.runes;
    const runes = await rowsOf(`FROM '${join(out, rowFilePath(file!.first, file!.last, file!.sha256, true))}'`, store);
    expect([file?.rows, file?.digest]).toEqual([runes.length, sha256(cells(runes, columnsOf(RUNES)))]);
    expect(Object.keys(published(out))).toHaveLength(index.files.length + 2);
    await check(out);
    // A build must accept a copy of the folder `rows` as its input.
    cpSync(join(out, 'rows'), join(folder, 'copy'), { recursive: true });
    await testBuild(join(folder, 'again'), { inputs: [join(folder, 'copy')], parquet: true });
    const { sources: _, network: __, tip: ___, ...rest } = index;
    expect(indexOf(join(folder, 'again'))).toMatchObject(rest);
    const [path = ''] = Object.keys(published(out)).filter((one) => one.includes('/0-99-'));
    const copy = join(folder, 'copy', basename(path));
    writeFileSync(copy, readFileSync(copy).fill(1, 30, 40));
    await expect(testBuild(join(folder, 'damaged'), { inputs: [join(folder, 'copy')], parquet: true })).rejects.toThrow(
      /0-99-.* is (damaged|broken)/,
    );
  });

  it('are the same bytes in every layout, dialect and number of threads', async () => {
    const { folder, out, input } = common;
    const options = { layout: 'files', dialect: 'hiro', threads: 4, memoryLimit: '200MB' } as const;
    await testBuild(join(folder, 'other'), { inputs: [input], parquet: true, ...options });
    expect(published(join(folder, 'other'))).toEqual(published(out));
  });

  it('of unknown runes are published, too, and verification counts them; text of any kind has a digest', async () => {
    const [folder, out] = [temporaryFolder(), join(temporaryFolder(), 'out')];
    const [ledger = '', runes = ''] = CONFORMANCE_INPUTS.map((path) => readFileSync(path, 'utf8'));
    const odd = '"a ""quote"", a\\backslash\tand\u0001 ☃"';
    const [header = '', first = '', ...others] = ledger.trimEnd().split('\n');
    const columns = header.split(',');
    const changed = first.split(',').map((cell, i) => (columns[i] === 'address' ? odd : cell));
    const known = runes
      .trimEnd()
      .split('\n')
      .filter((_, i) => i !== 1);
    writeFiles(folder, { 'odd/ledger.csv': [header, changed.join(','), ...others].join('\n'), 'odd/runes.csv': known.join('\n') });
    const { manifest } = await testBuild(out, { inputs: [join(folder, 'odd')], parquet: true });
    const index = indexOf(out);
    expect(index.spent).toBe(false);
    for (const file of index.files) {
      const rows = await rowsOf(`FROM '${join(out, rowFilePath(file.first, file.last, file.sha256))}'`, store);
      expect(file.digest).toBe(sha256(cells(rows, columnsOf(NODE_LEDGER).slice(0, -1))));
    }
    expect(manifest.left_out?.rows).toBeGreaterThan(0);
    expect(index.files.reduce((sum, { rows }) => sum + rows, 0)).toBe(manifest.records + (manifest.left_out?.rows ?? 0));
    await check(out);
    cpSync(join(out, 'rows'), join(folder, 'copy'), { recursive: true });
    await testBuild(join(folder, 'again'), { inputs: [join(folder, 'copy')], parquet: true });
    expect(treeOfRecords(join(folder, 'again'))).toEqual(treeOfRecords(out));
  });

  it('are the files that a pull from a node wrote, with its index, and equal rows written by other means in other files', async () => {
    const [to, input, out, other] = [temporaryFolder(), temporaryFolder(), join(temporaryFolder(), 'out'), join(temporaryFolder(), 'out')];
    // The blocks are settled for the pull, but not for builds.
    const settled = chain.slice(0, 104);
    const node = await FakeNode.start(settled, { network: 'regtest' });
    await testPull(`core:${node.url}`, to, { confirmations: 3 });
    await node.close();
    const pulled = join(to, 'pulled');
    const { manifest } = await testBuild(out, { inputs: [to], parquet: true });
    const own = folderIndex.parse(JSON.parse(readFileSync(join(pulled, 'index.json'), 'utf8')));
    expect(indexOf(out)).toEqual(own);
    for (const name of namesOf(own)) expect(statSync(join(out, 'rows', name)).ino).toBe(statSync(join(pulled, name)).ino);
    expect(Object.keys(published(out)).sort()).toEqual([manifest.rows?.index, ...namesOf(own).map((name) => `rows/${name}`)].sort());
    await check(out);
    writeRows(memoryOf(settled), input);
    await testBuild(other, { inputs: [input], parquet: true });
    expect(indexOf(other).files.length).toBeGreaterThan(own.files.length);
    const rowsIn = (folder: string) => rowsOf(`FROM '${folder}/rows/*-*-????????????????.parquet' ORDER BY ALL`, store);
    expect(await rowsIn(other)).toEqual(await rowsIn(out));
    // The range starts and ends in the middle of an input file, so the build writes new files instead of linking it.
    await testBuild(out, { inputs: [to], parquet: true, blocks: { from: 50, to: 80 } });
    await check(out);
    const { low, high } = await store.row(
      `SELECT min(block_height) AS low, max(block_height) AS high FROM '${out}/rows/*-*-????????????????.parquet'`,
      { low: int, high: int },
    );
    expect([low >= 50, high <= 80]).toEqual([true, true]);
  });

  it('are missing with --no-rows, for input without ledger rows, and for two events in one place; the summary says why', async () => {
    const { out, input, build } = await built({ parquet: false });
    expect([published(out), manifestOf(out).rows]).toEqual([{}, undefined]);
    expect(readFileSync(join(out, 'index.html'), 'utf8')).not.toContain('Parquet');
    await build({ parquet: true });
    expect(readFileSync(join(out, 'index.html'), 'utf8')).toContain(manifestOf(out).rows?.index);
    const before = published(out);
    expect(Object.keys(before).length).toBeGreaterThan(3);
    const [ledger = ''] = readdirSync(input)
      .filter((name) => name.startsWith('ledger-'))
      .slice(-1);
    const text = readFileSync(join(input, ledger), 'utf8');
    // Rows of unknown runes are left out of records, so that only the order of the rows shows that they are wrong.
    const [, ...cells] = text.trimEnd().split('\n').at(-1)?.split(',') ?? [];
    const unknown = `1:9999,${[...cells.slice(0, 3), '99', ...cells.slice(4, 11), ''].join()}\n`;
    const twice = text + unknown + unknown;
    for (const [name, wrong, right, why] of [
      ['more.ndjson', ndjson([record(300, 1)]), undefined, /^not published: .*more\.ndjson is not a ledger, and only/],
      [ledger, twice, text, /^not published: the input has two events in one place/],
    ] as const) {
      writeFiles(input, { [name]: wrong });
      const log = new RecordingLog();
      await testBuild(out, { inputs: [input], parquet: true, log });
      expect([published(out), manifestOf(out).rows]).toEqual([{}, undefined]);
      expect(log.summaryRows.get('rows')).toMatch(why);
      if (right === undefined) rmSync(join(input, name));
      else writeFiles(input, { [name]: right });
      expect((await build({ parquet: true })).notices).toEqual(['the last build published no rows; everything is built again']);
      expect(published(out)).toEqual(before);
    }
  });
});

describe('verification', () => {
  /** A small mirror with all lists. The last block has a transaction that spends several outputs. */
  let small: string;
  const last = memoryOf(chain).rows.find(({ spent }) => spent?.includes(','))?.block_height ?? 0;
  beforeAll(async () => {
    small = (await built({ layout: 'archive', lists: true }, chain.slice(0, last + 1))).out;
  });

  /** Returns the findings of verification after these damages of a copy. */
  async function findings(of: string, ...damages: readonly ((out: string) => void | Promise<void>)[]): Promise<readonly string[]> {
    const out = copyOf(of);
    for (const damage of damages) await damage(out);
    const error = await check(out).catch((e: Error) => e);
    return error instanceof Error ? ((error as { details?: readonly string[] }).details ?? [error.message]) : [];
  }

  /** Rewrites the file of rows of a block, and changes the list and the manifest to match, as a skilled liar would. */
  const rewrite = (height: number, select: (file: string) => string) => async (out: string) => {
    const index = indexOf(out);
    const file = index.files.find(({ first, last }) => first <= height && height <= last)!;
    const path = join(out, rowFilePath(file.first, file.last, file.sha256));
    await store.run(`COPY (${select(literal(path))}) TO ${literal(`${path}.new.parquet`)} (FORMAT parquet)`);
    const bytes = readFileSync(`${path}.new.parquet`);
    const rows = await rowsOf(`FROM '${path}.new.parquet'`, store);
    rmSync(path);
    rmSync(`${path}.new.parquet`);
    const changed = {
      ...file,
      rows: rows.length,
      bytes: bytes.length,
      sha256: sha256(bytes),
      digest: sha256(cells(rows, columnsOf(NODE_LEDGER))),
    };
    writeFileSync(join(out, rowFilePath(file.first, file.last, changed.sha256)), bytes);
    replaceIndex(out, { ...index, files: index.files.map((one) => (one === file ? changed : one)) });
  };
  const replaceIndex = (out: string, index: ReturnType<typeof indexOf>) => {
    const manifest = manifestOf(out);
    rmSync(join(out, manifest.rows?.index ?? ''));
    const made = rowsIndexFile(index);
    writeFileSync(join(out, made.path), made.content);
    const text = JSON.stringify({ ...manifest, rows: { index: made.path, sha256: made.sha256 } }, null, 2);
    writeFileSync(join(out, MANIFEST_PATH), `${text}\n`);
    for (const path of ['index.html', 'docs/index.html', 'openapi.json'].map((name) => join(out, name)))
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(manifest.rows?.index ?? '', made.path));
  };

  it('finds nothing in the same rows written by others', async () => {
    expect(
      await findings(
        small,
        rewrite(last, (file) => `FROM ${file}`),
      ),
    ).toEqual([]);
  });

  // A finding about another file or block does not hide those about these.
  it('finds another value in each column, a row too few, rows of another file, no spent outputs, and another order', async () => {
    const values = {
      ...{ rune_id: `'1:0'`, address: `'x'`, receiver_address: `'x'`, amount: `amount || '1'`, operation: `'burn'` },
      ...{ tx_id: `repeat('a', 64)`, block_hash: `repeat('b', 64)`, output: '"output" + 1', timestamp: '1' },
    };
    const columns = [...Object.entries(values), ['rune_id', `'9:9'`]] as const;
    const { files } = indexOf(common.out);
    const { first, last, sha256: name } = files[0]!;
    // Changes each column in a block of its own.
    const receipts = await rowsOf(
      `SELECT DISTINCT ON (block_height) block_height, tx_index, event_index FROM '${join(common.out, rowFilePath(first, last, name))}'
         WHERE operation = 'receive' ORDER BY block_height`,
      store,
    );
    expect(receipts.length).toBeGreaterThan(columns.length);
    const at = (i: number) => `(block_height, tx_index, event_index) = (${Object.values(receipts[i]!).join(', ')})`;
    const cases = new Map<string, string>();
    for (const [i, [column, value]] of columns.entries()) cases.set(column, `${cases.get(column) ?? ''} WHEN ${at(i)} THEN ${value}`);
    const replaced = [...cases].map(([column, when]) => `CASE${when} ELSE "${column}" END AS "${column}"`);
    const unordered = files.filter(({ rows }) => rows > 1).at(-1)!.first;
    const found = await findings(
      common.out,
      rewrite(
        0,
        (file) => `SELECT * REPLACE (${replaced.join(', ')}, NULL::VARCHAR AS spent) FROM ${file} WHERE NOT (${at(columns.length)})
          UNION ALL SELECT * REPLACE (500 AS block_height) FROM ${file} WHERE block_height = (SELECT max(block_height) FROM ${file})`,
      ),
      rewrite(unordered, (file) => `FROM ${file} ORDER BY tx_index, event_index`),
    );
    for (const [i, column] of [...columns.map(([column]) => column), 'a row too few'].entries()) {
      const finding = `its rows of block ${receipts[i]?.['block_height']} are not the records of the pages`;
      expect([column, found]).toEqual([column, expect.arrayContaining([expect.stringContaining(finding)])]);
    }
    const others = [/0-99-.* has [0-9]+ rows of other blocks/, /0-99-.*: [0-9]+ transactions send runes, but spend no output/];
    for (const finding of [...others, new RegExp(`rows/${unordered}-.*not sorted`)])
      expect(found).toContainEqual(expect.stringMatching(finding));
  });

  const spent = (change: string) =>
    rewrite(
      last,
      (file) =>
        `SELECT * REPLACE (CASE WHEN spent = (SELECT max(spent) FROM ${file} WHERE contains(spent, ',')) THEN ${change} ELSE spent END AS spent) FROM ${file}`,
    );
  it.each([
    ['a spent output too few', `spent[strpos(spent, ',') + 1:]`],
    ['a spent output twice', `spent || ',' || spent`],
    ['another address of a spent output', `spent || 'x'`],
    ['a spent output that never was', `spent || ',${'ab'.repeat(32)}:0:x'`],
  ])('finds %s', async (_, change) => {
    const found = await findings(small, spent(change));
    expect(found).toContainEqual(expect.stringMatching(/wrong about whether, when or by whom the output/));
  });

  const some = (out: string, begin: string) =>
    join(out, Object.keys(published(out)).find((path) => path.startsWith('rows/') && path.includes(begin)) ?? '');
  const ofLast = (out: string) => some(out, `/${last}-`);
  it.each<[string, (out: string) => void | Promise<void>, RegExp]>([
    ['a column too few', rewrite(last, (file) => `SELECT * EXCLUDE (spent) FROM ${file}`), /unexpected columns/],
    ['a file that is gone', (out) => rmSync(ofLast(out)), new RegExp(`/${last}-.* is missing`)],
    ['a file that is none', (out) => writeFileSync(ofLast(out), 'PAR1'), /rows\/.*: /],
    ['runes that are gone', (out) => rmSync(some(out, '.runes.')), /rows\/.*runes.* is missing/],
    [
      'damage',
      (out) => writeFileSync(ofLast(out), readFileSync(ofLast(out)).fill(0, 400, 700)),
      new RegExp(`rows/${last}-.*: its SHA-256 differs from the index`),
    ],
    ['another list', (out) => writeFileSync(some(out, '/index-'), '{}'), /rows\/index-.*:/],
    ['a list that is gone', (out) => rmSync(some(out, '/index-')), /rows\/index-/],
    [
      'a list without a file',
      (out) => replaceIndex(out, { ...indexOf(out), files: indexOf(out).files.slice(1) }),
      /no file has the rows of block/,
    ],
    [
      'another digest of rows',
      (out) => replaceIndex(out, { ...indexOf(out), files: indexOf(out).files.map((file) => ({ ...file, digest: '1'.repeat(64) })) }),
      /is not the list that a build makes/,
    ],
    ['other sources', (out) => replaceIndex(out, { ...indexOf(out), sources: [] }), /is not the list that a build makes/],
  ])('finds %s', async (_, damage, finding) => {
    expect(await findings(small, damage)).toContainEqual(expect.stringMatching(finding));
  });

  it('finds a file too many, and a stranger', async () => {
    const found = await findings(
      small,
      (out) => cpSync(ofLast(out), join(out, 'rows/700-799-0123456789abcdef.parquet')),
      (out) => writeFileSync(join(out, 'rows/mine.txt'), ''),
    );
    const stranger = /^rows\/mine.txt is not part of this build; builds do not remove it/;
    for (const finding of [/^rows\/700.* is not part of this build$/, stranger])
      expect(found).toContainEqual(expect.stringMatching(finding));
  });
});

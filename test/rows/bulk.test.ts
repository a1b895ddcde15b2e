/**
 * Bulk data: Parquet files have all records of a build and can be input themselves. Full builds, incremental builds and
 * verification support them.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { int, literal, nullable, Store, text } from '../../src/duckdb/store.ts';
import { crossings, LIMITS, limitsWith } from '../../src/limits.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { COLUMNS } from '../../src/rows/parquetRows.ts';
import {
  CONFORMANCE_INPUTS,
  RecordingLog,
  type TestBuild,
  temporaryFolder,
  testBuild,
  tree,
  treeOfRecords,
  writeFiles,
} from '../support/build.ts';
import { check, list } from '../support/outputs.ts';
import { type Activity, hex, ndjson, record } from '../support/records.ts';

const work = temporaryFolder();
let store: Store;
beforeAll(async () => {
  store = await Store.open({ memoryLimit: '500MB', threads: 2, scratch: join(work, 'scratch') });
});
afterAll(() => store.close());

const CELL_TYPES = Object.fromEntries(
  [...COLUMNS, ['file_row_number', 'BIGINT'] as const].map(([name, type]) => [
    name,
    nullable<number | string>(type === 'BIGINT' ? int : text),
  ]),
);
const rows = (path: string) => store.rows(`SELECT * FROM read_parquet(${literal(path)}, file_row_number = true)`, CELL_TYPES);
const index = (out: string) => JSON.parse(readFileSync(join(out, 'activity/index.json'), 'utf8')) as { ranges: Record<string, unknown>[] };
const bulk = (out: string) => Object.fromEntries(Object.entries(tree(out)).filter(([path]) => path.startsWith('activity/')));

/** Three transactions of a block, one of them of more records than a page, with values of every kind. */
const blockOf = (height: number, amount = '1.50') =>
  [1, 2, 5].flatMap((tx) =>
    Array.from({ length: tx === 2 ? 70 : tx }, (_, i) => {
      const whole = record(height, tx, {
        amount: `${amount}${i}`,
        operation: ['receive', 'send', 'burn', 'mint'][i % 4] ?? '',
        ...(i % 4 === 1 ? { receiver_address: 'bc1q"quoted"\\' } : {}),
        location: { vout: i },
      });
      if (i % 4 === 2) {
        const { address: _, amount: __, ...rest } = whole;
        const { vout: ___, output: ____, ...location } = whole.location;
        return { ...rest, location };
      }
      return whole;
    }),
  );

/** A build with a file of input for each of these blocks. */
async function built(heights: readonly number[], options: Omit<TestBuild, 'inputs'> = {}) {
  const folder = temporaryFolder();
  const [out, input] = [join(folder, 'out'), join(folder, 'in')];
  const put = (height: number, records: readonly Activity[] = blockOf(height)) =>
    writeFiles(input, { [`${height}.ndjson`]: ndjson(records) });
  for (const height of heights) put(height);
  const build = async (more: Omit<TestBuild, 'inputs'> = {}) => {
    const log = new RecordingLog();
    return { ...(await testBuild(out, { inputs: [input], parquet: true, ...options, ...more, log })), notices: log.notices };
  };
  await build();
  const fresh = async () => {
    const other = join(temporaryFolder(), 'fresh');
    await testBuild(other, { inputs: [input], parquet: true, ...options });
    return tree(other);
  };
  return { folder, out, input, put, build, fresh };
}

describe('the files', () => {
  it('hold every record, a file for each 100 heights, and a list says which there are', async () => {
    const { out } = await built([99, 100, 101, 199, 500]);
    expect(readFileSync(join(out, 'index.html'), 'utf8')).toContain('<a href="activity/index.json">');
    expect(Object.keys(bulk(out))).toEqual(['0', '100', '500'].map((first) => `activity/${first}.parquet`).concat('activity/index.json'));
    const there = index(out).ranges.map(({ file, first, last, blocks, records }) => [file, first, last, blocks, records]);
    expect(there).toEqual([
      ['0.parquet', 99, 99, 1, 76],
      ['100.parquet', 100, 199, 3, 228],
      ['500.parquet', 500, 500, 1, 76],
    ]);
    for (const { file, bytes } of index(out).ranges) expect(readFileSync(join(out, 'activity', String(file))).length).toBe(bytes);
    const types = await store.rows(`DESCRIBE SELECT * FROM read_parquet(${literal(join(out, 'activity/0.parquet'))})`, {
      column_name: text,
      column_type: text,
    });
    expect(types.map((row) => `${row.column_name} ${row.column_type}`)).toEqual([
      'rune_id VARCHAR',
      'rune_number BIGINT',
      'rune_name VARCHAR',
      'rune_spaced_name VARCHAR',
      'address VARCHAR',
      'receiver_address VARCHAR',
      'amount VARCHAR',
      'operation VARCHAR',
      'block_hash VARCHAR',
      'block_height BIGINT',
      'tx_id VARCHAR',
      'tx_index BIGINT',
      'vout BIGINT',
      'output VARCHAR',
      'timestamp BIGINT',
      'event_index BIGINT',
    ]);
  });

  it('say what the records say, in served order, with hashes without prefix and events counted within their transaction', async () => {
    const { out } = await built([7]);
    const found = await rows(join(out, 'activity/0.parquet'));
    const page = JSON.parse(readFileSync(join(out, 'runes/v1/blocks/7/60/0.json'), 'utf8')) as { results: Activity[] };
    const bare = (hash?: string) => hash?.slice(2);
    for (const [i, { rune, location, ...rest }] of page.results.entries()) {
      expect(found[i]).toEqual({
        rune_id: rune.id,
        rune_number: rune.number,
        rune_name: rune.name,
        rune_spaced_name: rune.spaced_name,
        address: rest.address,
        receiver_address: rest.receiver_address,
        amount: rest.amount,
        operation: rest.operation,
        block_hash: bare(location.block_hash),
        block_height: 7,
        tx_id: bare(location.tx_id),
        tx_index: location.tx_index,
        vout: location.vout,
        output: bare(location.output),
        timestamp: location.timestamp,
        event_index: expect.any(Number),
        file_row_number: i,
      });
    }
    const events = found.map((row) => [row['tx_index'], row['event_index']]);
    const down = (tx: number, count: number) => Array.from({ length: count }, (_, i) => [tx, count - 1 - i]);
    expect(events).toEqual([...down(5, 5), ...down(2, 70), ...down(1, 1)]);
  });

  it('are the same bytes in every layout, dialect and number of threads, and from every form of the same records', async () => {
    const { folder, out, input } = await built([1, 150, 151]);
    const expected = bulk(out);
    // One thing at a time, and most at once; the build above has the first of each.
    for (const [i, options] of [
      { layout: LAYOUTS[1] },
      { dialect: DIALECTS[1], threads: 4 },
      { threads: 2 },
      { layout: LAYOUTS[1], dialect: DIALECTS[1], threads: 1, memoryLimit: '200MB' },
    ].entries()) {
      await testBuild(join(folder, `${i}`), { inputs: [input], parquet: true, ...options });
      expect(bulk(join(folder, `${i}`)), JSON.stringify(options)).toEqual(expected);
    }
    const records = [1, 150, 151].flatMap((height) => blockOf(height));
    // Events counted otherwise, records in another order, and a table.
    await store.run(`CREATE OR REPLACE TEMP TABLE mixed AS SELECT * EXCLUDE (event_index), 10 + 3 * event_index AS event_index
      FROM read_parquet([${['0', '100'].map((first) => literal(join(out, `activity/${first}.parquet`))).join(', ')}]) ORDER BY hash(tx_id, event_index)`);
    mkdirSync(join(folder, 'table'));
    await store.run(`COPY mixed TO ${literal(join(folder, 'table/mixed.csv'))} (HEADER)`);
    writeFiles(folder, { 'array/a.json': JSON.stringify(records) });
    for (const form of ['table', 'array']) {
      await testBuild(join(folder, `from-${form}`), { inputs: [join(folder, form)], parquet: true });
      expect(tree(join(folder, `from-${form}`))).toEqual(tree(out));
    }
  });

  it('are input of a build that makes the same output, list and all', async () => {
    const [out, input, again] = ['out', 'in', 'again'].map((name) => join(work, `back-${name}`));
    await testBuild(out ?? '', { inputs: CONFORMANCE_INPUTS, parquet: true });
    cpSync(join(out ?? '', 'activity'), input ?? '', { recursive: true });
    const { manifest } = await testBuild(again ?? '', { inputs: [input ?? ''], parquet: true });
    expect(manifest).toMatchObject({ parquet: true });
    expect(treeOfRecords(again ?? '')).toEqual(treeOfRecords(out ?? ''));
  });

  it('are input in any order of rows: a large source whose blocks are scattered is sorted', async () => {
    const out = join(work, 'in-order');
    await testBuild(out, { inputs: CONFORMANCE_INPUTS });
    const from = join(work, 'in-order.parquet');
    await testBuild(from, { inputs: CONFORMANCE_INPUTS, parquet: true });
    const scattered = `COPY (FROM read_parquet(${literal(join(from, 'activity/*.parquet'))}) ORDER BY hash(tx_id, event_index)) TO`;
    // In the smallest groups of rows that the store writes, each of which has most blocks.
    const groups = { csv: 'HEADER', parquet: 'FORMAT parquet, ROW_GROUP_SIZE 2048' };
    for (const [form, options] of Object.entries(groups)) {
      const file = join(work, `scattered.${form}`);
      await store.run(`${scattered} ${literal(file)} (${options})`);
      for (const limits of [LIMITS, limitsWith({ unsortedRecords: 1000, batchRecords: 500 })]) {
        crossings.clear();
        await testBuild(join(work, `from-${form}`), { inputs: [file], full: true, limits });
        expect(crossings.has('unsortedRecords')).toBe(limits !== LIMITS);
        expect(treeOfRecords(join(work, `from-${form}`))).toEqual(treeOfRecords(out));
      }
    }
  });

  it('are not there without the flag, nor in the manifest', async () => {
    const { out } = await built([1], { parquet: false });
    expect(bulk(out)).toEqual({});
    expect(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')).not.toContain('parquet');
    expect(readFileSync(join(out, 'index.html'), 'utf8')).not.toContain('activity/index.json');
  });
});

describe('an incremental build', () => {
  it('makes the bytes of a full one of blocks that come, change and go, and lists what changed', async () => {
    const { out, put, build, fresh, input } = await built([1, 2, 99, 100, 300]);
    const steps: [work: () => void, added: string[], removed: string[]][] = [
      [() => put(101), ['activity/100.parquet', 'activity/index.json'], []],
      [() => put(1, blockOf(1, '9')), ['activity/0.parquet', 'activity/index.json'], []],
      [() => rmSync(join(input, '2.ndjson')), ['activity/0.parquet', 'activity/index.json'], []],
      [() => rmSync(join(input, '300.ndjson')), ['activity/index.json'], ['activity/300.parquet']],
      [() => put(300), ['activity/300.parquet', 'activity/index.json'], []],
      [() => rmSync(join(input, '101.ndjson')), ['activity/100.parquet', 'activity/index.json'], []],
    ];
    for (const [change, added, removed] of steps) {
      change();
      expect(await build()).toMatchObject({ wasFull: false, notices: [] });
      expect(tree(out)).toEqual(await fresh());
      expect(list(out, 'added').filter((path) => path.startsWith('activity/'))).toEqual(added);
      expect(list(out, 'removed').filter((path) => path.startsWith('activity/'))).toEqual(removed);
      await check(out);
    }
  });

  it('is the same for a block whose events are only counted otherwise', async () => {
    const { out, folder } = await built([1]);
    const input = join(folder, 'table');
    const table = async (event: string) => {
      rmSync(input, { recursive: true, force: true });
      mkdirSync(input);
      await store.run(`COPY (SELECT * REPLACE (${event} AS event_index) FROM read_parquet(${literal(join(out, 'activity/0.parquet'))}))
        TO ${literal(join(input, 'a.parquet'))} (FORMAT parquet)`);
    };
    const before = tree(out);
    for (const event of ['event_index', 'event_index * 2 + 7', 'NULL::BIGINT']) {
      await table(event);
      await testBuild(out, { inputs: [input], parquet: true });
      expect(tree(out)).toEqual(before);
    }
  });

  it('becomes a full one, and says so, when a file that it needs was edited, became longer, is gone, or is a folder', async () => {
    const DAMAGES: readonly ((path: string) => void)[] = [
      (path) => writeFileSync(path, readFileSync(path).fill(1, 30, 40)),
      (path) => appendFileSync(path, 'x'),
      (path) => rmSync(path),
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ];
    const { out, put, build, fresh } = await built([1, 2, 150]);
    for (const [i, damage] of DAMAGES.entries()) {
      damage(join(out, 'activity/0.parquet'));
      // A range that nothing happens to is not looked at.
      put(151 + i);
      expect(await build()).toMatchObject({ wasFull: false, notices: [] });
      put(3 + i);
      const { wasFull, notices } = await build();
      expect([i, wasFull, notices]).toEqual([
        i,
        true,
        [expect.stringMatching(/activity\/0.parquet was changed since the last build; everything is built again/)],
      ]);
      expect(tree(out)).toEqual(await fresh());
    }
    put(90);
    expect(await build()).toMatchObject({ wasFull: false, notices: [] });
    expect(tree(out)).toEqual(await fresh());
  });

  it('becomes a full one when the files are switched on or off; what is someone else’s stays beside them', async () => {
    const { out, build, fresh } = await built([1, 2]);
    writeFiles(out, { 'activity/mine.txt': 'mine', 'activity/700.parquet': 'left over', 'activity/0.parquet.tmp': 'left over' });
    await build({ full: true });
    expect(Object.keys(bulk(out))).toEqual(['activity/0.parquet', 'activity/index.json', 'activity/mine.txt']);
    expect(await build({ parquet: false })).toMatchObject({ wasFull: true });
    expect(Object.keys(bulk(out))).toEqual(['activity/mine.txt']);
    expect(list(out, 'removed').sort()).toEqual(['activity/0.parquet', 'activity/index.json']);
    rmSync(join(out, 'activity/mine.txt'));
    expect(await build()).toMatchObject({ wasFull: true });
    expect(tree(out)).toEqual(await fresh());
    await build({ parquet: false });
    expect(existsSync(join(out, 'activity'))).toBe(false);
  });

  it('of a dry run writes none', async () => {
    const out = join(work, 'dry');
    await testBuild(out, { inputs: CONFORMANCE_INPUTS, parquet: true, dryRun: true });
    expect(existsSync(out)).toBe(false);
  });
});

describe('verification', () => {
  let whole: string;
  beforeAll(async () => {
    whole = (await built([1, 2, 99, 100])).out;
  });

  /** What is found after `damage` was done to a copy. */
  async function findings(damage: (out: string) => void | Promise<void>): Promise<readonly string[]> {
    const out = join(temporaryFolder(), 'out');
    cpSync(whole, out, { recursive: true });
    await damage(out);
    return findingsOf(out);
  }

  async function findingsOf(out: string): Promise<readonly string[]> {
    const error = await check(out).catch((e: Error) => e);
    return error instanceof Error ? ((error as { details?: readonly string[] }).details ?? [error.message]) : [];
  }

  /** Writes a file of other rows, and a list that names it as it is, as someone would who knows how. */
  const rewrite =
    (select: (file: string) => string, name = '0.parquet') =>
    async (out: string) => {
      const path = join(out, 'activity', name);
      const before = readFileSync(path);
      cpSync(path, `${path}.before`);
      await store.run(`COPY (${select(`read_parquet(${literal(`${path}.before`)})`)}) TO ${literal(path)} (FORMAT parquet)`);
      rmSync(`${path}.before`);
      const after = readFileSync(path);
      const text = readFileSync(join(out, 'activity/index.json'), 'utf8');
      const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
      writeFileSync(
        join(out, 'activity/index.json'),
        text.replace(sha(before), sha(after)).replace(`"bytes":${before.length}`, `"bytes":${after.length}`),
      );
    };

  it('finds nothing in what builds make, nor in the same rows written by others', async () => {
    expect(await findings(() => undefined)).toEqual([]);
    expect(await findings(rewrite((file) => `SELECT * FROM ${file}`))).toEqual([]);
  });

  const CELLS = [
    ...['rune_id', 'rune_name', 'rune_spaced_name', 'address', 'receiver_address', 'amount', 'output'].map((column) => [column, `'x'`]),
    ['operation', `'etching'`],
    ['tx_id', `'${hex('another')}'`],
    ['block_hash', `upper(block_hash)`],
    ...['rune_number', 'vout', 'timestamp', 'tx_index', 'block_height', 'event_index'].map((column) => [
      column,
      `coalesce(${column}, 0) + 1`,
    ]),
    ...['address', 'block_height', 'block_hash'].map((column) => [column, 'NULL']),
    ['amount', `amount || '0'`],
  ];
  const ROWS: [name: string, select: (file: string) => string][] = [
    ['a row too few', (file) => `SELECT * FROM ${file} LIMIT 75`],
    ['a row twice', (file) => `SELECT * FROM ${file} UNION ALL (SELECT * FROM ${file} LIMIT 1)`],
    ['rows in another order', (file) => `SELECT * FROM ${file} ORDER BY tx_index`],
    ['events in another order', (file) => `SELECT * FROM ${file} ORDER BY block_height, tx_index DESC, event_index`],
    ['another type', (file) => `SELECT * REPLACE (vout::INTEGER AS vout) FROM ${file}`],
    ['another column', (file) => `SELECT *, 1 AS mine FROM ${file}`],
    ['a column too few', (file) => `SELECT * EXCLUDE (event_index) FROM ${file}`],
  ];
  it.each([
    [
      'another value of any column in one row',
      CELLS.map(
        ([column, value]) =>
          [
            `${column}: ${value}`,
            (file: string) =>
              `SELECT * REPLACE ((CASE WHEN tx_index = 2 AND event_index = 41 THEN ${value} ELSE "${column}" END) AS "${column}") FROM ${file}`,
          ] as const,
      ),
    ],
    ['other rows', ROWS],
  ])('finds %s', async (_, changes) => {
    // A file for each change, so that one verification finds them all.
    const { out } = await built(changes.map((_, i) => i * 100));
    for (const [i, [, select]] of changes.entries()) await rewrite(select, `${i * 100}.parquet`)(out);
    const found = await findingsOf(out);
    const missed = changes.filter((_, i) => !found.some((finding) => finding.startsWith(`activity/${i * 100}.parquet: `)));
    expect(missed.map(([name]) => name)).toEqual([]);
  });

  const path = 'activity/0.parquet';
  it.each<[string, (out: string) => void, RegExp]>([
    ['a file that is gone', (out) => rmSync(join(out, path)), /^activity\/0.parquet is missing/],
    ['a file that is none', (out) => writeFileSync(join(out, path), 'PAR1'), /^activity\/0.parquet: /],
    [
      'damage within',
      (out) => writeFileSync(join(out, path), readFileSync(join(out, path)).fill(0, 900, 1200)),
      /^activity\/(0.parquet: |index.json is not)/,
    ],
    [
      'another list',
      (out) => writeFileSync(join(out, 'activity/index.json'), '{}'),
      /^activity\/index.json is not the file that a build makes/,
    ],
    ['no list', (out) => rmSync(join(out, 'activity/index.json')), /^activity\/index.json is missing/],
    [
      'a range too many',
      (out) => cpSync(join(out, path), join(out, 'activity/700.parquet')),
      /^activity\/700.parquet is not part of this build$/,
    ],
    [
      'a stranger',
      (out) => writeFileSync(join(out, 'activity/mine.txt'), ''),
      /^activity\/mine.txt is not part of this build; builds do not remove it/,
    ],
  ])('finds %s', async (_, damage, finding) => {
    expect((await findings(damage))[0]).toMatch(finding);
  });
});

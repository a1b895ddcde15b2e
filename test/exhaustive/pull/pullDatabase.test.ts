/** Tests pulls from a real PostgreSQL with the indexer's tables. */
import { execFileSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LEDGER_FIELDS, RUNE_DETAILS, RUNE_FIELDS } from '../../../src/contract/fields.ts';
import { nullable, Store, text } from '../../../src/duckdb/store.ts';
import { checksumText, sha256Of } from '../../../src/input/checksums.ts';
import { DatabaseSource } from '../../../src/pull/postgres/postgresSource.ts';
import { ApiServer } from '../../support/apiServer.ts';
import { CONFORMANCE, filesBelow, RecordingLog, rowsOf, temporaryFolder, tree } from '../../support/build.ts';
import { run } from '../../support/cli.ts';
import { mountDisk } from '../../support/disk.ts';
import { readPage } from '../../support/pages.ts';
import { CAREFUL, copyIn, type Database, fillChain, SCHEMA, startPostgres } from '../../support/postgres.ts';
import { block, blocksOf, failedPull, leanBuild, recordedBlocks, testPull } from '../../support/pull.ts';
import { until } from '../../support/until.ts';

let database: Database;
let to: string;
beforeAll(async () => {
  database = await startPostgres();
  await database.sql.query(SCHEMA);
});
afterAll(() => database?.close());
beforeEach(async () => {
  to = join(temporaryFolder(), 'input');
  await database.sql.query('TRUNCATE ledger, runes');
});

const build = (folder = to) => leanBuild([folder]);
const files = () => filesBelow(join(to, 'pulled')).filter((path) => !/^runes\.parquet|^blocks\.json$|\.sha256$/.test(path));

/** Fills the database with the recorded tables. */
async function fill(): Promise<void> {
  for (const table of ['runes', 'ledger']) await copyIn(database.sql, table, readFileSync(join(CONFORMANCE, `${table}.csv`)));
}

const chain = (first: number, last: number, fork = '') => fillChain(database.sql, first, last, fork);

const COLUMNS = LEDGER_FIELDS.map(({ column }) => `"${column}"::text AS "${column}"`).join(', ');

/** Returns the rows of all pulled files, as text. */
async function rows(): Promise<unknown[]> {
  const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
  const cells = Object.fromEntries(LEDGER_FIELDS.map(({ column }) => [column, nullable(text)]));
  const found = await store.rows(`SELECT ${COLUMNS} FROM read_parquet('${to}/pulled/*/*.parquet') ORDER BY tx_id, event_index`, cells);
  store.close();
  return found.map((row) => Object.fromEntries(Object.entries(row).map(([column, cell]) => [column, cell ?? null])));
}

/** Returns the rows of the database's table `ledger`, in the order of `rows()`. */
const rowsOfTable = async (): Promise<unknown[]> =>
  (await database.sql.query(`SELECT ${COLUMNS} FROM ledger ORDER BY ledger.tx_id COLLATE "C", ledger.event_index`)).rows;

/** Returns some columns of the pulled runes, by id. */
async function runesRows(columns: string): Promise<unknown[]> {
  const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
  const found = await rowsOf(`SELECT ${columns} FROM (FROM read_parquet('${to}/pulled/runes.parquet') ORDER BY id)`, store);
  store.close();
  return found;
}

/** Waits until a pull is blocked by a lock. */
function waitForLock(): Promise<void> {
  // Reads pg_locks, because pg_stat_activity does not change within a transaction.
  return until(async () => (await database.sql.query('SELECT pid FROM pg_locks WHERE NOT granted')).rows.length > 0);
}

describe('a pull from PostgreSQL', () => {
  it('builds the same mirror as the export, and says what it did', async () => {
    await fill();
    const { code, stdout, stderr } = await run('pull', ['--from', database.url, '--to', to], to.replace(/input$/, ''));
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^PostgreSQL 127\.0\.0\.1:[0-9]+\/postgres has blocks up to 840039: 40 blocks to fetch\.\nFetched 40 blocks with 8,771 records .* has blocks 840000\.\.840039\.\n {2}blocks +40 fetched, 0 pulled before were replaced\n {2}records +8,771\n(?: {2}.*\n)+$/,
    );
    expect(await build()).toEqual({
      ...(await recordedBlocks()).manifest,
      sources: [{ rules: 'bitcoin-indexer', blocks: [[840000, 840039]] }],
    });
    const before = tree(to);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    expect(tree(to)).toEqual(before);
  });

  it('puts settled blocks into files of a hundred, which are never written again', async () => {
    await chain(1000, 1250);
    await testPull(database.url, to);
    const single = (first: number, last: number) =>
      Array.from({ length: last - first + 1 }, (_, i) => `1000/${first + i}-${first + i}.parquet`);
    expect(files()).toEqual(['1000/1000-1099.parquet', '1000/1100-1199.parquet', ...single(1200, 1250)]);
    for (const path of ['runes.parquet', ...files()]) {
      expect(readFileSync(join(to, 'pulled', `${path}.sha256`), 'utf8')).toBe(checksumText(path, await sha256Of(join(to, 'pulled', path))));
    }
    const before = files().map((path) => statSync(join(to, 'pulled', path)).ino);
    const runes = statSync(join(to, 'pulled/runes.parquet')).ino;
    await chain(1251, 1304);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 54 });
    expect(files().slice(0, before.length)).toEqual(['1000/1000-1099.parquet', '1000/1100-1199.parquet', ...single(1200, 1250)]);
    // With block 1305, the hundred from 1200 to 1299 is settled, so the pull joins the files of its blocks into one
    // file.
    await chain(1305, 1305);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 101 });
    expect(files()).toEqual(['1000/1000-1099.parquet', '1000/1100-1199.parquet', '1000/1200-1299.parquet', ...single(1300, 1305)]);
    expect(
      files()
        .slice(0, 2)
        .map((path) => statSync(join(to, 'pulled', path)).ino),
    ).toEqual(before.slice(0, 2));
    expect(statSync(join(to, 'pulled/runes.parquet')).ino).toBe(runes);
    const fresh = join(temporaryFolder(), 'input');
    await testPull(database.url, fresh);
    expect(tree(fresh)).toEqual(tree(to));
  });

  it('fetches files again if a killed pull did not write their checksum', async () => {
    await chain(1000, 1205);
    await testPull(database.url, to);
    const whole = tree(to);
    for (const path of ['runes.parquet', '1000/1000-1099.parquet', '1000/1203-1203.parquet']) rmSync(join(to, 'pulled', `${path}.sha256`));
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 101, replaced: 0 });
    expect(tree(to)).toEqual(whole);
  });

  it('keeps amounts, NULLs, empty strings and blocks without records as they are', async () => {
    await chain(1000, 1003);
    await database.sql.query('DELETE FROM ledger WHERE block_height = 1002');
    await database.sql.query(
      `UPDATE ledger SET amount = 340282366920938463463374607431768211455, address = '', receiver_address = 'a,"b"' || chr(10) || 'c', output = NULL
       WHERE block_height = 1001 AND tx_index = 1`,
    );
    await database.sql.query(`UPDATE ledger SET amount = NULL, operation = 'etching' WHERE block_height = 1001 AND tx_index = 0`);
    await testPull(database.url, to);
    expect(files()).toHaveLength(4);
    const out = join(temporaryFolder(), 'out');
    await leanBuild([to], out);
    const results = blocksOf(out).get(1001);
    expect(results).toMatchObject([
      { amount: '3402823669209384634633746074317682114.55', address: '', receiver_address: 'a,"b"\nc' },
      { operation: 'etching' },
    ]);
    expect(results?.[1]).not.toHaveProperty('amount');
    expect(results?.[0]?.location).not.toHaveProperty('vout');
  });

  it('replaces the last blocks after a reorganisation, and stops if the reorganisation was deeper', async () => {
    await chain(1000, 1120);
    await testPull(database.url, to);
    await chain(1117, 1118, 'fork');
    await database.sql.query('DELETE FROM ledger WHERE block_height > 1118');
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 2, replaced: 2, heights: [{ first: 1000, last: 1118 }] });
    const fresh = join(temporaryFolder(), 'input');
    await testPull(database.url, fresh);
    expect(tree(to)).toEqual(tree(fresh));
    await chain(1095, 1120, 'deep');
    const before = tree(to);
    const error = await failedPull(database.url, to);
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(
        /^block 1095 differs between .* and PostgreSQL .*; the last 24 blocks would have to be replaced, but this pull replaces only the last 6$/,
      ),
    ]);
    expect(error.details[0]).toMatch(/pull with --confirmations 24 or more/);
    expect(tree(to)).toEqual(before);
    // The changed block is in a file of a hundred blocks, so the pull fetches all blocks of this file again.
    await testPull(database.url, to, { confirmations: 24 });
    expect(await rows()).toEqual(await rowsOfTable());
  });

  it('replaces one of the last blocks if a cell changed, though its hash and number of records did not', async () => {
    await chain(1000, 1105);
    // Sets values that two programs may write in different ways.
    await database.sql.query(
      `UPDATE ledger SET address = 'é"✓,''' || chr(10) || '\\ ', amount = 0 WHERE block_height IN (1099, 1104) AND tx_index = 0`,
    );
    await testPull(database.url, to);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    const changes = [
      'amount = amount + 1',
      `address = CASE WHEN address IS NULL THEN '' END`,
      'output = NULL',
      'tx_index = 7 - tx_index',
      `operation = 'burn'`,
      'timestamp = timestamp + 1',
    ];
    for (const change of changes) {
      await database.sql.query(`UPDATE ledger SET ${change} WHERE block_height = 1104`);
      expect(await testPull(database.url, to), change).toMatchObject({ blocks: 1, replaced: 1 });
    }
    // Inserts the same rows in another order, which is no change.
    await database.sql.query(
      `WITH gone AS (DELETE FROM ledger WHERE block_height = 1103 RETURNING *) INSERT INTO ledger SELECT * FROM gone ORDER BY tx_index DESC`,
    );
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    // Changes the highest settled block, which is in a file of a hundred blocks. The pull must notice the change.
    await database.sql.query('UPDATE ledger SET amount = amount + 1 WHERE block_height = 1099');
    const error = await failedPull(database.url, to);
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/^block 1099 differs .* the last 7 blocks would have to be replaced/),
    ]);
    expect(await testPull(database.url, to, { confirmations: 7 })).toMatchObject({ replaced: 1 });
    expect(await rows()).toEqual(await rowsOfTable());
  });

  it('fetches blocks again if their files were removed, as docs/pull.md says', async () => {
    await chain(1000, 1215);
    await testPull(database.url, to);
    await database.sql.query('UPDATE ledger SET amount = amount + 1 WHERE block_height IN (1010, 1150)');
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    for (const name of ['1000-1099', '1100-1199']) rmSync(join(to, `pulled/1000/${name}.parquet`));
    expect(await testPull(database.url, to, { wanted: { from: 1000, to: 1199 } })).toMatchObject({ blocks: 200, replaced: 0 });
    const fresh = join(temporaryFolder(), 'input');
    await testPull(database.url, fresh);
    expect(tree(to)).toEqual(tree(fresh));
  });

  it('says once how to create an index by height if there is none', async () => {
    await chain(1000, 1010);
    const noticesOf = async () => {
      const log = new RecordingLog();
      await testPull(database.url, join(temporaryFolder(), 'input'), { log });
      return log.notices;
    };
    expect(await noticesOf()).toEqual([]);
    await database.sql.query('DROP INDEX ledger_block_height_tx_index_event_index; CREATE INDEX other ON ledger (tx_index, block_height)');
    const notices = await noticesOf();
    expect(notices).toEqual([expect.stringMatching(/^the table ledger of PostgreSQL .* has no index on block_height/)]);
    const [, sql = ''] = /(CREATE INDEX .*;)$/.exec(notices[0] ?? '') ?? [];
    await database.sql.query(sql);
    expect(await noticesOf()).toEqual([]);
    await database.sql.query('DROP INDEX other');
  });

  it('with many connections causes no warnings of Node, and leaves no listener on the signal that stops it', async () => {
    await chain(1000, 1030);
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on('warning', keep);
    const { signal } = new AbortController();
    await testPull(database.url, to, { concurrency: 30, signal });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', keep);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it.each([
    ['its rows', 3000],
    ['the Parquet file of its rows', 700],
  ])('on a disk too small for %s says so, and continues when there is space', async (_, kilobytes) => {
    const disk = join(temporaryFolder(), 'disk');
    if (!mountDisk(disk, '1m')) return;
    try {
      await chain(1000, 1099);
      // Fills addresses with hex digits, which hardly compress.
      await database.sql.query(
        `UPDATE ledger SET address = (SELECT string_agg(md5(block_height::text || tx_index || i), '') FROM generate_series(1, ${kilobytes * 10} / 32) AS i) WHERE tx_index = 0`,
      );
      const error = await failedPull(database.url, join(disk, 'input'), { confirmations: 0 });
      expect([error.exitCode, error.message]).toEqual([3, `the disk of ${disk}/input/pulled is full`]);
      await chain(1000, 1099);
      await testPull(database.url, join(disk, 'input'), { confirmations: 0 });
      await testPull(database.url, to, { confirmations: 0 });
      expect(tree(join(disk, 'input'))).toEqual(tree(to));
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it('sees a snapshot, whatever is written meanwhile', async () => {
    await chain(1000, 1009);
    const folder = join(to, 'pulled');
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
    const { signal } = new AbortController();
    await testPull(database.url, to);
    const before = tree(folder);
    const source = new DatabaseSource({ url: database.url, folder, connections: 3, store, signal, onNotice: () => undefined });
    mkdirSync(join(folder, '.work'), { recursive: true });
    expect(await source.look()).toMatchObject({ first: 1000, last: 1009 });
    await chain(1005, 1020, 'later');
    await database.sql.query('DELETE FROM ledger WHERE block_height = 1001');
    await Promise.all([1001, 1005, 1009].map((height) => source.fetch({ first: height, last: height })));
    expect(tree(folder)).toEqual(before);
    // Only a call of look() reads a new snapshot of the database.
    expect(await source.look()).toMatchObject({ last: 1020 });
    expect((await source.identities([1001])).get(1001)).toEqual({ hash: '', records: 0 });
    await source.close();
    store.close();
  });

  it('continues from the files of a pull from a server of the API, and the other way round', async () => {
    await fill();
    const server = new ApiServer();
    const { blocks, manifest } = await recordedBlocks();
    for (const [height, records] of blocks) server.blocks.set(height, records);
    server.tip = 840_020;
    const base = await server.start();
    await testPull(base, to);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 19, replaced: 0 });
    server.tip = undefined;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, replaced: 0 });
    await server.close();
    expect((await build()).digest).toBe(manifest.digest);
  });

  it('brings rows whose rune is not in runes: a build leaves them out, and counts as a server of the API does', async () => {
    await chain(1000, 1012);
    await database.sql.query(`UPDATE ledger SET rune_id = '0:0' WHERE block_height = 1011 OR (block_height = 1012 AND tx_index = 1)`);
    await testPull(database.url, to);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0, replaced: 0 });
    const out = join(temporaryFolder(), 'out');
    const manifest = await leanBuild([to], out);
    expect(manifest).toMatchObject({
      heights: [
        [1000, 1010],
        [1012, 1012],
      ],
      left_out: { rows: 3, runes: ['0:0'], more_runes: 0 },
    });
    const server = new ApiServer();
    for (const [height, records] of blocksOf(out)) server.blocks.set(height, records);
    server.blocks.set(1011, []);
    const base = await server.start();
    const other = join(temporaryFolder(), 'input');
    const wanted = { from: 1000, to: undefined };
    try {
      expect(await testPull(base, to, { wanted })).toMatchObject({ blocks: 0, replaced: 0 });
      await testPull(base, other, { wanted });
      expect(await testPull(database.url, other)).toMatchObject({ blocks: 0, replaced: 0 });
    } finally {
      await server.close();
    }
    expect((await build(other)).digest).toBe(manifest.digest);
  });

  it('changes nothing when the database refuses it, including the runes', async () => {
    await chain(1000, 1010);
    await testPull(database.url, to);
    const before = tree(to);
    await database.sql.query(`UPDATE runes SET name = 'OTHER'`);
    await chain(1000, 1010, 'another chain');
    expect((await failedPull(database.url, to)).exitCode).toBe(2);
    expect(tree(to)).toEqual(before);
    await database.sql.query('TRUNCATE ledger, runes');
    expect((await failedPull(database.url, to)).exitCode).toBe(2);
    expect(tree(to)).toEqual(before);
  });

  it('keeps runes that a lagging database does not have yet', async () => {
    await chain(1000, 1010);
    await database.sql.query(`INSERT INTO runes SELECT '1010:0', 9, 'NEW', 'NEW', block_hash, 1010, 0, tx_id, 0, 0, 'x', NULL, NULL, NULL, NULL, NULL, NULL, false, false, 0 FROM runes;
      UPDATE ledger SET rune_id = '1010:0' WHERE block_height = 1010`);
    await testPull(database.url, to);
    const before = tree(to);
    await database.sql.query(`DELETE FROM ledger WHERE block_height > 1008; DELETE FROM runes WHERE id = '1010:0'`);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    expect(tree(to)).toEqual(before);
  });

  it('brings all columns of runes, as text, numbers and booleans', async () => {
    await fill();
    await testPull(database.url, to, { wanted: { from: 840_000, to: 840_000 } });
    const fields = [...RUNE_FIELDS, ...RUNE_DETAILS];
    const texts = fields.map(({ column }) => `${column}::text AS ${column}`).join(', ');
    const { rows: expected } = await database.sql.query(`SELECT ${texts} FROM runes ORDER BY runes.id COLLATE "C"`);
    expect(await runesRows(texts)).toEqual(expected);
    const types = await runesRows('DISTINCT typeof(block_height) AS height, typeof(turbo) AS turbo, typeof(premine) AS premine');
    expect(types).toEqual([{ height: 'BIGINT', turbo: 'BOOLEAN', premine: 'VARCHAR' }]);
  });

  it('brings runes without the columns that a database lacks, and keeps these columns for older rows', async () => {
    await chain(1000, 1010);
    await database.sql.query(`INSERT INTO runes SELECT '1010:0', 9, 'NEW', 'NEW', block_hash, 1010, 0, tx_id, 0, 5, 'x', 1, 2, NULL, NULL, NULL, NULL, true, false, 0 FROM runes;
      CREATE SCHEMA lean; CREATE VIEW lean.ledger AS SELECT * FROM ledger;
      CREATE VIEW lean.runes AS SELECT id, number, name, spaced_name, divisibility, turbo FROM runes`);
    const lean = `${database.url}?options=-csearch_path%3Dlean`;
    try {
      await testPull(database.url, to);
      await database.sql.query(`DELETE FROM ledger WHERE block_height > 1008; DELETE FROM runes WHERE id = '1010:0'`);
      const log = new RecordingLog();
      await testPull(lean, to, { log });
      expect(log.notices).toEqual([
        expect.stringMatching(
          /^the table runes of PostgreSQL .* lacks block_hash, block_height, tx_index, tx_id, premine, symbol, cenotaph, .*timestamp; runes are/,
        ),
      ]);
      const all = 'id, number, turbo, premine, terms_cap';
      const old = { id: '1010:0', number: 9, turbo: true, premine: '5', terms_cap: '2' };
      const known = { id: '1:0', number: 0, turbo: false, premine: null, terms_cap: null };
      expect(await runesRows(all)).toEqual([old, known]);
      await testPull(database.url, to);
      expect(await runesRows(all)).toEqual([old, { ...known, premine: '0' }]);
      expect((await build()).left_out).toBeUndefined();
    } finally {
      await database.sql.query('DROP SCHEMA lean CASCADE');
    }
  });

  it('keeps all blocks below the first block of a database', async () => {
    await chain(1000, 1300);
    await testPull(database.url, to, { wanted: { from: 1000, to: 1060 } });
    await testPull(database.url, to, { wanted: { from: 1061, to: 1090 } });
    await database.sql.query('DELETE FROM ledger WHERE block_height < 1050');
    expect(await testPull(database.url, to)).toMatchObject({ heights: [{ first: 1000, last: 1300 }] });
    await chain(1055, 1300, 'fork');
    const error = await failedPull(database.url, to, { confirmations: 1000 });
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/1000-1060\.parquet must be fetched again, but .* begins at block 1050$/),
    ]);
  });

  it('repairs a file of a hundred blocks after a failure of the source', async () => {
    await chain(1001, 1105);
    await testPull(database.url, to);
    const server = new ApiServer();
    for (let height = 1001; height <= 1120; height += 1) server.blocks.set(height, []);
    const out = join(temporaryFolder(), 'out');
    await leanBuild([to], out);
    for (const [height, results] of blocksOf(out)) if (height < 1098) server.blocks.set(height, results);
    for (let height = 1098; height <= 1120; height += 1) server.blocks.set(height, block(height, 3, 'fork'));
    server.fault = (target) => (target.includes('/1050/') && !target.endsWith('limit=1') ? { kind: 'status', status: 500 } : undefined);
    const base = await server.start();
    expect((await failedPull(base, to, { confirmations: 8, retries: 1 })).exitCode).toBe(3);
    server.fault = () => undefined;
    await testPull(base, to, { confirmations: 8 });
    const fresh = join(temporaryFolder(), 'input');
    await testPull(base, fresh, { wanted: { from: 1001, to: undefined } });
    await server.close();
    // Compares only files of blocks. The files of runes and the list of blocks show that the first pull came from the
    // database.
    const ofBlocks = (folder: string) => Object.entries(tree(folder)).filter(([path]) => !/runes\.parquet|blocks\.json/.test(path));
    expect(ofBlocks(to)).toEqual(ofBlocks(fresh));
  });

  it.each([
    ['ends its connections', `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror'`],
    ['cancels its queries', `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror'`],
  ])('says so when the database %s, and continues', async (_, query) => {
    await chain(1000, 1010);
    const locker = new pg.Client({ connectionString: database.url });
    await locker.connect();
    await locker.query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
    const pulling = failedPull(database.url, to);
    await waitForLock();
    await database.sql.query(query);
    expect(await pulling).toMatchObject({ exitCode: 3, message: expect.stringMatching(/^PostgreSQL 127.*: /) });
    await locker.end();
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 11 });
  });

  it('accepts hashes with 0x, in any case', async () => {
    await chain(1000, 1010);
    await database.sql.query(`UPDATE ledger SET block_hash = '0x' || upper(block_hash)`);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 11 });
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
  });

  it('needs only the right to read', async () => {
    await chain(1000, 1003);
    await database.sql.query(`CREATE ROLE reader LOGIN PASSWORD 'SECRET'; GRANT SELECT ON ledger, runes TO reader`);
    const url = database.url.replace('indexer@', 'reader:SECRET@');
    expect(await testPull(url, to)).toMatchObject({ blocks: 4 });
    await database.sql.query('REVOKE SELECT ON runes FROM reader');
    const error = await failedPull(url, to);
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/^PostgreSQL 127.*: permission denied for table runes$/)]);
    expect(`${error.message}${error.details}`).not.toContain('SECRET');
    await database.sql.query('REVOKE ALL ON ledger FROM reader; DROP ROLE reader');
  });

  it.each([
    ['of another name', (url: string) => `${url}x`, 2, /database "postgresx" does not exist/],
    ['that is not there', (url: string) => url.replace(/:[0-9]+\//, ':1/'), 3, /ECONNREFUSED/],
    ['without the tables', (url: string) => url.replace(/postgres$/, 'template1'), 2, /relation "ledger" does not exist/],
    ['that is empty', (url: string) => url, 2, /^the table ledger of .* is empty$/],
    ['without SSL', (url: string) => `${url}?sslmode=require`, 2, /does not support SSL/],
    ['with a certificate that is not there', (url: string) => `${url}?sslrootcert=/none.pem`, 2, /no such file .*'\/none\.pem'$/],
    ['without a certificate', (url: string) => `${url}?sslmode=verify-ca`, 2, /requires specifying a CA with sslrootcert/],
    ['with unknown settings', (url: string) => `${url}?options=-cnonsense%3D1`, 2, /unrecognized configuration parameter "nonsense"/],
  ])('explains a database %s', async (_, change, code, message) => {
    const error = await failedPull(change(database.url), to);
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.details).toHaveLength(1);
  });

  it('explains a missing or wrong password', async () => {
    await chain(1000, 1003);
    await database.sql.query(`CREATE ROLE ${CAREFUL} LOGIN PASSWORD 'SECRET'; GRANT SELECT ON ledger, runes TO ${CAREFUL}`);
    const as = (user: string) => database.url.replace('indexer@', `${user}@`);
    const advice = ['Check user and password in --from, or in the environment variables PGUSER and PGPASSWORD.'];
    expect(await failedPull(as(CAREFUL), to)).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^PostgreSQL 127.* requires a password, and none was given$/),
      details: advice,
    });
    const wrong = await failedPull(as(`${CAREFUL}:WRONG`), to);
    expect([wrong.exitCode, wrong.message, wrong.details]).toEqual([2, expect.stringMatching(/password authentication failed/), advice]);
    expect(await testPull(as(`${CAREFUL}:SECRET`), to)).toMatchObject({ blocks: 4 });
    await database.sql.query(`REVOKE ALL ON ledger, runes FROM ${CAREFUL}; DROP ROLE ${CAREFUL}`);
  });

  it('finds tables in another schema with the setting that its advice names', async () => {
    await chain(1000, 1003);
    const move = (from: string, to: string) =>
      database.sql.query(`ALTER TABLE ${from}.ledger SET SCHEMA ${to}; ALTER TABLE ${from}.runes SET SCHEMA ${to}`);
    await database.sql.query('CREATE SCHEMA elsewhere');
    await move('public', 'elsewhere');
    const error = await failedPull(database.url, to);
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/relation "ledger" does not exist$/)]);
    const [setting = ''] = /\?\S*NAME/.exec(error.details[0] ?? '') ?? [];
    expect(readPage('docs/pull.md')).toContain(`\`${setting}\``);
    const log = new RecordingLog();
    expect(await testPull(database.url + setting.replace('NAME', 'elsewhere'), to, { log })).toMatchObject({ blocks: 4 });
    expect(log.notices).toEqual([]);
    await move('elsewhere', 'public');
  });

  it.each([
    ['heights that are text', 'ALTER TABLE ledger ALTER block_height TYPE text', /operator does not exist: text >= integer$/],
    [
      'heights that are no numbers',
      `UPDATE ledger SET block_height = 'NaN' WHERE tx_index = 1`,
      /ledger of .* has the invalid block_height NaN$/,
    ],
    [
      'heights that are no integers',
      'UPDATE ledger SET block_height = 1000.5 WHERE block_height = 1000',
      /has the invalid block_height 1000\.5$/,
    ],
    ['a negative height', 'UPDATE ledger SET block_height = -1 WHERE block_height = 1000', /has the invalid block_height -1$/],
    [
      'heights above all chains',
      'UPDATE ledger SET block_height = 1e9 WHERE block_height = 1003',
      /has the invalid block_height 1000000000$/,
    ],
    [
      'text in a column of integers',
      `ALTER TABLE ledger ALTER output TYPE text; UPDATE ledger SET output = 'x' WHERE tx_index = 1`,
      /the table ledger of PostgreSQL .* has a value of the wrong type: Conversion Error: .*'x'/,
    ],
    ['a column less', 'ALTER TABLE ledger DROP COLUMN output', /column "output" does not exist/],
  ])('explains %s', async (_, sql, message) => {
    await chain(1000, 1003);
    // Creates tables for this case alone, in a schema that comes first in the user's search path.
    await database.sql.query(
      `CREATE SCHEMA broken; CREATE TABLE broken.ledger (LIKE public.ledger INCLUDING INDEXES); INSERT INTO broken.ledger TABLE public.ledger`,
    );
    await database.sql.query(`SET search_path = broken, public; ${sql}; SET search_path = public`);
    const error = await failedPull(`${database.url}?options=-csearch_path%3Dbroken,public`, to, { confirmations: 1 });
    await database.sql.query('DROP SCHEMA broken CASCADE');
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(message)]);
    expect(error.message).not.toContain('\n');
    expect(error.details).toHaveLength(1);
  });

  it.each([
    ['damaged', (path: string) => writeFileSync(path, 'PAR1 no')],
    [
      'a folder',
      (path: string) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])('explains runes that are %s, if it needs them', async (_, damage) => {
    await chain(1000, 1010);
    await testPull(database.url, to);
    await database.sql.query('DELETE FROM ledger WHERE block_height > 1008');
    damage(join(to, 'pulled/runes.parquet'));
    const error = await failedPull(database.url, to);
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/\/pulled\/runes\.parquet cannot be read: /)]);
  });

  it('is not ended by time limits that the database sets for its users', async () => {
    await chain(1000, 1003);
    const limits = ['statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout'];
    await database.sql.query(limits.map((limit) => `ALTER ROLE indexer SET ${limit} = '200ms'`).join(';'));
    const locker = new pg.Client({ connectionString: database.url });
    await locker.connect();
    await locker.query('SET statement_timeout = 0; SET transaction_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await locker.query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
    const pulling = testPull(database.url, to);
    await waitForLock();
    const late = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '250ms'`;
    await until(async () => (await database.sql.query(late)).rows.length > 0);
    await locker.end();
    expect(await pulling).toMatchObject({ blocks: 4 });
    await database.sql.query(limits.map((limit) => `ALTER ROLE indexer RESET ${limit}`).join(';'));
  });

  it('stops immediately on a signal, also while the database makes it wait', async () => {
    await chain(1000, 1003);
    await database.sql.query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
    try {
      const stopping = new AbortController();
      const pulling = failedPull(database.url, to, { signal: stopping.signal });
      await waitForLock();
      stopping.abort();
      expect(await pulling).toMatchObject({ exitCode: 130, message: expect.stringMatching(/^stopped; fetched blocks/) });
    } finally {
      await database.sql.query('ROLLBACK');
    }
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 4 });
  });
});

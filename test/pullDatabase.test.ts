/** Pulls from a real PostgreSQL with the indexer's tables. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checksumText, sha256Of } from '../src/input/checksums.ts';
import { BLOCKS_FOLDER } from '../src/pages/paths.ts';
import { DatabaseSource } from '../src/pull/postgres.ts';
import { Store } from '../src/store/duckdb.ts';
import { ApiServer } from './support/apiServer.ts';
import { CONFORMANCE, CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, tree } from './support/build.ts';
import { run, start } from './support/cli.ts';
import { copyIn, type Database, SCHEMA, startPostgres } from './support/postgres.ts';
import { block, failedPull, recordedBlocks, testPull } from './support/pull.ts';
import type { Activity } from './support/records.ts';

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

const build = async (folder = to) => (await testBuild(join(temporaryFolder(), 'out'), { inputs: [folder] })).manifest;
const files = () => filesBelow(join(to, 'pulled')).filter((path) => !/^runes\.parquet|\.sha256$/.test(path));

/** The recorded tables. */
async function fill(): Promise<void> {
  for (const table of ['runes', 'ledger']) await copyIn(database.sql, table, readFileSync(join(CONFORMANCE, `${table}.csv`)));
}

/** Made-up blocks of 1 to 5 records. `fork` tells them from others at their heights. */
async function chain(first: number, last: number, fork = ''): Promise<void> {
  await database.sql.query(
    `INSERT INTO runes SELECT '1:0', 0, 'MADEUP', 'MADE•UP', repeat('0', 64), 1, 0, repeat('0', 64), 2, 0, 'x', NULL, NULL, NULL, NULL, NULL, NULL, false, false, 0
     ON CONFLICT DO NOTHING`,
  );
  await database.sql.query(`DELETE FROM ledger WHERE block_height BETWEEN ${first} AND ${last}`);
  await database.sql.query(
    `INSERT INTO ledger SELECT '1:0', encode(sha256(('block ' || h || '${fork}')::bytea), 'hex'), h, i, 0, encode(sha256(('tx ' || h || ' ' || i || '${fork}')::bytea), 'hex'),
       i, CASE WHEN i % 2 = 0 THEN 'bc1q' || i END, NULL, i * 7, (ARRAY['mint', 'send', 'receive'])[i % 3 + 1]::ledger_operation, 1700000000 + h
     FROM generate_series(${first}, ${last}) AS h, generate_series(0, h % 5) AS i`,
  );
}

describe('a pull from PostgreSQL', () => {
  it('builds the same mirror as the export, and says what it did', async () => {
    await fill();
    const { code, stdout, stderr } = await run('pull', ['--from', database.url, '--to', to], to.replace(/input$/, ''));
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^PostgreSQL 127\.0\.0\.1:[0-9]+\/postgres has blocks up to 840039: 40 blocks to fetch\.\nFetched 40 blocks with 8,771 records .* holds blocks 840000\.\.840039\.\n {2}blocks +40 fetched, 0 of those held are others now\n {2}records +8,771\n(?: {2}.*\n)+$/,
    );
    const whole = await testBuild(join(temporaryFolder(), 'whole'), { inputs: CONFORMANCE_INPUTS });
    expect(await build()).toEqual(whole.manifest);
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
    // Now the third hundred is settled, and what was fetched one by one becomes one file.
    await chain(1305, 1305);
    const whole = await build();
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 101 });
    expect(files()).toEqual(['1000/1000-1099.parquet', '1000/1100-1199.parquet', '1000/1200-1299.parquet', ...single(1300, 1305)]);
    expect(
      files()
        .slice(0, 2)
        .map((path) => statSync(join(to, 'pulled', path)).ino),
    ).toEqual(before.slice(0, 2));
    expect(statSync(join(to, 'pulled/runes.parquet')).ino).toBe(runes);
    const { digest, heights } = await build();
    expect(heights).toEqual([[1000, 1305]]);
    expect(digest).not.toBe(whole.digest);
    const fresh = join(temporaryFolder(), 'input');
    await testPull(database.url, fresh);
    expect(tree(fresh)).toEqual(tree(to));
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
    await testBuild(out, { inputs: [to] });
    const { results } = JSON.parse(readFileSync(join(out, BLOCKS_FOLDER, '1001.json'), 'utf8')) as { results: Record<string, unknown>[] };
    expect(results).toMatchObject([
      { amount: '3402823669209384634633746074317682114.55', address: '', receiver_address: 'a,"b"\nc' },
      { operation: 'etching' },
    ]);
    expect(results[1]).not.toHaveProperty('amount');
    expect(results[0]?.['location']).not.toHaveProperty('vout');
  });

  it('replaces the last blocks when the chain was reorganised, and stops when that was deeper', async () => {
    await chain(1000, 1120);
    await testPull(database.url, to);
    await chain(1117, 1118, 'fork');
    await database.sql.query('DELETE FROM ledger WHERE block_height > 1118');
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 2, replaced: 2, held: [{ first: 1000, last: 1118 }] });
    const fresh = join(temporaryFolder(), 'input');
    await testPull(database.url, fresh);
    expect(tree(to)).toEqual(tree(fresh));
    await chain(1095, 1120, 'deep');
    const before = tree(to);
    const error = await failedPull(database.url, to);
    expect([error.exitCode, error.message]).toEqual([2, expect.stringMatching(/^block 1112 is held, and PostgreSQL .* has another one/)]);
    expect(tree(to)).toEqual(before);
    // Deep enough to touch a file of a hundred: all of it is fetched again.
    await testPull(database.url, to, { confirmations: 30 });
    const again = join(temporaryFolder(), 'input');
    await testPull(database.url, again, { confirmations: 30 });
    expect((await build()).digest).toBe((await build(again)).digest);
  });

  it('sees one moment, whatever is written meanwhile', async () => {
    await chain(1000, 1009);
    const folder = join(to, 'pulled');
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(temporaryFolder(), 'scratch') });
    const { signal } = new AbortController();
    await run('pull', ['--from', database.url, '--to', to], '/');
    const before = tree(folder);
    const source = new DatabaseSource({ url: database.url, folder, connections: 3, store, signal });
    mkdirSync(join(folder, '.work'), { recursive: true });
    expect(await source.look()).toMatchObject({ first: 1000, last: 1009 });
    await chain(1005, 1020, 'later');
    await database.sql.query('DELETE FROM ledger WHERE block_height = 1001');
    await Promise.all([1001, 1005, 1009].map((height) => source.fetch({ first: height, last: height })));
    expect(tree(folder)).toEqual(before);
    // Another look, another moment.
    expect(await source.look()).toMatchObject({ last: 1020 });
    expect((await source.identities([1001])).get(1001)).toEqual({ hash: '', records: 0 });
    await source.close();
    store.close();
  });

  it('goes on from what a server of the API gave, and the other way round', async () => {
    await fill();
    const server = new ApiServer();
    for (const [height, records] of await recordedBlocks()) server.blocks.set(height, records);
    server.tip = 840_020;
    const base = await server.start();
    await testPull(base, to);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 19, replaced: 0 });
    server.tip = undefined;
    expect(await testPull(base, to)).toMatchObject({ blocks: 0, replaced: 0 });
    await server.close();
    expect((await build()).digest).toBe(
      (await testBuild(join(temporaryFolder(), 'whole'), { inputs: CONFORMANCE_INPUTS })).manifest.digest,
    );
  });

  it('touches nothing when it is refused, also not the runes', async () => {
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

  it('keeps the runes that a database which is behind does not have yet', async () => {
    await chain(1000, 1010);
    await database.sql.query(`INSERT INTO runes SELECT '1010:0', 9, 'NEW', 'NEW', block_hash, 1010, 0, tx_id, 0, 0, 'x', NULL, NULL, NULL, NULL, NULL, NULL, false, false, 0 FROM runes;
      UPDATE ledger SET rune_id = '1010:0' WHERE block_height = 1010`);
    await testPull(database.url, to);
    const whole = await build();
    await database.sql.query(`DELETE FROM ledger WHERE block_height > 1008; DELETE FROM runes WHERE id = '1010:0'`);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
    expect(await build()).toEqual(whole);
  });

  it('lets go of nothing below the first block of a database', async () => {
    await chain(1000, 1300);
    await testPull(database.url, to, { wanted: { from: 1000, to: 1060 } });
    await testPull(database.url, to, { wanted: { from: 1061, to: 1090 } });
    await database.sql.query('DELETE FROM ledger WHERE block_height < 1050');
    await testPull(database.url, to);
    expect((await build()).heights).toEqual([[1000, 1300]]);
    await chain(1055, 1300, 'fork');
    const error = await failedPull(database.url, to, { confirmations: 1000 });
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/1000-1060\.parquet must be fetched again, and .* begins only with block 1050$/),
    ]);
  });

  it('mends what a server that failed left of a file of a hundred', async () => {
    await chain(1001, 1105);
    await testPull(database.url, to);
    const server = new ApiServer();
    for (let height = 1001; height <= 1120; height += 1) server.blocks.set(height, []);
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { inputs: [to], dialect: 'hiro', pageSizes: [1000] });
    for (let height = 1001; height < 1098; height += 1) {
      const { results } = JSON.parse(readFileSync(join(out, BLOCKS_FOLDER, `${height}.json`), 'utf8')) as { results: Activity[] };
      server.blocks.set(height, results);
    }
    for (let height = 1098; height <= 1120; height += 1) server.blocks.set(height, block(height, 3, 'fork'));
    server.fault = (target) => (target.includes('/1050/') && !target.endsWith('limit=1') ? { kind: 'status', status: 500 } : undefined);
    const base = await server.start();
    expect((await failedPull(base, to, { confirmations: 8, retries: 1 })).exitCode).toBe(3);
    server.fault = () => undefined;
    await testPull(base, to, { confirmations: 8 });
    const fresh = join(temporaryFolder(), 'input');
    await testPull(base, fresh, { wanted: { from: 1001, to: undefined } });
    await server.close();
    expect((await build()).digest).toBe((await build(fresh)).digest);
    expect(files().filter((path) => path.endsWith('.parquet'))).toEqual([]);
  });

  it.each([
    ['ends its connections', `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror'`],
    ['cancels its queries', `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror'`],
  ])('says so when the database %s, and goes on', async (_, query) => {
    await chain(1000, 1010);
    const locker = new pg.Client({ connectionString: database.url });
    await locker.connect();
    await locker.query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
    const pulling = failedPull(database.url, to);
    for (let waiting = 0; waiting === 0; ) {
      const { rows } = await database.sql.query<{ n: string }>(
        `SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'rune-activity-mirror' AND wait_event_type = 'Lock'`,
      );
      waiting = Number(rows[0]?.n);
    }
    await database.sql.query(query);
    expect(await pulling).toMatchObject({ exitCode: 3, message: expect.stringMatching(/^PostgreSQL 127.*: /) });
    await locker.end();
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 11 });
  });

  it('takes hashes with 0x, in any case', async () => {
    await chain(1000, 1010);
    await database.sql.query(`UPDATE ledger SET block_hash = '0x' || upper(block_hash)`);
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 11 });
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 0 });
  });

  it('needs no more than the right to read', async () => {
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
  ])('explains a database %s', async (_, change, code, message) => {
    const error = await failedPull(change(database.url), to);
    expect([error.exitCode, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.details).toHaveLength(1);
  });

  it('stops at once when it is told to, also while the database makes it wait', async () => {
    await chain(1000, 1003);
    await database.sql.query('BEGIN; LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE');
    try {
      const child = start('pull', ['--from', database.url, '--to', to], '/');
      let error = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        error += chunk.toString();
      });
      const ended = once(child, 'exit');
      const waiting = 'SELECT pid FROM pg_locks WHERE NOT granted';
      while (child.exitCode === null && (await database.sql.query(waiting)).rows.length === 0) await sleep(50);
      child.kill('SIGTERM');
      expect((await ended)[0]).toBe(130);
      expect(error).toMatch(/^Error: stopped; what was fetched is kept/);
    } finally {
      await database.sql.query('ROLLBACK');
    }
    expect(await testPull(database.url, to)).toMatchObject({ blocks: 4 });
  });

  it('is killed 20 times at random moments, and the files are those of one that was not', async () => {
    await chain(1000, 1450);
    const whole = join(temporaryFolder(), 'input');
    await testPull(database.url, whole);
    let random = 11;
    for (let killed = 0; killed < 20; killed += 1) {
      const child = start('pull', ['--from', database.url, '--to', to, '--concurrency', '2'], '/');
      random = (random * 16807) % 2147483647;
      // Most of the time from the first connection until the end.
      const timer = setTimeout(() => child.kill('SIGKILL'), 500 + (random % 500));
      await once(child, 'exit');
      clearTimeout(timer);
    }
    await testPull(database.url, to);
    expect(tree(to)).toEqual(tree(whole));
  });
});

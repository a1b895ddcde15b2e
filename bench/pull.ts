/**
 * The pull benchmark. Pulls invented rows from PostgreSQL, and then four times as many rows. Also pulls over HTTP from
 * a mirror of these rows, with and without its manifest. The servers run on this machine and share its cores.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, type Flags, HELP, LOG } from '../src/cli/flags.ts';
import type { Log } from '../src/cli/log.ts';
import { createMirrorServer } from '../src/serve/local/server.ts';
import { temporaryFolder, testBuild } from '../test/support/build.ts';
import { runProcess as run } from '../test/support/cli.ts';
import { type Database, SCHEMA, startPostgres } from '../test/support/postgres.ts';

export const BENCH_PULL_COMMAND: Command = {
  call: 'npm run bench:pull --',
  about: 'Measures pulls of invented blocks from PostgreSQL and over HTTP.',
  flags: [
    { name: 'records', value: 'N', byDefault: '1000000', about: 'Rows of the smaller table; the larger has four times as many.' },
    { name: 'blocks', value: 'N', byDefault: '200', about: 'Number of blocks to pull over HTTP.' },
    { name: 'concurrency', value: 'N', byDefault: '4', about: 'As for the pull.' },
    LOG,
    HELP,
  ],
  examples: [{ args: '--records 20000 --blocks 20', about: 'Runs a short test.' }],
  exits: ['done', 'usage', 'buildFailed'],
};

const RECORDS_PER_BLOCK = 2000;
const FIRST = 840_000;

/** Fields of the report that a pull writes (`--log json`). */
interface Pulled {
  readonly records: number;
  readonly blocks: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly peak_rss_mb: number;
}

export async function benchPull(flags: Flags, log: Log): Promise<void> {
  const records = flags.integer('records', 1_000_000, 20_000, 100_000_000);
  const blocks = flags.integer('blocks', 200, 1, 100_000);
  const concurrency = String(flags.integer('concurrency', 4, 1, 64));
  const folder = mkdtempSync(join(tmpdir(), 'mirror-bench-'));
  process.env['MIRROR_TEST_FOLDER'] = folder;
  const database = await startPostgres();
  try {
    await database.sql.query(SCHEMA);
    let input = '';
    for (const size of [records, 4 * records]) {
      await fill(database, size);
      input = join(temporaryFolder(), 'input');
      const pulled = await pull(['--from', database.url, '--to', input, '--concurrency', concurrency]);
      report(`PostgreSQL, ${size.toLocaleString('en-US')} rows`, pulled, log);
    }
    const out = join(temporaryFolder(), 'dist');
    await testBuild(out, { inputs: [input], layout: 'archive', blocks: { from: FIRST, to: FIRST + blocks - 1 } });
    for (const isMirror of [true, false]) {
      const { base, close } = await serve(out, isMirror);
      const to = join(temporaryFolder(), 'input');
      const pulled = await pull(['--from', base, '--to', to, '--concurrency', concurrency, '--rate', '0', '--blocks', `${FIRST}..`]);
      report(isMirror ? 'HTTP, a mirror' : 'HTTP, any server, pages of 60', pulled, log);
      close();
    }
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Fills the tables with four rows per transaction. The rows are as long as real ones. */
async function fill({ sql }: Database, records: number): Promise<void> {
  await sql.query('TRUNCATE runes, ledger');
  await sql.query(`INSERT INTO runes SELECT '1:' || i, i, 'RUNE' || i, 'RUNE•' || i, repeat('0', 64), 1, 0, repeat('0', 64), 2, 0, 'x', NULL, NULL, NULL, NULL, NULL, NULL,
    false, false, 0 FROM generate_series(0, 999) AS i`);
  await sql.query(`INSERT INTO ledger SELECT '1:' || (i % 1000), md5('b' || b) || md5('c' || b), b, t, i % 4, md5('t' || b || '.' || t) || md5('u' || b || '.' || t),
      i % 4, 'bc1p' || substr(md5(i::text) || md5('a' || i), 1, 58), CASE WHEN i % 2 = 0 THEN 'bc1p' || substr(md5('r' || i) || md5('s' || i), 1, 58) END, i::numeric * 12345,
      CASE WHEN i % 2 = 0 THEN 'send' ELSE 'receive' END::ledger_operation, 1700000000 + b
    FROM (SELECT i, ${FIRST} + i / ${RECORDS_PER_BLOCK} AS b, i % ${RECORDS_PER_BLOCK} / 4 AS t FROM generate_series(0, ${records - 1}) AS i)`);
  await sql.query('VACUUM ANALYZE ledger');
}

async function pull(args: readonly string[]): Promise<Pulled> {
  const { code, stdout, stderr } = await run('pull', [...args, '--log', 'json'], '/');
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  if (code !== 0) throw new Error(`the pull ended with exit code ${code}: ${stderr}`);
  return JSON.parse(last) as Pulled;
}

/** Serves a build on a free port. Without the manifest, a pull treats the mirror like any other server of the API. */
async function serve(dir: string, isMirror: boolean): Promise<{ readonly base: string; close(): void }> {
  const mirror = createMirrorServer(dir);
  const server = createServer((request, response) => {
    if (!isMirror && request.url?.endsWith('/manifest.json') === true) response.writeHead(404).end();
    else mirror.emit('request', request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function report(name: string, { records, blocks, bytes, seconds, peak_rss_mb }: Pulled, log: Log): void {
  const [rows, perSecond] = [Math.round(records / seconds), Math.round(blocks / seconds)];
  log.info(
    'measured',
    `${name}: ${blocks} blocks, ${records.toLocaleString('en-US')} records, ${(bytes / 1e6).toFixed(0)} MB of files in ${seconds} s; ` +
      `${rows.toLocaleString('en-US')} records/s, ${perSecond.toLocaleString('en-US')} blocks/s; peak RSS ${peak_rss_mb} MB`,
    { name, records, blocks, bytes, seconds, peak_rss_mb },
  );
}

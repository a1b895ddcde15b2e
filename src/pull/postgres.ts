/**
 * Blocks from the database of a bitcoin-indexer: rows of `ledger` in ranges of heights, and what they need of `runes`, all of one moment. Only reads.
 */
import { existsSync, readFileSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { type Field, LEDGER_FIELDS, RUNE_FIELDS } from '../contract/fields.ts';
import { BuildError, CliError, codeOf, InputError, messageOf } from '../errors.ts';
import { literal, type Store, toNumber } from '../store/duckdb.ts';
import { readFiles, readParquetFooter } from '../store/files.ts';
import type { BlockIdentity } from './block.ts';
import { checkDigest, ledgerFile, RUNES_FILE } from './held.ts';
import type { Heights } from './plan.ts';
import { identitiesSql, readIdentityRows } from './rows.ts';
import { type Extent, type Fetched, HIGHEST, type Source } from './source.ts';
import { isDiskFull, putInPlace, saveStream, workFile, writeError } from './write.ts';

export interface DatabaseOptions {
  /** A `postgres://` URL. */
  readonly url: string;
  readonly folder: string;
  /** How many connections read at once. */
  readonly connections: number;
  readonly store: Store;
  readonly signal: AbortSignal;
  /** Told of what makes pulls slow. */
  readonly onNotice: (message: string) => void;
}

/** Settled heights in a file: some hundred thousand records, so that working memory stays small and all of history is a thousand files. */
const HEIGHTS_PER_FILE = 100;

/** How long a connection may take, in milliseconds. */
const CONNECT_MS = 30_000;

/** How long a connection may be silent before the kernel asks whether the other side still exists, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;

/** How long the database may take to say goodbye, in milliseconds: one that is still sending rows does not. */
const GOODBYE_MS = 1000;

/** Rows of a table. */
interface RowsWanted {
  readonly where?: string | undefined;
  readonly order: string;
  /** A Parquet file whose rows stay that have another id. */
  readonly kept?: string | undefined;
}

export class DatabaseSource implements Source {
  readonly name: string;
  readonly perFile = HEIGHTS_PER_FILE;
  readonly knowsDigests = false;
  readonly #options: DatabaseOptions;
  /** Each is one connection, in a transaction that sees the same moment as the others'. Empty before the first look. */
  #connections: readonly pg.Client[] = [];
  /** Those of them that nobody uses. */
  #idle: pg.Client[] = [];
  #isConnected = false;
  readonly #stop = () => this.#hangUp();
  /** DuckDB does one thing at a time; it uses all cores for it. */
  #conversion: Promise<unknown> = Promise.resolve();

  constructor(options: DatabaseOptions) {
    const { hostname, port, pathname } = new URL(options.url);
    this.name = `PostgreSQL ${hostname}${port === '' ? '' : `:${port}`}${pathname}`;
    this.#options = options;
    options.signal.addEventListener('abort', this.#stop);
  }

  async look(): Promise<Extent> {
    return this.#explained(async () => {
      await this.#begin();
      const [row] = await this.#ask('SELECT min(block_height)::text AS first, max(block_height)::text AS last FROM ledger');
      if (row?.['first'] === null || row === undefined) {
        throw new InputError(`the table ledger of ${this.name} is empty`, ['Has the indexer begun its work? Is it the right database?']);
      }
      const [first = 0, last = 0] = ['first', 'last'].map((end) => {
        const height = Number(row[end]);
        if (Number.isInteger(height) && height >= 0 && height <= HIGHEST) return height;
        throw new InputError(`the table ledger of ${this.name} has block_height ${row[end]}`, [
          `Heights must be integers from 0 to ${HIGHEST}. Is it the right database?`,
        ]);
      });
      return { first, begin: first, last, has: () => true };
    });
  }

  /** Counts what builds count, and other servers of the API: rows whose rune is not in `runes` are no records. They are fetched all the same. */
  async identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>> {
    if (heights.length === 0) return new Map();
    const sql = identitiesSql({ ledger: 'ledger', runes: 'runes' }, heights, true);
    return readIdentityRows(await this.#explained(() => this.#ask(sql)), heights);
  }

  /** The runes come before the rows that name them, so that a build in between knows them all. A source that is behind lacks some that are in use. */
  async prepare(isBehind: boolean): Promise<void> {
    const held = join(this.#options.folder, RUNES_FILE);
    const kept = isBehind && existsSync(held) ? held : undefined;
    if (kept !== undefined) await checkKept(kept);
    await this.#explained(() =>
      this.#copy('runes', RUNE_FIELDS, { order: 'id', kept }, async (parquet) => {
        const before = existsSync(held) ? readHeld(this.#options.folder, held) : undefined;
        // The same bytes are left alone: a build reads a file again whose times are new.
        if (before?.equals(readFileSync(parquet)) !== true) await putInPlace(this.#options.folder, parquet, RUNES_FILE);
      }),
    );
  }

  async fetch({ first, last }: Heights): Promise<Fetched> {
    const path = ledgerFile(first, last);
    const rows = { where: `WHERE block_height BETWEEN ${first} AND ${last}`, order: 'block_height, tx_index DESC, event_index DESC' };
    const written = await this.#explained(() =>
      this.#copy('ledger', LEDGER_FIELDS, rows, (parquet) => putInPlace(this.#options.folder, parquet, path)),
    );
    return { path, ...written };
  }

  async close(): Promise<void> {
    if (this.#isConnected)
      await Promise.race([Promise.all(this.#connections.map((c) => c.end().catch(() => undefined))), sleep(GOODBYE_MS)]);
    this.#hangUp();
    this.#options.signal.removeEventListener('abort', this.#stop);
  }

  /** Ends the connections, whatever they are doing. */
  #hangUp(): void {
    for (const { connection } of this.#connections) connection.stream.destroy();
  }

  /** Throws an InputError when the URL's parameters are wrong, such as a certificate file that does not exist. */
  #newConnection(): pg.Client {
    let client: pg.Client;
    try {
      client = new pg.Client({
        connectionString: withLibpqSsl(this.#options.url),
        connectionTimeoutMillis: CONNECT_MS,
        application_name: 'rune-activity-mirror',
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      });
    } catch (error) {
      throw new InputError(`${this.name}: ${messageOf(error)}`, ['Check the parameters of --from, such as sslmode and sslrootcert.']);
    }
    // A connection that breaks makes the next query fail, which is early enough.
    client.on('error', () => undefined);
    return client;
  }

  /** Begins transactions that all see what the first of them sees. */
  async #begin(): Promise<void> {
    if (!this.#isConnected) {
      this.#connections = Array.from({ length: this.#options.connections }, () => this.#newConnection());
      this.#idle = [...this.#connections];
      await Promise.all(this.#connections.map((connection) => connection.connect()));
      this.#isConnected = true;
      for (const connection of this.#connections) await connection.query(WITHOUT_TIMEOUTS);
      if ((await this.#ask(LEDGER_WITHOUT_INDEX)).length > 0) {
        this.#options.onNotice(
          `the table ledger of ${this.name} has no index on block_height, so PostgreSQL reads the whole table for every ${HEIGHTS_PER_FILE} blocks; create one with: CREATE INDEX ON ledger (block_height);`,
        );
      }
    }
    let snapshot: unknown;
    for (const connection of this.#connections) {
      await connection.query('ROLLBACK');
      await connection.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      if (snapshot !== undefined) await connection.query(`SET TRANSACTION SNAPSHOT '${String(snapshot)}'`);
      else snapshot = (await connection.query<{ id: string }>('SELECT pg_export_snapshot() AS id')).rows[0]?.id;
    }
  }

  /** Runs `work` with a connection that nobody else uses. There are as many of them as there are fetches at once. */
  async #with<T>(work: (connection: pg.Client) => Promise<T>): Promise<T> {
    const connection = this.#idle.pop();
    if (connection === undefined) throw new Error('more fetches at once than connections');
    try {
      return await work(connection);
    } finally {
      this.#idle.push(connection);
    }
  }

  #ask(query: string): Promise<Readonly<Record<string, string | null>>[]> {
    return this.#with(async (connection) => (await connection.query<Record<string, string | null>>(query)).rows);
  }

  /** Copies rows of a table out, and turns them into a Parquet file that `take` moves to its place. */
  async #copy(
    table: string,
    fields: readonly Field[],
    { where = '', order, kept }: RowsWanted,
    take: (parquet: string) => Promise<void>,
  ): Promise<{ readonly records: number; readonly bytes: number }> {
    const { folder, store, signal } = this.#options;
    const [csv, parquet] = [workFile(folder, '.csv'), workFile(folder, '.parquet')];
    try {
      const columns = fields.map(({ column }) => `"${column}"::text`).join(', ');
      await this.#with(async (connection) => {
        const rows = connection.query(copyTo(`COPY (SELECT ${columns} FROM ${table} ${where}) TO STDOUT (FORMAT csv)`));
        await saveStream(folder, rows, csv, signal);
      });
      const job = this.#convert((await stat(csv)).size === 0 ? undefined : csv, parquet, fields, { order, kept });
      await job.catch((error: unknown) => this.#explainConversion(error, table, kept));
      const { rows } = await store.row(`SELECT num_rows AS rows FROM ${readParquetFooter(parquet)}`);
      const { size: bytes } = await stat(parquet);
      await take(parquet);
      return { records: toNumber(rows), bytes };
    } finally {
      await Promise.all([csv, parquet].map((path) => rm(path, { force: true })));
    }
  }

  /** CSV to Parquet, sorted, so that the same rows make the same bytes in whatever order the database gives them. */
  async #convert(csv: string | undefined, parquet: string, fields: readonly Field[], { order, kept }: RowsWanted): Promise<void> {
    const columns = fields.map(({ column }) => `'${column}': 'VARCHAR'`).join(', ');
    // As in PostgreSQL's CSV: an unquoted empty field is NULL, "" is an empty string.
    const options = [
      `auto_detect = false, header = false, delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false`,
      `compression = 'none', columns = {${columns}}`,
    ];
    // DuckDB refuses to read an empty file.
    const fetched =
      csv === undefined
        ? `SELECT * FROM (${noRows(fields)}) WHERE false`
        : `SELECT ${fields.map(typed).join(', ')} FROM ${readFiles('csv', [csv], options)}`;
    const all =
      kept === undefined
        ? 'FROM fetched'
        : `FROM fetched UNION ALL FROM ${readFiles('parquet', [kept])} WHERE id NOT IN (SELECT id FROM fetched)`;
    const job = this.#conversion.then(() =>
      this.#options.store.run(
        `COPY (WITH fetched AS (${fetched}) SELECT * FROM (${all}) ORDER BY ${order}) TO ${literal(resolve(parquet))} (FORMAT parquet, COMPRESSION zstd)`,
      ),
    );
    this.#conversion = job.catch(() => undefined);
    await job;
  }

  /** Throws the error of a conversion in words: a full disk, cells that are not what they should be, or runes that cannot be read back. */
  #explainConversion(error: unknown, table: string, kept: string | undefined): never {
    const { folder } = this.#options;
    if (isDiskFull(error)) throw writeError(folder, error);
    const [first = ''] = messageOf(error).split('\n');
    if (error instanceof CliError) throw error;
    if (kept !== undefined && first.includes(kept)) {
      throw new InputError(`${kept} cannot be read: ${first}`, ['It is damaged. Remove it and pull again.']);
    }
    if (/^(?:Conversion|Invalid Input) Error/.test(first)) {
      throw new InputError(`the table ${table} of ${this.name} has a value of the wrong type: ${first}`, [
        "Check that its columns are those of bitcoin-indexer's database, in UTF-8.",
      ]);
    }
    throw error;
  }

  /** Turns errors of the database into errors for people. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof CliError || this.#options.signal.aborted) throw error;
      const code = codeOf(error) ?? '';
      const message = messageOf(error);
      if (/client password must be/.test(message)) {
        throw new InputError(`${this.name} requires a password, and none was given`, [CREDENTIALS]);
      }
      const advice = ADVICE.find(([codes]) => codes.test(code))?.[1] ?? (message.startsWith('SASL') ? CREDENTIALS : undefined);
      if (advice !== undefined) throw new InputError(`${this.name}: ${message}`, [advice]);
      if (/certificate|SSL|TLS/.test(`${code} ${message}`)) {
        throw new InputError(`${this.name}: ${message}`, [
          'Choose with ?sslmode=disable, require, verify-ca (and sslrootcert=FILE) or verify-full.',
        ]);
      }
      if (code.startsWith('53')) {
        throw new BuildError(`${this.name}: ${message}`, ['Lower --concurrency, which is the number of connections.']);
      }
      // What PostgreSQL says of itself, and what the client says of a connection that is gone.
      if (/^(?:E[A-Z_]+$|08|25P0|40|55|57|58|XX)/.test(code) || /onnection|timeout|not queryable/.test(message)) {
        throw new BuildError(`${this.name}: ${message}`, ['Is the database up and reachable? The same command goes on from here.']);
      }
      // It refuses a query that bitcoin-indexer's database answers.
      if (error instanceof pg.DatabaseError) {
        throw new InputError(`${this.name}: ${message}`, ['Check that --from is the runes database of bitcoin-indexer.']);
      }
      throw error;
    }
  }
}

/** The bytes of the runes file. Throws a BuildError when it cannot be read. */
function readHeld(folder: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw writeError(folder, error);
  }
}

/** A transaction is idle while others read, and a COPY may take long. A version of PostgreSQL does not have all of these settings. */
const WITHOUT_TIMEOUTS = `SELECT set_config(name, '0', false) FROM pg_settings
  WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/** Selects a row when ledger is a table without an index that begins with block_height. For a view or a partitioned table there is no telling. */
const LEDGER_WITHOUT_INDEX = `SELECT relname FROM pg_class AS ledger WHERE oid = to_regclass('ledger') AND relkind IN ('r', 'm') AND NOT EXISTS (
  SELECT FROM pg_index AS i JOIN pg_attribute AS first ON first.attrelid = i.indrelid AND first.attnum = i.indkey[0]
  WHERE i.indrelid = ledger.oid AND first.attname = 'block_height' AND i.indisvalid AND i.indpred IS NULL)`;

const CREDENTIALS = 'Check user and password in --from, or in the environment variables PGUSER and PGPASSWORD.';

/** What to do about errors of PostgreSQL, by their codes. */
const ADVICE: readonly (readonly [codes: RegExp, advice: string])[] = [
  [/^28/, CREDENTIALS],
  [/^3D000$/, 'Check the name of the database at the end of --from.'],
  [
    /^42P01$/,
    "The tables ledger and runes of bitcoin-indexer's runes database are needed. Name their schema, if it is not public, with ?options=-csearch_path%3DNAME at the end of --from.",
  ],
  [
    /^42703$/,
    `ledger needs the columns ${LEDGER_FIELDS.map((f) => f.column).join(', ')}; runes ${RUNE_FIELDS.map((f) => f.column).join(', ')}.`,
  ],
  [/^42501$/, 'The user needs the right to SELECT from ledger and runes.'],
];

/** Throws an InputError when the runes that a pull keeps were damaged. */
async function checkKept(path: string): Promise<void> {
  try {
    await checkDigest(path);
  } catch (error) {
    throw new InputError(`${path} cannot be read: ${messageOf(error)}`, ['It was damaged after it was pulled. Remove it and pull again.']);
  }
}

/** SQL of a column in the type that holds its values exactly. */
const typed = ({ column, kind }: Field): string => (kind === 'integer' ? `"${column}"::BIGINT AS "${column}"` : `"${column}"`);

/** SQL of no rows with the columns' types. */
const noRows = (fields: readonly Field[]): string =>
  `SELECT ${fields.map(({ column, kind }) => `NULL::${kind === 'integer' ? 'BIGINT' : 'VARCHAR'} AS "${column}"`).join(', ')}`;

/** The URL with `sslmode` meaning what it means to PostgreSQL's own programs: `require` does not ask for a certificate that can be verified. */
function withLibpqSsl(text: string): string {
  const url = new URL(text);
  if (url.searchParams.has('sslmode') && !url.searchParams.has('uselibpqcompat')) url.searchParams.set('uselibpqcompat', 'true');
  return url.href;
}

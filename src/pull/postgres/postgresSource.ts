/**
 * Pulls blocks from the PostgreSQL database of bitcoin-indexer. Copies the table `runes`, and the rows of `ledger` by
 * ranges of heights. Both come from one snapshot, so every row finds its rune. Never writes to the database.
 */
import { existsSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { type Field, LEDGER_FIELDS, RUNE_DETAILS, RUNE_FIELDS } from '../../contract/fields.ts';
import { firstLineOf, isDiskFailure, isDiskFull, isWrongValue } from '../../duckdb/duckdbErrors.ts';
import { parquetFacts } from '../../duckdb/parquetFacts.ts';
import { readFiles } from '../../duckdb/readFilesSql.ts';
import type { Store } from '../../duckdb/store.ts';
import { BuildError, CliError, codeOf, InputError, messageOf } from '../../errors.ts';
import { HEIGHTS_PER_FILE, NODE_LEDGER } from '../../rows/rowsForm.ts';
import type { BlockIdentity } from '../blockIdentity.ts';
import { allBy, type Extent, HIGHEST, type Source } from '../blockSource.ts';
import type { Heights } from '../heightRange.ts';
import { identitiesSql, readIdentityRows } from '../identifyRows.ts';
import { writeParquet } from '../parquetFile.ts';
import { checkRunes, ledgerFile, RUNES_FILE } from '../pulledFiles.ts';
import { explained, type Fetched, putInPlace, putRunes, saveStream, workFile, writeError } from '../writePulled.ts';

export interface DatabaseOptions {
  /** A `postgres://` URL. */
  readonly url: string;
  readonly folder: string;
  /** Number of connections; each runs one query at a time. */
  readonly connections: number;
  readonly store: Store;
  readonly signal: AbortSignal;
  /** Receives warnings, such as about a missing index. */
  readonly onNotice: (message: string) => void;
}

const CONNECT_MS = 30_000;

/** Idle time of a connection before the kernel sends a keep-alive probe, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Longest wait for connections to close, in milliseconds. Then their sockets are destroyed, because a database that is
 * sending rows does not close its connection.
 */
const GOODBYE_MS = 1000;

interface RowsWanted {
  readonly where?: string | undefined;
  readonly order: readonly string[];
  /** Path of an older Parquet file. Its rows are kept, except rows whose id the table also has. */
  readonly kept?: string | undefined;
}

export class DatabaseSource implements Source {
  readonly name: string;
  readonly origin = allBy('bitcoin-indexer');
  readonly perFile = HEIGHTS_PER_FILE;
  readonly knowsDigests = false;
  /** Connections, each with an open transaction on the same snapshot. Empty before the first look(). */
  #connections: readonly pg.Client[] = [];
  #idle: pg.Client[] = [];
  #isConnected = false;
  #runeFields: readonly Field[] = RUNE_FIELDS;
  /** Closes all sockets immediately, even during a query. */
  readonly #hangUp = (): void => {
    for (const { connection } of this.#connections) connection.stream.destroy();
  };

  constructor(private readonly options: DatabaseOptions) {
    const { hostname, port, pathname } = new URL(options.url);
    this.name = `PostgreSQL ${hostname}${port === '' ? '' : `:${port}`}${pathname}`;
    options.signal.addEventListener('abort', this.#hangUp);
  }

  async look(): Promise<Extent> {
    return this.#explained(async () => {
      await this.#begin();
      const [row] = await this.#ask('SELECT min(block_height)::text AS first, max(block_height)::text AS last FROM ledger');
      if (row?.['first'] === null || row === undefined)
        throw new InputError(`the table ledger of ${this.name} is empty`, [
          'Check that --from is the right database, and that its indexer has started.',
        ]);
      const [first = 0, last = 0] = ['first', 'last'].map((end) => {
        const height = Number(row[end]);
        if (Number.isInteger(height) && height >= 0 && height <= HIGHEST) return height;
        throw new InputError(`the table ledger of ${this.name} has the invalid block_height ${row[end]}`, [
          `Heights must be integers from 0 to ${HIGHEST}. Check that --from is the right database.`,
        ]);
      });
      return { first, begin: first, last, has: () => true };
    });
  }

  /**
   * Hash and number of records cover only rows whose rune is in `runes`, as in builds and other servers of the API. The
   * MD5 covers all rows, because the pull fetches all of them.
   */
  async identities(heights: readonly number[]): Promise<Map<number, BlockIdentity>> {
    if (heights.length === 0) return new Map();
    const sql = identitiesSql({ ledger: 'ledger', runes: 'runes' }, heights, true);
    return readIdentityRows(await this.#explained(() => this.#ask(sql)), heights);
  }

  /**
   * Fetches the runes before the ledger rows that refer to them, so that a build between the two steps finds all runes.
   * If a pulled block is above the database's tip, keeps runes that the database lacks, because pulled rows refer to
   * them.
   */
  async prepare(isBehind: boolean): Promise<void> {
    const { folder } = this.options;
    const runes = join(folder, RUNES_FILE);
    const kept = isBehind && existsSync(runes) ? runes : undefined;
    if (kept !== undefined) await checkRunes(kept);
    await this.#explained(() => this.#copy('runes', this.#runeFields, { order: ['id'], kept }, (parquet) => putRunes(folder, parquet)));
  }

  async fetch({ first, last }: Heights): Promise<Fetched> {
    const path = ledgerFile(first, last);
    const rows = { where: `WHERE block_height BETWEEN ${first} AND ${last}`, order: NODE_LEDGER.order };
    const written = await this.#explained(() =>
      this.#copy('ledger', LEDGER_FIELDS, rows, (parquet) => putInPlace(this.options.folder, parquet, path)),
    );
    return { path, ...written };
  }

  async close(): Promise<void> {
    if (this.#isConnected)
      await Promise.race([Promise.all(this.#connections.map((c) => c.end().catch(() => undefined))), sleep(GOODBYE_MS)]);
    this.#hangUp();
    this.options.signal.removeEventListener('abort', this.#hangUp);
  }

  /** Throws an InputError for wrong parameters in the URL, such as a certificate file that does not exist. */
  #newConnection(): pg.Client {
    let client: pg.Client;
    try {
      client = new pg.Client({
        connectionString: withLibpqSsl(this.options.url),
        connectionTimeoutMillis: CONNECT_MS,
        application_name: 'rune-activity-mirror',
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      });
    } catch (error) {
      throw new InputError(`${this.name}: ${messageOf(error)}`, ['Check the parameters of --from, such as sslmode and sslrootcert.']);
    }
    // Without a listener, Node would end the process. The next query on the broken connection fails with the same
    // error.
    client.on('error', () => undefined);
    return client;
  }

  /** Opens connections if needed, and begins a read-only transaction on each, all with the same snapshot. */
  async #begin(): Promise<void> {
    if (!this.#isConnected) {
      this.#connections = Array.from({ length: this.options.connections }, () => this.#newConnection());
      this.#idle = [...this.#connections];
      await Promise.all(this.#connections.map((connection) => connection.connect()));
      this.#isConnected = true;
      for (const connection of this.#connections) await connection.query(WITHOUT_TIMEOUTS);
      if ((await this.#ask(LEDGER_WITHOUT_INDEX)).length > 0)
        this.options.onNotice(
          `the table ledger of ${this.name} has no index on block_height, so PostgreSQL reads the whole table for every ${HEIGHTS_PER_FILE} blocks. Create an index with: CREATE INDEX ON ledger (block_height);`,
        );
      await this.#findRuneFields();
    }
    let snapshot: unknown;
    for (const connection of this.#connections) {
      await connection.query('ROLLBACK');
      await connection.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      if (snapshot !== undefined) await connection.query(`SET TRANSACTION SNAPSHOT '${String(snapshot)}'`);
      else snapshot = (await connection.query<{ id: string }>('SELECT pg_export_snapshot() AS id')).rows[0]?.id;
    }
  }

  /** Finds the columns of `runes`. Other programs may write this table with fewer columns than bitcoin-indexer. */
  async #findRuneFields(): Promise<void> {
    const columns = new Set((await this.#ask(COLUMNS_OF_RUNES)).map(({ name }) => name));
    const lacking = RUNE_DETAILS.filter(({ column }) => !columns.has(column));
    this.#runeFields = [...RUNE_FIELDS, ...RUNE_DETAILS.filter(({ column }) => columns.has(column))];
    // A missing table has no columns. The pull reports the missing table later, when it reads the table.
    if (columns.size > 0 && lacking.length > 0) {
      const names = lacking.map(({ column }) => column).join(', ');
      this.options.onNotice(`the table runes of ${this.name} lacks ${names}; runes are pulled without them`);
    }
  }

  /** Runs `work` with an idle connection. One is always idle, because there is a connection for each parallel fetch. */
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

  /** Copies rows of a table into a temporary Parquet file, which `take` moves to its final path. */
  async #copy(
    table: string,
    fields: readonly Field[],
    { where = '', order, kept }: RowsWanted,
    take: (parquet: string) => Promise<void>,
  ): Promise<{ readonly records: number; readonly bytes: number }> {
    const { folder, store, signal } = this.options;
    const csv = workFile(folder, '.csv');
    try {
      const columns = fields.map(({ column }) => `"${column}"::text`).join(', ');
      await this.#with(async (connection) => {
        const rows = connection.query(copyTo(`COPY (SELECT ${columns} FROM ${table} ${where}) TO STDOUT (FORMAT csv)`));
        await saveStream(folder, rows, csv, signal);
      });
      const more = kept === undefined ? undefined : `FROM ${readFiles('parquet', [kept])} WHERE id NOT IN (SELECT id FROM fetched)`;
      const written = (await stat(csv)).size === 0 ? undefined : csv;
      const parquet = await writeParquet(folder, { csv: written, fields, order, more }, store).catch((error: unknown) =>
        this.#explainConversion(error, table, kept),
      );
      const { rows } = parquetFacts(parquet);
      const { size: bytes } = await stat(parquet);
      await take(parquet).catch((error: unknown) => {
        throw explained(folder, error);
      });
      return { records: rows, bytes };
    } finally {
      await rm(csv, { force: true });
    }
  }

  /** Rethrows an error of a conversion, with advice for a full disk, a wrong type or a damaged file of runes. */
  #explainConversion(error: unknown, table: string, kept: string | undefined): never {
    const { folder } = this.options;
    if (isDiskFull(error) || isDiskFailure(error)) throw writeError(folder, error);
    const first = firstLineOf(error);
    if (error instanceof CliError) throw error;
    if (kept !== undefined && first.includes(kept))
      throw new InputError(`${kept} cannot be read: ${first}`, ['The file is damaged. Remove it and pull again.']);
    if (isWrongValue(first))
      throw new InputError(`the table ${table} of ${this.name} has a value of the wrong type: ${first}`, [
        "Check that its columns are the same as in bitcoin-indexer's database, and its encoding is UTF-8.",
      ]);
    throw error;
  }

  /** Runs `work`, and adds advice to errors of the database. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof CliError || this.options.signal.aborted) throw error;
      const code = codeOf(error) ?? '';
      const message = messageOf(error);
      if (/client password must be/.test(message))
        throw new InputError(`${this.name} requires a password, and none was given`, [CREDENTIALS]);
      const advice = ADVICE.find(([codes]) => codes.test(code))?.[1] ?? (message.startsWith('SASL') ? CREDENTIALS : undefined);
      if (advice !== undefined) throw new InputError(`${this.name}: ${message}`, [advice]);
      if (/certificate|SSL|TLS/.test(`${code} ${message}`))
        throw new InputError(`${this.name}: ${message}`, [
          'Choose with ?sslmode=disable, require, verify-ca (and sslrootcert=FILE) or verify-full.',
        ]);
      if (code.startsWith('53'))
        throw new BuildError(`${this.name}: ${message}`, ['Lower --concurrency, which is the number of connections.']);
      // Codes of network errors and of server failures, and the client's messages about a lost connection.
      if (/^(?:E[A-Z_]+$|08|25P0|40|55|57|58|XX)/.test(code) || /onnection|timeout|not queryable/.test(message))
        throw new BuildError(`${this.name}: ${message}`, [
          'Check that the database is running and reachable, then run the same command again: it continues from here.',
        ]);
      // These queries work in bitcoin-indexer's database, so a database that rejects one of them is not from
      // bitcoin-indexer.
      if (error instanceof pg.DatabaseError)
        throw new InputError(`${this.name}: ${message}`, ['Check that --from is the runes database of bitcoin-indexer.']);
      throw error;
    }
  }
}

/**
 * SQL that turns timeouts off: a connection may be idle in its transaction while others read, and a COPY may take long.
 * Selects the settings from pg_settings, because old versions of PostgreSQL lack some and reject their names.
 */
const WITHOUT_TIMEOUTS = `SELECT set_config(name, '0', false) FROM pg_settings
  WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`;

/**
 * SQL that returns a row if no index of `ledger` begins with block_height. Returns no row for views and partitioned
 * tables, because this query cannot check their indexes, and the pull must not warn without reason.
 */
const LEDGER_WITHOUT_INDEX = `SELECT relname FROM pg_class AS ledger WHERE oid = to_regclass('ledger') AND relkind IN ('r', 'm') AND NOT EXISTS (
  SELECT FROM pg_index AS i JOIN pg_attribute AS first ON first.attrelid = i.indrelid AND first.attnum = i.indkey[0]
  WHERE i.indrelid = ledger.oid AND first.attname = 'block_height' AND i.indisvalid AND i.indpred IS NULL)`;

/** SQL that returns the column names of `runes`, even if it is a view. */
const COLUMNS_OF_RUNES =
  "SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass('runes') AND attnum > 0 AND NOT attisdropped";

const CREDENTIALS = 'Check user and password in --from, or in the environment variables PGUSER and PGPASSWORD.';

/** Advice, by error code of PostgreSQL. */
const ADVICE: readonly (readonly [codes: RegExp, advice: string])[] = [
  [/^28/, CREDENTIALS],
  [/^3D000$/, 'Check the name of the database at the end of --from.'],
  [
    /^42P01$/,
    '--from must be the runes database of bitcoin-indexer, with the tables ledger and runes. If their schema is not public, add ?options=-csearch_path%3DNAME to --from.',
  ],
  [
    /^42703$/,
    `ledger needs the columns ${LEDGER_FIELDS.map((f) => f.column).join(', ')}; runes needs ${RUNE_FIELDS.map((f) => f.column).join(', ')}.`,
  ],
  [/^42501$/, 'Grant the user SELECT on ledger and runes.'],
];

/** Gives `sslmode` in the URL the meaning of libpq and psql, where `require` does not verify the certificate. */
function withLibpqSsl(text: string): string {
  const url = new URL(text);
  if (url.searchParams.has('sslmode') && !url.searchParams.has('uselibpqcompat')) url.searchParams.set('uselibpqcompat', 'true');
  return url.href;
}

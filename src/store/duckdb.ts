/**
 * DuckDB, which nothing outside of this folder talks to. Everything is in memory and spills to the scratch folder when it outgrows the limit.
 */

import { type DuckDBConnection, type DuckDBDataChunk, DuckDBInstance, version } from '@duckdb/node-api';
import { BuildError, messageOf } from '../errors.ts';

/** Another version may write the same rows as other bytes. */
export const DUCKDB_VERSION = version();

export interface StoreOptions {
  /** What the whole process should stay near, e.g. `1GB`. */
  readonly memoryLimit: string;
  readonly threads: number;
  /** Where DuckDB spills to. Made when first needed. */
  readonly scratch: string;
}

/** A cell of a row: integers of up to 64 bits come as bigint. */
export type Cell = string | number | bigint | boolean | null;
export type Row = Readonly<Record<string, Cell>>;

/** Reads a cell that is not NULL; undefined when its type is another. */
type Reader<T> = (cell: Exclude<Cell, null>) => T | undefined;
/** A column that a query must have. */
interface Column<T> {
  readonly type: string;
  readonly read: Reader<T>;
  /** What NULL reads as; without it, NULL is an error. */
  readonly ofNull?: { readonly value: T };
}
type Columns = Readonly<Record<string, Column<unknown>>>;
/** A row that was read by such columns. */
export type Values<C extends Columns> = { readonly [name in keyof C]: C[name] extends Column<infer T> ? T : never };

/** A column of integers that a number holds exactly. */
export const int: Column<number> = {
  type: 'integer',
  read: (cell) => {
    const number = typeof cell === 'bigint' ? Number(cell) : cell;
    return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
  },
};

/** A column of text. */
export const text: Column<string> = { type: 'text', read: (cell) => (typeof cell === 'string' ? cell : undefined) };

/** A column whose NULL reads as undefined. */
export const nullable = <T>(column: Column<T>): Column<T | undefined> => ({ ...column, ofNull: { value: undefined } });

export class Store {
  readonly #instance: DuckDBInstance;
  readonly #connection: DuckDBConnection;

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#instance = instance;
    this.#connection = connection;
  }

  static async open(options: StoreOptions): Promise<Store> {
    const settings = {
      memory_limit: shareOf(options.memoryLimit),
      threads: String(options.threads),
      temp_directory: options.scratch,
      // Served order is input order where an input has no event_index.
      preserve_insertion_order: 'true',
      // A build never reaches for the network.
      autoinstall_known_extensions: 'false',
      // The system keeps input files in memory as long as there is room; a second copy would count against the limit.
      enable_external_file_cache: 'false',
    };
    const instance = await DuckDBInstance.create(':memory:', settings).catch((error: unknown) => {
      throw new BuildError(`DuckDB cannot be started with --memory-limit ${options.memoryLimit}: ${messageOf(error)}`, [
        'Name a smaller or larger limit, such as 1GB.',
      ]);
    });
    let connection: DuckDBConnection | undefined;
    try {
      connection = await instance.connect();
      const store = new Store(instance, connection);
      // For `share`; nothing is printed.
      await store.run('SET enable_progress_bar = true; SET enable_progress_bar_print = false');
      return store;
    } catch (error) {
      connection?.closeSync();
      instance.closeSync();
      throw error;
    }
  }

  async run(sql: string): Promise<void> {
    await this.#connection.run(sql).catch(explainResources);
  }

  /** How much of the query at work is done, 0 to 1; 0 when DuckDB does not know, or no query is at work. */
  get share(): number {
    return Math.min(Math.max(this.#connection.progress.percentage, 0), 100) / 100;
  }

  /**
   * All rows of a query whose answer is small, with the values of these columns. Throws when the query lacks a column, or a cell is NULL or of another
   * type. Without columns, cells are as DuckDB gives them.
   */
  async rows<C extends Columns>(sql: string, columns: C): Promise<Values<C>[]>;
  async rows(sql: string): Promise<Row[]>;
  async rows<C extends Columns>(sql: string, columns?: C): Promise<Row[] | Values<C>[]> {
    const reader = await this.#connection.runAndReadAll(sql).catch(explainResources);
    const rows = reader.getRowObjectsJS() as unknown as Row[];
    return columns === undefined ? rows : rows.map((row) => valuesOf(row, columns, sql));
  }

  /** The first row of a query that always has one. */
  async row<C extends Columns>(sql: string, columns: C): Promise<Values<C>>;
  async row(sql: string): Promise<Row>;
  async row<C extends Columns>(sql: string, columns?: C): Promise<Row | Values<C>> {
    const [row] = columns === undefined ? await this.rows(sql) : await this.rows(sql, columns);
    if (row === undefined) throw new Error(`no row: ${sql}`);
    return row;
  }

  /** Chunks of at most 2,048 rows, without holding the whole answer. The next one is computed while a chunk is worked on. */
  async *stream(sql: string): AsyncGenerator<DuckDBDataChunk> {
    const result = await this.#connection.stream(sql).catch(explainResources);
    const fetch = () => {
      const chunk = result.fetchChunk();
      // Whoever waits for it sees the failure; by itself it is none.
      chunk.catch(() => undefined);
      return chunk;
    };
    let next = fetch();
    try {
      for (;;) {
        const chunk = await next.catch(explainResources);
        if (chunk === null || chunk.rowCount === 0) return;
        next = fetch();
        yield chunk;
      }
    } finally {
      // The store may not be closed while DuckDB is at work.
      await next.catch(() => undefined);
    }
  }

  /** Makes a temporary table of these columns and rows. */
  async append(
    table: string,
    columns: Readonly<Record<string, 'VARCHAR' | 'BIGINT' | 'INTEGER'>>,
    rows: Iterable<readonly (string | number | bigint)[]>,
  ): Promise<void> {
    const types = Object.values(columns);
    const definition = Object.entries(columns).map(([name, type]) => `${name} ${type}`);
    await this.run(`CREATE OR REPLACE TEMP TABLE ${table} (${definition.join(', ')})`);
    const appender = await this.#connection.createAppender(table, null, 'temp');
    try {
      for (const row of rows) {
        for (const [i, cell] of row.entries()) {
          if (types[i] === 'BIGINT') appender.appendBigInt(BigInt(cell));
          else if (types[i] === 'INTEGER') appender.appendInteger(Number(cell));
          else appender.appendVarchar(String(cell));
        }
        appender.endRow();
      }
    } catch (error) {
      try {
        appender.closeSync();
      } catch {
        // It complains about the row that is not whole; the first error says more.
      }
      throw error;
    }
    appender.closeSync();
  }

  close(): void {
    this.#connection.closeSync();
    this.#instance.closeSync();
  }
}

function valuesOf<C extends Columns>(row: Row, columns: C, sql: string): Values<C> {
  const values = Object.entries(columns).map(([name, column]) => {
    const cell = row[name];
    if (cell === undefined) throw new Error(`the column ${name} is missing in the answer to ${sql}`);
    if (cell === null) {
      if (column.ofNull === undefined) throw new Error(`the column ${name} is NULL in the answer to ${sql}`);
      return [name, column.ofNull.value];
    }
    const value = column.read(cell);
    if (value === undefined) throw new Error(`the column ${name} has ${cell}, not ${column.type}, in the answer to ${sql}`);
    return [name, value];
  });
  return Object.fromEntries(values) as Values<C>;
}

/** Of the memory that a build may use, what DuckDB may: the rest is for Node, its threads and the batches on their way. */
const DUCKDB_SHARE = 0.7;

/** DuckDB's part of a size such as `1GB`, in DuckDB's own notation. */
function shareOf(size: string): string {
  const [, number, unit] = /^([0-9.]+) ?([A-Za-z]+)$/.exec(size) ?? [];
  return number === undefined ? size : `${Number(number) * DUCKDB_SHARE}${unit}`;
}

/** Memory and disk that run out are no fault of the input or the program; every other error is passed on. */
function explainResources(error: unknown): never {
  const [first = ''] = messageOf(error).split('\n');
  if (/^Out of Memory Error/.test(first)) {
    throw new BuildError(`DuckDB needs more memory than --memory-limit allows: ${first}`, [
      'Raise --memory-limit, or lower --threads: each thread needs some of its own.',
    ]);
  }
  if (/Too many open files/.test(first)) {
    throw new BuildError(`too many files are open: ${first}`, ['Raise the limit (ulimit -n) and build again.']);
  }
  if (/No space left on device|could not write|Could not write/.test(first)) {
    throw new BuildError(`the disk of the cache folder is full: ${first}`, ['Free some space, or name another folder with --cache.']);
  }
  throw error;
}

/** A string as an SQL literal. */
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A name as an SQL identifier. */
export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * SQL of one text of several values, NULL among them: other values make another text. Each value has its length before it, because no character that could
 * separate two values is missing from all texts.
 */
export const joinedText = (values: readonly string[]): string =>
  `concat(${values.map((value) => `coalesce(strlen(${value}::VARCHAR) || ':' || ${value}::VARCHAR, '-')`).join(', ')})`;

/** An integer cell as a number; null counts as 0. */
export const toNumber = (cell: Cell | undefined): number => Number(cell ?? 0);

/** A cell as text; null is the empty string. */
export const toText = (cell: Cell | undefined): string => String(cell ?? '');

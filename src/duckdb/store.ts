/** Runs queries in DuckDB. Tables are in memory, and spill to the scratch folder above the memory limit. */
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { BIGINT, DOUBLE, type DuckDBConnection, DuckDBDataChunk, DuckDBInstance, INTEGER, VARCHAR, version } from '@duckdb/node-api';
import { textDecoder } from '@duckdb/node-api/lib/vectors/dataAccessors.js';
import { bytesOf } from '../contract/memorySize.ts';
import { BuildError, hasTooManyFiles, messageOf } from '../errors.ts';
import { yieldNow } from '../yieldNow.ts';
import { firstLineOf, isDiskFailure, isDiskFull, isOutOfMemory } from './duckdbErrors.ts';
import { type ColumnTypes, definitionOf, Table } from './table.ts';

/** Version of DuckDB. It is part of a build's settings, because another version may write other Parquet bytes for equal rows. */
export const DUCKDB_VERSION = version();

const asStored = new TextDecoder('utf-8', { ignoreBOM: true });
// DuckDB's client decodes with this decoder, which drops U+FEFF at the start of a text. It may be the symbol of a rune.
textDecoder.decode = (bytes: Uint8Array) => asStored.decode(bytes);

const APPENDED = {
  VARCHAR: { type: VARCHAR, cellOf: String },
  BIGINT: { type: BIGINT, cellOf: BigInt },
  INTEGER: { type: INTEGER, cellOf: Number },
  DOUBLE: { type: DOUBLE, cellOf: Number },
} as const;

/** Rows of a chunk of DuckDB, at most. A call for each cell of a row takes three times as long. */
const CHUNK_ROWS = 2048;

export interface StoreOptions {
  /** Memory limit of the complete process, such as `1GB`. */
  readonly memoryLimit: string;
  /** Factor for DuckDB's share of `memoryLimit` (`shareOf`). Default: 1. */
  readonly part?: number;
  readonly threads: number;
  /** Folder for spilled data. DuckDB creates it when needed. */
  readonly scratch: string;
  /** Absolute paths. The store may open only these files and the scratch folder. Default: all files. */
  readonly only?: readonly string[];
}

type Cell = string | number | bigint | boolean | null;
type Row = Readonly<Record<string, Cell>>;

/** A column that the result of a query must have. `read` returns undefined for a cell of the wrong type. */
interface Column<T> {
  readonly type: string;
  readonly read: (cell: Exclude<Cell, null>) => T | undefined;
  /** The value that NULL becomes. Without `ofNull`, NULL is an error. */
  readonly ofNull?: { readonly value: T };
}
type Columns = Readonly<Record<string, Column<unknown>>>;
/** A row with the types of its columns. */
export type Values<C extends Columns> = { readonly [name in keyof C]: C[name] extends Column<infer T> ? T : never };

/** An integer column. A value outside ±(2^53 - 1) is an error. */
export const int: Column<number> = {
  type: 'integer',
  read: (cell) => {
    const number = typeof cell === 'bigint' ? Number(cell) : cell;
    return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
  },
};

export const text: Column<string> = { type: 'text', read: (cell) => (typeof cell === 'string' ? cell : undefined) };

export const flag: Column<boolean> = { type: 'boolean', read: (cell) => (typeof cell === 'boolean' ? cell : undefined) };

/** A column whose NULL reads as undefined. */
export const nullable = <T>(column: Column<T>): Column<T | undefined> => ({ ...column, ofNull: { value: undefined } });

/**
 * Amounts of freed memory that DuckDB may keep instead of returning it to the system. Its memory limit does not count this memory. `small`
 * applies until `returnFreed` is called: for small work, returning memory would take a fourth of the CPU time. `large` applies afterwards,
 * and `shared` to processes that share a memory limit: returning every megabyte would take a tenth or a sixth of their CPU time.
 */
const FREED = { small: '128MB', large: '16MB', shared: '32MB' };

/** For ORDER BY with LIMIT, this optimizer of DuckDB 1.5 counts deleted rows, so the result would lack rows. */
const DISABLED = 'row_group_pruner';

export class Store {
  #named = 0;

  private constructor(
    private readonly instance: DuckDBInstance,
    private readonly connection: DuckDBConnection,
    /** DuckDB's share of the memory, in bytes. */
    readonly memory: number,
    /** Memory of the process and of the processes that it starts, in bytes. */
    readonly processMemory: number,
    /** Folder for spilled data. */
    readonly scratch: string,
  ) {}

  static async open(options: StoreOptions): Promise<Store> {
    const memory = shareOf(options.memoryLimit) * (options.part ?? 1);
    // Stores with `only` are opened by several processes that share one memory limit.
    const freed = options.only === undefined ? FREED.small : FREED.shared;
    const settings = {
      memory_limit: `${Math.floor(memory / 1000)}KB`,
      threads: String(options.threads),
      temp_directory: options.scratch,
      // Keeps rows in input order, because records without event_index are served in this order.
      preserve_insertion_order: 'true',
      // Builds must not use the network.
      autoinstall_known_extensions: 'false',
      allocator_flush_threshold: freed,
      allocator_bulk_deallocation_flush_threshold: freed,
      // The operating system caches files already. A second cache in DuckDB would count towards the memory limit.
      enable_external_file_cache: 'false',
      disabled_optimizers: DISABLED,
    };
    const refuse = (error: unknown): never => {
      throw new BuildError(`DuckDB cannot start with --memory-limit ${options.memoryLimit}: ${messageOf(error)}`, [
        'Use another limit, such as 1GB.',
      ]);
    };
    const instance = await DuckDBInstance.create(':memory:', settings).catch(refuse);
    const connection = await instance.connect().catch((error: unknown) => {
      instance.closeSync();
      return refuse(error);
    });
    const store = new Store(instance, connection, memory, bytesOf(options.memoryLimit) ?? 0, resolve(options.scratch));
    try {
      await store.run('SET enable_progress_bar_print = false');
      if (options.only !== undefined) {
        const [paths, folder] = [options.only.map(literal).join(', '), literal(`${resolve(options.scratch)}/`)];
        await store.run(
          `SET allowed_paths = [${paths}]; SET allowed_directories = [${folder}]; SET enable_external_access = false; SET lock_configuration = true`,
        );
      }
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  /** Makes the C library return freed memory to the system from now on, so that the process stays within its memory limit. */
  returnFreed(): Promise<void> {
    return this.run(`SET allocator_flush_threshold = '${FREED.large}'; SET allocator_bulk_deallocation_flush_threshold = '${FREED.large}'`);
  }

  async run(sql: string): Promise<void> {
    await this.connection.run(sql).catch(explained(sql));
  }

  /** Runs statements. Returns the number of rows that the last one inserts into a table, or with which it creates one. */
  async count(sql: string): Promise<number> {
    return (await this.row(sql, { Count: int })).Count;
  }

  /**
   * Runs a step in which DuckDB keeps the right side of each join in memory and reads the left side once. Otherwise it chooses the sides by
   * estimates, which are far too low for rows of input files.
   */
  async joinAsWritten<Result>(step: () => Promise<Result>): Promise<Result> {
    await this.run(`SET disabled_optimizers = '${DISABLED},join_order,build_side_probe_side'`);
    try {
      return await step();
    } finally {
      await this.run(`SET disabled_optimizers = '${DISABLED}'`);
    }
  }

  /** Turns the measurement of `share` on or off: the progress bar, which `open` hides. It takes up to 8 % of the CPU time of queries. */
  measureShare(isOn: boolean): Promise<void> {
    return this.run(`SET enable_progress_bar = ${isOn}`);
  }

  /** Finished share of the running query, 0 to 1. It is 0 when unknown, not measured, or without a running query. */
  get share(): number {
    return Math.min(Math.max(this.connection.progress.percentage, 0), 100) / 100;
  }

  /** Returns all rows of a small result. Rejects when the result lacks a column, or when a cell is NULL or of another type. */
  async rows<C extends Columns>(sql: string, columns: C): Promise<Values<C>[]> {
    // No stream: callers run queries concurrently, and a second query on the connection would end the stream of the first.
    const reader = await this.connection.runAndReadAll(sql).catch(explained(sql));
    const rows = reader.getRowObjectsJS() as unknown as Row[];
    return rows.map((row) => valuesOf(row, columns, sql));
  }

  /** Returns the first row of a query. Rejects when the result has no row. */
  async row<C extends Columns>(sql: string, columns: C): Promise<Values<C>> {
    const [row] = await this.rows(sql, columns);
    if (row === undefined) throw new Error(`the result has no rows: ${sql}`);
    return row;
  }

  /** Returns the integer `number` of the only row of a query. */
  async number(sql: string): Promise<number> {
    return (await this.row(sql, { number: int })).number;
  }

  /**
   * Yields chunks of at most 2,048 rows, while DuckDB computes the next one. If a query fails after the first chunk, DuckDB's client ends
   * the stream without an error. So the query gets one more column, and a last row in a chunk of its own, which only complete streams have.
   */
  async *stream(sql: string): AsyncGenerator<DuckDBDataChunk> {
    const result = await this.connection.stream(`FROM (${sql}) UNION ALL BY NAME SELECT true AS "end of rows"`).catch(explained(sql));
    const fetch = () => {
      const chunk = result.fetchChunk();
      // The loop below throws the error. Until then, this handler keeps Node from ending because of an unhandled rejection.
      chunk.catch(() => undefined);
      return chunk;
    };
    let next = fetch();
    try {
      for (;;) {
        const chunk = await next.catch(explained(sql));
        if (chunk === null || chunk.rowCount === 0) return await this.#failAgain(sql);
        next = fetch();
        if (isEnd(chunk)) return;
        yield chunk;
      }
    } finally {
      // The store must not be closed while DuckDB runs the query.
      await next.catch(() => undefined);
    }
  }

  /** Runs a query again whose stream ended early, without its error. Always rejects. */
  async #failAgain(sql: string): Promise<never> {
    await this.run(`EXPLAIN ANALYZE ${sql}`);
    throw new BuildError('a query of DuckDB ended early, and did not fail again', ['Build again.']);
  }

  /** Returns a unique name for a table, view or type of this store. */
  nameOf(label: string): string {
    this.#named += 1;
    return `${label}_${this.#named}`;
  }

  /** Creates a temporary table with the rows of a query. Without `rows`, the table is empty. */
  async table<C extends ColumnTypes>(label: string, columns: C, rows?: string): Promise<Table<C>> {
    const table = new Table(this.nameOf(label), columns);
    await this.run(`CREATE TEMP TABLE ${table} ${rows === undefined ? `(${definitionOf(columns)})` : `AS ${rows}`}`);
    return table;
  }

  async view<C extends ColumnTypes>(label: string, columns: C, rows: string): Promise<Table<C>> {
    const view = new Table(this.nameOf(label), columns);
    await this.run(`CREATE TEMP VIEW ${view} AS ${rows}`);
    return view;
  }

  /**
   * Writes the rows of a query to Parquet files in a folder, in any order. With `parts`, each value of the column `by`, at most MOST_PARTS,
   * gets a folder, such as `part=3`, whose files lack the column. Several queries may write to one folder. Returns the file or, with
   * `parts`, the folder. Throws if Parquet has no exact type for a column. `columns` saves 50 ms to find the types of a wide query.
   */
  async writeRows(
    rows: string,
    folder: string,
    parts?: { readonly by: string; readonly rowBytes: number },
    columns?: ColumnTypes,
  ): Promise<string> {
    const described = `SELECT column_name AS name, column_type AS type FROM (DESCRIBE ${rows})`;
    const types = columns
      ? Object.entries(columns)
      : (await this.rows(described, { name: text, type: text })).map(({ name, type }) => [name, type]);
    const inexact = types.find(([, type]) => /HUGEINT|BIGNUM|INTERVAL/.test(`${type}`));
    if (inexact !== undefined) throw new Error(`Parquet has no exact type for the column ${inexact.join(', ')}`);
    mkdirSync(folder, { recursive: true });
    // Each thread keeps this number of rows in memory, for all parts.
    const kept = Math.ceil(this.memory / 8 / (parts?.rowBytes ?? WIDE_ROW));
    // Each open file has a row group in memory, also when it is read. With DuckDB's 122,880 rows, all files together would take more memory
    // the more rows there are. Small groups take longer to read.
    const group = VECTOR * Math.max(1, Math.floor(kept / (parts === undefined ? MOST_OPEN : MOST_PARTS) / VECTOR));
    const form = `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE ${group}`;
    await this.run(`SET partitioned_write_flush_threshold = ${kept}`);
    const name = this.nameOf('rows');
    const [to, by] =
      parts === undefined
        ? [`${folder}/${name}.parquet`, '']
        : [folder, `, PARTITION_BY (${parts.by}), APPEND, FILENAME_PATTERN '${name}-{uuid}'`];
    // To keep their order, DuckDB would buffer the rows until its memory is used up.
    await this.run('SET preserve_insertion_order = false');
    try {
      await this.run(`COPY (${rows}) TO ${literal(to)} (${form}${by})`);
    } finally {
      await this.run('SET preserve_insertion_order = true');
    }
    return to;
  }

  async append<C extends Readonly<Record<string, keyof typeof APPENDED>>>(
    label: string,
    columns: C,
    rows: Iterable<readonly (string | number | bigint)[]> | AsyncIterable<readonly (string | number | bigint)[]>,
  ): Promise<Table<C>> {
    const appended = Object.values(columns).map((type) => APPENDED[type]);
    const types = appended.map(({ type }) => type);
    const table = await this.table(label, columns);
    const appender = await this.connection.createAppender(`${table}`, null, 'temp');
    const add = (part: readonly (readonly (string | number | bigint)[])[]) => {
      const chunk = DuckDBDataChunk.create(types, part.length);
      const cells = appended.map(({ cellOf }, i) => part.map((row) => cellOf(row[i] ?? '')));
      chunk.setColumns(cells);
      appender.appendDataChunk(chunk);
    };
    try {
      let part: (readonly (string | number | bigint)[])[] = [];
      for await (const row of rows) {
        if (part.push(row) < CHUNK_ROWS) continue;
        add(part);
        part = [];
        await yieldNow();
      }
      if (part.length > 0) add(part);
    } finally {
      appender.closeSync();
    }
    return table;
  }

  close(): void {
    this.connection.closeSync();
    this.instance.closeSync();
  }
}

function valuesOf<C extends Columns>(row: Row, columns: C, sql: string): Values<C> {
  const values = Object.entries(columns).map(([name, column]) => {
    const cell = row[name];
    if (cell === undefined) throw new Error(`the column ${name} is missing in the result of ${sql}`);
    if (cell === null) {
      if (column.ofNull === undefined) throw new Error(`the column ${name} is NULL in the result of ${sql}`);
      return [name, column.ofNull.value];
    }
    const value = column.read(cell);
    if (value === undefined) throw new Error(`the column ${name} has ${cell}, not ${column.type}, in the result of ${sql}`);
    return [name, value];
  });
  return Object.fromEntries(values) as Values<C>;
}

/**
 * Returns DuckDB's share of the memory, in bytes. The rest is for Node.js, its threads and their batches, and for what DuckDB does not
 * count, which grows with its limit.
 */
function shareOf(size: string): number {
  const bytes = bytesOf(size) ?? 0;
  return Math.max(0.55 * bytes - 75e6, 0.4 * bytes);
}

/** True for the chunk with the last row of a stream. */
function isEnd(chunk: DuckDBDataChunk): boolean {
  const ends = chunk.getColumnVector(chunk.columnCount - 1);
  if (ends.getItem(chunk.rowCount - 1) !== true) return false;
  if (chunk.rowCount > 1) throw new Error('the last row of a stream is not in a chunk of its own');
  return true;
}

/** Maximum number of files that `writeRows` writes at once. DuckDB has at most 100 files open. */
export const MOST_PARTS = 64;

/** Maximum number of files with rows in any order that are written or read at once: two for each of four threads. */
const MOST_OPEN = 8;

/** DuckDB's row groups have multiples of this number of rows. */
const VECTOR = 2048;

/** Bytes of memory that a row takes by default. */
const WIDE_ROW = 128;

/** Characters of a statement that needs too much memory, from which a report tells the step. */
const STATEMENT_LENGTH = 200;

/** Throws a BuildError when a disk fails, or when memory, disk space or file handles are used up. Rethrows any other error. */
const explained =
  (sql: string) =>
  (error: unknown): never => {
    const first = firstLineOf(error);
    if (isDiskFailure(error)) throw new BuildError(`a disk failed: ${first}`, ['Check the disk, or use folders on another disk.']);
    if (isDiskFull(error))
      throw new BuildError(`the disk of the cache folder is full: ${first}`, ['Free some space, or use another folder with --cache.']);
    if (isOutOfMemory(first))
      throw new BuildError(`DuckDB needs more memory than --memory-limit allows: ${first}`, [
        'Raise --memory-limit, or lower --threads of a build: every thread needs memory.',
        `If neither is possible, report this step: ${sql.replace(/\s+/g, ' ').slice(0, STATEMENT_LENGTH)}`,
      ]);
    if (hasTooManyFiles(first)) throw new BuildError(`too many files are open: ${first}`, ['Raise the limit (ulimit -n) and build again.']);
    throw error;
  };

/** Returns the SQL of a text. DuckDB reads a statement only up to a NUL character, so a text with one is concatenated. */
export function literal(text: string): string {
  const parts = text.split('\0').map((part) => `'${part.replaceAll("'", "''")}'`);
  return parts.length === 1 ? parts.join() : `(${parts.join(' || chr(0) || ')})`;
}

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Returns SQL that joins values, which may be NULL, into one text. As lengths precede them, different values give different texts. */
export const joinedText = (values: readonly string[]): string =>
  `concat(${values.map((value) => `coalesce(strlen(${value}::VARCHAR) || ':' || ${value}::VARCHAR, '-')`).join(', ')})`;

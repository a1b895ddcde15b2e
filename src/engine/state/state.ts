/**
 * The state of the last build: the input files that it read, and the blocks and transactions that it wrote. It is a DuckDB file in the
 * cache folder, attached to the store as `state`. The file has no records, so its size is a few percent of the output's. Changes are in
 * memory until `commit`, whose checkpoint replaces the content of the file in one step. So a killed build leaves the file unchanged. There
 * is no transaction until `commit`, because DuckDB would use only one thread to scan the rows that the transaction has inserted.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { removeIfPossible, unusableCache } from '../../disk/scratchFolder.ts';
import { firstLineOf, isDamage, isDiskFailure, isDuckDBError, isFileError } from '../../duckdb/duckdbErrors.ts';
import { attachDatabase } from '../../duckdb/lockDatabase.ts';
import { literal, type Store, text } from '../../duckdb/store.ts';
import { columns, definitionOf, Table } from '../../duckdb/table.ts';
import { BuildError } from '../../errors.ts';
import { FILES } from '../../input/changedFiles.ts';
import { HELD, LEFT_OUT } from '../../input/inputReader.ts';
import { RUNES } from '../../input/rawSource.ts';
import { VERSION } from '../../version.ts';
import { BLOCK_RUNES, RUNE_COUNTS } from './countBlocks.ts';

const FILE = 'state.duckdb';

/** Version of the state's tables and of output files that are not pages. A build is full if the state has another version. */
export const FORMAT = 21;

const program = `${VERSION} ${FORMAT}`;

class DamagedStateError extends Error {
  override readonly name = 'DamagedStateError';
}

/**
 * Columns of written blocks. `operations` has the number of records of each operation, separated by commas, in the order of OPERATIONS.
 * `files` and `bytes` count the pages of the block and of its transactions; both are 0 in layout `archive`. `packed` is the size of the
 * block's compressed pages in the archive, in bytes; 0 without an archive. `digest` is the published digest of the records. `spent_digest`
 * is of the outputs that the block spends, which records do not have. It is empty if the input does not list them.
 */
export const WRITTEN = {
  ...columns('block_height BIGINT, block_hash VARCHAR, records BIGINT, transactions BIGINT, operations VARCHAR'),
  ...columns('digest VARCHAR, spent_digest VARCHAR, files BIGINT, bytes BIGINT, packed BIGINT'),
} as const;

/** Columns of blocks. `timestamp` is in seconds since 1970. */
export const BLOCKS = { ...WRITTEN, timestamp: 'BIGINT' } as const;

/** Columns of transactions. `first` is the index of the transaction's first record in its block, in served order. */
export const TRANSACTIONS = columns('tx_id VARCHAR, block_height BIGINT, records BIGINT, first BIGINT');

export class StateTables {
  /** One row: program and settings of the last build, and the SHA-256 of its manifest. */
  readonly basis = new Table('state.basis', columns('program VARCHAR, settings VARCHAR, manifest VARCHAR'));
  readonly files = new Table('state.files', FILES);
  /** Ranges of blocks that the input's sources read, with or without records. Empty if the input does not list them. */
  readonly readBlocks = new Table('state.read_blocks', columns('first BIGINT, last BIGINT'));
  /** One row: the last block that was read, even if it has no records. Empty without blocks. */
  readonly tip = new Table('state.tip', columns('block_height BIGINT, block_hash VARCHAR'));
  /** The blocks of each input file. */
  readonly held = new Table('state.held', HELD);
  readonly leftOut = new Table('state.left_out', LEFT_OUT);
  /** All runes of the input. `ordinal` is the position in the order of etchings, from 0 on (knownEtchings.ts). */
  readonly runes = new Table('state.runes', { ...RUNES, ordinal: 'BIGINT' } as const);
  readonly blocks = new Table('state.blocks', BLOCKS);
  readonly blockRunes = new Table('state.block_runes', BLOCK_RUNES);
  readonly runeCounts = new Table('state.rune_counts', RUNE_COUNTS);
  /** Transactions of written blocks. Empty in layout `archive`, whose ids have the transactions. */
  readonly transactions = new Table('state.transactions', TRANSACTIONS);
  /** One row: the published index of files of rows (contract/rowsSchemas.ts), and its SHA-256. Empty without rows. */
  readonly rowsIndex = new Table('state.rows_index', columns('content VARCHAR, sha256 VARCHAR'));
  /** Published files of changes. `source` is the JSON of all values from which a file was made. */
  readonly changesFiles = new Table('state.changes_files', columns('source VARCHAR, sha256 VARCHAR'));
  /** One row: the SHA-256 of the list of files of changes. The manifest has this hash in the field `changes`. */
  readonly changesIndex = new Table('state.changes_index', columns('sha256 VARCHAR'));
}

export class State extends StateTables {
  private constructor(
    private readonly store: Store,
    private readonly cache: string | undefined,
    private readonly settings: object,
    /** The reason for a full build; undefined for an incremental build. */
    readonly whyFull: string | undefined,
    /** True when this build created the state file and has not committed anything to it. */
    private isBlank: boolean,
  ) {
    super();
  }

  /**
   * Attaches the state in a cache folder, which must exist, and locks it until the store is closed. A dry run has no cache folder and gets
   * an empty state in memory. The build is incremental if the state has the same `settings` and `manifest`. `manifest` is the SHA-256 of
   * the output's manifest, undefined when the output is incomplete. `whyFull` forces a full build, for which all tables are empty. Throws a
   * LockedError when another build is using the folder, and a DamagedStateError when the file is damaged.
   */
  static async attach(
    store: Store,
    cache: string | undefined,
    settings: object,
    manifest: string | undefined,
    whyFull?: string,
  ): Promise<State> {
    if (cache === undefined) {
      await store.run("ATTACH ':memory:' AS state");
      await createTables(store);
      return new State(store, cache, settings, 'a dry run has no cache', false);
    }
    if (resolve(cache).includes('?')) {
      throw new BuildError(`the cache folder ${resolve(cache)} has a question mark in its path, which DuckDB does not support`, [
        'Use another folder with --cache.',
      ]);
    }
    const isBlank = !existsSync(join(cache, FILE));
    try {
      await attachDatabase(store, { path: join(cache, FILE), name: 'state', what: `the cache folder ${cache}` });
      await store.run(`CREATE TABLE IF NOT EXISTS ${TABLES.basis} (${definitionOf(TABLES.basis.columns)})`);
      const mismatch = await whyNot(store, JSON.stringify(settings), manifest);
      const reason = whyFull ?? mismatch;
      if (reason !== undefined) await createTables(store);
      return new State(store, cache, settings, reason, isBlank);
    } catch (error) {
      // The queries above use only this file, so any DuckDB error means that the file is damaged.
      if (isDuckDBError(error)) throw new DamagedStateError(firstLineOf(error));
      throw error;
    }
  }

  /** Writes all changes to the file. The state then describes the output with this manifest. */
  async commit(manifest: string): Promise<void> {
    const basis = [program, JSON.stringify(this.settings), manifest].map(literal).join(', ');
    await this.store
      .run(`DELETE FROM ${this.basis}; INSERT INTO ${this.basis} VALUES (${basis}); CHECKPOINT state`)
      .catch((error: unknown) => {
        // Messages about a failed sync do not name the file.
        throw this.cache !== undefined && isDiskFailure(error) ? unusableCache(this.cache, error) : error;
      });
    this.isBlank = false;
  }

  /** Removes the state file if it has no content. The caller closes the store, which drops uncommitted changes. */
  close(): void {
    if (this.isBlank && this.cache !== undefined) for (const path of filesIn(this.cache)) removeIfPossible(path);
  }
}

/** Returns the paths of the state file and of DuckDB's write-ahead log. */
const filesIn = (cache: string): string[] => [FILE, `${FILE}.wal`].map((name) => join(cache, name));

const createTables = (store: Store): Promise<void> =>
  store.run(
    Object.values({ ...TABLES })
      .map((table) => `CREATE OR REPLACE TABLE ${table} (${definitionOf(table.columns)})`)
      .join('; '),
  );

const TABLES = new StateTables();

async function whyNot(store: Store, settings: string, manifest: string | undefined): Promise<string | undefined> {
  const [basis] = await store.rows(`SELECT * FROM ${TABLES.basis}`, { program: text, settings: text, manifest: text });
  if (basis === undefined) return 'there is no cache of an earlier build';
  if (basis.manifest !== manifest) return 'the output does not match the cache';
  if (basis.program !== program) return `the cache was written by version ${basis.program}`;
  if (basis.settings !== settings)
    return 'the layout, the dialect, the page sizes, the lists, the published rows or the range of blocks changed';
  return undefined;
}

/** Returns the message of an error that a damaged state caused; undefined for any other error. */
export function damageOf(error: unknown, cache: string): string | undefined {
  if (error instanceof DamagedStateError) return error.message;
  const message = firstLineOf(error);
  const namesState = isFileError(message) && filesIn(resolve(cache)).some((path) => message.includes(path));
  return isDuckDBError(error) && (isDamage(message) || namesState) ? message : undefined;
}

/** Renames a damaged state file, so that the next build is full. Returns the new path. Throws if renaming fails. */
export function setAside(cache: string): string {
  const aside = join(cache, `${FILE}.damaged`);
  try {
    for (const [path, to] of filesIn(cache).map((from, i) => [from, i === 0 ? aside : `${aside}.wal`] as const)) {
      rmSync(to, { recursive: true, force: true });
      if (existsSync(path)) renameSync(path, to);
    }
  } catch (error) {
    throw unusableCache(cache, error);
  }
  return aside;
}

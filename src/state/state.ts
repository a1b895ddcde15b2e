/**
 * The state of the last build: the input files that it read, and the blocks and transactions that it wrote. It is a
 * DuckDB file in the cache folder, attached to the store as `state`. It has no records, so its size is a few percent of
 * the output.
 *
 * The relations `known_files`, `known_held`, `known_runes`, `known_blocks` and so on show its tables in an incremental
 * build, and are empty in a full build. The tables change in one transaction, from `begin` to `commit`, so a killed
 * build does not change them.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BuildError } from '../errors.ts';
import { literal, type Store, text } from '../store/duckdb.ts';
import { firstLineOf, isDamage, isDuckDBError, isFileError } from '../store/failures.ts';
import { attachDatabase } from '../store/lock.ts';
import { removeIfPossible, unusableCache } from '../store/scratch.ts';
import { definitionOf, TABLES, type TableName } from '../store/tables.ts';
import { VERSION } from '../version.ts';

const FILE = 'state.duckdb';

/**
 * Version of the `state.` tables in store/tables.ts, and of the files that builds write beside the pages. A state with
 * another version is not used.
 */
const FORMAT = 11;

const program = `${VERSION} ${FORMAT}`;

class DamagedStateError extends Error {
  override readonly name = 'DamagedStateError';
}

export class State {
  readonly #store: Store;
  readonly #cache: string | undefined;
  readonly #settings: object;
  /** The reason for a full build; undefined for an incremental build. */
  readonly whyFull: string | undefined;
  /** True when this build created the file and has not committed anything to it. */
  #isBlank: boolean;
  #inTransaction = false;

  private constructor(store: Store, cache: string | undefined, settings: object, whyFull: string | undefined, isBlank: boolean) {
    this.#store = store;
    this.#cache = cache;
    this.#settings = settings;
    this.whyFull = whyFull;
    this.#isBlank = isBlank;
  }

  /**
   * Attaches the state of a cache folder that exists, and locks it until the store is closed. A dry run has no cache
   * folder and gets an empty state in memory.
   *
   * The build is incremental if the state has the same `settings` and `manifest`. `manifest` is the SHA-256 of the
   * output's manifest, undefined when the output is incomplete. `whyFull` forces a full build.
   *
   * Throws a LockedError when another build is using the folder, and a DamagedStateError when the file is damaged.
   */
  static async attach(
    store: Store,
    cache: string | undefined,
    settings: object,
    manifest: string | undefined,
    whyFull?: string,
  ): Promise<State> {
    if (cache === undefined) {
      await store.run(`ATTACH ':memory:' AS state; ${KNOWN_NOTHING}`);
      return new State(store, cache, settings, 'a dry run has no cache', false);
    }
    const isBlank = !existsSync(join(cache, FILE));
    try {
      await attachFile(store, cache);
      const mismatch = await whyNot(store, JSON.stringify(settings), manifest);
      const reason = whyFull ?? mismatch;
      await store.run(reason === undefined ? KNOWN : KNOWN_NOTHING);
      return new State(store, cache, settings, reason, isBlank);
    } catch (error) {
      // The queries above use only this file, so any DuckDB error is about it.
      if (isDuckDBError(error)) throw new DamagedStateError(firstLineOf(error));
      throw error;
    }
  }

  /** Begins the transaction. A full build empties all tables first. */
  async begin(): Promise<void> {
    await this.#store.run('BEGIN TRANSACTION');
    this.#inTransaction = true;
    if (this.whyFull !== undefined) await this.#store.run(NEW_STATE);
  }

  /** Commits the transaction. The state then describes the output with this manifest. */
  async commit(manifest: string): Promise<void> {
    const basis = [program, JSON.stringify(this.#settings), manifest].map(literal).join(', ');
    await this.#store.run(`DELETE FROM state.basis; INSERT INTO state.basis VALUES (${basis}); COMMIT`);
    this.#inTransaction = false;
    this.#isBlank = false;
  }

  /** Rolls back an open transaction, and removes a state file that has no content. */
  async close(): Promise<void> {
    if (this.#inTransaction) await this.#store.run('ROLLBACK').catch(() => undefined);
    if (this.#isBlank && this.#cache !== undefined) for (const path of filesIn(this.#cache)) removeIfPossible(path);
  }
}

/** Returns the paths of the state file and of DuckDB's write-ahead log. */
const filesIn = (cache: string): string[] => [FILE, `${FILE}.wal`].map((name) => join(cache, name));

/** Returns one SQL statement for each table whose name begins with `prefix`. `statement` gets the rest of the name. */
const statements = (prefix: string, statement: (rest: string, table: TableName) => string): string =>
  (Object.keys(TABLES) as TableName[])
    .filter((table) => table.startsWith(prefix))
    .map((table) => statement(table.slice(prefix.length), table))
    .join('; ');

const NEW_STATE = statements('state.', (_, table) => `CREATE OR REPLACE TABLE ${table} (${definitionOf(TABLES[table].columns)})`);
const KNOWN = statements('known_', (rest, table) => `CREATE TEMP VIEW ${table} AS SELECT * FROM state.${rest}`);
const KNOWN_NOTHING = statements('known_', (_, table) => `CREATE TEMP TABLE ${table} (${definitionOf(TABLES[table].columns)})`);

/** Returns why a build cannot use the state; undefined when it can. */
async function whyNot(store: Store, settings: string, manifest: string | undefined): Promise<string | undefined> {
  const [basis] = await store.rows('SELECT * FROM state.basis', { program: text, settings: text, manifest: text });
  if (basis === undefined) return 'there is no cache of an earlier build';
  if (basis.manifest !== manifest) return 'the output does not match the cache';
  if (basis.program !== program) return `the cache was written by version ${basis.program}`;
  if (basis.settings !== settings)
    return 'the layout, the dialect, the page sizes, the lists, the compressed files, the Parquet files or the range of blocks changed';
  return undefined;
}

async function attachFile(store: Store, cache: string): Promise<void> {
  const path = join(cache, FILE);
  if (resolve(path).includes('?')) {
    throw new BuildError(`the cache folder ${resolve(cache)} has a question mark in its path, which DuckDB does not support`, [
      'Use another folder with --cache.',
    ]);
  }
  await attachDatabase(store, { path, name: 'state', what: `the cache folder ${cache}`, flag: '--cache' });
  await store.run(`CREATE TABLE IF NOT EXISTS state.basis (${definitionOf(TABLES['state.basis'].columns)})`);
}

/** Returns the message of an error that a damaged state caused; undefined for any other error. */
export function damageOf(error: unknown, cache: string): string | undefined {
  if (error instanceof DamagedStateError) return error.message;
  const message = firstLineOf(error);
  const namesState = isFileError(message) && filesIn(resolve(cache)).some((path) => message.includes(path));
  return isDuckDBError(error) && (isDamage(message) || namesState) ? message : undefined;
}

/** Renames a damaged state file, so that the next build is a full one. Returns the new path. */
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

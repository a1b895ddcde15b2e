/**
 * What the last build left: which input files it read, which blocks and transactions it wrote. A DuckDB file in the cache folder, attached to
 * the store as `state`; it never holds records, only what is needed to tell what changed, so it is a few hundredths of the output's size.
 *
 * The relations `known_files`, `known_held`, `known_runes`, `known_blocks` and so on are its tables when a build can go on from it, and empty when
 * it has to begin anew. The tables change in one transaction, from `begin` to `commit`, so a build that dies leaves them as they were.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BuildError, CliError, messageOf } from '../errors.ts';
import { literal, type Store, text } from '../store/duckdb.ts';
import { attachDatabase } from '../store/lock.ts';
import { definitionOf, TABLES, type TableName } from '../store/tables.ts';
import { VERSION } from '../version.ts';

const FILE = 'state.duckdb';

/** Counts up when the tables change (`state.` in store/tables.ts). */
const FORMAT = 5;

const program = `${VERSION} ${FORMAT}`;

/** The state of the last build cannot be read. */
class DamagedStateError extends Error {
  override readonly name = 'DamagedStateError';
}

export class State {
  readonly #store: Store;
  readonly #cache: string | undefined;
  readonly #settings: object;
  /** Why the build begins anew; undefined when it goes on from the state. */
  readonly whyFull: string | undefined;
  /** Whether the file was made by this build and nothing is in it: there is no state to lose. */
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
   * Attaches the state of a cache folder, or an empty one in memory for a dry run, which has no folder. `settings` is what the state must have been made
   * with, `manifest` the SHA-256 of the output's manifest, undefined when the output is not whole; `whyFull` is given when the build must begin anew in any
   * case. The file stays locked until the store is closed: throws a BuildError when another build holds it, and a DamagedStateError when it cannot be read.
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
      const [basis] = await store.rows('SELECT * FROM state.basis', { program: text, settings: text, manifest: text });
      const reason = whyFull ?? whyNot(basis, { settings: JSON.stringify(settings), manifest });
      await store.run(reason === undefined ? KNOWN : KNOWN_NOTHING);
      return new State(store, cache, settings, reason, isBlank);
    } catch (error) {
      // All that was asked of DuckDB here is about this file.
      if (isDuckDBError(error)) throw new DamagedStateError(firstLineOf(error));
      throw error;
    }
  }

  /** Begins the change of the tables, which are empty when the build begins anew. */
  async begin(): Promise<void> {
    await this.#store.run('BEGIN TRANSACTION');
    this.#inTransaction = true;
    if (this.whyFull !== undefined) await this.#store.run(NEW_STATE);
  }

  /** Ends the change: from here on the state is that of the output with this manifest. */
  async commit(manifest: string): Promise<void> {
    const basis = [program, JSON.stringify(this.#settings), manifest].map(literal).join(', ');
    await this.#store.run(`DELETE FROM state.basis; INSERT INTO state.basis VALUES (${basis}); COMMIT`);
    this.#inTransaction = false;
    this.#isBlank = false;
  }

  /** Undoes a change that was not committed, and removes a file that has nothing in it. */
  async close(): Promise<void> {
    if (this.#inTransaction) await this.#store.run('ROLLBACK').catch(() => undefined);
    if (this.#isBlank && this.#cache !== undefined) for (const path of filesIn(this.#cache)) rmSync(path, { force: true });
  }
}

/** The state and what DuckDB keeps beside it. */
const filesIn = (cache: string): string[] => [FILE, `${FILE}.wal`].map((name) => join(cache, name));

/** SQL of a statement for each table whose name begins so; the statement is given the rest of its name. */
const statements = (prefix: string, statement: (rest: string, table: TableName) => string): string =>
  (Object.keys(TABLES) as TableName[])
    .filter((table) => table.startsWith(prefix))
    .map((table) => statement(table.slice(prefix.length), table))
    .join('; ');

const NEW_STATE = statements('state.', (_, table) => `CREATE OR REPLACE TABLE ${table} (${definitionOf(table)})`);
const KNOWN = statements('known_', (rest, table) => `CREATE TEMP VIEW ${table} AS SELECT * FROM state.${rest}`);
const KNOWN_NOTHING = statements('known_', (_, table) => `CREATE TEMP TABLE ${table} (${definitionOf(table)})`);

interface Basis {
  readonly program: string;
  readonly settings: string;
  readonly manifest: string;
}

/** Why a build cannot go on from a state; undefined when it can. */
function whyNot(
  basis: Basis | undefined,
  wanted: { readonly settings: string; readonly manifest: string | undefined },
): string | undefined {
  if (basis === undefined) return 'there is no cache of an earlier build';
  if (basis.manifest !== wanted.manifest) return 'the output is not what the cache was written for';
  if (basis.program !== program) return `the cache is of version ${basis.program}`;
  if (basis.settings !== wanted.settings)
    return 'the layout, the dialect, the page sizes, the lists by operation, the compressed files, the Parquet files or the range of blocks changed';
  return undefined;
}

async function attachFile(store: Store, cache: string): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const path = join(cache, FILE);
  if (resolve(path).includes('?')) {
    throw new BuildError(`the cache folder ${resolve(cache)} has a question mark in its path, which DuckDB cannot work with`, [
      'Name another folder with --cache.',
    ]);
  }
  await attachDatabase(store, { path, name: 'state', what: `the cache folder ${cache}`, flag: '--cache' });
  await store.run(`CREATE TABLE IF NOT EXISTS state.basis (${definitionOf('state.basis')})`);
}

const firstLineOf = (error: unknown): string => messageOf(error).split('\n')[0] ?? '';

/** DuckDB names the kind of its errors. */
const isDuckDBError = (error: unknown): boolean =>
  error instanceof Error && !(error instanceof CliError) && /^(?:[A-Za-z]+ )+Error: /.test(error.message);

/** What DuckDB says about its own files only. A checksum covers each piece of them, so damage is found when it is read, which may be late in a build. */
const DAMAGE = /^(?:Serialization Error: |FATAL Error: |IO Error: Corrupt database file)/;

/** What is wrong with the state when that is what a build failed for; undefined when it failed for anything else. */
export function damageOf(error: unknown, cache: string): string | undefined {
  if (error instanceof DamagedStateError) return error.message;
  const message = firstLineOf(error);
  const namesState = /^IO Error: /.test(message) && filesIn(resolve(cache)).some((path) => message.includes(path));
  return isDuckDBError(error) && (DAMAGE.test(message) || namesState) ? message : undefined;
}

/** Moves a damaged state aside, so that the next build begins anew. Returns where it is. */
export function setAside(cache: string): string {
  const aside = join(cache, `${FILE}.damaged`);
  for (const [path, to] of filesIn(cache).map((from, i) => [from, i === 0 ? aside : `${aside}.wal`] as const)) {
    rmSync(to, { recursive: true, force: true });
    if (existsSync(path)) renameSync(path, to);
  }
  return aside;
}

/**
 * What the last build left: which input files it read, which blocks and transactions it wrote. A DuckDB file in the cache folder, attached to
 * the store as `state`; it never holds records, only what is needed to tell what changed, so it is a few hundredths of the output's size.
 *
 * The views `known_files`, `known_held`, `known_left_out`, `known_runes`, `known_blocks` and `known_transactions` are its tables when a build can go on from
 * it, and empty when it has to begin anew. Nothing but `commit` changes the tables, in one transaction, so a build that dies leaves them as they were.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BuildError, messageOf } from '../errors.ts';
import { BLOCK_RUNES } from '../stats/counting.ts';
import { literal, type Store, toText } from '../store/duckdb.ts';
import { attachDatabase } from '../store/lock.ts';
import { VERSION } from '../version.ts';

const FILE = 'state.duckdb';

/** Counts up when the tables change. */
const FORMAT = 5;

const TABLES: Readonly<Record<string, string>> = {
  /** One row: what program and settings the state is of, and the SHA-256 of the manifest that the build wrote. */
  basis: 'program VARCHAR, settings VARCHAR, manifest VARCHAR',
  /** Input files by the number that is their records' `source`. Times in nanoseconds; digest is SHA-256 of the content. */
  files: 'id INTEGER, name VARCHAR, form VARCHAR, size BIGINT, mtime VARCHAR, ctime VARCHAR, inode VARCHAR, digest VARCHAR',
  /** Which file holds which block. `records` is 0 when all its rows were left out. */
  held: 'source INTEGER, block_height BIGINT, block_hash VARCHAR, records BIGINT',
  /** How many ledger rows of each file and block were left out, by the rune that the runes tables lack. */
  left_out: 'source INTEGER, block_height BIGINT, rune_id VARCHAR, records BIGINT',
  /** The runes tables of all inputs. */
  runes: 'id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR, divisibility BIGINT',
  /** `operations`: records of each, in the order of OPERATIONS, with commas. `files` and `bytes`: of the block's pages and its transactions'. */
  blocks:
    'block_height BIGINT, block_hash VARCHAR, records BIGINT, transactions BIGINT, operations VARCHAR, digest VARCHAR, files BIGINT, bytes BIGINT, timestamp BIGINT',
  /** What each block did with each rune: records by operation. */
  block_runes: BLOCK_RUNES,
  /** `first`: number of its first record in its block. */
  transactions: 'tx_id VARCHAR, block_height BIGINT, records BIGINT, first BIGINT',
  /** The Parquet files of ranges of heights, by the first height that they are for; digest is SHA-256 of the content. */
  ranges: 'first BIGINT, bytes BIGINT, digest VARCHAR',
};

const program = `${VERSION} ${FORMAT}`;

export class State {
  readonly #store: Store;
  readonly #settings: object;
  /** Why the build begins anew; undefined when it goes on from the state. */
  readonly whyFull: string | undefined;
  /** Whether the file was made by this build and nothing is in it: there is no state to lose. */
  isBlank: boolean;

  private constructor(store: Store, settings: object, whyFull: string | undefined, isBlank: boolean) {
    this.#store = store;
    this.#settings = settings;
    this.whyFull = whyFull;
    this.isBlank = isBlank;
  }

  /**
   * Attaches the state of a cache folder, or an empty one in memory when there is no folder. `settings` is what the state must have been made with, `manifest` the SHA-256 of the output's
   * manifest, undefined when the output is not whole; `whyFull` is given when the build must begin anew in any case. The file stays locked
   * until the store is closed: throws a BuildError when another build holds it.
   */
  static async attach(
    store: Store,
    cache: string | undefined,
    settings: object,
    manifest: string | undefined,
    whyFull?: string,
  ): Promise<State> {
    const isBlank = cache !== undefined && !hasState(cache);
    const damage = await attachFile(store, cache);
    let reason = whyFull ?? damage;
    if (reason === undefined && cache !== undefined) {
      const [basis] = await store.rows('SELECT * FROM state.basis');
      if (basis === undefined) reason = 'there is no cache of an earlier build';
      else if (manifest === undefined || toText(basis['manifest']) !== manifest)
        reason = 'the output is not what the cache was written for';
      else if (toText(basis['program']) !== program) reason = `the cache is of version ${toText(basis['program'])}`;
      else if (toText(basis['settings']) !== JSON.stringify(settings))
        reason =
          'the layout, the dialect, the page sizes, the lists by operation, the compressed files, the Parquet files or the range of blocks changed';
    }
    const none = reason === undefined && cache !== undefined ? '' : ' WHERE false';
    for (const table of Object.keys(TABLES)) await store.run(`CREATE TEMP VIEW known_${table} AS SELECT * FROM state.${table}${none}`);
    return new State(store, settings, reason, isBlank);
  }

  /**
   * Brings the state up to this build: `change` runs in one transaction on tables that are empty when the build began anew. The new state
   * counts from when `change` resolves with the SHA-256 of the manifest, and the transaction is through.
   */
  async commit(change: () => Promise<string>): Promise<void> {
    await this.#store.run('BEGIN TRANSACTION');
    try {
      if (this.whyFull !== undefined) await makeTables(this.#store);
      const manifest = await change();
      await this.#store.run('DELETE FROM state.basis');
      await this.#store.run(
        `INSERT INTO state.basis VALUES (${literal(program)}, ${literal(JSON.stringify(this.#settings))}, ${literal(manifest)})`,
      );
      await this.#store.run('COMMIT');
      this.isBlank = false;
    } catch (error) {
      await this.#store.run('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }
}

/** Whether an earlier build left a state. */
export const hasState = (cache: string): boolean => existsSync(join(cache, FILE));

/** Removes the state, so that the next build begins anew. */
export function removeState(cache: string): void {
  for (const name of [FILE, `${FILE}.wal`]) rmSync(join(cache, name), { recursive: true, force: true });
}

async function makeTables(store: Store): Promise<void> {
  for (const [table, columns] of Object.entries(TABLES)) await store.run(`CREATE OR REPLACE TABLE state.${table} (${columns})`);
}

/** Attaches the file, or memory. Returns why the file cannot be used, after replacing it by an empty one. */
async function attachFile(store: Store, cache: string | undefined): Promise<string | undefined> {
  if (cache === undefined) {
    await store.run(`ATTACH ':memory:' AS state`);
    await makeTables(store);
    return undefined;
  }
  mkdirSync(cache, { recursive: true });
  const path = join(cache, FILE);
  if (resolve(path).includes('?')) {
    throw new BuildError(`the cache folder ${resolve(cache)} has a question mark in its path, which DuckDB cannot work with`, [
      'Name another folder with --cache.',
    ]);
  }
  const file = { path, name: 'state', what: `the cache folder ${cache}`, flag: '--cache' };
  const existed = existsSync(path);
  try {
    await attachDatabase(store, file);
    if (!existed) await makeTables(store);
    // A file of another version, or no database of this program.
    else for (const [table, columns] of Object.entries(TABLES)) await store.rows(`SELECT ${namesOf(columns)} FROM state.${table} LIMIT 0`);
    return undefined;
  } catch (error) {
    if (error instanceof BuildError) throw error;
    await store.run('DETACH DATABASE IF EXISTS state');
    removeState(cache);
    await attachDatabase(store, file);
    await makeTables(store);
    return `the cache cannot be read (${messageOf(error).split('\n')[0]})`;
  }
}

const namesOf = (columns: string): string =>
  columns
    .split(', ')
    .map((column) => column.split(' ')[0])
    .join(', ');

/**
 * Database files beside the one in memory. They are also this program's locks.
 */
import { lstatSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { BuildError, CliError, LockedError, messageOf } from '../errors.ts';
import { literal, type Store } from './duckdb.ts';

export interface DatabaseFile {
  readonly path: string;
  /** What SQL calls the database. */
  readonly name: string;
  /** What it is for people: `the cache folder .cache`. */
  readonly what: string;
  /** The flag that names another. */
  readonly flag: string;
  /** What else may be at work on it: `build`, unless it is said. */
  readonly worker?: string;
}

/**
 * Attaches a database file, which DuckDB locks with the kernel's help: the lock ends with the process, however that ends. Throws a LockedError
 * when another process has it, and another BuildError when it cannot be written.
 */
export async function attachDatabase(store: Store, file: DatabaseFile): Promise<void> {
  const { path, name, what, flag, worker = 'build' } = file;
  try {
    // An absolute path: DuckDB would take `~/x` for the home folder, and `x:y` for a type of database.
    await store.run(`ATTACH ${literal(resolve(path))} AS ${name}`);
  } catch (error) {
    const message =
      messageOf(error)
        .split('\n')[0]
        ?.replace(/^(?:the disk of the cache folder is full: )?(?:IO Error: )?/, '') ?? '';
    if (/could not set lock|conflicting lock|used by another process/i.test(message)) {
      const pid = /PID (\d+)/.exec(message)?.[1];
      throw new LockedError(`another ${worker} is at work on ${what}${pid === undefined ? '' : ` (process ${pid})`}`, [
        `Wait until it is done, or name another folder with ${flag}.`,
      ]);
    }
    if (
      !/Too many open files/.test(message) &&
      /Permission denied|Read-only file system|Cannot open file|No space left|Could not (?:write|create)/i.test(message)
    ) {
      throw new BuildError(`${what} cannot be written: ${message}`, [
        `Make room or change its rights, or name another folder with ${flag}.`,
      ]);
    }
    throw error;
  }
}

/** Takes a lock: a database file without data. What a process that died left of it may be half a file; it is made anew. Throws as attachDatabase does. */
export async function lockFile(store: Store, file: DatabaseFile): Promise<void> {
  // DuckDB would follow a link, and wait for a pipe.
  for (const path of [file.path, `${file.path}.wal`])
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) rmSync(path, { recursive: true });
  try {
    await attachDatabase(store, file);
  } catch (error) {
    if (error instanceof LockedError) throw error;
    rmSync(file.path, { recursive: true, force: true });
    if (error instanceof CliError) throw error;
    await attachDatabase(store, file);
  }
}

/** Gives a lock back. The file goes first: were it unlocked first, a process that waits could lock a file that is about to go. */
export async function unlockFile(store: Store, file: DatabaseFile): Promise<void> {
  rmSync(file.path, { force: true });
  await store.run(`DETACH DATABASE IF EXISTS ${file.name}`);
}

/** Runs `work` while this process has the lock. */
export async function withLock<T>(store: Store, file: DatabaseFile, work: () => Promise<T>): Promise<T> {
  await lockFile(store, file);
  try {
    return await work();
  } finally {
    await unlockFile(store, file);
  }
}

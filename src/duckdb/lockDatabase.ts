/** Attaches database files. DuckDB locks attached files, so they also serve as lock files. */
import { lstatSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { BuildError, CliError, LockedError } from '../errors.ts';
import { firstLineOf, isDiskFailure, isLocked, isUnwritable, lockOwner } from './duckdbErrors.ts';
import { literal, type Store } from './store.ts';

export interface DatabaseFile {
  readonly path: string;
  readonly name: string;
  /** The folder in messages, such as `the cache folder .cache`. */
  readonly what: string;
  /** Word in messages for another process that is using the folder. Default: `build`. */
  readonly worker?: string;
}

/**
 * Attaches a database file and locks it. The kernel removes the lock when the process ends, even after a crash. Only CHECKPOINT changes the
 * file: no build reaches the threshold of automatic checkpoints. DuckDB writes no write-ahead log, because it would make each entry in
 * memory first: 250 MB for long texts. Rejects with a LockedError when another process has the lock, and with another BuildError when the
 * file cannot be written.
 */
export async function attachDatabase(store: Store, file: DatabaseFile): Promise<void> {
  const { path, name, what, worker = 'build' } = file;
  try {
    // Passes an absolute path, because DuckDB expands `~/x`, and takes `x:y` for a database of type `x`.
    await store.run(
      `SET checkpoint_threshold = '1000TB'; PRAGMA disable_checkpoint_on_shutdown;
       ATTACH ${literal(resolve(path))} AS ${name} (RECOVERY_MODE NO_WAL_WRITES)`,
    );
  } catch (error) {
    const message = firstLineOf(error).replace(/^(?:the disk of the cache folder is full: |a disk failed: )?(?:IO Error: )?/, '');
    if (isLocked(message)) {
      const pid = lockOwner(message);
      throw new LockedError(`another ${worker} is using ${what}${pid === undefined ? '' : ` (process ${pid})`}`, [
        'Wait until it ends, or use another folder.',
      ]);
    }
    if (isDiskFailure(error))
      throw new BuildError(`${what} cannot be used, because its disk failed: ${message}`, ['Check the disk, or use another folder.']);
    if (isUnwritable(message))
      throw new BuildError(`${what} cannot be written: ${message}`, ['Free some space, change its permissions, or use another folder.']);
    throw error;
  }
}

/**
 * Locks a database file that has no data and serves only as a lock. Replaces an incomplete file that a killed process left. Rejects with a
 * LockedError when another process has the lock, and with another BuildError when the file cannot be written.
 */
export async function lockFile(store: Store, file: DatabaseFile): Promise<void> {
  // Removes a link or a pipe at these paths, because DuckDB would follow a link, and wait forever for a pipe.
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

/** Removes the file before it releases the lock. Afterwards, another process may already have locked the file. */
export async function unlockFile(store: Store, file: DatabaseFile): Promise<void> {
  rmSync(file.path, { force: true });
  await store.run(`DETACH DATABASE IF EXISTS ${file.name}`);
}

export async function withLock<T>(store: Store, file: DatabaseFile, work: () => Promise<T>): Promise<T> {
  await lockFile(store, file);
  try {
    return await work();
  } finally {
    await unlockFile(store, file);
  }
}

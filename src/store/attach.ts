/**
 * Database files beside the one in memory. They are also this program's locks.
 */
import { resolve } from 'node:path';
import { BuildError, LockedError, messageOf } from '../errors.ts';
import { literal, type Store } from './duckdb.ts';

/**
 * Attaches a database file, which DuckDB locks with the kernel's help: the lock ends with the process, however that ends. Throws a BuildError
 * when another process has it, or when it cannot be written.
 */
export async function attachDatabase(store: Store, path: string, name: string, what: string, flag: string): Promise<void> {
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
      throw new LockedError(`another build is at work on ${what}${pid === undefined ? '' : ` (process ${pid})`}`, [
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

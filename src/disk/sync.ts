/** Makes files survive a power cut. A build writes too many pages for an fsync each, so it syncs the complete file system in one step. */
import { execFile } from 'node:child_process';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf, messageOf } from '../errors.ts';
import { writeFailure } from './fileErrors.ts';

/** Error codes of file systems and platforms that cannot sync a folder. */
const CANNOT_SYNC = ['EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM'];

/** Syncs the content of a file. `flags` must be 'r' for a folder, which can only be opened for reading. */
export function syncFile(path: string, flags = 'r+'): void {
  const handle = openSync(path, flags);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Syncs the entries of a folder. Does nothing if the file system cannot sync folders. Throws system errors. */
export function syncFolder(path: string): void {
  try {
    syncFile(path, 'r');
  } catch (error) {
    if (!CANNOT_SYNC.includes(codeOf(error) ?? '')) throw error;
  }
}

/** Syncs the file system of a folder by GNU coreutils. Resolves to the reason if it cannot. Rejects if the disk reports an error. */
export function syncFileSystem(folder: string): Promise<string | undefined> {
  return new Promise((done, fail) => {
    execFile('sync', ['-f', resolve(folder)], { env: { ...process.env, LC_ALL: 'C' } }, (error, _stdout, stderr) => {
      if (error === null) return done(undefined);
      const [said = ''] = stderr.split('\n');
      // coreutils says so if syncfs() fails. Any other message means that this `sync` cannot sync a file system.
      if (/error syncing/.test(said)) return fail(writeFailure({ message: said }));
      done(codeOf(error) === 'ENOENT' ? 'the program "sync" is missing' : said || messageOf(error));
    });
  });
}

/**
 * Waits until files are on the disk, so that a power cut cannot undo them.
 *
 * Single files are synced with fsync. The pages of a build are too many for that: the program `sync` of GNU coreutils syncs their whole file system
 * at once.
 */
import { execFile } from 'node:child_process';
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { resolve } from 'node:path';
import { codeOf, messageOf } from '../errors.ts';
import { writeFailure } from './failure.ts';

/** Codes with which a file system or a platform refuses to sync a folder. */
const CANNOT_SYNC = ['EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM'];

/** Syncs the content of a file. Throws system errors. */
export function syncFile(path: string): void {
  const handle = openSync(path, 'r+');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Syncs the names in a folder, where the file system can. Throws system errors. */
export function syncFolder(path: string): void {
  try {
    const handle = openSync(path, 'r');
    try {
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    if (!CANNOT_SYNC.includes(codeOf(error) ?? '')) throw error;
  }
}

/**
 * Syncs all files of the file system that this folder is on. Returns why it was not possible, or undefined. Throws a BuildError when the disk
 * could not be written.
 */
export function syncFileSystem(folder: string): Promise<string | undefined> {
  return new Promise((done, fail) => {
    execFile('sync', ['-f', resolve(folder)], { env: { ...process.env, LC_ALL: 'C' } }, (error, _stdout, stderr) => {
      if (error === null) return done(undefined);
      const [said = ''] = stderr.split('\n');
      // The words of coreutils for a failed syncfs(). All else means that there is no such program, or that it is another one.
      if (/error syncing/.test(said)) return fail(writeFailure({ message: said }));
      done(codeOf(error) === 'ENOENT' ? 'the program "sync" is missing' : said || messageOf(error));
    });
  });
}

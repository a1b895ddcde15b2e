/** Makes folders of the output and the cache. They are never symbolic links, so nothing is written outside them. */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';

/**
 * Makes a folder inside an existing one. Replaces a file or a symbolic link at this path; the target of the link stays.
 * Throws system errors.
 */
export function makeFolder(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  if (stats !== undefined) rmSync(path);
  // With `recursive` it is no error when another thread has just made the folder.
  mkdirSync(path, { recursive: true });
}

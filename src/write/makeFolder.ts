/**
 * Folders that belong to this program: real ones, so that nothing is written through a link.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';

/** Makes a folder whose parent is there. Replaces anything else at this path, such as a symbolic link, and leaves alone what the link leads to. */
export function makeFolder(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  if (stats !== undefined) rmSync(path);
  // Recursive: another thread may have made it by now.
  mkdirSync(path, { recursive: true });
}

/** Creates folders of the output and the cache. Never uses a symbolic link, through which files would go elsewhere. */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';

/** Creates a folder inside an existing one. Replaces a file or a symbolic link, but not the target of the link. */
export function makeFolder(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  if (stats !== undefined) rmSync(path);
  // With `recursive`, it is no error if another thread has just created the folder.
  mkdirSync(path, { recursive: true });
}

/** Creates folders of the output and the cache. Replaces symbolic links, so that no file is written through a link. */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';

/** Creates a folder inside an existing one. Replaces a file or a symbolic link at `path`. Keeps the link's target. */
export function makeFolder(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return;
  if (stats !== undefined) rmSync(path);
  // With `recursive`, it is no error if another thread has just created the folder.
  mkdirSync(path, { recursive: true });
}

/** Writes the files of a build into its output folder. */
import { rmSync } from 'node:fs';
import { readRegularFile } from '../../disk/regularFile.ts';
import { hasBytes, isSameFile, makeFolder, moveFile, replaceFile, tryLink, writeNew } from '../../disk/replaceFile.ts';
import { codeOf } from '../../errors.ts';
import { PageBuffer } from './pageBuffer.ts';
import type { FileSink } from './pageFiles.ts';

/**
 * Writes files below a folder. Calls are synchronous, because that is several times faster than promises.
 *
 * A new page is created in place. If the file exists, its bytes are compared first. If they differ, a rename replaces
 * the file, so that readers see either the old or the new bytes, never a partial file.
 */
export class DiskSink implements FileSink {
  /** Number of files. */
  files = 0;
  /** Number of files that already had the same bytes and were not touched. */
  kept = 0;
  readonly #folders = new Set<string>();
  #folder = '.';
  readonly #page = new PageBuffer();

  constructor(private readonly root: string) {}

  page(path: string, head: string, records: Uint8Array): void {
    this.#count(this.#put(path, this.#page.join(head, records), true));
  }

  /**
   * Writes a file that is not a page, unless it already has exactly these bytes. Always renames a complete file into
   * place, because readers could not detect a partial file.
   */
  file(path: string, bytes: Uint8Array): void {
    this.#count(this.#put(path, bytes, false));
  }

  #count(isWritten: boolean): void {
    this.files += 1;
    if (!isWritten) this.kept += 1;
  }

  /**
   * Moves the finished file `from` to `path`. If `path` already has the same bytes, deletes `from` instead. Does not
   * change `files` and `kept`.
   */
  take(path: string, from: string): void {
    const isPlaced = this.#place(
      path,
      false,
      (target) => isSameFile(from, target),
      (target) => moveFile(from, target),
    );
    if (!isPlaced) rmSync(from);
  }

  /** Makes `path` a hard link of the file `from` outside of the folder, or else a copy. Does not change the counts. */
  linkFrom(path: string, from: string): void {
    this.#link(path, from, false);
  }

  /** Makes `path` a hard link of `target`, or else a copy. */
  link(path: string, target: string): void {
    this.#count(this.#link(path, `${this.root}/${target}`, true));
  }

  #link(path: string, from: string, isPage: boolean): boolean {
    return this.#place(
      path,
      isPage,
      (to) => isSameFile(from, to),
      (to) => linkOrCopy(from, to),
    );
  }

  /** Writes a file. Returns false if it already has these bytes. */
  #put(path: string, bytes: Uint8Array, isPage: boolean): boolean {
    return this.#place(
      path,
      isPage,
      (target) => hasBytes(target, bytes),
      (target) => writeNew(target, bytes),
    );
  }

  /**
   * Creates a file with `make`. Returns false if the file already has the same bytes. Creates a new page in place,
   * because a rename for each page would take most of the build's time. Renames any other file into place.
   */
  #place(path: string, isPage: boolean, isSame: (target: string) => boolean, make: (target: string) => void): boolean {
    const target = this.#prepare(path);
    if (isPage && isNew(() => make(target))) return true;
    if (isSame(target)) return false;
    replaceFile(target, make);
    return true;
  }

  /** Creates the folder of a path. Returns the path with the output folder as prefix. */
  #prepare(path: string): string {
    const folder = path.slice(0, Math.max(path.lastIndexOf('/'), 0));
    if (folder !== this.#folder && !this.#folders.has(folder)) {
      // Empties the set to limit its memory. Folders that are needed afterwards are checked again, which is rare,
      // because most folders belong to a single list.
      if (this.#folders.size > 4096) this.#folders.clear();
      this.#makeFolder(folder);
    }
    this.#folder = folder;
    return `${this.root}/${path}`;
  }

  /** Creates a folder and its parents. Replaces a file or a symbolic link that has the path of a folder. */
  #makeFolder(folder: string): void {
    if (folder === '' || this.#folders.has(folder)) return;
    this.#makeFolder(folder.slice(0, Math.max(folder.lastIndexOf('/'), 0)));
    makeFolder(`${this.root}/${folder}`);
    this.#folders.add(folder);
  }
}

/** Creates a file with `make`. Returns false if its path exists. */
function isNew(make: () => void): boolean {
  try {
    make();
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  }
}

function linkOrCopy(from: string, to: string): void {
  if (tryLink(from, to) !== undefined) writeNew(to, readRegularFile(from));
}

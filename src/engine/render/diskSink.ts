/** Writes the files of a build into its output folder. Calls are synchronous, because that is several times faster than promises. */
import { rmSync } from 'node:fs';
import { readRegularFile } from '../../disk/regularFile.ts';
import { hasBytes, isSameFile, makeFolder, moveFile, replaceFile, tryLink, writeNew } from '../../disk/replaceFile.ts';
import { codeOf } from '../../errors.ts';
import { type FileSink, PageBuffer } from './pageFiles.ts';

export class DiskSink implements FileSink {
  files = 0;
  /** Number of files that already had the same bytes and were not touched. */
  kept = 0;
  readonly #folders = new Set<string>();
  readonly #page = new PageBuffer();

  constructor(private readonly root: string) {}

  page(path: string, head: string, records: Uint8Array): void {
    this.#count(this.#place(path, true, withBytes(this.#page.join(head, records))));
  }

  file(path: string, bytes: Uint8Array): void {
    this.#count(this.#place(path, false, withBytes(bytes)));
  }

  /** Makes `path` a hard link of `target`, or else a copy. */
  link(path: string, target: string): void {
    this.#count(this.#place(path, true, linkedTo(`${this.root}/${target}`)));
  }

  /** Makes `path` a hard link of the file `from` outside of the folder, or else a copy. Does not change the counts. */
  linkFrom(path: string, from: string): void {
    this.#place(path, false, linkedTo(from));
  }

  /** Moves the finished file `from` to `path`. Deletes it instead if `path` has the same bytes. Does not change the counts. */
  take(path: string, from: string): void {
    if (!this.#place(path, false, { ...linkedTo(from), make: (target) => moveFile(from, target) })) rmSync(from);
  }

  #count(isWritten: boolean): void {
    this.files += 1;
    if (!isWritten) this.kept += 1;
  }

  /**
   * Creates or replaces a file. Returns false if it already has the same bytes. Creates a new page in place, because a rename for each page
   * would take most of the build's time. Renames any other file into place, because readers could not detect a partial file.
   */
  #place(path: string, isPage: boolean, { isIn, make }: Content): boolean {
    // Empties the set to limit its memory. Folders are rarely checked again, because most folders belong to a single list.
    if (this.#folders.size > 4096) this.#folders.clear();
    this.#makeFolder(folderOf(path));
    const target = `${this.root}/${path}`;
    if (isPage)
      try {
        make(target);
        return true;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
      }
    if (isIn(target)) return false;
    replaceFile(target, make);
    return true;
  }

  /** Creates a folder and its parents. Replaces a file or a symbolic link that has the path of a folder. */
  #makeFolder(folder: string): void {
    if (folder === '' || this.#folders.has(folder)) return;
    this.#makeFolder(folderOf(folder));
    makeFolder(`${this.root}/${folder}`);
    this.#folders.add(folder);
  }
}

interface Content {
  /** True if a path is a regular file with this content. */
  readonly isIn: (target: string) => boolean;
  /** Creates a file at a path that must not exist. */
  readonly make: (target: string) => void;
}

const withBytes = (bytes: Uint8Array): Content => ({
  isIn: (target) => hasBytes(target, bytes),
  make: (target) => writeNew(target, bytes),
});

const linkedTo = (from: string): Content => ({
  isIn: (target) => isSameFile(from, target),
  make: (target) => {
    if (tryLink(from, target) !== undefined) writeNew(target, readRegularFile(from));
  },
});

const folderOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0));

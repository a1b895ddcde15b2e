/**
 * The two ends of a build: files on disk, or only their number.
 */
import { rmSync } from 'node:fs';
import { codeOf } from '../errors.ts';
import { ENVELOPE_TAIL } from '../pages/envelope.ts';
import type { Encoding } from '../pages/lists.ts';
import { sidecarPath } from '../pages/paths.ts';
import { compress } from './compress.ts';
import { makeFolder } from './makeFolder.ts';
import type { FileSink } from './pageFiles.ts';
import type { PathList } from './pathList.ts';
import { readRegularFile } from './regularFile.ts';
import { holds, isSameFile, moveFile, replaceFile, tryLink, writeNew } from './replace.ts';

/** What a sink was given, without compressed files. Both paths of a linked file count: to a client they are two. */
export interface SinkTotals {
  files: number;
  bytes: number;
  /** Files that were there already with the same bytes; not touched. */
  kept: number;
}

/** Counts files without writing them: a dry run. */
export class CountingSink implements FileSink {
  readonly totals: SinkTotals = { files: 0, bytes: 0, kept: 0 };

  page(_path: string, head: string, records: Uint8Array): number {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    this.#add(length);
    return length;
  }

  file(_path: string, bytes: Uint8Array): void {
    this.#add(bytes.length);
  }

  link(_path: string, _target: string, length: number): void {
    this.#add(length);
  }

  flush(): void {}

  #add(bytes: number): void {
    this.totals.files += 1;
    this.totals.bytes += bytes;
  }
}

/**
 * Writes files below a folder, synchronously: in a thread of its own that is several times cheaper than promises. New files are created
 * in place. A file that exists is compared first, and if it differs it is replaced by a rename, so that at every moment a path holds
 * its old bytes or its new ones.
 */
export class DiskSink implements FileSink {
  readonly totals: SinkTotals = { files: 0, bytes: 0, kept: 0 };
  readonly #root: string;
  readonly #added: PathList | undefined;
  readonly #listKept: boolean;
  readonly #folders = new Set<string>();
  #folder = '.';
  #buffer = Buffer.allocUnsafeSlow(1 << 20);

  /** New and replaced files are listed in `added`, and those that were there already if `listKept`. */
  constructor(root: string, added?: PathList, listKept = false) {
    this.#root = root;
    this.#added = added;
    this.#listKept = listKept;
  }

  /** Brings the list of paths to disk. */
  flush(): void {
    this.#added?.flush();
  }

  page(path: string, head: string, records: Uint8Array, encodings: readonly Encoding[]): number {
    const length = head.length + records.length + ENVELOPE_TAIL.length;
    if (length > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(length * 2);
    const buffer = this.#buffer;
    buffer.write(head, 0, 'latin1');
    buffer.set(records, head.length);
    buffer.write(ENVELOPE_TAIL, length - ENVELOPE_TAIL.length, 'latin1');
    const bytes = buffer.subarray(0, length);
    this.#count(bytes, this.#put(path, bytes, true));
    for (const encoding of encodings) this.#put(sidecarPath(path, encoding), compress(bytes, encoding), true);
    return length;
  }

  /** Writes a file that is not a page, unless it has these bytes already. Readers cannot see whether such a file is whole, so it is renamed into place. */
  file(path: string, bytes: Uint8Array): void {
    this.#count(bytes, this.#put(path, bytes, false));
  }

  #count(bytes: Uint8Array, isWritten: boolean): void {
    this.totals.files += 1;
    this.totals.bytes += bytes.length;
    if (!isWritten) this.totals.kept += 1;
  }

  /** Takes a finished file from elsewhere, unless the same bytes are there already. It counts nowhere: it is no page. */
  take(path: string, from: string): void {
    const target = this.#prepare(path);
    if (isSameFile(from, target)) {
      rmSync(from);
      this.#keep(path);
      return;
    }
    replaceFile(target, (temporary) => moveFile(from, temporary));
    this.#added?.add(path);
  }

  link(path: string, target: string, length: number, encodings: readonly Encoding[]): void {
    this.totals.files += 1;
    this.totals.bytes += length;
    if (!this.#link(path, target)) this.totals.kept += 1;
    for (const encoding of encodings) this.#link(sidecarPath(path, encoding), sidecarPath(target, encoding));
  }

  /** False when the file has these bytes already. A page that is new is created in place: renaming each would take most of the time of a build. */
  #put(path: string, bytes: Uint8Array, isPage: boolean): boolean {
    const target = this.#prepare(path);
    if (!isPage || !isCreated(target, bytes)) {
      if (holds(target, bytes)) {
        this.#keep(path);
        return false;
      }
      replaceFile(target, (temporary) => writeNew(temporary, bytes));
    }
    this.#added?.add(path);
    return true;
  }

  /** False when the path is that file already. */
  #link(path: string, target: string): boolean {
    const [from, to] = [`${this.#root}/${target}`, this.#prepare(path)];
    try {
      linkOrCopy(from, to);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      if (isSameFile(from, to)) {
        this.#keep(path);
        return false;
      }
      replaceFile(to, (temporary) => linkOrCopy(from, temporary));
    }
    this.#added?.add(path);
    return true;
  }

  #keep(path: string): void {
    if (this.#listKept) this.#added?.add(path);
  }

  /** Makes the folder of a path; returns the whole path. */
  #prepare(path: string): string {
    const folder = path.slice(0, Math.max(path.lastIndexOf('/'), 0));
    // Mostly the same folder as before.
    if (folder !== this.#folder && !this.#folders.has(folder)) {
      // The folders of lists are many and each is used for a moment; only the common ones are worth remembering.
      if (this.#folders.size > 4096) this.#folders.clear();
      this.#makeFolder(folder);
    }
    this.#folder = folder;
    return `${this.#root}/${path}`;
  }

  /** Makes a folder and those that it is in. A link in the place of one of them is replaced, and not followed. */
  #makeFolder(folder: string): void {
    if (folder === '' || this.#folders.has(folder)) return;
    this.#makeFolder(folder.slice(0, Math.max(folder.lastIndexOf('/'), 0)));
    makeFolder(`${this.#root}/${folder}`);
    this.#folders.add(folder);
  }
}

/** Creates a file with these bytes; false when the path is taken. */
function isCreated(path: string, bytes: Uint8Array): boolean {
  try {
    writeNew(path, bytes);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  }
}

/** A hard link, or a copy where none can be made. */
function linkOrCopy(from: string, to: string): void {
  if (tryLink(from, to) !== undefined) writeNew(to, readRegularFile(from));
}

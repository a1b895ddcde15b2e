/**
 * What a build changed, for uploaders: `changes/added.txt` and `changes/removed.txt` in the cache folder, a path a line, relative to the
 * output folder.
 *
 * The lists grow in files of their own while the build works and get their names when it is done. A build that dies has changed things
 * that its successor does not see any more, so what it had removed is taken over from its unfinished list.
 */
import { closeSync, existsSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../errors.ts';
import { makeFolder } from '../write/makeFolder.ts';
import { PathList } from '../write/pathList.ts';
import { NotAFileError, openRegularFile, readRegularFile } from '../write/regularFile.ts';
import { syncFile, syncFolder } from '../write/sync.ts';

const FOLDER = 'changes';
const PART = '.part';

/** All of history is millions of paths, too many to be read whole. */
const PORTION = 1 << 20;

/** Writes what is in a file behind what was written to `handle`; `portion` is where its bytes pass through. */
function append(handle: number, file: string, portion: Buffer): void {
  const source = openRegularFile(file);
  try {
    for (let length = readSync(source, portion); length > 0; length = readSync(source, portion)) {
      let written = 0;
      while (written < length) written += writeSync(handle, portion, written, length - written);
    }
  } finally {
    closeSync(source);
  }
}

/** The content of a list; undefined when there is none. A link or a pipe in its place is removed. */
function textOf(list: string): string | undefined {
  try {
    return readRegularFile(list).toString('latin1');
  } catch (error) {
    if (error instanceof NotAFileError) rmSync(list, { recursive: true });
    else if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/** The paths in a list. A last line without an end is half a path, whose file was not removed. */
const pathsIn = (list: string): string[] => (textOf(list) ?? '').split('\n').slice(0, -1).filter(Boolean);

/** Cuts off half a line at the end, so that the next path gets a line of its own. */
function dropHalfLine(list: string): void {
  const text = textOf(list);
  if (text !== undefined && !text.endsWith('\n')) truncateSync(list, text.lastIndexOf('\n') + 1);
}

export class Changes {
  readonly #folder: string;
  /** What a build that died had removed; some of it may be back by now. */
  #inherited: readonly string[] = [];

  constructor(cache: string) {
    this.#folder = join(cache, FOLDER);
  }

  /**
   * Begins the lists of a build that has the cache and the output for itself; `isAfterDeath` when the one before did not come to its end. It may have died
   * when its lists had their names already, so what they say was removed is taken over too. Throws system errors.
   */
  begin(isAfterDeath: boolean): void {
    makeFolder(this.#folder);
    const part = join(this.#folder, `removed.txt${PART}`);
    const lists = [part, ...(isAfterDeath ? [join(this.#folder, 'removed.txt')] : [])];
    this.#inherited = lists.flatMap(pathsIn);
    dropHalfLine(part);
    for (const name of readdirSync(this.#folder)) {
      if (name.endsWith(PART) && name !== `removed.txt${PART}`) rmSync(join(this.#folder, name), { recursive: true });
    }
  }

  /** The file for the paths that one writer adds. */
  addedPart(writer: number): string {
    return join(this.#folder, `added-${writer}${PART}`);
  }

  /** The list of removed paths. A path is to be on disk in this list before its file goes, so the list is synced first. */
  removedList(): PathList {
    return new PathList(join(this.#folder, `removed.txt${PART}`));
  }

  /** Gives the lists their names. All writers are done; `root` is the output folder. */
  finish(root: string): void {
    const parts = readdirSync(this.#folder).filter((name) => name.startsWith('added-') && name.endsWith(PART));
    const whole = join(this.#folder, `added.txt${PART}`);
    const handle = openSync(whole, 'w');
    // The parts in the order of their numbers: the main thread's own, with the manifest as its last line, is the last.
    parts.sort((a, b) => Number.parseInt(a.slice(6), 10) - Number.parseInt(b.slice(6), 10));
    try {
      const portion = Buffer.allocUnsafeSlow(PORTION);
      for (const part of parts) append(handle, join(this.#folder, part), portion);
    } finally {
      closeSync(handle);
    }
    const removed = join(this.#folder, `removed.txt${PART}`);
    if (this.#inherited.length > 0) {
      const all = new Set([...this.#inherited, ...pathsIn(removed)]);
      for (const path of all) if (existsSync(join(root, path))) all.delete(path);
      rmSync(removed);
      const list = new PathList(removed);
      for (const path of all) list.add(path);
      list.flush();
      list.close();
    }
    // A build that changed nothing leaves the lists of the one before, which may not have been uploaded yet.
    if (statSync(whole).size + statSync(removed).size > 0) {
      for (const list of [whole, removed]) syncFile(list);
      renameSync(whole, join(this.#folder, 'added.txt'));
      renameSync(removed, join(this.#folder, 'removed.txt'));
    }
    for (const path of [whole, removed]) rmSync(path, { force: true });
    for (const part of parts) rmSync(join(this.#folder, part));
    syncFolder(this.#folder);
  }
}

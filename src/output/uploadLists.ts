/**
 * Lists the changes of a build for uploaders: `changes/added.txt` and `changes/removed.txt` in the cache folder. Each
 * line is a path relative to the output folder.
 *
 * A build writes the lists into `.part` files and renames them at its end. If a build is killed, the next build cannot
 * see which files the killed build has removed. So it takes their paths from the unfinished list.
 */
import {
  createReadStream,
  createWriteStream,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { APPEND, LineFile } from '../disk/lineFile.ts';
import { makeFolder } from '../disk/makeFolder.ts';
import { NotAFileError, openRegularFile, readRegularFile } from '../disk/regularFile.ts';
import { syncFile, syncFolder } from '../disk/sync.ts';
import { codeOf } from '../errors.ts';
import { yieldNow } from '../yieldNow.ts';

const FOLDER = 'changes';
const PART = '.part';

/** Reads a list. Returns undefined if the list does not exist. Removes a link or a pipe at its path. */
function textOf(list: string): string | undefined {
  try {
    return readRegularFile(list).toString('latin1');
  } catch (error) {
    if (error instanceof NotAFileError) rmSync(list, { recursive: true });
    else if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * Reads the paths of a list. Ignores an incomplete last line: a file is removed only after its complete path is listed.
 */
const pathsIn = (list: string): string[] => (textOf(list) ?? '').split('\n').slice(0, -1).filter(Boolean);

/** Removes an incomplete last line of a list, so that the next path starts a new line. */
function dropHalfLine(list: string): void {
  const text = textOf(list);
  if (text !== undefined && !text.endsWith('\n')) truncateSync(list, text.lastIndexOf('\n') + 1);
}

export class Changes {
  readonly #folder: string;
  /** File with the list of removed paths while the build runs. */
  readonly #removed: string;
  /** Paths that a killed build removed. Some of these files may exist again. */
  #inherited: readonly string[] = [];

  constructor(cache: string) {
    this.#folder = join(cache, FOLDER);
    this.#removed = join(this.#folder, `removed.txt${PART}`);
  }

  /**
   * Starts the lists of a build. The build must have locked its cache and output folders. Takes over the removed paths
   * of an unfinished list. If the last build did not finish (`lastBuildDied`), also takes over the paths in
   * `removed.txt`, because this may be the list of that build, already renamed. Throws system errors.
   */
  begin(lastBuildDied: boolean): void {
    makeFolder(this.#folder);
    // Syncing a list syncs its name in this folder, but not the name of this folder.
    syncFolder(dirname(this.#folder));
    const lists = [this.#removed, ...(lastBuildDied ? [join(this.#folder, 'removed.txt')] : [])];
    this.#inherited = lists.flatMap(pathsIn);
    dropHalfLine(this.#removed);
    for (const path of readdirSync(this.#folder).map((name) => join(this.#folder, name)))
      if (path.endsWith(PART) && path !== this.#removed) rmSync(path, { recursive: true });
  }

  /** Returns the path of the part file in which the writer with this number lists the files that it writes. */
  addedPart(writer: number): string {
    return join(this.#folder, `added-${writer}${PART}`);
  }

  /** Opens the list of removed paths. Sync it before you remove a file, because a power cut may lose the path. */
  removedList(): LineFile {
    return new LineFile(this.#removed, APPEND);
  }

  /** Merges the part files and renames both lists. All writers must have ended. `root` is the output folder. */
  async finish(root: string): Promise<void> {
    const parts = readdirSync(this.#folder).filter((name) => name.startsWith('added-') && name.endsWith(PART));
    const added = join(this.#folder, `added.txt${PART}`);
    // Sorts the part files by writer number. The part file of finishBuild has the highest number, so the manifest,
    // which is written last, is also listed last.
    parts.sort((a, b) => Number.parseInt(a.slice(6), 10) - Number.parseInt(b.slice(6), 10));
    writeFileSync(added, '');
    for (const part of parts)
      await pipeline(createReadStream('', { fd: openRegularFile(join(this.#folder, part)) }), createWriteStream(added, { flags: 'a' }));
    const removed = this.#removed;
    if (this.#inherited.length > 0) {
      const all = new Set([...this.#inherited, ...pathsIn(removed)]);
      for (const path of all) {
        await yieldNow();
        if (existsSync(join(root, path))) all.delete(path);
      }
      rmSync(removed);
      const list = new LineFile(removed, APPEND);
      for (const path of all) list.add(path);
      list.end();
    }
    // A build without changes keeps the previous lists, because their files may not be uploaded yet.
    if (statSync(added).size + statSync(removed).size > 0) {
      for (const list of [added, removed]) syncFile(list);
      renameSync(added, join(this.#folder, 'added.txt'));
      renameSync(removed, join(this.#folder, 'removed.txt'));
    }
    for (const path of [added, removed]) rmSync(path, { force: true });
    for (const part of parts) rmSync(join(this.#folder, part));
    syncFolder(this.#folder);
  }
}

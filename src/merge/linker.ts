/**
 * Brings files of parts into the output without reading them: as hard links, and as copies where that is not possible (another file system, other
 * rights). What is there already, as the same file or with the same bytes, is left alone.
 */
import { copyFileSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, type Stats } from 'node:fs';
import { BuildError, codeOf } from '../errors.ts';
import type { PathList } from '../write/changes.ts';

/** A folder of the output that has entries which the part's does not have. */
export interface CrowdedFolder {
  /** The part's root. */
  readonly root: string;
  readonly path: string;
}

/** Codes of system errors for links that cannot be made: of none of these files, or (EMLINK) of one that has too many. */
const NO_LINKS = ['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Ending of a file that is about to replace another. One that a killed merge left behind is swept like any stranger. */
const TEMPORARY_SUFFIX = '.tmp';

export class Linker {
  readonly #out: string;
  readonly #isNew: boolean;
  readonly #listKept: boolean;
  readonly #added: PathList;
  /** Parts from which no links can be made. */
  readonly #apart = new Set<string>();
  readonly crowded: CrowdedFolder[] = [];
  /** Files brought, or there already. */
  files = 0;
  kept = 0;
  copied = 0;

  /** `isNew`: nothing is in the output. New and replaced files are listed in `added`, and those that were there already if `listKept`. */
  constructor(out: string, isNew: boolean, added: PathList, listKept: boolean) {
    this.#out = out;
    this.#isNew = isNew;
    this.#added = added;
    this.#listKept = listKept;
  }

  /**
   * Everything in a folder of the part at `root`; a part that does not have the folder has nothing in it. `twin` is the path under which the same
   * files were brought before, if any: copies stay links of each other.
   */
  folder(root: string, path: string, twin?: string): void {
    if (lstatSync(`${root}/${path}`, { throwIfNoEntry: false }) === undefined) return;
    const entries = readdirSync(`${root}/${path}`, { withFileTypes: true });
    this.makeFolder(path);
    for (const entry of entries) {
      const inner = `${path}/${entry.name}`;
      const innerTwin = twin === undefined ? undefined : `${twin}/${entry.name}`;
      if (entry.isDirectory()) this.folder(root, inner, innerTwin);
      else this.file(root, inner, innerTwin);
    }
    if (!this.#isNew && readdirSync(`${this.#out}/${path}`).length !== entries.length) this.crowded.push({ root, path });
  }

  /** One file, into a folder that is there. */
  file(root: string, path: string, twin?: string): void {
    const [from, to] = [`${root}/${path}`, `${this.#out}/${path}`];
    this.files += 1;
    const there = this.#isNew ? undefined : lstatSync(to, { throwIfNoEntry: false });
    if (there === undefined) this.#create(root, path, to, twin);
    else if (there.isFile() && isSame(from, to, there)) {
      this.kept += 1;
      if (this.#listKept) this.#added.add(path);
      return;
    } else this.#replace(root, path, there, twin);
    this.#added.add(path);
  }

  makeFolder(path: string): void {
    const folder = `${this.#out}/${path}`;
    try {
      mkdirSync(folder, { recursive: true });
    } catch (error) {
      // Someone made a file where a folder belongs.
      if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== false) throw error;
      rmSync(folder);
      mkdirSync(folder);
    }
  }

  #replace(root: string, path: string, there: Stats, twin: string | undefined): void {
    const to = `${this.#out}/${path}`;
    const temporary = `${to}${TEMPORARY_SUFFIX}`;
    rmSync(temporary, { recursive: true, force: true });
    this.#create(root, path, temporary, twin);
    if (!there.isFile()) rmSync(to, { recursive: true });
    renameSync(temporary, to);
  }

  /** Makes the part's file `path` appear, whole, at `to`, where nothing is. */
  #create(root: string, path: string, to: string, twin: string | undefined): void {
    const from = `${root}/${path}`;
    try {
      if (!this.#apart.has(root) && this.#link(from, to, root)) return;
      if (twin !== undefined && isSameInode(from, `${root}/${twin}`) && this.#link(`${this.#out}/${twin}`, to)) return;
      const temporary = `${to}${TEMPORARY_SUFFIX}`;
      // One that a killed merge left behind may be a link of the part's file, which a copy would be written into.
      rmSync(temporary, { recursive: true, force: true });
      copyFileSync(from, temporary);
      renameSync(temporary, to);
      this.copied += 1;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || lstatSync(from, { throwIfNoEntry: false }) !== undefined) throw error;
      throw changedError(root, `${path} is missing`);
    }
  }

  /** Whether the link could be made. Remembers that none can be made from `root`. */
  #link(from: string, to: string, root?: string): boolean {
    try {
      linkSync(from, to);
      return true;
    } catch (error) {
      const code = codeOf(error) ?? '';
      if (!NO_LINKS.includes(code)) throw error;
      if (root !== undefined && code !== 'EMLINK') this.#apart.add(root);
      return false;
    }
  }
}

/** A part that is not what its manifest says, found while it is merged. The output stays marked as unfinished. */
export const changedError = (dir: string, why: string): BuildError =>
  new BuildError(`the part ${dir} is damaged, or was changed while it was merged: ${why}`, [
    'See what is wrong with npm run verify -- --dir, build it again, and merge again: until then the output is unfinished.',
  ]);

function isSame(from: string, to: string, there: Stats): boolean {
  const here = lstatSync(from, { throwIfNoEntry: false });
  if (here === undefined || !here.isFile()) return false;
  if (here.ino === there.ino && here.dev === there.dev) return true;
  return here.size === there.size && readFileSync(from).equals(readFileSync(to));
}

function isSameInode(a: string, b: string): boolean {
  const [first, second] = [lstatSync(a, { throwIfNoEntry: false }), lstatSync(b, { throwIfNoEntry: false })];
  return first !== undefined && second !== undefined && first.ino === second.ino && first.dev === second.dev;
}

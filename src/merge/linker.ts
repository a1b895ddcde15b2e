/**
 * Brings files of parts into the output without reading them: as hard links, and as copies where that is not possible (another file system, other
 * rights). What is there already, as the same file or with the same bytes, is left alone.
 */
import { copyFileSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { BuildError, codeOf } from '../errors.ts';
import { isSidecar } from '../pages/paths.ts';
import type { PathList } from '../write/changes.ts';
import { isLinked, isSameFile, replaceFile, tryLink } from '../write/replace.ts';

/** A folder of the output that has entries which the part's does not have. */
export interface CrowdedFolder {
  /** The part's root. */
  readonly root: string;
  readonly path: string;
}

export class Linker {
  readonly #out: string;
  readonly #isNew: boolean;
  readonly #listKept: boolean;
  readonly #added: PathList;
  /** Parts from which no links can be made. */
  readonly #apart = new Set<string>();
  readonly crowded: CrowdedFolder[] = [];
  /** Files brought, or there already, without compressed ones. */
  files = 0;
  /** Files made or replaced, compressed ones included. */
  written = 0;
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
    if (!isSidecar(path)) this.files += 1;
    const there = this.#isNew ? undefined : lstatSync(to, { throwIfNoEntry: false });
    if (there === undefined) this.#create(root, path, to, twin);
    else if (isSameFile(from, to)) {
      this.kept += 1;
      if (this.#listKept) this.#added.add(path);
      return;
    } else replaceFile(to, (temporary) => this.#create(root, path, temporary, twin));
    this.written += 1;
    this.#added.add(path);
  }

  /** Makes a folder of the output, with those above it, if it is not there. A file in its place goes. */
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

  /** Makes the part's file `path` appear, whole, at `to`, where nothing is. */
  #create(root: string, path: string, to: string, twin: string | undefined): void {
    const from = `${root}/${path}`;
    try {
      if (!this.#apart.has(root) && this.#link(root, from, to)) return;
      if (twin !== undefined && isLinked(from, `${root}/${twin}`) && tryLink(`${this.#out}/${twin}`, to) === undefined) return;
      replaceFile(to, (temporary) => copyFileSync(from, temporary));
      this.copied += 1;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT' || lstatSync(from, { throwIfNoEntry: false }) !== undefined) throw error;
      throw changedError(root, `${path} is missing`);
    }
  }

  /** Whether the link could be made. Remembers that none can be made from `root`. */
  #link(root: string, from: string, to: string): boolean {
    const code = tryLink(from, to);
    if (code !== undefined && code !== 'EMLINK') this.#apart.add(root);
    return code === undefined;
  }
}

/** A part that is not what its manifest says, found while it is merged. The output stays marked as unfinished. */
export const changedError = (dir: string, why: string): BuildError =>
  new BuildError(`the part ${dir} is damaged, or was changed while it was merged: ${why}`, [
    'See what is wrong with npm run verify -- --dir, build it again, and merge again: until then the output is unfinished.',
  ]);

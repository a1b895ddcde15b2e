/** Replaces files atomically, and links files that have the same content. */
import {
  closeSync,
  constants,
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../errors.ts';
import { openRegularFile, readRegularFile } from './regularFile.ts';
import { syncFile, syncFolder } from './sync.ts';

/** Suffix of a file that will replace another. A full build removes such files that a killed build left. */
const TEMPORARY_SUFFIX = '.tmp';

/** Replaces `target` atomically with the file that `write` creates at a temporary path. Throws the errors of both. */
export function replaceFile(target: string, write: (temporary: string) => void, temporary = `${target}${TEMPORARY_SUFFIX}`): void {
  // Removes a temporary file that a killed build left. If it is a hard link to a page, writing to it would change the page, too.
  rmSync(temporary, { recursive: true, force: true });
  try {
    write(temporary);
    // A rename cannot replace a folder with a file.
    if (statOf(target)?.isDirectory() === true) rmSync(target, { recursive: true });
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Replaces a file and syncs it. After a power cut, the file has either the old or the new text, never a part. */
export function replaceDurably(target: string, text: string, temporary?: string): void {
  const write = (path: string) => {
    writeNew(path, Buffer.from(text));
    syncFile(path);
  };
  replaceFile(target, write, temporary);
  syncFolder(dirname(target));
}

/** Creates a file durably: after a kill or a power cut, it is complete or missing. Throws system errors, such as EEXIST. */
export function createDurably(target: string, text: string, mode?: number): void {
  const temporary = `${target}.${process.pid}${TEMPORARY_SUFFIX}`;
  rmSync(temporary, { force: true });
  try {
    writeNew(temporary, Buffer.from(text), mode);
    syncFile(temporary);
    // Unlike a rename, a link or an exclusive copy never replaces a file.
    if (tryLink(temporary, target) !== undefined) copyFileSync(temporary, target, constants.COPYFILE_EXCL);
  } finally {
    rmSync(temporary, { force: true });
  }
  syncFolder(dirname(target));
}

/** Creates a file, or leaves none. Throws system errors, such as EEXIST if the path exists, even as a broken link. */
export function writeNew(path: string, bytes: Uint8Array, mode?: number): void {
  const handle = openSync(path, 'wx', mode);
  try {
    writeFileSync(handle, bytes);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Error codes that mean that a hard link cannot be created. EMLINK: the file has too many links. */
const NO_LINKS = ['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Creates a hard link. Returns the error code if the file system cannot create one. Throws any other error. */
export function tryLink(from: string, to: string): string | undefined {
  try {
    linkSync(from, to);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || !NO_LINKS.includes(code)) throw error;
    return code;
  }
}

/** True if the path is a regular file with exactly these bytes. */
export function hasBytes(path: string, content: Uint8Array): boolean {
  const stats = statOf(path);
  return stats?.isFile() === true && stats.size === content.length && readRegularFile(path).equals(content);
}

/** Maximum size in bytes of the pieces in which files are compared. */
const PIECE = 1 << 20;

/** True if both paths are regular files with the same bytes. */
export function isSameFile(a: string, b: string): boolean {
  const [one, other] = [statOf(a), statOf(b)];
  if (one?.isFile() !== true || other?.isFile() !== true || one.size !== other.size) return false;
  if (one.ino === other.ino && one.dev === other.dev) return true;
  const { size } = one;
  const handles: number[] = [];
  try {
    for (const path of [a, b]) handles.push(openRegularFile(path));
    const pieces = handles.map((handle) => [handle, Buffer.allocUnsafe(Math.min(size, PIECE))] as const);
    for (let at = 0; at < size; at += PIECE) {
      const [first, second] = pieces.map(([handle, piece]) => piece.subarray(0, readSync(handle, piece, 0, piece.length, at)));
      if (first === undefined || second?.equals(first) !== true) return false;
    }
    return true;
  } finally {
    for (const handle of handles) closeSync(handle);
  }
}

/** Moves a file, even to another file system. `to` must not exist. */
export function moveFile(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error;
    copyFileSync(from, to, constants.COPYFILE_EXCL);
    rmSync(from);
  }
}

/** Returns the stats of a path without following a symbolic link. Undefined if the path does not exist. */
const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Creates a folder inside an existing one. Replaces a file or a symbolic link, so that nothing is written through a link. */
export function makeFolder(path: string): void {
  const stats = statOf(path);
  if (stats?.isDirectory() === true) return;
  if (stats !== undefined) rmSync(path);
  // With `recursive`, it is no error if another thread has just created the folder.
  mkdirSync(path, { recursive: true });
}

/**
 * How files take their places: whole, and as links of each other where that can be.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { codeOf } from '../errors.ts';
import { openRegularFile, readRegularFile } from './regularFile.ts';

/** Ending of a file that is about to replace another. One that a killed build left behind is swept like any stranger. */
const TEMPORARY_SUFFIX = '.tmp';

/** Replaces whatever is at `target` by the file that `write` makes at another path: `target` holds the old one or the new one, never a part. */
export function replaceFile(target: string, write: (temporary: string) => void): void {
  const temporary = `${target}${TEMPORARY_SUFFIX}`;
  // One that was left behind may be a link of another file, which would be written into.
  rmSync(temporary, { recursive: true, force: true });
  try {
    write(temporary);
    // Someone made a folder where a file belongs.
    if (statOf(target)?.isDirectory() === true) rmSync(target, { recursive: true });
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** Creates a file with these bytes. Throws EEXIST when anything is there, also a link; leaves no half-written file behind when the disk is full. */
export function writeNew(path: string, bytes: Uint8Array): void {
  const handle = openSync(path, 'wx');
  try {
    let written = 0;
    while (written < bytes.length) written += writeSync(handle, bytes, written);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Codes of system errors for links that cannot be made: of none of these files, or (EMLINK) of one that has too many. */
const NO_LINKS = ['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

/** Makes a hard link. Returns the system's code when links cannot be made, and throws any other error. */
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

/** Whether this is a file with exactly these bytes. A pipe in its place is not waited for. */
export function holds(path: string, content: Uint8Array): boolean {
  const stats = statOf(path);
  return stats?.isFile() === true && stats.size === content.length && readRegularFile(path).equals(content);
}

/** Whether both are files, and the same one or with the same bytes. */
export function isSameFile(a: string, b: string): boolean {
  const [first, second] = [statOf(a), statOf(b)];
  if (first?.isFile() !== true || second?.isFile() !== true) return false;
  return areLinked(first, second) || (first.size === second.size && haveSameBytes(a, b, first.size));
}

/** Larger files are compared in pieces of this many bytes. */
const PIECE = 1 << 20;

/** Of two files of the same size. */
function haveSameBytes(a: string, b: string, size: number): boolean {
  if (size <= PIECE) return readRegularFile(a).equals(readRegularFile(b));
  const handles: number[] = [];
  try {
    for (const path of [a, b]) handles.push(openRegularFile(path));
    const pieces = handles.map((handle) => [handle, Buffer.allocUnsafe(PIECE)] as const);
    for (let at = 0; at < size; at += PIECE) {
      const [first, second] = pieces.map(([handle, piece]) => piece.subarray(0, readSync(handle, piece, 0, PIECE, at)));
      if (first === undefined || second?.equals(first) !== true) return false;
    }
    return true;
  } finally {
    for (const handle of handles) closeSync(handle);
  }
}

/** Moves a file, to another file system too; `to` is not there. */
export function moveFile(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (codeOf(error) !== 'EXDEV') throw error;
    copyFileSync(from, to, constants.COPYFILE_EXCL);
    rmSync(from);
  }
}

const areLinked = (a: Stats, b: Stats): boolean => a.ino === b.ino && a.dev === b.dev;

/** Of a symbolic link itself: no build makes any. */
const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Reads only regular files. Does not follow a symbolic link or wait for a pipe, because a build creates neither. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { codeOf } from '../errors.ts';

/** Thrown if the path is a link, a folder, a pipe, a socket or a device. */
export class NotAFileError extends Error {
  override readonly name = 'NotAFileError';
  constructor() {
    super('is not a regular file');
  }
}

/** Error codes for opening a symbolic link (ELOOP, EMLINK) or a socket (ENXIO). */
const NO_FILE = ['ELOOP', 'EMLINK', 'ENXIO'];

/** Opens a file for reading. The caller must close the handle. Throws a NotAFileError or a system error. */
export function openRegularFile(path: string): number {
  let handle: number;
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw NO_FILE.includes(codeOf(error) ?? '') ? new NotAFileError() : error;
  }
  try {
    if (fstatSync(handle).isFile()) return handle;
    throw new NotAFileError();
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

/** Reads a file. Throws a NotAFileError or a system error. */
export function readRegularFile(path: string): Buffer {
  const handle = openRegularFile(path);
  try {
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

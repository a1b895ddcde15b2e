/**
 * Reads files of an output. A build makes plain files only, so nothing else is read: no symbolic link is followed, and no pipe is waited for.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { codeOf } from '../errors.ts';

/** The path names a link, a folder, a pipe, a socket or a device. */
export class NotAFileError extends Error {
  override readonly name = 'NotAFileError';
  constructor() {
    super('is not a regular file');
  }
}

/** Codes with which the system refuses to open a symbolic link (two of them) or a socket. */
const NO_FILE = ['ELOOP', 'EMLINK', 'ENXIO'];

/** Opens a file to read it. The caller closes the handle. Throws a NotAFileError, and system errors. */
export function openRegularFile(path: string): number {
  let handle: number;
  try {
    handle = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw NO_FILE.includes(codeOf(error) ?? '') ? new NotAFileError() : error;
  }
  try {
    if (fstatSync(handle).isFile()) return handle;
  } catch (error) {
    closeSync(handle);
    throw error;
  }
  closeSync(handle);
  throw new NotAFileError();
}

/** The content of a file. Throws a NotAFileError, and system errors. */
export function readRegularFile(path: string): Buffer {
  const handle = openRegularFile(path);
  try {
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

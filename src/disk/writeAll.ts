import { writeSync } from 'node:fs';

/** Writes all bytes to an open file. A single system call may write fewer bytes, for example on an almost full disk. */
export function writeAll(handle: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(handle, bytes, written);
}

/** Reads and checks files of the ledger's state: checksums, and errors for damaged files. */
import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';

/** Thrown if a file of the state is missing or does not have the content that was written. */
export class DamagedStateError extends Error {}

/** Returns the first 8 bytes of the SHA-256 of all parts together, as an integer. */
export const checksum = (...parts: readonly Uint8Array[]): bigint => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest().readBigUInt64LE();
};

/** Fills `into` with the bytes of an open file from `from` on. Throws a DamagedStateError if the file is too short. */
export function readFully(file: number, into: Buffer, from: number, path: string): Buffer {
  for (let done = 0; done < into.length; ) {
    const count = readSync(file, into, done, into.length - done, from + done);
    if (count === 0) throw new DamagedStateError(`${path} is damaged`);
    done += count;
  }
  return into;
}

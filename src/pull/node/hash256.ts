/** Double SHA-256, the hash function for the ids of blocks and transactions. */
import * as crypto from 'node:crypto';
import type { Hash256 } from '../../runes/bytes.ts';

type OneCallHash = (algorithm: string, bytes: Uint8Array, encoding: 'binary') => string;

/** Uses `crypto.hash` if it exists (Node 20.12 and newer), because createHash() allocates an object per hash. */
export function hash256With(hash: OneCallHash | undefined): Hash256 {
  const sha256 = hash
    ? // A short string costs much less than a buffer with memory of its own.
      (bytes: Uint8Array) => Buffer.from(hash('sha256', bytes, 'binary'), 'latin1')
    : (bytes: Uint8Array) => crypto.createHash('sha256').update(bytes).digest();
  return (bytes) => sha256(sha256(bytes));
}

export const hash256: Hash256 = hash256With(crypto.hash);

/** SHA-256 of SHA-256, which names blocks and transactions. */
import * as crypto from 'node:crypto';
import type { Hash256 } from '../../runes/bytes.ts';

type OneCallHash = (algorithm: string, bytes: Uint8Array, encoding: 'binary') => string;

/** Builds the function from `crypto.hash`, which Node has from 20.12 on. Without it, each hash makes an object. */
export function hash256With(hash: OneCallHash | undefined): Hash256 {
  const sha256 = hash
    ? // A short string costs much less than a buffer with memory of its own.
      (bytes: Uint8Array) => Buffer.from(hash('sha256', bytes, 'binary'), 'latin1')
    : (bytes: Uint8Array) => crypto.createHash('sha256').update(bytes).digest();
  return (bytes) => sha256(sha256(bytes));
}

export const hash256: Hash256 = hash256With(crypto.hash);

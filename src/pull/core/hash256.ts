/** SHA-256 of SHA-256, which names blocks and transactions. */
import * as crypto from 'node:crypto';
import type { Hash256 } from '../../runes/bytes.ts';

type OneCallHash = (algorithm: string, bytes: Uint8Array, encoding: 'buffer') => Uint8Array;

/** Builds the function from `crypto.hash`, which Node has from 20.12 on. Without it, each hash makes an object. */
export function hash256With(hash: OneCallHash | undefined): Hash256 {
  const sha256 = hash
    ? (bytes: Uint8Array) => hash('sha256', bytes, 'buffer')
    : (bytes: Uint8Array) => crypto.createHash('sha256').update(bytes).digest();
  return (bytes) => sha256(sha256(bytes));
}

export const hash256: Hash256 = hash256With(crypto.hash);

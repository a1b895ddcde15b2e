/** Double SHA-256, the hash function of block hashes and transaction ids. */
import * as crypto from 'node:crypto';
import type { Hash256 } from '../../runes/bytes.ts';

type OneCallHash = (algorithm: string, bytes: Uint8Array, encoding: 'binary') => string;

/** Takes longer than `crypto.hash`, which Node has since 20.12, because it allocates an object per hash. */
const createdHash: OneCallHash = (algorithm, bytes, encoding) => crypto.createHash(algorithm).update(bytes).digest(encoding);

const HASH_BYTES = 32;

export function hash256With(hash: OneCallHash = createdHash): Hash256 {
  // Asks for strings ('binary'): a short string takes much less memory than a Buffer, which is allocated separately.
  const first = Buffer.alloc(HASH_BYTES);
  return (bytes) => {
    first.write(hash('sha256', bytes, 'binary'), 'latin1');
    const text = hash('sha256', first, 'binary');
    // Returns a Uint8Array: V8 stores the bytes of such a small array inside the object, unlike the bytes of a Buffer.
    const digest = new Uint8Array(HASH_BYTES);
    for (let i = 0; i < HASH_BYTES; i++) digest[i] = text.charCodeAt(i);
    return digest;
  };
}

export const hash256 = hash256With(crypto.hash);

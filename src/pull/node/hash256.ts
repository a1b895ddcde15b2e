/** Double SHA-256, the hash function of block hashes and transaction ids. */
import { createHash } from 'node:crypto';
import type { Hash256 } from '../../runes/bytes.ts';
import { hashParts } from './sha256Lanes.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();

export const hash256: Hash256 = Object.assign((bytes: Uint8Array) => sha256(sha256(bytes)), { parts: hashParts });

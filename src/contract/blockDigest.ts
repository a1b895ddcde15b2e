import { createHash } from 'node:crypto';

/**
 * Computes a block's digest: the SHA-256 of its records, as 64 hex digits. `records` is their JSON in dialect `contract`, joined by commas,
 * in served order (engine/render/servedOrder.ts): the last record comes first.
 */
export const blockDigest = (records: string | Uint8Array): string => createHash('sha256').update(records).digest('hex');

/**
 * Computes the digest of a block, for builds, `npm run verify` and pulls. See output/digests.ts for the files with
 * digests.
 */
import { createHash } from 'node:crypto';
import { type ActivityRecord, contractJson } from './contractJson.ts';

/**
 * Computes a block's digest: the SHA-256 of its records in served order, as JSON of the dialect `contract`, joined by
 * commas. Returns 64 hex digits.
 */
export const blockDigest = (records: string | Uint8Array): string => createHash('sha256').update(records).digest('hex');

/** Computes a block's digest from its parsed records in served order. */
export const digestOfRecords = (records: readonly ActivityRecord[]): string => blockDigest(records.map(contractJson).join(','));

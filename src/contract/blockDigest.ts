/**
 * The digest of a block. Builds, `npm run verify` and pulls compute it here, so that they cannot differ; output/digests.ts says where it is written.
 */
import { createHash } from 'node:crypto';
import { type ActivityRecord, contractJson } from './contractJson.ts';

/**
 * The digest of a block from the JSON of its records: in the contract dialect, in served order, joined by commas. 64 hex digits of SHA-256.
 */
export const blockDigest = (records: string | Uint8Array): string => createHash('sha256').update(records).digest('hex');

/** The digest of a block from its parsed records, in served order. */
export const digestOfRecords = (records: readonly ActivityRecord[]): string => blockDigest(records.map(contractJson).join(','));

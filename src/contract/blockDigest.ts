/**
 * Computes the digest of a block, for builds, `npm run verify` and pulls. output/digests.ts writes the files of
 * digests.
 */
import { createHash } from 'node:crypto';
import { type ActivityRecord, contractJson } from './recordJson.ts';

/**
 * Computes a block's digest: the SHA-256 of its records, as 64 hex digits. `records` is their JSON in dialect `contract`,
 * joined by commas, in served order (engine/render/servedOrder.ts): the last record comes first.
 */
export const blockDigest = (records: string | Uint8Array): string => createHash('sha256').update(records).digest('hex');

/** Computes a block's digest from parsed records, added one by one in served order. */
class RecordsDigest {
  readonly #hash = createHash('sha256');
  #isEmpty = true;

  add(record: ActivityRecord): void {
    if (!this.#isEmpty) this.#hash.update(',');
    this.#hash.update(contractJson(record));
    this.#isEmpty = false;
  }

  /** Returns the digest: 64 hex digits. No record can be added afterwards. */
  end(): string {
    return this.#hash.digest('hex');
  }
}

/** Computes a block's digest from parsed records in served order. */
export function digestOfRecords(records: readonly ActivityRecord[]): string {
  const digest = new RecordsDigest();
  for (const record of records) digest.add(record);
  return digest.end();
}

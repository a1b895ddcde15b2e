/**
 * Identities of blocks: hash, number of records and digests. Two copies of a block are compared by their identities.
 */
import { digestOfRecords, RecordsDigest } from '../contract/blockDigest.ts';
import type { ActivityRecord } from '../contract/recordJson.ts';
import { parseHexId } from '../pages/parseIds.ts';
import { PassingError } from './httpConnections.ts';

/** Values that distinguish a block from any other block of the same height. */
export interface BlockIdentity {
  /** 64 lower-case hex digits. Empty for a block without records, because no source gives the hash of such a block. */
  readonly hash: string;
  readonly records: number;
  /** Digest of the records (contract/blockDigest.ts). Undefined if the source would have to read all records for it. */
  readonly digest?: string;
  /** MD5 of the block's ledger rows (see identifyRows.ts). Undefined for sources and files without ledger rows. */
  readonly rows?: string;
}

/** A block with its records in served order (engine/render/servedOrder.ts). */
export interface Block extends ServedIdentity {
  readonly height: number;
  readonly activity: readonly ActivityRecord[];
}

/** Identity of a block whose records were read. It always has a digest, which is computed from the records. */
type ServedIdentity = Required<Omit<BlockIdentity, 'rows'>>;

/**
 * Thrown for an inconsistent block from a source. A retry can help, because a reorganisation may have replaced the
 * block between two requests. The message continues a sentence that begins with the name of the block or the source.
 */
export class BadBlockError extends PassingError {}

/** Checks the records of one block, added in served order, and computes the identity of the block. */
export class CheckedBlock {
  readonly #digest = new RecordsDigest();
  #before: ActivityRecord['location'] | undefined;
  #hash = '';
  #records = 0;

  constructor(readonly height: number) {}

  /** Throws a BadBlockError if the record belongs to another block or breaks the served order. */
  add(record: ActivityRecord): void {
    const { location } = record;
    if (location.block_height !== this.height)
      throw new BadBlockError(`has a record of block ${location.block_height} at index ${this.#records}, expected block ${this.height}`);
    const hash = parseHexId(location.block_hash) ?? '';
    if (this.#before === undefined) this.#hash = hash;
    else this.#compare(this.#before, location, hash);
    this.#digest.add(record);
    this.#before = location;
    this.#records += 1;
  }

  #compare(before: ActivityRecord['location'], location: ActivityRecord['location'], hash: string): void {
    if (hash !== this.#hash) throw new BadBlockError(`has records of two blocks, ${before.block_hash} and ${location.block_hash}`);
    const isSameTx = parseHexId(before.tx_id) === parseHexId(location.tx_id);
    if (before.tx_index < location.tx_index || isSameTx !== (before.tx_index === location.tx_index))
      throw new BadBlockError(
        `has records ${this.#records - 1} and ${this.#records} that are not in served order (tx_index ${before.tx_index}, then ${location.tx_index})`,
      );
  }

  /** Returns the identity of the block. No record can be added afterwards. */
  end(): ServedIdentity {
    return { hash: this.#hash, records: this.#records, digest: this.#digest.end() };
  }
}

export function identityOf(activity: readonly ActivityRecord[]): ServedIdentity {
  return { hash: parseHexId(activity[0]?.location.block_hash ?? '') ?? '', records: activity.length, digest: digestOfRecords(activity) };
}

/**
 * Compares digests if both identities have one, otherwise the other fields. Compares only the first 16 digits of the
 * digests, because file names contain no more.
 */
export function isSameBlock(a: BlockIdentity, b: BlockIdentity): boolean {
  if (a.digest !== undefined && b.digest !== undefined) return a.digest.slice(0, 16) === b.digest.slice(0, 16);
  if (a.rows !== undefined && b.rows !== undefined && a.rows !== b.rows) return false;
  return a.hash === b.hash && a.records === b.records;
}

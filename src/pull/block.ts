/**
 * One block as a source gives it: known again by its hash, its number of records and its digest.
 */
import { digestOfRecords } from '../contract/blockDigest.ts';
import type { ActivityRecord } from '../contract/contractJson.ts';
import { parseHexId } from '../pages/lists.ts';
import { PassingError } from './client.ts';

/** What tells a block from another at its height. */
export interface BlockIdentity {
  /** 64 lower-case hex digits; empty for a block without records, whose hash nobody tells. */
  readonly hash: string;
  readonly records: number;
  /** See contract/blockDigest.ts; undefined where the source does not tell it, and working it out would take all records. */
  readonly digest?: string;
  /** MD5 of the block's ledger rows (rows.ts); undefined where a source or a file has no ledger rows. */
  readonly rows?: string;
}

/** A block's records, in served order. */
export interface Block extends ServedIdentity {
  readonly height: number;
  readonly activity: readonly ActivityRecord[];
}

/** The identity of a block whose records are known. */
type ServedIdentity = Required<Omit<BlockIdentity, 'rows'>>;

/** What a source said is no block; another try can help, as when the block was replaced meanwhile. The message is for people. */
export class BadBlockError extends PassingError {
  override readonly name = 'BadBlockError';
}

/** Checks that these are the records of the block at this height, in served order. Throws a BadBlockError. */
export function checkBlock(height: number, activity: readonly ActivityRecord[]): Block {
  for (const [i, { location }] of activity.entries()) {
    if (location.block_height !== height) throw new BadBlockError(`has a record ${i} of block ${location.block_height}`);
    if (parseHexId(location.block_hash) !== parseHexId(activity[0]?.location.block_hash ?? '')) {
      throw new BadBlockError(`has records of two blocks, ${activity[0]?.location.block_hash} and ${location.block_hash}`);
    }
    const before = activity[i - 1]?.location;
    if (before === undefined) continue;
    const isSameTx = parseHexId(before.tx_id) === parseHexId(location.tx_id);
    if (before.tx_index < location.tx_index || isSameTx !== (before.tx_index === location.tx_index)) {
      throw new BadBlockError(
        `has records ${i - 1} and ${i} that are not in served order (tx_index ${before.tx_index}, then ${location.tx_index})`,
      );
    }
  }
  return { height, activity, ...identityOf(activity) };
}

/** The identity of a block's records. */
export function identityOf(activity: readonly ActivityRecord[]): ServedIdentity {
  return { hash: parseHexId(activity[0]?.location.block_hash ?? '') ?? '', records: activity.length, digest: digestOfRecords(activity) };
}

/** Whether both are the same block, as far as both tell. A digest that stands in a file's name is cut short. */
export function isSameBlock(a: BlockIdentity, b: BlockIdentity): boolean {
  if (a.digest !== undefined && b.digest !== undefined) return a.digest.slice(0, 16) === b.digest.slice(0, 16);
  if (a.rows !== undefined && b.rows !== undefined && a.rows !== b.rows) return false;
  return a.hash === b.hash && a.records === b.records;
}

/** The file of a block: a record a line, or an empty array. */
export const blockText = ({ activity }: Block): string =>
  activity.length === 0 ? '[]\n' : activity.map((record) => `${JSON.stringify(record)}\n`).join('');

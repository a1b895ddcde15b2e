/**
 * Ids of transactions and hashes of blocks, as lists in documents (pagedList.ts). The key is the last 12 hex digits, because the first
 * digits of block hashes are zeros. Several ids may have the same key, so an entry says only where the id may be, and the caller must
 * compare the complete ids. If someone makes many ids with equal keys, look-ups only need more reads.
 */
import type { Archive } from './archiveReader.ts';
import { damaged } from './documents.ts';
import { findPagedList } from './pagedList.ts';

/** An entry of a transaction, or of a block hash, with 0 as `first` and `count`. */
export interface IdEntry {
  readonly height: number;
  /** Index of the transaction's first record in the block. */
  readonly first: number;
  /** Number of records of the transaction. */
  readonly count: number;
}

/** Maximum number of entries in a document. */
export const ID_PAGE = 600;

export const KEY_DIGITS = 12;

export const idKey = (id: string): string => id.slice(-KEY_DIGITS);

/** Parses the entries of a document: `height.first.count`. Throws an ArchiveError for damaged entries. */
export const parseIds = (values: readonly string[]): IdEntry[] =>
  values.map((value) => {
    const [height = 0, first = 0, count = 0, ...more] = value.split('.').map(Number);
    if (more.length > 0 || ![height, first, count].every((number) => Number.isSafeInteger(number) && number >= 0)) throw damaged();
    return { height, first, count };
  });

/** Returns the entries of all ids with the same key as `id`, which has 64 hex digits. */
export async function findIds(archive: Archive, id: string): Promise<IdEntry[]> {
  const list = await findPagedList(archive, archive.root.ids, idKey(id), 0, parseIds, ID_PAGE);
  return list.read(0, list.total);
}

/**
 * Finds transactions of the input that an unchanged block of the last build also has.
 *
 * The archive has only the last digits of ids (format/ids.ts). They show which blocks may have a transaction,
 * and only the pages of these blocks show whether they have it. An attacker can make many ids with equal last digits.
 * To limit the work, each page is read at most once.
 */
import { gunzipSync } from 'node:zlib';
import { sortedRows } from '../duckdb/sortedRows.ts';
import { int, type Store } from '../duckdb/store.ts';
import { messageOf } from '../errors.ts';
import { ArchiveError } from '../format/archiveError.ts';
import { Archive, type ArchiveFiles } from '../format/archiveReader.ts';
import { type IdEntry, idKey, KEY_DIGITS, parseIds } from '../format/ids.ts';
import { lengthIn } from '../format/pagedList.ts';
import { PartCache } from '../format/partCache.ts';
import type { InputTransactions, KnownTransaction } from '../input/checkConsistency.ts';
import type { WorkLimits } from '../limits.ts';
import { txIdOf } from '../pages/envelope.ts';
import { firstRecords } from '../pages/windowFromArchive.ts';
import { yieldNow } from '../yieldNow.ts';
import { findRanges, rangeOf } from './archive/documentWriter.ts';
import { ChangedArchiveError, type StoredArchive } from './archive/storedArchive.ts';

/**
 * Returns the transactions of `input` that an unchanged block also has. Reads only the members of ids that may have
 * their keys, each about once. Rejects with a ChangedArchiveError when the archive is damaged.
 */
export const findKnown = (
  old: StoredArchive,
  input: InputTransactions,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
  inflate = inflateLocally,
): Promise<KnownTransaction[]> =>
  find(old, input, limits, store, inflate).catch((error: unknown) => {
    if (!(error instanceof ArchiveError)) throw error;
    throw new ChangedArchiveError(`the archive was changed since the last build: ${messageOf(error)}`);
  });

/** Hex digits of an id without its prefix. */
const ID_LENGTH = 64;

/** Memory that DuckDB needs to sort a transaction's id, in bytes. */
const ROW_BYTES = 512;

async function find(
  old: StoredArchive,
  input: InputTransactions,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
  inflate: ArchiveFiles['inflate'],
): Promise<KnownTransaction[]> {
  const affected = new Set(
    (await store.rows(`SELECT block_height FROM ${input.affected}`, { block_height: int })).map((row) => row.block_height),
  );
  const isKept = ({ height, count }: IdEntry) => count > 0 && !affected.has(height);
  // The heights of transactions whose keys are also in the archive, by tx id, and the entries of these keys.
  const heights = new Map<string, number>();
  const entries: IdEntry[] = [];
  const known = new Set<string>();
  let last = '';
  const rows = `SELECT tx_id, block_height, right(tx_id, ${KEY_DIGITS}) AS id_key FROM ${input.transactions}`;
  for await (const chunk of sortedRows({ rows, key: 'id_key', within: 'tx_id', rowBytes: ROW_BYTES }, limits, store)) {
    const transactions = chunk.getRows().map(([id, height]) => [String(id), Number(height)] as const);
    // The first key may have been looked up with the transactions before these.
    const keys = [...new Set(transactions.map(([id]) => idKey(id)))].filter((key) => key !== last);
    for (const level of old.root.ids)
      for await (const { key, values } of findRanges(old, level, keys.map(ofList))) {
        const kept = lengthIn(values) === undefined ? parseIds(values).filter(isKept) : [];
        if (kept.length > 0) known.add(key.slice(0, KEY_DIGITS));
        for (const entry of kept) entries.push(entry);
      }
    for (const [id, height] of transactions) if (known.has(idKey(id))) heights.set(id, height);
    last = keys.at(-1) ?? last;
    await yieldNow();
  }
  const found: KnownTransaction[] = [];
  for await (const [entry, record] of firstRecords(entries, await openLocally(old, inflate))) {
    const txId = txIdOf(record)?.slice(-ID_LENGTH) ?? '';
    const height = heights.get(txId);
    if (height !== undefined) found.push({ txId, height, other: entry.height });
    await yieldNow();
  }
  return found;
}

/** Returns the range of the head and the pages of a list (format/pagedList.ts): the head ends with an exclamation mark. */
const ofList = (key: string) => rangeOf(key, '!!');

const inflateLocally: ArchiveFiles['inflate'] = async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString('latin1');

/** Opens the archive for reading from the disk. A damaged file causes a ChangedArchiveError. */
function openLocally(old: StoredArchive, inflate: ArchiveFiles['inflate']): Promise<Archive> {
  const read: ArchiveFiles['read'] = async (file, offset, length) => {
    const content = old.open(file);
    try {
      return content.read(offset, length);
    } finally {
      content.close();
    }
  };
  return Archive.open(old.name, { read, inflate }, new PartCache());
}

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
import { findIds, ID_PAGE, type IdEntry, idKey, KEY_DIGITS, parseIds } from '../format/ids.ts';
import { PartCache } from '../format/partCache.ts';
import type { InputTransactions, KnownTransaction } from '../input/checkConsistency.ts';
import { exceeds, type WorkLimits } from '../limits.ts';
import { txIdOf } from '../pages/envelope.ts';
import { firstRecords } from '../pages/windowFromArchive.ts';
import { yieldNow } from '../yieldNow.ts';
import type { StoredDocument } from './archive/documentWriter.ts';
import { storedLists } from './archive/pagedLists.ts';
import { ChangedArchiveError, type StoredArchive } from './archive/storedArchive.ts';

type FindLimits = Pick<WorkLimits, 'entriesPerLookUp' | 'sortedAtOnce' | 'keptRecords'>;

/**
 * Returns the transactions of `input` that an unchanged block also has. The time is proportional to the transactions of
 * the input plus the entries of the last build, even if all ids have equal last digits. Rejects with a
 * ChangedArchiveError when the archive is damaged.
 */
export const findKnown = (
  old: StoredArchive,
  input: InputTransactions,
  limits: FindLimits,
  store: Store,
  inflate = inflateLocally,
): Promise<KnownTransaction[]> =>
  find(old, input, limits, store, inflate).catch((error: unknown) => {
    if (!(error instanceof ArchiveError)) throw error;
    throw new ChangedArchiveError(`the archive was changed since the last build: ${messageOf(error)}`);
  });

async function find(
  old: StoredArchive,
  input: InputTransactions,
  limits: FindLimits,
  store: Store,
  inflate: ArchiveFiles['inflate'],
): Promise<KnownTransaction[]> {
  const rows = await store.rows(`SELECT block_height FROM ${input.affected}`, { block_height: int });
  const affected = new Set(rows.map((row) => row.block_height));
  const transactions = await store.number(`SELECT count(*) AS number FROM ${input.transactions}`);
  const bytes = old.root.ids.flatMap(({ files }) => files).reduce((sum, file) => sum + file.bytes, 0);
  const archive = await openLocally(old, inflate);
  const isKept = ({ height, count }: IdEntry) => count > 0 && !affected.has(height);
  const levels = old.root.ids.map((level) => listsInOrder(storedLists(old, level, ID_PAGE)));
  const inOrder = async (key: string) => (await Promise.all(levels.map((entriesOf) => entriesOf(key)))).flat();
  const areFew = transactions > 0 && exceeds(limits, 'entriesPerLookUp', bytes / ENTRY_BYTES / transactions);
  const entriesAt = areFew ? (key: string) => findIds(archive, key) : inOrder;
  const suspects = await findSuspects(async (key) => (await entriesAt(key)).filter(isKept), input, limits, store);
  const known: KnownTransaction[] = [];
  for await (const [entry, record] of firstRecords(suspects.entries, archive)) {
    const txId = txIdOf(record)?.slice(-ID_LENGTH) ?? '';
    const height = suspects.heights.get(txId);
    if (height !== undefined) known.push({ txId, height, other: entry.height });
    await yieldNow();
  }
  return known;
}

/** Hex digits of an id without its prefix. */
const ID_LENGTH = 64;

/**
 * Transactions that may be in both the input and the last build. `entries` are the entries of the last build whose keys
 * also occur in the input. `heights` has the heights of the input's transactions with these keys, by tx id.
 */
interface Suspects {
  readonly heights: ReadonlyMap<string, number>;
  readonly entries: readonly IdEntry[];
}

/** Memory that DuckDB needs to sort a transaction's id, in bytes. */
const ROW_BYTES = 512;

/** Finds the suspects. Calls `entriesAt`, which returns the entries of a key, once for each key, in ascending order. */
async function findSuspects(
  entriesAt: (key: string) => Promise<readonly IdEntry[]>,
  { transactions }: InputTransactions,
  limits: FindLimits,
  store: Store,
): Promise<Suspects> {
  const suspects = { heights: new Map<string, number>(), entries: [] as IdEntry[] };
  let [key, areKnown] = ['', false];
  const rows = `SELECT tx_id, block_height, right(tx_id, ${KEY_DIGITS}) AS id_key FROM ${transactions}`;
  for await (const chunk of sortedRows({ rows, key: 'id_key', within: 'tx_id', rowBytes: ROW_BYTES }, limits, store)) {
    for (const [id, height] of chunk.getRows()) {
      const txId = String(id);
      if (idKey(txId) !== key) {
        key = idKey(txId);
        const found = await entriesAt(key);
        areKnown = found.length > 0;
        for (const entry of found) suspects.entries.push(entry);
        await yieldNow();
      }
      if (areKnown) suspects.heights.set(txId, Number(height));
    }
  }
  return suspects;
}

/** Bytes of an entry of the ids in an archive, about. */
const ENTRY_BYTES = 9;

/** Returns a function that returns all entries with a key. The keys of successive calls must ascend. */
function listsInOrder(lists: Iterator<StoredDocument>): (key: string) => Promise<IdEntry[]> {
  let current: StoredDocument | undefined;
  const next = () => {
    const { value, done } = lists.next();
    current = done === true ? undefined : value;
  };
  let isOpen = false;
  return async (key) => {
    if (!isOpen) next();
    isOpen = true;
    for (; current !== undefined && current.key < key; next()) await yieldNow();
    return current?.key === key ? parseIds(current.values) : [];
  };
}

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

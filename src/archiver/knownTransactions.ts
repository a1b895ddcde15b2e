/**
 * Finds transactions of the input that an unchanged block of the last build has too. The archive's table of ids tells
 * which block may have one, and its page whether it has.
 */
import { closeSync, readSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { ArchiveError } from '../archive/error.ts';
import { PartCache } from '../archive/partCache.ts';
import { Archive, type ArchiveFiles } from '../archive/reader.ts';
import { keyOf, type TableEntry, totalOf } from '../archive/sortedTable.ts';
import { messageOf } from '../errors.ts';
import type { KnownTransaction } from '../input/consistency.ts';
import { cutRecords, txIdOf } from '../pages/envelope.ts';
import { int, type Store, text } from '../store/duckdb.ts';
import { ChangedArchiveError, type OldArchive } from './oldArchive.ts';
import { entriesOf } from './tables.ts';

/** Looking a key up takes as long as reading this many entries one after another. */
const ENTRIES_PER_LOOK_UP = 200;

/** Needs the tables `transactions` and `affected`. Rejects with a ChangedArchiveError when the archive is damaged. */
export async function findKnown(old: OldArchive, store: Store): Promise<KnownTransaction[]> {
  try {
    return await find(old, store);
  } catch (error) {
    throw error instanceof ArchiveError
      ? new ChangedArchiveError(`the archive was changed since the last build: ${messageOf(error)}`)
      : error;
  }
}

async function find(old: OldArchive, store: Store): Promise<KnownTransaction[]> {
  const rows = await store.rows('SELECT block_height FROM affected', { block_height: int });
  const affected = new Set(rows.map((row) => row.block_height));
  const isKept = ({ height, count }: TableEntry) => count > 0 && !affected.has(height);
  const { transactions } = await store.row('SELECT count(*) AS transactions FROM transactions', { transactions: int });
  const entries = old.root.ids.reduce((sum, level) => sum + totalOf(level), 0);
  const suspects =
    transactions * ENTRIES_PER_LOOK_UP > entries ? await byMerging(old, isKept, store) : await byLookingUp(old, isKept, store);
  const archive = await openLocally(old);
  const known: KnownTransaction[] = [];
  for (const { txId, height, entry } of suspects) {
    const page = Math.floor(entry.first / old.root.pageSize);
    const [found] = (await (await archive.block(entry.height, page))?.pages([page])) ?? [];
    const record = cutRecords(found?.text ?? '', entry.first % old.root.pageSize, 1).text;
    if (txIdOf(record)?.endsWith(txId) === true) known.push({ txId, height, other: entry.height });
  }
  return known;
}

/** A transaction of the input, and an entry with the same key. */
interface Suspect {
  readonly txId: string;
  readonly height: number;
  readonly entry: TableEntry;
}

type IsKept = (entry: TableEntry) => boolean;

const TRANSACTIONS = `SELECT tx_id, block_height FROM transactions ORDER BY right(tx_id, 12)`;

async function byLookingUp(old: OldArchive, isKept: IsKept, store: Store): Promise<Suspect[]> {
  const archive = await openLocally(old);
  const suspects: Suspect[] = [];
  for (const { tx_id: txId, block_height: height } of await store.rows(TRANSACTIONS, { tx_id: text, block_height: int })) {
    for (const entry of await archive.entries(txId)) if (isKept(entry)) suspects.push({ txId, height, entry });
  }
  return suspects;
}

/** Reads the whole table next to the sorted transactions, which is faster when there are many of these. */
async function byMerging(old: OldArchive, isKept: IsKept, store: Store): Promise<Suspect[]> {
  const suspects: Suspect[] = [];
  const levels = old.root.ids.map((level) => new EntriesByKey(entriesOf(old, level)));
  try {
    for await (const chunk of store.stream(TRANSACTIONS)) {
      for (const [id, height] of chunk.getRows()) {
        const txId = String(id);
        for (const entry of levels.flatMap((level) => level.at(keyOf(txId)))) {
          if (isKept(entry)) suspects.push({ txId, height: Number(height), entry });
        }
      }
    }
  } finally {
    for (const level of levels) level.close();
  }
  return suspects;
}

/** Entries of a level, for keys that ascend. */
class EntriesByKey {
  readonly #entries: Generator<TableEntry>;
  #next: TableEntry | undefined;
  #key = -1;
  #found: TableEntry[] = [];

  constructor(entries: Generator<TableEntry>) {
    this.#entries = entries;
    this.#advance();
  }

  #advance(): void {
    const { value, done } = this.#entries.next();
    this.#next = done === true ? undefined : value;
  }

  /** Returns all entries with this key. */
  at(key: number): readonly TableEntry[] {
    if (key === this.#key) return this.#found;
    this.#key = key;
    this.#found = [];
    while (this.#next !== undefined && this.#next.key <= key) {
      if (this.#next.key === key) this.#found.push(this.#next);
      this.#advance();
    }
    return this.#found;
  }

  close(): void {
    this.#entries.return(undefined);
  }
}

/** Opens the archive for reading from the disk. Its errors become a ChangedArchiveError. */
function openLocally(old: OldArchive): Promise<Archive> {
  const files: ArchiveFiles = {
    read: async (file, offset, length) => {
      const handle = old.open(file);
      try {
        const part = Buffer.allocUnsafeSlow(length);
        return readSync(handle, part, 0, length, offset) === length ? part : undefined;
      } finally {
        closeSync(handle);
      }
    },
    inflate: async (member, most) => gunzipSync(member, { maxOutputLength: most }).toString('latin1'),
  };
  return Archive.open(old.name, files, new PartCache());
}

/**
 * Finds transactions of the input that an unchanged block of the last build also has. The archive has only the last digits of ids
 * (format/ids.ts). They show which blocks may have a transaction, and only the pages of these blocks show whether they have it. An attacker
 * can make many ids with equal last digits. To limit the work, each page is read at most once, and each member of ids about once.
 */
import { sortedRows } from '../duckdb/sortedRows.ts';
import { int, type Store } from '../duckdb/store.ts';
import { pageKey } from '../format/documents.ts';
import { ID_PAGE, type IdEntry, idKey, KEY_DIGITS, parseIds } from '../format/ids.ts';
import { headKey, keyOfHead, lengthIn } from '../format/pagedList.ts';
import type { InputTransactions, KnownTransaction } from '../input/checkConsistency.ts';
import type { WorkLimits } from '../limits.ts';
import { txIdOf } from '../pages/envelope.ts';
import { firstRecords } from '../pages/windowFromArchive.ts';
import { yieldNow } from '../yieldNow.ts';
import type { StoredArchive } from './archive/storedArchive.ts';
import { TX_ID_LENGTH } from './render/servedOrder.ts';

/** Memory that DuckDB needs to sort a transaction's id, in bytes. */
const ROW_BYTES = 512;

/** Returns the transactions of `input` that an unchanged block also has. Rejects with an ArchiveError when the archive is damaged. */
export async function findKnown(
  old: StoredArchive,
  input: Pick<InputTransactions, 'transactions' | 'affected'>,
  limits: Pick<WorkLimits, 'sortedAtOnce' | 'keptRecords'>,
  store: Store,
): Promise<KnownTransaction[]> {
  const affected = new Set(
    (await store.rows(`SELECT block_height FROM ${input.affected}`, { block_height: int })).map((row) => row.block_height),
  );
  // The heights of transactions whose keys are also in the archive, by tx id, and the entries of these keys.
  const heights = new Map<string, number>();
  const entries: IdEntry[] = [];
  const known = new Set<string>();
  const add = (key: string, values: readonly string[]) => {
    for (const entry of parseIds(values)) {
      if (entry.count === 0 || affected.has(entry.height)) continue;
      known.add(key);
      entries.push(entry);
    }
  };
  let last = '';
  const rows = `SELECT tx_id, block_height, right(tx_id, ${KEY_DIGITS}) AS id_key FROM ${input.transactions}`;
  for await (const chunk of sortedRows({ rows, key: 'id_key', within: 'tx_id', rowBytes: ROW_BYTES }, limits, store)) {
    const transactions = chunk.getRows().map(([id, height]) => [String(id), Number(height)] as const);
    // The first key may have been looked up with the transactions before these.
    const keys = [...new Set(transactions.map(([id]) => idKey(id)))].filter((key) => key !== last);
    for (const level of old.root.ids)
      for await (const head of old.find(level, keys.map(headKey))) {
        const [key, length] = [keyOfHead(head.key), lengthIn(head.values)];
        if (length === undefined) add(key, head.values);
        const pages = Array.from({ length: Math.ceil((length ?? 0) / ID_PAGE) }, (_, page) => pageKey(key, page));
        for await (const { values } of old.find(level, pages)) add(key, values);
      }
    for (const [id, height] of transactions) if (known.has(idKey(id))) heights.set(id, height);
    last = keys.at(-1) ?? last;
    await yieldNow();
  }
  const found: KnownTransaction[] = [];
  for await (const [entry, record] of firstRecords(entries, await old.parts())) {
    const txId = txIdOf(record)?.slice(-TX_ID_LENGTH) ?? '';
    const height = heights.get(txId);
    if (height !== undefined) found.push({ txId, height, other: entry.height });
    await yieldNow();
  }
  return found;
}

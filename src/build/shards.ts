/**
 * The index of layout `packed`: which run of which block a transaction is, in files by the first digits of the tx id (pages/packed.ts has
 * their form). They are made from the state's transactions in one sorted pass.
 */
import { type Dialect, type Site, spellHex } from '../pages/lists.ts';
import { ENTRY_PIECES, entryHead, prefixDigitsFor, prefixes, SHARD_HEAD, SHARD_TAIL } from '../pages/packed.ts';
import { EDITION_DIGITS, shardPath } from '../pages/paths.ts';
import { readBlobs } from '../store/blobs.ts';
import { literal, type Store, toNumber, toText } from '../store/duckdb.ts';
import type { DiskSink } from '../write/sinks.ts';

/** What the update of the index came to. */
export interface ShardChanges {
  /** Digits of the prefixes now. */
  readonly digits: number;
  /** Whether the prefixes are as long as they were: if not, files with prefixes of another length are left over. */
  readonly isSameLength: boolean;
}

/**
 * Writes the files of the index that the change of blocks touches (the tables `replaced` and `old_transactions`), or all when `isFull` or when the
 * prefixes become longer or shorter.
 */
export async function writeShards(site: Site, isFull: boolean, sink: DiskSink, store: Store): Promise<ShardChanges> {
  const changed = 'SELECT tx_id FROM state.transactions WHERE block_height IN (SELECT block_height FROM replaced)';
  const counts = await store.row(`SELECT (SELECT count(*) FROM state.transactions) AS now,
    (SELECT count(*) FROM old_transactions) AS gone, (SELECT count(*) FROM (${changed})) AS come`);
  const now = toNumber(counts['now']);
  const digits = prefixDigitsFor(now);
  const isSameLength = digits === prefixDigitsFor(now + toNumber(counts['gone']) - toNumber(counts['come']));
  if (isFull || !isSameLength) {
    await write(prefixes(digits), digits, 'state.transactions', site.dialect, sink, store);
    return { digits, isSameLength };
  }
  const prefix = `left(tx_id, ${digits})`;
  await store.run(`CREATE TEMP TABLE touched AS
    SELECT DISTINCT ${prefix} AS prefix FROM (${changed} UNION ALL SELECT tx_id FROM old_transactions)`);
  const touched = (await store.rows('SELECT prefix FROM touched ORDER BY prefix')).map((row) => toText(row['prefix']));
  const transactions = `(SELECT * FROM state.transactions WHERE ${prefix} IN (SELECT prefix FROM touched))`;
  await write(touched, digits, transactions, site.dialect, sink, store);
  return { digits, isSameLength };
}

/** Writes the files of these prefixes, ascending, from a relation that has exactly their transactions. */
async function write(
  wanted: Iterable<string>,
  digits: number,
  transactions: string,
  dialect: Dialect,
  sink: DiskSink,
  store: Store,
): Promise<void> {
  const sql = `SELECT encode(concat(${entrySql(dialect)})) FROM ${transactions} t JOIN state.blocks b USING (block_height) ORDER BY tx_id`;
  const idAt = 1 + entryHead(dialect).length;
  const todo = wanted[Symbol.iterator]();
  let next = todo.next();
  let prefix = Buffer.alloc(0);
  let entries: Uint8Array[] = [];
  const end = () => {
    // Each entry begins with a comma, which the first one does not need.
    if (entries[0] !== undefined) entries[0] = entries[0].subarray(1);
    if (next.done !== true) sink.file(shardPath(next.value), Buffer.concat([Buffer.from(SHARD_HEAD), ...entries, Buffer.from(SHARD_TAIL)]));
    entries = [];
    next = todo.next();
    prefix = Buffer.from(next.done === true ? '' : next.value);
  };
  prefix = Buffer.from(next.done === true ? '' : next.value);
  for await (const chunk of store.stream(sql)) {
    const entryOf = readBlobs(chunk, 0);
    for (let row = 0; row < chunk.rowCount; row += 1) {
      const entry = entryOf(row);
      while (!startsWith(entry, idAt, prefix)) {
        if (next.done === true) throw new Error(`an index entry without a file, at prefix length ${digits}`);
        end();
      }
      entries.push(entry);
    }
  }
  while (next.done !== true) end();
}

const startsWith = (bytes: Uint8Array, at: number, prefix: Uint8Array): boolean => {
  for (let i = 0; i < prefix.length; i += 1) if (bytes[at + i] !== prefix[i]) return false;
  return prefix.length > 0;
};

/** SQL list of the pieces of an entry, after a comma. */
function entrySql(dialect: Dialect): string {
  const [beforeEdition, beforeFirst, beforeTotal, end] = ENTRY_PIECES;
  const edition = `b.block_height, ${literal(`-${spellHex('', dialect)}`)}, left(b.digest, ${EDITION_DIGITS})`;
  const pieces = [literal(`,${entryHead(dialect)}`), 'tx_id', literal(beforeEdition), edition, literal(beforeFirst), 't.first'];
  return [...pieces, literal(beforeTotal), 't.records', literal(end)].join(', ');
}

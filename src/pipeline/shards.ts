/**
 * Writes the index of layout `packed`: for each transaction, its block and the run of records in it. Each index file
 * has the tx ids with one prefix (format: pages/packed.ts). One sorted pass over the state's transactions makes all
 * files.
 */
import { spellHex } from '../pages/ids.ts';
import { BETWEEN_ENTRIES, ENTRY_PIECES, entryHead, prefixDigitsFor, prefixes, SHARD_HEAD, SHARD_TAIL } from '../pages/packed.ts';
import { EDITION_DIGITS, shardPath } from '../pages/paths.ts';
import type { Dialect, Site } from '../pages/site.ts';
import { readBlobs } from '../store/columns.ts';
import { int, literal, type Store, text } from '../store/duckdb.ts';
import type { DiskSink } from '../write/sinks.ts';

/** Writes all index files. Returns the number of digits in their prefixes. */
export async function writeAllShards(site: Site, sink: DiskSink, store: Store): Promise<number> {
  const { transactions } = await store.row('SELECT count(*) AS transactions FROM state.transactions', { transactions: int });
  const digits = prefixDigitsFor(transactions);
  await write(prefixes(digits), 'state.transactions', site.dialect, sink, store);
  return digits;
}

/**
 * Writes the index files of transactions in changed blocks (tables `replaced` and `old_transactions`). When the length
 * of the prefixes changes, it writes all files and returns the new number of digits. The caller then removes files with
 * prefixes of the old length.
 */
export async function writeChangedShards(site: Site, sink: DiskSink, store: Store): Promise<number | undefined> {
  const changed = 'SELECT tx_id FROM state.transactions WHERE block_height IN (SELECT block_height FROM replaced)';
  const sql = `SELECT (SELECT count(*) FROM state.transactions) AS now,
    (SELECT count(*) FROM old_transactions) AS gone, (SELECT count(*) FROM (${changed})) AS come`;
  const { now, gone, come } = await store.row(sql, { now: int, gone: int, come: int });
  const digits = prefixDigitsFor(now);
  if (digits !== prefixDigitsFor(now + gone - come)) return writeAllShards(site, sink, store);
  const prefix = `left(tx_id, ${digits})`;
  await store.run(`CREATE TEMP TABLE touched AS
    SELECT DISTINCT ${prefix} AS prefix FROM (${changed} UNION ALL SELECT tx_id FROM old_transactions)`);
  const touched = (await store.rows('SELECT prefix FROM touched ORDER BY prefix', { prefix: text })).map(({ prefix }) => prefix);
  const transactions = `(SELECT * FROM state.transactions WHERE ${prefix} IN (SELECT prefix FROM touched))`;
  await write(touched, transactions, site.dialect, sink, store);
  return undefined;
}

/**
 * Writes the files of these prefixes, in ascending order. `transactions` is a relation with exactly their transactions.
 */
async function write(prefixes: Iterable<string>, transactions: string, dialect: Dialect, sink: DiskSink, store: Store): Promise<void> {
  const files = new ShardFiles(prefixes, BETWEEN_ENTRIES.length + entryHead(dialect).length, sink);
  const sql = `SELECT encode(concat(${entrySql(dialect)})) FROM ${transactions} t JOIN state.blocks b USING (block_height) ORDER BY tx_id`;
  for await (const chunk of store.stream(sql)) {
    const entries = readBlobs(chunk, 0);
    const bytes = new Uint8Array(entries.offsets.at(-1) ?? 0);
    entries.copyTo(bytes, 0, 0, chunk.rowCount);
    files.add(bytes, entries.offsets);
  }
  files.finish();
}

/** Splits a stream of entries, tx ids ascending, into files by prefix. Each entry begins with its separator. */
class ShardFiles {
  readonly #prefixes: Iterator<string>;
  readonly #idAt: number;
  readonly #sink: DiskSink;
  /** Prefix of the current file; undefined after the last one. */
  #prefix: Buffer | undefined;
  #entries: Uint8Array[] = [];

  /** `idAt` is the offset of the tx id in an entry, in bytes. */
  constructor(prefixes: Iterable<string>, idAt: number, sink: DiskSink) {
    this.#prefixes = prefixes[Symbol.iterator]();
    this.#idAt = idAt;
    this.#sink = sink;
    this.#next();
  }

  /** Adds entries: entry i is bytes[offsets[i], offsets[i + 1]). */
  add(bytes: Uint8Array, offsets: Float64Array): void {
    let start = 0;
    for (let i = 0; i + 1 < offsets.length; i += 1) {
      const at = offsets[i] ?? 0;
      if (this.#isOfPrefix(bytes, at + this.#idAt)) continue;
      this.#entries.push(bytes.subarray(start, at));
      start = at;
      while (!this.#isOfPrefix(bytes, at + this.#idAt)) this.#end();
    }
    this.#entries.push(bytes.subarray(start));
  }

  /** Writes the remaining files. */
  finish(): void {
    while (this.#prefix !== undefined) this.#end();
  }

  #isOfPrefix(bytes: Uint8Array, at: number): boolean {
    const prefix = this.#prefix;
    if (prefix === undefined) throw new Error('index entry without a file for its prefix');
    for (let i = 0; i < prefix.length; i += 1) if (bytes[at + i] !== prefix[i]) return false;
    return true;
  }

  #end(): void {
    const entries = Buffer.concat(this.#entries);
    // The first entry needs no comma before it.
    const body = Buffer.concat([Buffer.from(SHARD_HEAD), entries.subarray(1), Buffer.from(SHARD_TAIL)]);
    if (this.#prefix !== undefined) this.#sink.file(shardPath(this.#prefix.toString()), body);
    this.#entries = [];
    this.#next();
  }

  #next(): void {
    const next = this.#prefixes.next();
    this.#prefix = next.done === true ? undefined : Buffer.from(next.value);
  }
}

/** Returns the SQL pieces of an entry. The first piece is the separator. */
function entrySql(dialect: Dialect): string {
  const [beforeEdition, beforeFirst, beforeTotal, end] = ENTRY_PIECES;
  const edition = `b.block_height, ${literal(`-${spellHex('', dialect)}`)}, left(b.digest, ${EDITION_DIGITS})`;
  const pieces = [literal(BETWEEN_ENTRIES + entryHead(dialect)), 'tx_id', literal(beforeEdition), edition, literal(beforeFirst), 't.first'];
  return [...pieces, literal(beforeTotal), 't.records', literal(end)].join(', ');
}

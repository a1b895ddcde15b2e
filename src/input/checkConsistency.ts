/** Checks that records, blocks and files of the input do not contradict each other. */
import type { LastRead } from '../contract/sources.ts';
import { type BlockRange, blockRanges, isWithin } from '../duckdb/blockRanges.ts';
import { GrowingTable } from '../duckdb/growingTable.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { int, joinedText, literal, type Store, text } from '../duckdb/store.ts';
import { type Columns, columns, type Table, type TableWith } from '../duckdb/table.ts';
import { RECORDS, type Records, SERVED_COLUMNS } from './canonicalRecordSql.ts';
import { Report } from './inputFindings.ts';
import { HELD, type InputReader } from './inputReader.ts';
import type { Activity } from './makeActivity.ts';
import type { KnownInput, Reading } from './rawSource.ts';

/**
 * Columns of transactions. `first` is the index of the transaction's first record in its block, in served order.
 * `numbered` is the number of records with an event_index, and `event_bits` has a bit for each
 * of these indexes. `is_scattered` is true if records of other transactions are between the records of the transaction,
 * and `is_double` if the block has another transaction with its tx_index.
 */
const TRANSACTIONS = {
  ...columns('block_height BIGINT, tx_index BIGINT, tx_id VARCHAR, first BIGINT'),
  ...columns('records BIGINT, numbered BIGINT, is_scattered BOOLEAN, event_bits BIGINT, is_double BOOLEAN'),
} as const;

/** Records of the affected blocks (loadInput.ts). All records of a block come from one file. */
export interface KeptBlocks {
  readonly kept: Records;
  readonly blocks: Table<Columns<'block_height BIGINT, block_hash VARCHAR, records BIGINT'>>;
  /** Transactions of `kept`. Valid input has one row per transaction. */
  readonly transactions: Table<typeof TRANSACTIONS>;
  /** Ranges of heights that have all blocks. What is grouped, sorted or joined by transaction takes one after another. */
  readonly ranges: readonly BlockRange[];
  readonly allHolds: Table<typeof HELD>;
  readonly counts: Readonly<Record<'records' | 'blocks' | 'transactions', number>>;
  /** Number of blocks that are in several files, with the same records. One copy of each block is used. */
  readonly copiedBlocks: number;
}

type Kept = Pick<KeptBlocks, 'kept' | 'transactions' | 'ranges' | 'counts' | 'allHolds'>;

/** Transaction of the input that is also in an unchanged block of the last build. */
export interface KnownTransaction {
  readonly txId: string;
  /** Height of the transaction's block in the input. */
  readonly height: number;
  /** Height of the unchanged block. */
  readonly other: number;
}

/** Transactions of the input, and the blocks that this input may change. */
export interface InputTransactions {
  readonly transactions: TableWith<'tx_id' | 'block_height'>;
  readonly affected: TableWith<'block_height'>;
}

/**
 * Finds transactions of the input that are also in unchanged blocks of the state. In layout `archive`, the state has no
 * transactions, so engine/knownTransactions.ts reads the archive's ids instead.
 */
export async function findKnownInState(
  { transactions, ranges, affected }: InputTransactions & Pick<KeptBlocks, 'ranges'>,
  known: Pick<KnownInput, 'transactions'>,
  store: Store,
): Promise<KnownTransaction[]> {
  const found: KnownTransaction[] = [];
  for (const range of ranges) {
    const rows = await store.rows(
      `SELECT t.tx_id AS "txId", t.block_height AS height, k.block_height AS other
       FROM (FROM ${transactions} WHERE ${isWithin(range)}) t JOIN ${known.transactions} k ON k.tx_id = t.tx_id
       WHERE k.block_height NOT IN (SELECT block_height FROM ${affected})`,
      { txId: text, height: int, other: int },
    );
    for (const row of rows) found.push(row);
  }
  return found;
}

/**
 * Selects one copy of each affected block (loadInput.ts), if several files have the block. Throws an InputError when
 * files contradict each other about a block. `reader.names` must have the names of all files.
 */
export async function keepBlocks(reader: InputReader, activity: Activity): Promise<KeptBlocks> {
  const { names, holds } = reader;
  const { known, store } = reader.reading;
  const { records, held } = activity;
  const summary = (count: number) => `the input contradicts itself about ${count} block(s)`;
  const allHolds = await store.view(
    'all_holds',
    HELD,
    `SELECT * FROM ${holds}
     UNION ALL SELECT * FROM ${known.held} WHERE source IN (SELECT * FROM unnest([${[...names.keys()].join(', ')}]::INTEGER[]))
       AND source NOT IN (SELECT source FROM ${holds})`,
  );
  const reporting = reportOf(reader, allHolds);
  const { report } = reporting;
  await reportHashes(allHolds, reporting);
  report.throwIfAny(summary);
  const several = await store.number(`SELECT count(*) - count(DISTINCT block_height) AS number FROM ${held}`);
  if (several > 0) {
    await reportDifferingCopies(activity, reader.reading.limits, reporting);
    report.throwIfAny(summary);
  }
  // A mirror has no blocks without records. Such blocks are removed only after the comparison, because a copy of such a
  // block in another file may have records.
  await store.run(`DELETE FROM ${held} WHERE records = 0`);
  const copied = several > 0 ? await listCopies(held, store) : undefined;
  const filter = copied === undefined ? '' : `WHERE (source, block_height) NOT IN (SELECT (source, block_height) FROM ${copied.table})`;
  const kept = await store.view('kept', RECORDS, `SELECT * FROM ${records} ${filter}`);
  const blocks = await store.table(
    'blocks',
    columns('block_height BIGINT, block_hash VARCHAR, records BIGINT'),
    `SELECT block_height, any_value(block_hash) AS block_hash, any_value(records) AS records FROM ${held} GROUP BY block_height ORDER BY block_height`,
  );
  const { ranges, transactions } = await listTransactions(kept, blocks, reader.reading.limits, store);
  const counts = await store.row(
    `SELECT (SELECT coalesce(sum(records), 0) FROM ${blocks}) AS records,
    (SELECT count(*) FROM ${blocks}) AS blocks, (SELECT count(*) FROM ${transactions}) AS transactions`,
    { records: int, blocks: int, transactions: int },
  );
  return { kept, blocks, transactions, ranges, allHolds, counts, copiedBlocks: copied?.blocks ?? 0 };
}

/** Lists the transactions of the records of some blocks. Divides these blocks into ranges. */
export async function listTransactions(
  kept: Records,
  blocks: KeptBlocks['blocks'],
  limits: Reading['limits'],
  store: Store,
): Promise<Pick<KeptBlocks, 'ranges' | 'transactions'>> {
  const ranges = await blockRanges(blocks, limits, store);
  const transactions = await GrowingTable.create('transactions', TRANSACTIONS, store);
  for (const range of ranges) {
    // The last transaction of a block is served first.
    await transactions.add(`
      SELECT *, (sum(records) OVER places - records)::BIGINT AS first, coalesce(lead(tx_index) OVER places = tx_index, false) AS is_double FROM (
        SELECT block_height, tx_index, tx_id, count(*) AS records, count(event_index) AS numbered,
          max(ord) - min(ord) + 1 <> count(*) AS is_scattered,
          bit_or(CASE WHEN event_index <= ${MOST_BITS} THEN 1::BIGINT << event_index::INTEGER ELSE 0 END) AS event_bits
        FROM ${kept} ${ranges.length > 1 ? `WHERE ${isWithin(range)}` : ''} GROUP BY block_height, tx_index, tx_id)
      WINDOW places AS (PARTITION BY block_height ORDER BY tx_index DESC)`);
  }
  return { ranges, transactions };
}

/**
 * Returns an empty report of contradictions, and functions that name files in it. `nameOf` returns the name of a file.
 * `holdersOf` returns the names of all files that have any of the given blocks.
 */
function reportOf({ names, reading: { store } }: InputReader, allHolds: KeptBlocks['allHolds']) {
  const nameOf = (source: number): string => names.get(source) ?? 'the input';
  const holdersOf = async (heights: readonly number[]): Promise<string> => {
    const holders = `SELECT DISTINCT source FROM ${allHolds} WHERE block_height IN (${heights.join(', ')}) ORDER BY source`;
    return [...new Set((await store.rows(holders, { source: int })).map((row) => nameOf(row.source)))].join(', ');
  };
  return { report: new Report(), nameOf, holdersOf, store };
}
type Reporting = ReturnType<typeof reportOf>;

async function reportHashes(allHolds: KeptBlocks['allHolds'], { report, nameOf, store }: Reporting): Promise<void> {
  // Usually there is nothing to report. Then the result of this query shows that the slower queries below are not
  // needed.
  const { heights, hashes, pairs } = await store.row(
    `SELECT count(DISTINCT block_height) AS heights, count(DISTINCT block_hash) AS hashes, count(*) AS pairs
     FROM (SELECT DISTINCT block_height, block_hash FROM ${allHolds})`,
    { heights: int, hashes: int, pairs: int },
  );
  if (heights === pairs && hashes === pairs) return;
  const faults = [
    ['block_height', 'block_hash', (height: string, both: string) => `block height ${height} has two hashes: ${both}`],
    ['block_hash', 'block_height', (hash: string, both: string) => `block hash ${hash} is at two heights: ${both}`],
  ] as const;
  for (const [key, value, say] of faults) {
    const rows = await store.rows(
      `SELECT ${key}::VARCHAR AS "key", min(${value})::VARCHAR AS a, max(${value})::VARCHAR AS b, arg_min(source, ${value}) AS in_a, arg_max(source, ${value}) AS in_b
       FROM ${allHolds} GROUP BY ${key} HAVING count(DISTINCT ${value}) > 1 ORDER BY ${key}`,
      { key: text, a: text, b: text, in_a: int, in_b: int },
    );
    for (const { key, a, b, in_a, in_b } of rows) report.add([say(key, `${a} (${nameOf(in_a)}) and ${b} (${nameOf(in_b)})`)]);
  }
}

/**
 * True if records name another block at the height of `tip`, the last block of the lists of blocks, or its hash at another
 * height. Then the list is older than the records, because the pull that replaced them is running or was killed.
 */
export async function isOutdated({ height, hash }: LastRead, allHolds: KeptBlocks['allHolds'], store: Store): Promise<boolean> {
  const isOther = `(block_height = ${height}) <> (block_hash = ${literal(hash)})`;
  return (await store.number(`SELECT count(*) AS number FROM ${allHolds} WHERE ${isOther}`)) > 0;
}

/** Lists the unused copies of blocks: all copies of a block but the first. Counts the blocks with several copies. */
async function listCopies(held: Table<typeof HELD>, store: Store) {
  const table = await store.table(
    'copied',
    columns('source INTEGER, block_height BIGINT'),
    `SELECT source, block_height FROM ${held} QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) > 1`,
  );
  return { table, ...(await store.row(`SELECT count(DISTINCT block_height) AS blocks FROM ${table}`, { blocks: int })) };
}

async function reportDifferingCopies({ records, held }: Activity, limits: Reading['limits'], { report, nameOf, store }: Reporting) {
  // The digest of a block in a file combines the position and content of all its records into 128 bits.
  for (const range of await blockRanges(held, limits, store)) {
    const several = `SELECT block_height FROM ${held} WHERE ${isWithin(range)} GROUP BY block_height HAVING count(DISTINCT source) > 1`;
    for (const row of await store.rows(
      `WITH digests AS (
         SELECT block_height, source, bit_xor(md5_number(${joinedText(['position', ...SERVED_COLUMNS])})) AS digest
         FROM (SELECT *, row_number() OVER (PARTITION BY source, block_height ORDER BY tx_index DESC, ord DESC) AS position
               FROM ${records} WHERE ${isWithin(range)} AND block_height IN (${several}))
         GROUP BY ALL),
       copies AS (SELECT block_height, source, records, digest FROM ${held} LEFT JOIN digests USING (block_height, source) WHERE ${isWithin(range)})
       SELECT a.block_height, a.source AS in_a, b.source AS in_b, a.records AS a, b.records AS b
       FROM copies a JOIN (SELECT * FROM copies QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) = 1) b USING (block_height)
       WHERE a.digest <> b.digest OR a.records <> b.records ORDER BY a.block_height, a.source`,
      { block_height: int, in_a: int, in_b: int, a: int, b: int },
    )) {
      const [fileA, fileB] = [nameOf(row.in_b), nameOf(row.in_a)];
      report.add([
        `block ${row.block_height} differs between ${fileA} (${row.b} records) and ${fileB} (${row.a} records); one file must have all records of a block`,
      ]);
    }
  }
}

/** Event indexes up to this number are tracked as bits of a BIGINT. */
const MOST_BITS = 62;

/** A contradiction that a query found at a height: what has it, and two values for the message. */
interface Found {
  readonly height: number;
  readonly what: string;
  readonly a: string;
  readonly b: string;
}

/** A contradiction about transactions. */
interface TransactionCheck {
  /** SQL condition for rows of `transactions` that may have it. */
  readonly suspects: string;
  /**
   * SQL of the columns of Found. `suspects` selects the rows of `transactions` that may have it, in a range of blocks, and
   * `all` selects all rows and all records of the range.
   */
  readonly found: (suspects: string, all: Readonly<Record<'transactions' | 'records', string>>) => string;
  readonly say: (found: Found) => string;
}

const TRANSACTION_CHECKS: readonly TransactionCheck[] = [
  {
    suspects: 'is_double',
    found: (suspects, { transactions }) =>
      `SELECT block_height AS height, tx_index::VARCHAR AS what, min(tx_id) AS a, max(tx_id) AS b
       FROM ${transactions} SEMI JOIN ${suspects} USING (block_height, tx_index) GROUP BY block_height, tx_index`,
    say: ({ height, what: place, a, b }) => `block ${height} has two transactions at tx_index ${place}: ${a} and ${b}`,
  },
  {
    // A transaction may be in a file twice, for example because the file was appended to itself. Records without
    // event_index keep the order of the input, and may alternate with records of other transactions. So a transaction
    // counts as duplicated only if its records are not consecutive and the file has each of these records at least twice.
    suspects: 'numbered = 0 AND is_scattered',
    found: (suspects, { records }) =>
      `SELECT height, what, min(times)::VARCHAR AS a, '' AS b FROM (
         SELECT block_height AS height, tx_id AS what, count(*) AS times FROM ${records} SEMI JOIN ${suspects} USING (block_height, tx_id)
         GROUP BY block_height, tx_id, ${joinedText(SERVED_COLUMNS)})
       GROUP BY height, what HAVING min(times) > 1`,
    say: ({ height, what: tx, a: times }) => `tx_id ${tx} has every record ${times} times in block ${height}; is it in the file twice?`,
  },
  {
    suspects: 'numbered NOT IN (0, records)',
    found: (suspects) => `SELECT block_height AS height, tx_id AS what, numbered::VARCHAR AS a, records::VARCHAR AS b FROM ${suspects}`,
    say: ({ what: tx, a: numbered, b: records }) =>
      `tx_id ${tx}: ${numbered} of its ${records} records have an event_index; all or none must have one`,
  },
  {
    // If the number of bits equals the number of records, no index repeats.
    suspects: 'numbered > 0 AND bit_count(event_bits) <> records',
    found: (suspects, { records }) =>
      `SELECT block_height AS height, tx_id AS what, count(*)::VARCHAR AS a, event_index::VARCHAR AS b
       FROM ${records} SEMI JOIN ${suspects} USING (block_height, tx_index, tx_id)
       WHERE event_index IS NOT NULL GROUP BY block_height, tx_id, event_index HAVING count(*) > 1`,
    say: ({ what: tx, a: times, b: index }) => `tx_id ${tx} has ${times} records with event_index ${index}`,
  },
];

/**
 * Throws an InputError that lists contradictions about transactions. `elsewhere` has the transactions that are also in
 * an unchanged block of the last build.
 */
export async function checkTransactions(reader: InputReader, kept: Kept, elsewhere: readonly KnownTransaction[]): Promise<void> {
  const reporting = reportOf(reader, kept.allHolds);
  const { report, store } = reporting;
  await reportTwoPlaces(await equalIds(kept, reader.reading), kept, reporting);
  await reportKnownElsewhere(elsewhere, reporting);
  for (const range of kept.ranges) {
    const transactions = `(FROM ${kept.transactions} WHERE ${isWithin(range)})`;
    const all = { transactions, records: `(FROM ${kept.kept} WHERE ${isWithin(range)})` };
    // Usually no transaction is suspect, so that one query is enough.
    const counts = TRANSACTION_CHECKS.map(({ suspects }, i) => `count(*) FILTER (${suspects}) AS "${i}"`);
    const found = await store.row(`SELECT ${counts} FROM ${transactions}`, Object.fromEntries(TRANSACTION_CHECKS.map((_, i) => [i, int])));
    for (const [i, { suspects, found: select, say }] of TRANSACTION_CHECKS.entries())
      if ((found[i] ?? 0) > 0) await reportFound(select(`(FROM ${transactions} WHERE ${suspects})`, all), say, reporting);
  }
  report.throwIfAny((count) => `the input contradicts itself about ${count} transaction(s)`);
}

/** SQL for the first 53 bits of the hash of a transaction's id. */
const ID_HASH = '(hash(tx_id) >> 11)::BIGINT';
/** Memory that DuckDB needs to group a hash, in bytes. */
const HASH_BYTES = 64;
/** Number of equal hashes after which the rest of the transactions is not compared. */
const MOST_EQUAL = 100_000;

/** Returns hashes of ids that several transactions have. In valid input, almost always none. */
async function equalIds({ transactions, counts }: Kept, { limits, store }: Reading): Promise<number[]> {
  const hashes = { rows: `SELECT ${ID_HASH} AS id FROM ${transactions}`, most: counts.transactions, key: 'id', hashEnd: 2 ** 53 };
  const equal: number[] = [];
  for await (const part of rowParts({ ...hashes, rowBytes: HASH_BYTES }, limits, store)) {
    const rows = await store.rows(
      `SELECT id FROM (${part}) GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT ${MOST_EQUAL - equal.length}`,
      {
        id: int,
      },
    );
    for (const { id } of rows) equal.push(id);
    if (equal.length === MOST_EQUAL) break;
  }
  return equal;
}

/** Reports the rows of a query with the columns of Found, and counts those that the report has no room for. */
async function reportFound(found: string, say: (found: Found) => string, { report, holdersOf, store }: Reporting) {
  const rows = await store.rows(
    `SELECT *, count(*) OVER () AS "all" FROM (${found}) ORDER BY height, length(what), what, length(b), b LIMIT ${Math.max(report.room, 1)}`,
    { height: int, what: text, a: text, b: text, all: int },
  );
  const lines = await Promise.all(rows.map(async (row) => `${say(row)} (${await holdersOf([row.height])})`));
  report.add(lines, rows[0]?.all);
}

async function reportTwoPlaces(hashes: readonly number[], { transactions }: Kept, { report, holdersOf, store }: Reporting): Promise<void> {
  if (hashes.length === 0) return;
  const rows = await store.rows(
    `SELECT tx_id, min(block_height) AS height, max(block_height) AS last, min(tx_index) AS place, max(tx_index) AS last_place, count(*) OVER () AS "all"
     FROM ${transactions} WHERE ${ID_HASH} IN (SELECT unnest([${hashes.join(', ')}]::BIGINT[]))
     GROUP BY tx_id HAVING count(*) > 1 ORDER BY height, tx_id LIMIT ${Math.max(report.room, 1)}`,
    { tx_id: text, height: int, last: int, place: int, last_place: int, all: int },
  );
  const lines = rows.map(async ({ tx_id: tx, height, last, place, last_place }) => {
    const places =
      height !== last
        ? `is in two blocks: ${height} and ${last}`
        : `has two values of tx_index in block ${height}: ${place} and ${last_place}`;
    return `tx_id ${tx} ${places} (${await holdersOf([height, last])})`;
  });
  report.add(await Promise.all(lines), rows[0]?.all);
}

async function reportKnownElsewhere(elsewhere: readonly KnownTransaction[], { report, holdersOf }: Reporting): Promise<void> {
  const known = elsewhere.map(({ txId, height, other }) => ({ txId, heights: [Math.min(height, other), Math.max(height, other)] }));
  known.sort((a, b) => (a.heights[0] ?? 0) - (b.heights[0] ?? 0) || (a.txId < b.txId ? -1 : 1));
  for (const { txId, heights } of known)
    report.add([`tx_id ${txId} is in two blocks: ${heights.join(' and ')} (${await holdersOf(heights)})`]);
}

/** Checks that records, blocks and files of the input do not contradict each other. */
import type { LastRead } from '../contract/sources.ts';
import { type BlockRange, blockRanges, isWithin } from '../duckdb/blockRanges.ts';
import { GrowingTable } from '../duckdb/growingTable.ts';
import { rowParts } from '../duckdb/sortedRows.ts';
import { int, joinedText, literal, type Store, text } from '../duckdb/store.ts';
import { type Columns, columns, type Table, type TableWith } from '../duckdb/table.ts';
import { RECORDS, type Records, SERVED_COLUMNS } from './canonicalRecordSql.ts';
import { namesTable, Report } from './inputFindings.ts';
import { HELD, type InputReader } from './inputReader.ts';
import type { Activity } from './makeActivity.ts';
import type { KnownInput, Reading } from './rawSource.ts';

/**
 * Columns of transactions. `first` is the index of the first record in its block, in served order. `numbered` counts records with an
 * event_index, and `event_bits` has a bit for each. `is_scattered`: records of other transactions are between the records. `is_double`: the
 * block has another transaction with this tx_index.
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
  /** Number of blocks that are in several files, with the same records. */
  readonly copiedBlocks: number;
}

/** Transaction of the input that is also in an unchanged block of the last build. */
export interface KnownTransaction {
  readonly txId: string;
  /** Height in the input. */
  readonly height: number;
  /** Height of the unchanged block. */
  readonly other: number;
}

/** Transactions of the input, and the blocks that this input may change. */
export interface InputTransactions extends Pick<KeptBlocks, 'ranges'> {
  readonly transactions: TableWith<'tx_id' | 'block_height'>;
  readonly affected: TableWith<'block_height'>;
}

/** Finds transactions that are also in unchanged blocks of the state. In layout `archive`, it has none (engine/knownTransactions.ts). */
export async function findKnownInState(
  { transactions, ranges, affected }: InputTransactions,
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

/** Selects one copy of each affected block (loadInput.ts). Throws an InputError when files contradict each other about a block. */
export async function keepBlocks(reader: InputReader, activity: Activity): Promise<KeptBlocks> {
  const { names, holds } = reader;
  const { known, store } = reader.reading;
  const { records, held } = activity;
  const report = new Report();
  const throwIfAny = () => report.throwIfAny((count) => `the input contradicts itself about ${count} block(s)`);
  const allHolds = await store.view(
    'all_holds',
    HELD,
    `SELECT * FROM ${holds}
     UNION ALL SELECT * FROM ${known.held} WHERE source IN (SELECT * FROM unnest([${[...names.keys()].join(', ')}]::INTEGER[]))
       AND source NOT IN (SELECT source FROM ${holds})`,
  );
  await reportHashes(allHolds, names, report, store);
  throwIfAny();
  const several = await store.number(`SELECT count(*) - count(DISTINCT block_height) AS number FROM ${held}`);
  if (several > 0) {
    await reportDifferingCopies(activity, reader, report);
    throwIfAny();
  }
  // A mirror has no blocks without records. They are removed after the comparison, because a copy in another file may have records.
  await store.run(`DELETE FROM ${held} WHERE records = 0`);
  const later = `SELECT source, block_height FROM ${held} QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) > 1`;
  const copies = several > 0 ? await store.table('copies', columns('source INTEGER, block_height BIGINT'), later) : undefined;
  const filter = copies === undefined ? '' : `WHERE (source, block_height) NOT IN (SELECT (source, block_height) FROM ${copies})`;
  const kept = await store.view('kept', RECORDS, `SELECT * FROM ${records} ${filter}`);
  const copiedBlocks = copies === undefined ? 0 : await store.number(`SELECT count(DISTINCT block_height) AS number FROM ${copies}`);
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
  return { kept, blocks, transactions, ranges, allHolds, counts, copiedBlocks };
}

/** Lists the transactions of some blocks. Divides these blocks into ranges. */
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

async function reportHashes(
  allHolds: KeptBlocks['allHolds'],
  names: ReadonlyMap<number, string>,
  report: Report,
  store: Store,
): Promise<void> {
  // Usually there is nothing to report. Then the slower queries below are not needed.
  const { heights, hashes, pairs } = await store.row(
    `SELECT count(DISTINCT block_height) AS heights, count(DISTINCT block_hash) AS hashes, count(*) AS pairs
     FROM (SELECT DISTINCT block_height, block_hash FROM ${allHolds})`,
    { heights: int, hashes: int, pairs: int },
  );
  if (heights === pairs && hashes === pairs) return;
  const files = await namesTable(names, store);
  for (const [key, value, is] of [
    ['block_height', 'block_hash', 'block height % has two hashes: '],
    ['block_hash', 'block_height', 'block hash % is at two heights: '],
  ] as const) {
    const named = (end: 'min' | 'max') => `${end}(${value}) || ' (' || arg_${end}(name, ${value}) || ')'`;
    await report.addFound(
      `SELECT [min(block_height)] AS place, replace('${is}', '%', ${key}::VARCHAR) || ${named('min')} || ' and ' || ${named('max')} AS line
       FROM ${allHolds} JOIN ${files} USING (source) GROUP BY ${key} HAVING min(${value}) <> max(${value})`,
      store,
    );
  }
}

/**
 * True if records name another block at the height of `tip`, or its hash at another height. Then the index is older than the records,
 * because the pull that replaced them is running or was killed.
 */
export async function isOutdated({ height, hash }: LastRead, allHolds: KeptBlocks['allHolds'], store: Store): Promise<boolean> {
  const isOther = `(block_height = ${height}) <> (block_hash = ${literal(hash)})`;
  return (await store.number(`SELECT count(*) AS number FROM ${allHolds} WHERE ${isOther}`)) > 0;
}

/** Compares each copy of a block with its first copy. */
async function reportDifferingCopies({ records, held }: Activity, { names, reading }: InputReader, report: Report): Promise<void> {
  const { limits, store } = reading;
  const files = await namesTable(names, store);
  for (const range of await blockRanges(held, limits, store)) {
    const several = `SELECT block_height FROM ${held} WHERE ${isWithin(range)} GROUP BY block_height HAVING count(DISTINCT source) > 1`;
    await report.addFound(
      `WITH digests AS (
         SELECT block_height, source, bit_xor(md5_number(${joinedText(['position', ...SERVED_COLUMNS])})) AS digest
         FROM (SELECT *, row_number() OVER (PARTITION BY source, block_height ORDER BY tx_index DESC, ord DESC) AS position
               FROM ${records} WHERE ${isWithin(range)} AND block_height IN (${several}))
         GROUP BY ALL),
       copies AS (
         SELECT block_height, source, records, digest, name || ' (' || records || ' records)' AS copy
         FROM ${held} LEFT JOIN digests USING (block_height, source) JOIN ${files} USING (source) WHERE ${isWithin(range)}),
       firsts AS (SELECT * FROM copies QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) = 1)
       SELECT [block_height, a.source] AS place, 'block ' || block_height || ' differs between ' || b.copy || ' and ' || a.copy
         || '; one file must have all records of a block' AS line
       FROM copies a JOIN firsts b USING (block_height) WHERE a.digest <> b.digest OR a.records <> b.records`,
      store,
    );
  }
}

/** Event indexes up to this number are tracked as bits of a BIGINT. */
const MOST_BITS = 62;

interface TransactionCheck {
  /** SQL condition for rows of `transactions` that may contradict others. */
  readonly suspects: string;
  /** SQL of the contradictions, with `line` and `place`, the heights of the blocks. The parameters are relations of a range of blocks. */
  readonly found: (suspects: string, all: Readonly<Record<'transactions' | 'records', string>>) => string;
}

const TRANSACTION_CHECKS: readonly TransactionCheck[] = [
  {
    suspects: 'is_double',
    found: (suspects, { transactions }) =>
      `SELECT [block_height] AS place, 'block ' || block_height || ' has two transactions at tx_index ' || tx_index || ': ' || min(tx_id) || ' and ' || max(tx_id) AS line
       FROM ${transactions} SEMI JOIN ${suspects} USING (block_height, tx_index) GROUP BY block_height, tx_index`,
  },
  {
    // A transaction may be in a file twice, for example because the file was appended to itself. Records without event_index may alternate
    // with those of others, so it counts as duplicated only if its records are not consecutive, and each is there at least twice.
    suspects: 'numbered = 0 AND is_scattered',
    found: (suspects, { records }) =>
      `SELECT [block_height] AS place, 'tx_id ' || tx_id || ' has every record ' || min(times) || ' times in block ' || block_height || '; is it in the file twice?' AS line
       FROM (SELECT block_height, tx_id, count(*) AS times FROM ${records} SEMI JOIN ${suspects} USING (block_height, tx_id)
         GROUP BY block_height, tx_id, ${joinedText(SERVED_COLUMNS)})
       GROUP BY block_height, tx_id HAVING min(times) > 1`,
  },
  {
    suspects: 'numbered NOT IN (0, records)',
    found: (suspects) =>
      `SELECT [block_height] AS place, 'tx_id ' || tx_id || ': ' || numbered || ' of its ' || records || ' records have an event_index; all or none must have one' AS line
       FROM ${suspects}`,
  },
  {
    // If the number of bits equals the number of records, no index repeats.
    suspects: 'numbered > 0 AND bit_count(event_bits) <> records',
    found: (suspects, { records }) =>
      `SELECT [block_height] AS place, 'tx_id ' || any_value(tx_id) || ' has ' || count(*) || ' records with event_index ' || event_index AS line
       FROM ${records} SEMI JOIN ${suspects} USING (block_height, tx_index)
       WHERE event_index IS NOT NULL GROUP BY block_height, tx_index, hash(tx_id), event_index HAVING count(*) > 1`,
  },
];

/** Throws an InputError that lists contradictions about transactions. */
export async function checkTransactions(
  { names, reading }: InputReader,
  kept: Pick<KeptBlocks, 'kept' | 'transactions' | 'ranges' | 'counts' | 'allHolds'>,
  elsewhere: readonly KnownTransaction[],
): Promise<void> {
  const { store } = reading;
  const report = new Report();
  let files: TableWith<'source' | 'name'> | undefined;
  const add = async (found: string) => {
    files ??= await namesTable(names, store);
    const holders = `SELECT source FROM ${kept.allHolds} WHERE list_contains(place, block_height)`;
    const shown = `line || ' (' || (SELECT string_agg(name, ', ' ORDER BY source) FROM ${files} WHERE source IN (${holders})) || ')'`;
    await report.addFound(found, store, shown);
  };
  const hashes = await equalIds(kept, reading);
  if (hashes.length > 0) await add(twoPlaces(hashes, kept.transactions));
  if (elsewhere.length > 0) {
    const rows = elsewhere.map(({ txId, height, other }) => [txId, Math.min(height, other), Math.max(height, other)]);
    const table = await store.append('elsewhere', columns('tx_id VARCHAR, height BIGINT, last BIGINT'), rows);
    await add(`SELECT [height, last] AS place, ${inTwoBlocks} AS line FROM ${table}`);
  }
  for (const range of kept.ranges) {
    const transactions = `(FROM ${kept.transactions} WHERE ${isWithin(range)})`;
    const all = { transactions, records: `(FROM ${kept.kept} WHERE ${isWithin(range)})` };
    // Usually no transaction is suspect. Then one query is enough.
    const counts = TRANSACTION_CHECKS.map(({ suspects }, i) => `count(*) FILTER (${suspects}) AS "${i}"`);
    const suspected = await store.row(
      `SELECT ${counts} FROM ${transactions}`,
      Object.fromEntries(TRANSACTION_CHECKS.map((_, i) => [i, int])),
    );
    for (const [i, { suspects, found }] of TRANSACTION_CHECKS.entries())
      if ((suspected[i] ?? 0) > 0) await add(found(`(FROM ${transactions} WHERE ${suspects})`, all));
  }
  report.throwIfAny((count) => `the input contradicts itself about ${count} transaction(s)`);
}

/** SQL for the first 53 bits of the hash of a transaction's id. */
const ID_HASH = '(hash(tx_id) >> 11)::BIGINT';
/** Memory that DuckDB needs to group a hash, in bytes. */
const HASH_BYTES = 64;
/** Number of equal hashes after which the rest of the transactions is not compared. */
const MOST_EQUAL = 100_000;

/** Returns hashes of ids that several transactions have: in valid input, almost always none. */
async function equalIds(
  { transactions, counts }: Pick<KeptBlocks, 'transactions' | 'counts'>,
  { limits, store }: Reading,
): Promise<number[]> {
  const hashes = { rows: `SELECT ${ID_HASH} AS id FROM ${transactions}`, most: counts.transactions, key: 'id', hashEnd: 2 ** 53 };
  const equal: number[] = [];
  for await (const part of rowParts({ ...hashes, rowBytes: HASH_BYTES }, limits, store)) {
    const most = MOST_EQUAL - equal.length;
    const rows = await store.rows(`SELECT id FROM (${part}) GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT ${most}`, { id: int });
    for (const { id } of rows) equal.push(id);
    if (equal.length === MOST_EQUAL) break;
  }
  return equal;
}

/** SQL of a line, by the columns `tx_id`, `height` and `last`. */
const inTwoBlocks = `'tx_id ' || tx_id || ' is in two blocks: ' || height || ' and ' || last`;

const twoPlaces = (hashes: readonly number[], transactions: KeptBlocks['transactions']): string =>
  `SELECT [height, last] AS place, CASE WHEN height <> last THEN ${inTwoBlocks}
     ELSE 'tx_id ' || tx_id || ' has two values of tx_index in block ' || height || ': ' || low || ' and ' || high END AS line
   FROM (SELECT tx_id, min(block_height) AS height, max(block_height) AS last, min(tx_index) AS low, max(tx_index) AS high
     FROM ${transactions} WHERE ${ID_HASH} IN (SELECT unnest([${hashes.join(', ')}]::BIGINT[])) GROUP BY tx_id HAVING count(*) > 1)`;

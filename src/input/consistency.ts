/**
 * What no single record shows: rules between records, blocks and files. Runs over the view `activity` of all canonical records.
 */
import { identifier, joinedText, type Store, toNumber, toText } from '../store/duckdb.ts';
import { Report } from './report.ts';
import { CANONICAL_COLUMNS } from './sources.ts';

/** What was read and is to be rendered, in the tables `blocks` (block_height, block_hash, records) and `transactions` (tx_id, block_height, records). */
export interface Holdings {
  readonly records: number;
  readonly blocks: number;
  readonly transactions: number;
  /** Heights that several files hold alike; one copy was taken. */
  readonly copiedBlocks: number;
}

/**
 * Makes the view `kept` (records without the copies of blocks that several files hold) and the tables `blocks` and `transactions`.
 * Throws an InputError that lists what contradicts itself, or what the last build kept of unchanged files. `names` are the files by
 * source number.
 */
export async function checkConsistency(names: ReadonlyMap<number, string>, store: Store): Promise<Holdings> {
  const report = new Report();
  const summary = (count: number) => `the input contradicts itself about ${count} block(s)`;
  await store.run(`CREATE TEMP VIEW all_holds AS SELECT * FROM holds
    UNION ALL SELECT * FROM known_held WHERE source IN (SELECT * FROM unnest([${[...names.keys()].join(', ')}]::INTEGER[]))
      AND source NOT IN (SELECT source FROM holds)`);
  await reportHashes(names, report, store);
  report.throwIfAny(summary);
  await reportDifferingCopies(names, report, store);
  report.throwIfAny(summary);
  // A block is compared with its copies even when all its rows were left out, but it is no block of the mirror.
  await store.run('DELETE FROM held WHERE records = 0');

  await store.run(`CREATE TEMP TABLE copied AS SELECT source, block_height FROM held
    QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) > 1`);
  const { copies } = await store.row('SELECT count(DISTINCT block_height) AS copies FROM copied');
  const copied = toNumber(copies);
  const filter = copied === 0 ? '' : 'WHERE (source, block_height) NOT IN (SELECT (source, block_height) FROM copied)';
  await store.run(`CREATE TEMP VIEW kept AS SELECT * FROM activity ${filter}`);
  await store.run(`CREATE TEMP TABLE blocks AS
    SELECT block_height, any_value(block_hash) AS block_hash, any_value(records) AS records FROM held GROUP BY block_height ORDER BY block_height`);

  await reportTransactions(names, report, store);
  report.throwIfAny((count) => `the input contradicts itself about ${count} transaction(s)`);
  const totals = await store.row(`SELECT (SELECT coalesce(sum(records), 0) FROM blocks) AS records,
    (SELECT count(*) FROM blocks) AS blocks, (SELECT count(*) FROM transactions) AS transactions`);
  return {
    records: toNumber(totals['records']),
    blocks: toNumber(totals['blocks']),
    transactions: toNumber(totals['transactions']),
    copiedBlocks: copied,
  };
}

type Names = ReadonlyMap<number, string>;
const nameOf = (names: Names, cell: unknown): string => names.get(Number(cell)) ?? 'the input';

async function reportHashes(names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows(
    `SELECT block_height, min(block_hash) AS a, max(block_hash) AS b, arg_min(source, block_hash) AS in_a, arg_max(source, block_hash) AS in_b
     FROM all_holds GROUP BY block_height HAVING count(DISTINCT block_hash) > 1 ORDER BY block_height`,
  )) {
    const [height, a, b] = [toNumber(row['block_height']), toText(row['a']), toText(row['b'])];
    report.add([`block height ${height} has two hashes: ${a} (${nameOf(names, row['in_a'])}) and ${b} (${nameOf(names, row['in_b'])})`]);
  }
  for (const row of await store.rows(
    `SELECT block_hash, min(block_height) AS a, max(block_height) AS b, arg_min(source, block_height) AS in_a, arg_max(source, block_height) AS in_b
     FROM all_holds GROUP BY block_hash HAVING count(DISTINCT block_height) > 1 ORDER BY block_hash`,
  )) {
    const [hash, a, b] = [toText(row['block_hash']), toNumber(row['a']), toNumber(row['b'])];
    report.add([`block hash ${hash} is at two heights: ${a} (${nameOf(names, row['in_a'])}) and ${b} (${nameOf(names, row['in_b'])})`]);
  }
}

/** All that a client sees of a record; `source`, `event_index` and `ord` are only about where it came from. */
const SEEN = CANONICAL_COLUMNS.filter((c) => !['source', 'event_index', 'ord'].includes(c)).map(identifier);

async function reportDifferingCopies(names: Names, report: Report, store: Store): Promise<void> {
  const several = 'SELECT block_height FROM held GROUP BY block_height HAVING count(DISTINCT source) > 1';
  const { any } = await store.row(`SELECT count(*) AS any FROM (${several})`);
  if (toNumber(any) === 0) return;
  // Position and content of every record, folded into one 128-bit number a block and file.
  for (const row of await store.rows(
    `WITH digests AS (
       SELECT block_height, source, bit_xor(md5_number(${joinedText(['position', ...SEEN])})) AS digest
       FROM (SELECT *, row_number() OVER (PARTITION BY source, block_height ORDER BY tx_index DESC, ord DESC) AS position
             FROM activity WHERE block_height IN (${several}))
       GROUP BY ALL),
     copies AS (SELECT block_height, source, records, digest FROM held LEFT JOIN digests USING (block_height, source))
     SELECT a.block_height, a.source AS in_a, b.source AS in_b, a.records AS a, b.records AS b
     FROM copies a JOIN (SELECT * FROM copies QUALIFY row_number() OVER (PARTITION BY block_height ORDER BY source) = 1) b USING (block_height)
     WHERE a.digest <> b.digest OR a.records <> b.records ORDER BY a.block_height, a.source`,
  )) {
    const [fileA, fileB] = [nameOf(names, row['in_b']), nameOf(names, row['in_a'])];
    const [a, b] = [toNumber(row['b']), toNumber(row['a'])];
    report.add([
      `block ${toNumber(row['block_height'])} differs between ${fileA} (${a} records) and ${fileB} (${b} records); one file must hold all of a block`,
    ]);
  }
}

/** Indexes up to this one are counted as bits of one BIGINT. */
const MOST_BITS = 62;

async function reportTransactions(names: Names, report: Report, store: Store): Promise<void> {
  // One row for each transaction, unless something contradicts itself: the checks below ask whether anything is there twice.
  await store.run(`CREATE TEMP TABLE transactions AS
    SELECT block_height, tx_index, tx_id, count(*) AS records, count(event_index) AS numbered,
      max(ord) - min(ord) + 1 <> count(*) AS is_scattered,
      bit_or(CASE WHEN event_index <= ${MOST_BITS} THEN 1::BIGINT << event_index::INTEGER ELSE 0 END) AS event_bits
    FROM kept GROUP BY block_height, tx_index, tx_id`);
  // Where all hashes differ all ids do, and numbers are cheaper to compare. Two ids of one hash would only cost a closer look.
  const counts = await store.row(`SELECT count(*) AS transactions, (SELECT count(DISTINCT hash(tx_id)) FROM transactions) AS ids,
    (SELECT count(*) FROM (SELECT DISTINCT block_height, tx_index FROM transactions)) AS places FROM transactions`);
  if (counts['ids'] !== counts['transactions']) await reportTwoPlaces(names, report, store);
  await reportKnownElsewhere(names, report, store);
  if (counts['places'] !== counts['transactions']) await reportSharedPlaces(names, report, store);
  await reportScattered(names, report, store);
  await reportEventIndexes(counts['places'] === counts['transactions'], names, report, store);
}

/** Files that hold a block, as a list for a message. */
async function holdersOf(heights: readonly number[], names: Names, store: Store): Promise<string> {
  const rows = await store.rows(`SELECT DISTINCT source FROM all_holds WHERE block_height IN (${heights.join(', ')}) ORDER BY source`);
  return [...new Set(rows.map((row) => nameOf(names, row['source'])))].join(', ');
}

async function reportTwoPlaces(names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows(
    `SELECT tx_id, min(block_height) AS height, max(block_height) AS last, min(tx_index) AS place, max(tx_index) AS last_place
     FROM transactions GROUP BY tx_id HAVING count(*) > 1 ORDER BY height, tx_id`,
  )) {
    const [height, last] = [toNumber(row['height']), toNumber(row['last'])];
    const files = await holdersOf([height, last], names, store);
    const tx = toText(row['tx_id']);
    if (height !== last) report.add([`tx_id ${tx} is in two blocks: ${height} and ${last} (${files})`]);
    else
      report.add([
        `tx_id ${tx} has two values of tx_index in block ${height}: ${toNumber(row['place'])} and ${toNumber(row['last_place'])} (${files})`,
      ]);
  }
}

/** Transactions that are also in a block which has not changed. */
async function reportKnownElsewhere(names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows(
    `SELECT t.tx_id, least(t.block_height, k.block_height) AS height, greatest(t.block_height, k.block_height) AS last
     FROM transactions t JOIN known_transactions k ON k.tx_id = t.tx_id
     WHERE k.block_height NOT IN (SELECT block_height FROM affected) ORDER BY height, t.tx_id`,
  )) {
    const [height, last] = [toNumber(row['height']), toNumber(row['last'])];
    const files = await holdersOf([height, last], names, store);
    report.add([`tx_id ${toText(row['tx_id'])} is in two blocks: ${height} and ${last} (${files})`]);
  }
}

async function reportSharedPlaces(names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows(
    `SELECT block_height, tx_index, min(tx_id) AS a, max(tx_id) AS b FROM transactions
     GROUP BY block_height, tx_index HAVING count(*) > 1 ORDER BY block_height, tx_index`,
  )) {
    const height = toNumber(row['block_height']);
    const files = await holdersOf([height], names, store);
    report.add([
      `block ${height} has two transactions at tx_index ${toNumber(row['tx_index'])}: ${toText(row['a'])} and ${toText(row['b'])} (${files})`,
    ]);
  }
}

/**
 * Records without an event_index keep the order of the input, and may be mixed with those of other transactions. But a transaction that stands in
 * several places with every record at least twice was doubled, as in a file that was appended to itself.
 */
async function reportScattered(names: Names, report: Report, store: Store): Promise<void> {
  const scattered = 'SELECT block_height, tx_id FROM transactions WHERE numbered = 0 AND is_scattered';
  for (const row of await store.rows(
    `SELECT block_height AS height, tx_id, min(times) AS times FROM (
       SELECT block_height, tx_id, count(*) AS times FROM kept SEMI JOIN (${scattered}) USING (block_height, tx_id)
       GROUP BY block_height, tx_id, ${joinedText(SEEN)})
     GROUP BY ALL HAVING min(times) > 1 ORDER BY height, tx_id`,
  )) {
    const height = toNumber(row['height']);
    const files = await holdersOf([height], names, store);
    report.add([
      `tx_id ${toText(row['tx_id'])} has every record ${toNumber(row['times'])} times in block ${height}; is it in the file twice? (${files})`,
    ]);
  }
}

/** `arePlacesUnique`: a transaction can be told by its place, which is cheaper to compare than its id. */
async function reportEventIndexes(arePlacesUnique: boolean, names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows('SELECT * FROM transactions WHERE numbered NOT IN (0, records) ORDER BY block_height, tx_id')) {
    const files = await holdersOf([toNumber(row['block_height'])], names, store);
    report.add([
      `tx_id ${toText(row['tx_id'])}: ${toNumber(row['numbered'])} of its ${toNumber(row['records'])} records have an event_index; all or none must have one (${files})`,
    ]);
  }
  // As many bits as records: all indexes are different. Only the others have to be looked at one by one.
  const key = arePlacesUnique ? 'block_height, tx_index' : 'tx_id';
  const unsure = `SELECT ${key} FROM transactions WHERE numbered > 0 AND bit_count(event_bits) <> records`;
  const { any } = await store.row(`SELECT count(*) AS any FROM (${unsure})`);
  if (toNumber(any) === 0) return;
  for (const row of await store.rows(
    `SELECT tx_id, event_index, times, t.block_height AS height FROM (
       SELECT ${key}, event_index, count(*) AS times FROM kept SEMI JOIN (${unsure}) USING (${key})
       WHERE event_index IS NOT NULL GROUP BY ALL HAVING count(*) > 1)
     JOIN transactions t USING (${key}) ORDER BY height, tx_id, event_index`,
  )) {
    const files = await holdersOf([toNumber(row['height'])], names, store);
    report.add([
      `tx_id ${toText(row['tx_id'])} has ${toNumber(row['times'])} records with event_index ${toNumber(row['event_index'])} (${files})`,
    ]);
  }
}

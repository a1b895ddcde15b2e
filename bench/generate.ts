/**
 * Generates invented activity for benchmarks. It has the proportions of mainnet: about 3,500 records per block and 2.7 per transaction, and
 * hundreds in some transactions. All values come from SHA-256 of a number, so every machine makes the same records.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { withDuckDB } from './withDuckDB.ts';

const FIRST_HEIGHT = 840_000;
const RECORDS_PER_BLOCK = 3_500;
/** Number of the newest blocks that have a file each, as in the folder of a pull that follows the chain. */
const SINGLE_BLOCKS = 4;

export const FORMS = ['parquet', 'ndjson'] as const;
export type Form = (typeof FORMS)[number];

/**
 * Shape of the data. With `real`, as on mainnet, most transactions mint, and a block has few runes and many records of the same addresses,
 * so pages compress well. With `random`, every address and amount is different, which is the worst case.
 */
export const SHAPES = ['random', 'real'] as const;
export type Shape = (typeof SHAPES)[number];

/** Generated data. File names are without folder and extension. */
export interface Generated {
  readonly records: number;
  readonly blocks: number;
  readonly transactions: number;
  /** File of the first block. */
  readonly oldest: string;
  /** File of all blocks after the first and before the recent blocks. */
  readonly history: string;
  /** Files of the recent blocks, which come before the newest block. Each file has one block. */
  readonly recent: readonly string[];
  /** File of the newest block, which a benchmark adds after a full build. */
  readonly newest: string;
  /** Files of the blocks that replace the last three recent blocks in a reorganisation. */
  readonly replaced: readonly string[];
}

/** Returns SQL that converts 8 hex digits of a hash to a number from 0 to 1. */
const fraction = (hash: string, from: number): string => `(('0x' || substr(${hash}, ${from}, 8))::BIGINT / 4294967296.0)`;

/**
 * SQL of a random number of records per transaction. The most frequent numbers are 1 to 3, some are dozens or hundreds, and the mean is
 * 2.7.
 */
const SIZE = `CASE WHEN u < 0.45 THEN 1 WHEN u < 0.75 THEN 2 WHEN u < 0.88 THEN 3 WHEN u < 0.95 THEN 4 WHEN u < 0.985 THEN 5 + (v * 4)::INTEGER
  WHEN u < 0.9985 THEN 10 + (v * 20)::INTEGER ELSE 100 + (v * 400)::INTEGER END`;

/**
 * SQL expressions of values, by shape. `u`, `v` and `w` are random fractions of the event, `k` is a random fraction of the transaction, `h`
 * is the event's hash.
 */
const SHAPED: Readonly<Record<Shape, Readonly<Record<'size' | 'rune' | 'address' | 'receiver' | 'amount' | 'operation', string>>>> = {
  random: {
    size: SIZE,
    rune: '(pow(v, 3) * 2000)::INTEGER',
    address: `'bc1p' || substr(h, 1, 58)`,
    receiver: `'bc1q' || substr(h, 20, 38)`,
    amount: `('0x' || substr(h, 40, 8))::BIGINT || '.' || lpad((('0x' || substr(h, 50, 8))::BIGINT % 100000)::VARCHAR, 5, '0')`,
    operation: `CASE WHEN u < 0.02 THEN 'burn' WHEN u < 0.1 THEN 'mint' WHEN u < 0.1005 THEN 'etching' WHEN u < 0.6 THEN 'receive' ELSE 'send' END`,
  },
  real: {
    // Four of five transactions have a mint and a receive. The other transactions send to two outputs.
    size: 'CASE WHEN k < 0.8 THEN 2 WHEN k < 0.99 THEN 4 ELSE 20 + (v * 100)::INTEGER END',
    rune: '((height * 7 + (pow(k, 3) * 12)::INTEGER) % 2000)::INTEGER',
    address: `'bc1p' || substr(sha256('holder ' || CASE WHEN k < 0.8 THEN height || ' ' || (k * 150)::INTEGER ELSE (pow(v, 2) * 5000)::INTEGER || '' END), 1, 58)`,
    receiver: `'bc1q' || substr(sha256('receiver ' || height // 100 || ' ' || (w * 3000)::INTEGER), 1, 38)`,
    amount: `CASE WHEN k < 0.8 THEN (rune % 9 + 1) * 100 || '.00000' ELSE (w * 1000000)::INTEGER || '.' || lpad((v * 99999)::INTEGER::VARCHAR, 5, '0') END`,
    operation: `CASE WHEN k < 0.8 AND e % 2 = 0 THEN 'mint' WHEN k < 0.8 THEN 'receive' WHEN u < 0.02 THEN 'burn' WHEN e % 2 = 0 THEN 'send' ELSE 'receive' END`,
  },
};

/**
 * Returns SQL of at least `records` flat records. A different `fork` gives other block hashes, and other records in every second
 * transaction.
 */
const recordsSql = (records: number, perBlock: number, fork: string, shape: Shape): string => `
  WITH sized AS (
    SELECT t, h, k, ${SHAPED[shape].size} AS size FROM (
      SELECT t, h, ${fraction('h', 1)} AS u, ${fraction('h', 9)} AS v, ${fraction('h', 17)} AS k FROM (
        SELECT t, sha256('transaction ' || t) AS h FROM range(0, ${Math.ceil(records / 2)}) r(t)))),
  placed AS (SELECT *, (sum(size) OVER (ORDER BY t) - size)::BIGINT AS before FROM sized),
  mined AS (
    SELECT t, k, size, ${FIRST_HEIGHT} + before // ${perBlock} AS height,
      CASE WHEN '${fork}' = '' OR t % 2 = 0 THEN h ELSE sha256(h || '${fork}') END AS tx_id
    FROM placed WHERE before < ${records}),
  indexed AS (SELECT *, (row_number() OVER (PARTITION BY height ORDER BY t)) * 2 AS tx_index FROM mined),
  events AS (
    SELECT height, tx_id, tx_index, k, e, sha256('event ' || t || ' ' || e) AS h
    FROM (SELECT *, unnest(range(0, size)) AS e FROM indexed)),
  fractions AS (SELECT *, ${fraction('h', 1)} AS u, ${fraction('h', 9)} AS v, ${fraction('h', 33)} AS w FROM events),
  runes AS (SELECT *, ${SHAPED[shape].rune} AS rune FROM fractions),
  drawn AS (SELECT *, ${SHAPED[shape].operation} AS operation FROM runes)
  SELECT (840000 + rune // 10) || ':' || (rune % 10) AS rune_id, rune AS rune_number,
    'INVENTEDRUNE' || chr(65 + rune // 676) || chr(65 + rune // 26 % 26) || chr(65 + rune % 26) AS rune_name,
    'INVENTED•RUNE•' || chr(65 + rune // 676) || chr(65 + rune // 26 % 26) || chr(65 + rune % 26) AS rune_spaced_name,
    CASE WHEN operation NOT IN ('mint', 'etching') THEN ${SHAPED[shape].address} END AS address,
    CASE WHEN operation = 'send' AND u < 0.9 THEN ${SHAPED[shape].receiver} END AS receiver_address,
    CASE WHEN operation <> 'etching' THEN ${SHAPED[shape].amount} END AS amount, operation,
    sha256('block ' || height || '${fork}') AS block_hash, height AS block_height, tx_id, tx_index,
    CASE WHEN operation = 'receive' THEN e END AS vout, CASE WHEN operation = 'receive' THEN tx_id END AS "output",
    1713571767 + (height - ${FIRST_HEIGHT}) * 600 AS "timestamp", e AS event_index
  FROM drawn`;

/** SQL of an Activity in the API's dialect `contract`, for NDJSON. */
const ACTIVITY = `{rune: {id: rune_id, number: rune_number, name: rune_name, spaced_name: rune_spaced_name}, address: address,
  receiver_address: receiver_address, amount: amount, operation: operation,
  location: {block_hash: '0x' || block_hash, block_height: block_height, tx_id: '0x' || tx_id, tx_index: tx_index, vout: vout,
  "output": '0x' || "output", "timestamp": "timestamp"}}`;

/** Writes about `records` records into `parquet/` and `ndjson/` below `folder`, `perBlock` in each block. */
export async function generate(
  records: number,
  folder: string,
  forms: readonly Form[] = FORMS,
  shape: Shape = 'random',
  perBlock = RECORDS_PER_BLOCK,
): Promise<Generated> {
  for (const form of forms) mkdirSync(join(folder, form), { recursive: true });
  const database = join(folder, 'generate.duckdb');
  const write = async (connection: DuckDBConnection): Promise<Generated> => {
    const extra = records + perBlock * 2;
    await connection.run(
      `CREATE TABLE main AS SELECT * FROM (${recordsSql(extra, perBlock, '', shape)}) ORDER BY block_height, tx_index DESC, event_index DESC`,
    );
    await connection.run(`CREATE TABLE fork AS SELECT * FROM (${recordsSql(extra, perBlock, ' fork', shape)})
      WHERE block_height > (SELECT max(block_height) FROM main) - 6 ORDER BY block_height, tx_index DESC, event_index DESC`);
    // The tip is the last full block within `records`. The block above it is the newest block, which builds add later.
    const tip = FIRST_HEIGHT + Math.max(Math.round(records / perBlock), SINGLE_BLOCKS + 1) - 1;
    const put = async (name: string, table: string, low: number, high: number) => {
      const rows = `FROM ${table} WHERE block_height BETWEEN ${low} AND ${high} ORDER BY block_height, tx_index DESC, event_index DESC`;
      const path = (form: Form) => `${join(folder, form, name)}.${form}`;
      if (forms.includes('parquet'))
        await connection.run(`COPY (SELECT * ${rows}) TO '${path('parquet')}' (FORMAT parquet, COMPRESSION zstd)`);
      // NDJSON is CSV with one column and without quotes, so DuckDB can write it.
      const lines = "FORMAT csv, QUOTE '', ESCAPE '', DELIMITER '\x01', HEADER false";
      if (forms.includes('ndjson'))
        await connection.run(`COPY (SELECT to_json(${ACTIVITY})::VARCHAR ${rows}) TO '${path('ndjson')}' (${lines})`);
      return name;
    };
    const first = tip - SINGLE_BLOCKS + 1;
    const oldest = await put('oldest', 'main', FIRST_HEIGHT, FIRST_HEIGHT);
    const history = await put('history', 'main', FIRST_HEIGHT + 1, first - 1);
    const recent: string[] = [];
    for (let height = first; height <= tip; height += 1) recent.push(await put(`block-${height}`, 'main', height, height));
    const newest = await put(`block-${tip + 1}`, 'main', tip + 1, tip + 1);
    const replaced: string[] = [];
    for (let height = tip - 2; height <= tip; height += 1) replaced.push(await put(`fork-${height}`, 'fork', height, height));
    const reader = await connection.runAndReadAll(
      `SELECT count(*)::INTEGER, count(DISTINCT block_height)::INTEGER, count(DISTINCT tx_id)::INTEGER FROM main WHERE block_height <= ${tip}`,
    );
    const [made = 0, blocks = 0, transactions = 0] = (reader.getRows()[0] ?? []).map(Number);
    return { records: made, blocks, transactions, history, recent, newest, replaced, oldest };
  };
  return withDuckDB(folder, write, database).finally(() => rmSync(database, { force: true }));
}

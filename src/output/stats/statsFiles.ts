/**
 * Writes the stats files, one for each 100 heights: `runes/v1/stats/840000.json`. Builds render the JSON in SQL,
 * because a full history has millions of lines, and making a line from a JavaScript object takes about 10 µs.
 */
import type { ActivityEntry, BlockStats, RuneStats } from '../../contract/statsSchemas.ts';
import { joinedBlobs, readDoubles } from '../../duckdb/columns.ts';
import { int, literal, type Store } from '../../duckdb/store.ts';
import type { Table, TableWith } from '../../duckdb/table.ts';
import type { FileSink } from '../../engine/render/pageFiles.ts';
import { JSON_TEXT, jsonOf } from '../../engine/render/renderRecordSql.ts';
import type { BLOCK_RUNES, RUNE_COUNTS } from '../../engine/state/countBlocks.ts';
import { OPERATIONS } from '../../pages/blockAndTransactionLists.ts';
import { STATS_PER_FILE, statsFilePath } from '../../pages/filePaths.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import { spellHex } from '../../pages/parseIds.ts';
import { type BuildStats, ID_FORM, LATEST_BLOCKS, MOST_ACTIVE, MOST_ENTRIES, mostActive } from './blockStats.ts';

const BETWEEN = ',\n';

/** Joins lines into the bytes of a file. Each line must begin with BETWEEN. */
const fileOf = (blocks: Uint8Array, runes: Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from('{"blocks":[\n'),
    blocks.subarray(BETWEEN.length),
    Buffer.from('\n],"runes":[\n'),
    runes.subarray(BETWEEN.length),
    Buffer.from('\n]}\n'),
  ]);

const recordsSql = OPERATIONS.join(' + ');
const COUNTS = Object.fromEntries(OPERATIONS.map((name) => [name, [name]]));

/**
 * Returns the SQL expressions whose concatenation is a line with a JSON object. `fields` has the SQL expressions of
 * each value, by key.
 */
const lineOf = (fields: Readonly<Record<string, readonly string[]>>): string[] => [
  ...Object.entries(fields).flatMap(([name, value], i) => [`'${i === 0 ? `${BETWEEN}{` : ','}"${name}":'`, ...value]),
  `'}'`,
];

/** Returns the SQL expression of a block's line, for a row of the state's table of blocks. */
function blockLine(dialect: Dialect): string {
  const pieces = lineOf({
    height: ['block_height'],
    hash: [`'"${spellHex('', dialect)}'`, 'block_hash', `'"'`],
    timestamp: ['"timestamp"'],
    transactions: ['transactions'],
    records: ['records'],
    ...Object.fromEntries(OPERATIONS.map((name, code) => [name, [`split_part(operations, ',', ${code + 1})`]])),
  });
  return `encode(concat(${pieces.join(', ')}))`;
}

/** SQL expression of a rune's line, for a row with the columns that SUMS selects. */
const RUNE_LINE = `encode(${jsonOf(['rune_id', 'name', 'spaced_name'], (text) => {
  const quoted = (column: string) => [`'"'`, text(column), `'"'`];
  const [name, spaced_name] = [quoted('name'), quoted('spaced_name')];
  return lineOf({ id: quoted('rune_id'), number: ['number'], name, spaced_name, records: [recordsSql], ...COUNTS });
})})`;

const SUMS = `rune_id, min(number) AS number, min(name) AS name, min(spaced_name) AS spaced_name, ${OPERATIONS.map((name) => `sum(${name}) AS ${name}`).join(', ')}`;

/**
 * ORDER BY expressions that sort rune ids as blockStats.ts does: by block and transaction as numbers, then by bytes.
 */
const ID_ORDER = [1, 2]
  .map((i) => `TRY_CAST(regexp_extract(rune_id, ${literal(`^${ID_FORM}$`)}, ${i}) AS BIGINT) NULLS LAST`)
  .concat('rune_id')
  .join(', ');

const FIRST = `block_height - block_height % ${STATS_PER_FILE}`;
interface StatsTables {
  readonly blocks: TableWith<'block_height' | 'block_hash' | 'timestamp' | 'transactions' | 'records' | 'operations'>;
  readonly blockRunes: Table<typeof BLOCK_RUNES>;
  readonly runeCounts: Table<typeof RUNE_COUNTS>;
}

/**
 * Runs a query with the columns (first DOUBLE, line BLOB), and yields its lines, concatenated for each file. `first` is
 * the lowest height of the file. The lines of a file may be split over several consecutive items.
 */
async function* readLines(sql: string, store: Store): AsyncGenerator<{ readonly first: number; readonly bytes: Uint8Array }> {
  for await (const chunk of store.stream(sql)) {
    const [firsts, { bytes, offsets }] = [readDoubles(chunk, 0), joinedBlobs(chunk, 1)];
    for (let row = 0; row < chunk.rowCount; ) {
      const [first = 0, begin] = [firsts[row], offsets[row]];
      while (row < chunk.rowCount && firsts[row] === first) row += 1;
      yield { first, bytes: bytes.subarray(begin, offsets[row]) };
    }
  }
}

/** Writes the stats files of new, changed and removed blocks. Returns the paths of files that no longer have blocks. */
export async function writeStats(
  dialect: Dialect,
  state: StatsTables,
  replaced: TableWith<'block_height'>,
  sink: Pick<FileSink, 'file'>,
  store: Store,
): Promise<string[]> {
  const isTouched = `${FIRST} IN (SELECT ${FIRST} FROM ${replaced})`;
  await store.run(JSON_TEXT);
  const blocks = new Map<number, Uint8Array[]>();
  const blockSql = `SELECT (${FIRST})::DOUBLE, ${blockLine(dialect)} FROM ${state.blocks} WHERE ${isTouched} ORDER BY block_height`;
  for await (const { first, bytes } of readLines(blockSql, store)) blocks.set(first, [...(blocks.get(first) ?? []), bytes]);

  let current: number | undefined;
  let runes: Uint8Array[] = [];
  const end = () => {
    if (current !== undefined) sink.file(statsFilePath(current), fileOf(Buffer.concat(blocks.get(current) ?? []), Buffer.concat(runes)));
    runes = [];
  };
  const runeSql = `SELECT first::DOUBLE, ${RUNE_LINE} FROM (SELECT ${FIRST} AS first, ${SUMS} FROM ${state.blockRunes} WHERE ${isTouched} GROUP BY first, rune_id)
    ORDER BY first, ${ID_ORDER}`;
  for await (const { first, bytes } of readLines(runeSql, store)) {
    if (first !== current) end();
    current = first;
    runes.push(bytes);
  }
  end();
  const touched = await store.rows(`SELECT DISTINCT ${FIRST} AS first FROM ${replaced} ORDER BY first`, { first: int });
  return touched.flatMap(({ first }) => (blocks.has(first) ? [] : [statsFilePath(first)]));
}

/**
 * Bucket sizes by which SQL sums blocks. Every larger bucket size of a chart is a multiple of one of these sizes, so
 * larger buckets are summed from these sums.
 */
const BUCKETS = ['1000', '100', '10'] as const;

const OPERATION_SUMS = OPERATIONS.map((name, code) => `sum(split_part(operations, ',', ${code + 1})::BIGINT) AS ${name}`).join(', ');

/** SQL expression of an entry of the activity chart, as a line of JSON. */
const BUCKET_LINE = `encode(concat(${lineOf({ height: ['height'], blocks: ['blocks'], timestamp: ['"timestamp"'], ...COUNTS }).join(', ')}))`;

/** Reads the stats of all blocks, and of the most active runes, from the state. */
export async function readStats(dialect: Dialect, state: StatsTables, store: Store): Promise<BuildStats> {
  await store.run(JSON_TEXT);
  const read = async <T>(sql: string): Promise<T[]> => {
    const all: Uint8Array[] = [];
    for await (const { bytes } of readLines(sql, store)) all.push(bytes);
    return JSON.parse(`[${Buffer.concat(all).subarray(BETWEEN.length).toString('utf8')}]`) as T[];
  };
  const { first, transactions, last, ...counts } = await store.row(
    `SELECT coalesce(min(block_height), -1) AS first, coalesce(sum(transactions), 0)::BIGINT AS transactions,
       coalesce(min(block_height) FILTER (place <= ${LATEST_BLOCKS}), 0) AS last,
       ${BUCKETS.map((size) => `count(DISTINCT block_height // ${size}) AS "${size}"`).join(', ')}
     FROM (SELECT block_height, transactions, row_number() OVER (ORDER BY block_height DESC) AS place FROM ${state.blocks})`,
    { first: int, transactions: int, last: int, '1000': int, '100': int, '10': int },
  );
  const latest = await read<BlockStats>(
    `SELECT 0::DOUBLE, ${blockLine(dialect)} FROM ${state.blocks} WHERE block_height >= ${last} ORDER BY block_height`,
  );
  const bucket = Number(BUCKETS.find((size) => counts[size] > MOST_ENTRIES) ?? 1);
  const activity = await read<ActivityEntry>(
    `SELECT 0::DOUBLE, ${BUCKET_LINE} FROM (SELECT block_height - block_height % ${bucket} AS height, count(*) AS blocks,
       arg_min("timestamp", block_height) AS "timestamp", ${OPERATION_SUMS} FROM ${state.blocks} GROUP BY height) ORDER BY height`,
  );
  // The query first sums the records of all runes, and then selects names only for the most active runes. If several
  // runes tie for the last place, the query returns all of them, and mostActive() chooses.
  const totals = `SELECT rune_id, sum(${recordsSql}) AS total FROM ${state.runeCounts} GROUP BY rune_id`;
  const least = `SELECT min(total) FROM (FROM (${totals}) ORDER BY total DESC LIMIT ${MOST_ACTIVE})`;
  const runes = await read<RuneStats>(`SELECT 0::DOUBLE, ${RUNE_LINE} FROM (SELECT ${SUMS} FROM ${state.runeCounts}
      WHERE rune_id IN (SELECT rune_id FROM (${totals}) WHERE total >= (${least})) GROUP BY rune_id)`);
  return { first: first < 0 ? null : first, transactions, latest, activity, bucket, runes: mostActive(runes) };
}

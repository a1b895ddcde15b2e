/** Creates the documents for charts, polling clients and feed readers. */
import type { ActivityEntry, BlockStats, Feed, LatestBlocks, RuneStats, Stats } from '../../contract/statsSchemas.ts';
import { int, type Store } from '../../duckdb/store.ts';
import type { TableWith } from '../../duckdb/table.ts';
import { JSON_TEXT } from '../../engine/render/renderRecordSql.ts';
import { OPERATIONS, type Operation } from '../../pages/blockAndTransactionLists.ts';
import { FEED_PATH, LATEST_PATH, STATS_PATH } from '../../pages/filePaths.ts';
import type { Dialect } from '../../pages/mirrorOptions.ts';
import type { OwnFile } from '../../site/assets.ts';
import { BETWEEN, blockLine, COUNTS, ID_ORDER, lineOf, RUNE_LINE, readLines, recordsSql, type StatsTables, SUMS } from './statsFiles.ts';

/** Number of blocks in `blocks.json`. */
const LATEST_BLOCKS = 100;

/** Maximum number of entries in a chart, 7 pixels each on a wide screen. More heights get larger buckets. */
const MOST_ENTRIES = 150;

/** Maximum number of runes in `stats.json`, which lists only the most active runes. */
const MOST_ACTIVE = 20;

/** Numbers of last heights whose most active runes `stats.json` lists: a day and a week. */
const RECENT = [144, 1008];

/** Bucket sizes of charts, in heights: 1, 2, 5, 10, 20, 50 and so on. */
const BUCKETS = Array.from({ length: 48 }, (_, i) => ([1, 2, 5][i % 3] ?? 1) * 10 ** Math.floor(i / 3));

const OPERATION_SUMS = OPERATIONS.map(
  (name, code) => `coalesce(sum(split_part(operations, ',', ${code + 1})::BIGINT), 0)::BIGINT AS ${name}`,
);

/** SQL expression of an entry of the activity chart, as a line of JSON. */
const BUCKET_LINE = `encode(concat(${lineOf({ height: ['height'], blocks: ['blocks'], timestamp: ['"timestamp"'], ...COUNTS }).join(', ')}))`;

type Charted = { readonly blocks: TableWith<'block_height' | 'timestamp' | 'operations'> };

/** Returns the path and content of each document. `siteUrl` is the mirror's URL with a final slash, if known. */
export async function statsDocuments(dialect: Dialect, siteUrl: string | undefined, state: StatsTables, store: Store): Promise<OwnFile[]> {
  await store.run(JSON_TEXT);
  const counts = Object.fromEntries(OPERATIONS.map((name) => [name, int])) as Record<Operation, typeof int>;
  const { first, last, blocks, transactions, records, ...operations } = await store.row(
    `SELECT coalesce(min(block_height), -1) AS first, coalesce(max(block_height), -1) AS last, count(*) AS blocks,
       coalesce(sum(transactions), 0)::BIGINT AS transactions, coalesce(sum(records), 0)::BIGINT AS records, ${OPERATION_SUMS.join(', ')} FROM ${state.blocks}`,
    { first: int, last: int, blocks: int, transactions: int, records: int, ...counts },
  );
  // Selects names only for the most active runes. Several runes may tie for the last place.
  const totals = `SELECT rune_id, sum(${recordsSql}) AS total FROM ${state.runeCounts} GROUP BY rune_id`;
  const least = `SELECT min(total) FROM (FROM (${totals}) ORDER BY total DESC LIMIT ${MOST_ACTIVE})`;
  const runes = await readObjects<RuneStats>(
    `SELECT 0::DOUBLE, ${RUNE_LINE} FROM (SELECT ${SUMS} FROM ${state.runeCounts}
       WHERE rune_id IN (SELECT rune_id FROM (${totals}) WHERE total >= (${least})) GROUP BY rune_id)
     ORDER BY ${recordsSql} DESC, ${ID_ORDER} LIMIT ${MOST_ACTIVE}`,
    store,
  );
  const latest = await readObjects<BlockStats>(
    `SELECT 0::DOUBLE, ${blockLine(dialect)} FROM (FROM ${state.blocks} ORDER BY block_height DESC LIMIT ${LATEST_BLOCKS}) ORDER BY block_height`,
    store,
  );
  const recent: Stats['recent'] = [];
  for (const heights of last < 0 ? [] : RECENT) {
    const from = Math.max(first, last - heights + 1);
    const sums = `SELECT ${SUMS} FROM ${state.blockRunes} WHERE block_height >= ${from} GROUP BY rune_id`;
    const active = `SELECT 0::DOUBLE, ${RUNE_LINE} FROM (${sums}) ORDER BY ${recordsSql} DESC, ${ID_ORDER} LIMIT ${MOST_ACTIVE}`;
    recent.push({ first: from, last, runes: await readObjects<RuneStats>(active, store) });
  }
  const ends = { first: first < 0 ? null : first, last: last < 0 ? null : last };
  const stats: Stats = { ...ends, blocks, transactions, records, operations, ...(await readChart(state, store)), runes, recent };
  const lastFirst = [...latest].reverse().map(({ height, hash, timestamp, records, transactions, ...operations }) => {
    return { height, hash, timestamp, records, transactions, operations };
  });
  const blocksDocument: LatestBlocks = { tip: lastFirst[0]?.height ?? null, blocks: lastFirst };
  const documents = [
    [STATS_PATH, stats],
    [LATEST_PATH, blocksDocument],
    [FEED_PATH, feedOf(latest, siteUrl)],
  ] as const;
  return documents.map(([path, document]) => [path, Buffer.from(`${JSON.stringify(document)}\n`)]);
}

/** Runs a query with the columns (DOUBLE, line BLOB), and parses its lines. */
async function readObjects<T>(sql: string, store: Store): Promise<T[]> {
  const all: Uint8Array[] = [];
  for await (const { bytes } of readLines(sql, store)) all.push(bytes);
  return JSON.parse(`[${Buffer.concat(all).subarray(BETWEEN.length).toString('utf8')}]`) as T[];
}

/** Sums the blocks in buckets of the smallest size that gives at most MOST_ENTRIES entries. */
export async function readChart({ blocks }: Charted, store: Store): Promise<Pick<Stats, 'bucket' | 'activity'>> {
  const { count, span } = await store.row(
    `SELECT count(*) AS count, coalesce(max(block_height) - min(block_height), 0) AS span FROM ${blocks}`,
    { count: int, span: int },
  );
  // Smaller buckets have fewer heights than there are blocks, and larger ones are never needed.
  const sizes = BUCKETS.filter((size, i) => size * MOST_ENTRIES >= count && (BUCKETS[i - 1] ?? 0) * (MOST_ENTRIES - 2) <= span);
  const cases = sizes.map((size) => `WHEN count(DISTINCT block_height // ${size}) <= ${MOST_ENTRIES} THEN ${size}`);
  const bucket = await store.number(`SELECT (CASE ${cases.join(' ')} END)::BIGINT AS number FROM ${blocks}`);
  const activity = await readObjects<ActivityEntry>(
    `SELECT 0::DOUBLE, ${BUCKET_LINE} FROM (SELECT block_height - block_height % ${bucket} AS height, count(*) AS blocks,
       arg_min("timestamp", block_height) AS "timestamp", ${OPERATION_SUMS.join(', ')} FROM ${blocks} GROUP BY height) ORDER BY height`,
    store,
  );
  return { bucket, activity };
}

/** Number of blocks in the feed. These are about five hours of blocks, so readers that poll every hour miss none. */
const FEED_ITEMS = 30;

/** Relative path from the feed to the root of the mirror. */
const TO_ROOT = '../'.repeat(FEED_PATH.split('/').length - 1);

/** Creates the feed. The heights of `blocks` must ascend. `siteUrl` is the mirror's URL with a final slash, if known. */
function feedOf(blocks: readonly BlockStats[], siteUrl: string | undefined): Feed {
  return {
    version: 'https://jsonfeed.org/version/1.1',
    title: 'Rune activity by block',
    ...(siteUrl === undefined ? {} : { home_page_url: siteUrl, feed_url: `${siteUrl}${FEED_PATH}` }),
    description: `The last ${FEED_ITEMS} blocks with activity of Bitcoin runes that this mirror holds.`,
    language: 'en',
    items: blocks
      .slice(-FEED_ITEMS)
      .reverse()
      .map((block) => itemOf(block, siteUrl ?? TO_ROOT)),
  };
}

function itemOf(block: BlockStats, root: string): Feed['items'][number] {
  const isDate = block.timestamp < END_OF_DATES;
  return {
    id: block.hash.slice(-64),
    url: `${root}?block=${block.height}`,
    title: `Block ${block.height}: ${count(block.records, 'record')} in ${count(block.transactions, 'transaction')}`,
    content_text: `${wordsOf(block)}. Block hash ${block.hash}.`,
    ...(isDate ? { date_published: new Date(block.timestamp * 1000).toISOString().replace('.000Z', 'Z') } : {}),
  };
}

const PLURALS = { etching: 'etchings', mint: 'mints', burn: 'burns', send: 'sends', receive: 'receives' } as const;

/** Formats the counts of a block: `1 etching, 2 mints and 3 sends`. */
function wordsOf(block: BlockStats): string {
  const words = OPERATIONS.filter((operation) => block[operation] > 0).map((o) => `${block[o]} ${block[o] === 1 ? o : PLURALS[o]}`);
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

/** First second of the year 10000, in seconds since 1970. RFC 3339 has no dates from this year on. */
const END_OF_DATES = Date.UTC(10_000, 0) / 1000;

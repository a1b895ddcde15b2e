/**
 * Assembles lists from saved responses. The pages of a list may be in several files, in any order, and may overlap.
 *
 * A response does not say to which list its page belongs. So the list is inferred from the group of all pages with the same block hash and
 * the same total (the number of records in the list):
 * - If a page of the group has records of several transactions, the whole group belongs to the block's list.
 * - If each page has records of a single transaction, the group belongs to lists of transactions, provided that these lists are complete,
 *   or that the group has only one transaction. Otherwise the group belongs to the block's list.
 *
 * A list with fewer records than its total is rejected.
 */
import { joinedText, type Store, text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { canonicalSelect, RECORDS, type Records, SERVED_COLUMNS } from './canonicalRecordSql.ts';
import { namesTable, Report } from './inputFindings.ts';
import type { RawSource } from './rawSource.ts';

/** Creates `saved_lists`: the records of `saved` with their lists. A list is a tx id, or empty for the list of a block. */
const LISTS = `CREATE OR REPLACE TEMP TABLE saved_lists AS
  WITH pages AS (
    SELECT source, page, total, any_value(block_hash) AS block_hash, count(DISTINCT tx_id) AS txs, min(tx_id) AS tx_id FROM saved GROUP BY ALL),
  alone AS (
    SELECT p.block_hash, p.total, p.tx_id, count(DISTINCT s.position) = p.total AS complete
    FROM pages p JOIN saved s USING (source, page) WHERE p.txs = 1 GROUP BY p.block_hash, p.total, p.tx_id),
  groups AS (
    SELECT p.block_hash, p.total, bool_and(p.txs = 1) AND (count(DISTINCT p.tx_id) = 1
      OR (SELECT bool_and(complete) FROM alone a WHERE a.block_hash = p.block_hash AND a.total = p.total)) AS by_tx
    FROM pages p GROUP BY p.block_hash, p.total)
  SELECT s.*, CASE WHEN g.by_tx THEN s.tx_id ELSE '' END AS list, md5(${joinedText(SERVED_COLUMNS)}) AS digest
  FROM saved s JOIN groups g USING (block_hash, total)`;

const NAME = `CASE WHEN list = '' THEN 'block ' || any_value(block_height) ELSE 'transaction ' || list END`;

/** SQL of contradictions (`Report.addFound`), and the words that follow their number. */
type Check = readonly [found: string, summary: string];

const ONE_BLOCK: Check = [
  `SELECT [source, page] AS place, file || ': a saved response has records of several blocks, but responses of this API have records of one' AS line
   FROM saved JOIN saved_files USING (source) GROUP BY source, file, page HAVING count(DISTINCT block_hash) > 1`,
  'saved response(s) have records of several blocks',
];

const COMPLETE: Check = [
  `SELECT [height] AS place, file || CASE WHEN different > held THEN ': two saved responses of ' || name || ' have different records at the same offset'
     ELSE ': the saved responses of ' || name || ' have ' || held || ' of its ' || total || ' records; save every page (offset 0 to ' || total - 1 || ')' END AS line
   FROM (SELECT total, list, ${NAME} AS name, any_value(block_height) AS height, min(source) AS source, count(DISTINCT position) AS held,
       count(DISTINCT (position, digest)) AS different, max(position) AS last FROM saved_lists GROUP BY block_hash, total, list)
     JOIN saved_files USING (source) WHERE held <> total OR different <> held OR last >= total`,
  'list(s) of saved responses are incomplete',
];

const EQUAL: Check = [
  `SELECT [0, any_value(block_height)] AS place, ${NAME} || ': saved responses give the totals '
     || array_to_string(list_sort(list(DISTINCT total)), ' and ') || '; is one of them filtered by operation_type?' AS line
   FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT total) > 1
   UNION ALL SELECT [1, height], 'transaction ' || tx_id || ': its saved responses have ' || alone || ' records, but the responses of block '
     || height || ' have ' || in_block || ' of them'
   FROM (SELECT tx_id, any_value(block_height) AS height, count(DISTINCT position) FILTER (list = '') AS in_block,
       count(DISTINCT position) FILTER (list <> '') AS alone
     FROM saved_lists SEMI JOIN (FROM saved_lists WHERE list = '') USING (block_hash) GROUP BY block_hash, tx_id)
   WHERE alone > 0 AND in_block <> alone`,
  'list(s) of saved responses contradict each other',
];

/** SQL of a notice about lists whose records all have the same operation. A response does not say whether it was filtered by operation. */
const FILTERED = `SELECT 'the saved responses of ' || name || ' (' || file || ')'
    || CASE WHEN lists > 1 THEN ' and of ' || lists - 1 || ' more list(s)' ELSE '' END
    || ' have records of one operation only (' || operation || '); if they were saved with operation_type, records are missing' AS line
  FROM (SELECT ${NAME} AS name, list, any_value(block_height) AS height, any_value(operation) AS operation, min(source) AS source, count(*) OVER () AS lists
    FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT operation) = 1) JOIN saved_files USING (source) ORDER BY height, list LIMIT 1`;

/** Returns the records of affected blocks, and notices. Throws an InputError for incomplete or contradictory lists. */
export async function assembleSavedResponses(
  sources: readonly RawSource[],
  affected: TableWith<'block_height'>,
  store: Store,
): Promise<{ readonly records: Records; readonly notices: readonly string[] }> {
  const check = async ([found, summary]: Check) => {
    const report = new Report();
    await report.addFound(found, store);
    report.throwIfAny((count) => `${count} ${summary}`);
  };
  const names = sources.flatMap(({ members }) => members.map(({ id, file }) => [id, file.name] as const));
  await store.run(`CREATE OR REPLACE TEMP VIEW saved_files AS SELECT source, name AS file FROM ${await namesTable(names, store)}`);
  const place = ['page', 'page_total::BIGINT AS total', 'page_offset::BIGINT + item - 1 AS position'];
  const all = sources.map((source) => canonicalSelect(source, place)).join(' UNION ALL ');
  // Some pages of other blocks may be in files that were not read, so their lists would look incomplete.
  await store.run(
    `CREATE OR REPLACE TEMP TABLE saved AS SELECT * FROM (${all}) WHERE block_height IN (SELECT block_height FROM ${affected})`,
  );
  await check(ONE_BLOCK);
  await store.run(LISTS);
  await check(COMPLETE);
  await check(EQUAL);
  // If a block's own list was saved, skips the lists of its transactions, whose records the block's list also has.
  const records = await store.table(
    'canonical',
    RECORDS,
    `SELECT min(source) OVER (PARTITION BY block_hash) AS source, ${SERVED_COLUMNS.join(', ')}, NULL::BIGINT AS event_index, -position AS ord
    FROM (SELECT *, row_number() OVER (PARTITION BY block_hash, list, position ORDER BY source, page) AS copy,
                 min(list) OVER (PARTITION BY block_hash) AS widest FROM saved_lists)
    WHERE copy = 1 AND (list = '' OR widest <> '')`,
  );
  const copies = await store.number(`SELECT (SELECT count(*) FROM saved) - (SELECT count(*) FROM ${records}) AS number`);
  const copied = copies === 0 ? [] : [`${copies} record(s) are in several saved responses; one copy of each is used`];
  const filtered = await store.rows(FILTERED, { line: text });
  const notices = [...copied, ...filtered.map(({ line }) => line)];
  await store.run(`DROP TABLE saved; DROP TABLE saved_lists; DROP VIEW saved_files`);
  return { records, notices };
}

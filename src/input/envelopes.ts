/**
 * Puts saved responses together: the pages of one list may lie in several files, in any order, and overlap.
 *
 * A response does not say what was asked, so that is worked out: a page with records of several transactions is of a block's list; pages
 * with one transaction each are of transactions' lists when every such list is complete by itself, and else of a block's. A list whose
 * pages do not cover its total is refused: a mirror that answers with a part would be wrong.
 */
import { joinedText, type Store, toNumber, toText } from '../store/duckdb.ts';
import { Report } from './report.ts';
import { CANONICAL_COLUMNS, canonicalSelect, type RawSource } from './sources.ts';

const RECORD = CANONICAL_COLUMNS.filter((c) => !['source', 'event_index', 'ord'].includes(c))
  .map((c) => `"${c}"`)
  .join(', ');

/** Makes the table `relation` of canonical records from all saved responses. Returns notices. */
export async function assembleEnvelopes(sources: readonly RawSource[], relation: string, store: Store): Promise<string[]> {
  const names = new Map(sources.flatMap((source) => source.members.map(({ id, file }) => [id, file.name] as const)));
  const place = ['page', 'page_total::BIGINT AS total', 'page_offset::BIGINT + item - 1 AS position'];
  const all = sources.map((source) => canonicalSelect(source, place)).join(' UNION ALL ');
  // Of unchanged files that were read for one block, the other blocks' pages may lie in files that were not read.
  await store.run(`CREATE TEMP TABLE saved AS SELECT * FROM (${all}) WHERE block_height IN (SELECT block_height FROM affected)`);
  const report = new Report();
  for (const row of await store.rows(
    `SELECT source, page FROM saved GROUP BY source, page HAVING count(DISTINCT block_hash) > 1 ORDER BY ALL`,
  )) {
    report.add([
      `${names.get(toNumber(row['source']))}: a saved response holds records of several blocks, which no response of this API does`,
    ]);
  }
  report.throwIfAny((count) => `${count} saved response(s) are not of one block or transaction`);

  await store.run(`CREATE TEMP TABLE saved_pages AS
    SELECT source, page, total, any_value(block_hash) AS block_hash, count(DISTINCT tx_id) AS txs, min(tx_id) AS tx_id FROM saved GROUP BY ALL`);
  await store.run(`CREATE TEMP TABLE saved_groups AS
    WITH alone AS (
      SELECT p.block_hash, p.total, p.tx_id, count(DISTINCT s.position) = p.total AS complete
      FROM saved_pages p JOIN saved s USING (source, page) WHERE p.txs = 1 GROUP BY p.block_hash, p.total, p.tx_id)
    SELECT p.block_hash, p.total,
      bool_and(p.txs = 1) AND (count(DISTINCT p.tx_id) = 1
        OR (SELECT bool_and(complete) FROM alone a WHERE a.block_hash = p.block_hash AND a.total = p.total)) AS by_tx
    FROM saved_pages p GROUP BY p.block_hash, p.total`);
  await store.run(`CREATE TEMP TABLE saved_lists AS
    SELECT s.*, CASE WHEN g.by_tx THEN s.tx_id ELSE '' END AS list,
      md5(${joinedText(RECORD.split(', '))}) AS digest
    FROM saved s JOIN saved_groups g USING (block_hash, total)`);

  const lists = await store.rows(
    `SELECT block_hash, total, list, any_value(block_height) AS height, min(source) AS source, count(DISTINCT position) AS held,
       count(DISTINCT (position, digest)) AS different, min(position) AS first, max(position) AS last
     FROM saved_lists GROUP BY block_hash, total, list
     HAVING held <> total OR different <> held OR last >= total ORDER BY height, list`,
  );
  for (const row of lists) {
    const what = toText(row['list']) === '' ? `block ${toNumber(row['height'])}` : `transaction ${toText(row['list'])}`;
    const [held, total] = [toNumber(row['held']), toNumber(row['total'])];
    const file = names.get(toNumber(row['source']));
    if (toNumber(row['different']) > held)
      report.add([`${file}: two saved responses of ${what} hold different records at the same offset`]);
    else
      report.add([
        `${file}: the saved responses of ${what} hold ${held} of its ${total} records; save every page (offset 0 to ${total - 1})`,
      ]);
  }
  report.throwIfAny((count) => `${count} list(s) of saved responses are not whole`);

  for (const row of await store.rows(
    `SELECT list, any_value(block_height) AS height, array_to_string(list_sort(list(DISTINCT total)), ' and ') AS totals
     FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT total) > 1 ORDER BY height, list`,
  )) {
    const what = toText(row['list']) === '' ? `block ${toNumber(row['height'])}` : `transaction ${toText(row['list'])}`;
    report.add([`${what}: saved responses give the totals ${toText(row['totals'])}; is one of them filtered by operation_type?`]);
  }
  for (const row of await store.rows(
    `SELECT tx_id, any_value(block_height) AS height, count(DISTINCT position) FILTER (list = '') AS in_block, count(DISTINCT position) FILTER (list <> '') AS alone
     FROM saved_lists WHERE block_hash IN (SELECT block_hash FROM saved_lists WHERE list = '')
     GROUP BY block_hash, tx_id HAVING alone > 0 AND in_block <> alone ORDER BY height, tx_id`,
  )) {
    report.add([
      `transaction ${toText(row['tx_id'])}: its saved responses hold ${toNumber(row['alone'])} records, those of block ${toNumber(row['height'])} hold ${toNumber(row['in_block'])} of it`,
    ]);
  }
  report.throwIfAny((count) => `${count} list(s) of saved responses disagree`);

  // A block's own list holds all that its transactions' lists hold.
  await store.run(`CREATE TEMP TABLE ${relation} AS
    SELECT min(source) OVER (PARTITION BY block_hash) AS source, ${RECORD}, NULL::BIGINT AS event_index, -position AS ord
    FROM (SELECT *, row_number() OVER (PARTITION BY block_hash, list, position ORDER BY source, page) AS copy,
                 min(list) OVER (PARTITION BY block_hash) AS widest FROM saved_lists)
    WHERE copy = 1 AND (list = '' OR widest <> '')`);
  const { copies } = await store.row(`SELECT (SELECT count(*) FROM saved) - (SELECT count(*) FROM ${relation}) AS copies`);
  const copied = copies === 0n ? [] : [`${toNumber(copies)} record(s) are in several saved responses; one copy of each was taken`];
  const notices = [...copied, ...(await noticeFiltered(names, store))];
  for (const table of ['saved', 'saved_pages', 'saved_groups', 'saved_lists']) await store.run(`DROP TABLE ${table}`);
  return notices;
}

/** A response does not say whether it was filtered by operation: lists of one operation are named, since others of the list may be missing. */
async function noticeFiltered(names: ReadonlyMap<number, string>, store: Store): Promise<string[]> {
  const [first, ...others] = await store.rows(
    `SELECT list, any_value(block_height) AS height, any_value(operation) AS operation, count(DISTINCT position) AS records, min(source) AS source
     FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT operation) = 1 ORDER BY height, list`,
  );
  if (first === undefined) return [];
  const what = toText(first['list']) === '' ? `block ${toNumber(first['height'])}` : `transaction ${toText(first['list'])}`;
  const more = others.length === 0 ? '' : ` and of ${others.length} more list(s)`;
  return [
    `the saved responses of ${what} (${names.get(toNumber(first['source']))})${more} hold records of one operation only (${toText(first['operation'])}); if they were saved with operation_type, records are missing`,
  ];
}

/**
 * Assembles lists from saved responses. The pages of a list may be in several files, in any order, and may overlap.
 *
 * A response does not say to which list its page belongs. So the list is inferred from the group of all pages with the
 * same block hash and the same total (the number of records in the list):
 * - If a page of the group has records of several transactions, the whole group belongs to the block's list.
 * - If each page has records of a single transaction, the group belongs to lists of transactions, provided that these
 *   lists are complete, or that the group has only one transaction. Otherwise the group belongs to the block's list.
 *
 * A list with fewer records than its total is rejected.
 */
import { int, joinedText, type Store, text } from '../duckdb/store.ts';
import type { TableWith } from '../duckdb/table.ts';
import { canonicalSelect, RECORDS, type Records, SERVED_COLUMNS } from './canonicalRecordSql.ts';
import { Report } from './inputFindings.ts';
import type { RawSource } from './rawSource.ts';

/**
 * Returns the records of affected blocks, and notices about repeated or possibly missing records. Throws an InputError
 * for incomplete or contradictory lists.
 */
export async function assembleSavedResponses(
  sources: readonly RawSource[],
  affected: TableWith<'block_height'>,
  store: Store,
): Promise<{ readonly records: Records; readonly notices: readonly string[] }> {
  const names = new Map(sources.flatMap((source) => source.members.map(({ id, file }) => [id, file.name] as const)));
  const place = ['page', 'page_total::BIGINT AS total', 'page_offset::BIGINT + item - 1 AS position'];
  const all = sources.map((source) => canonicalSelect(source, place)).join(' UNION ALL ');
  // Skips blocks that are not affected. Some of their pages may be in files that were not read, so their lists would
  // look incomplete.
  await store.run(
    `CREATE OR REPLACE TEMP TABLE saved AS SELECT * FROM (${all}) WHERE block_height IN (SELECT block_height FROM ${affected})`,
  );
  const report = new Report();
  for (const row of await store.rows(
    `SELECT source, page FROM saved GROUP BY source, page HAVING count(DISTINCT block_hash) > 1 ORDER BY ALL`,
    { source: int },
  )) {
    report.add([`${names.get(row.source)}: a saved response has records of several blocks, but responses of this API have records of one`]);
  }
  report.throwIfAny((count) => `${count} saved response(s) have records of several blocks`);

  await store.run(`CREATE OR REPLACE TEMP TABLE saved_pages AS
    SELECT source, page, total, any_value(block_hash) AS block_hash, count(DISTINCT tx_id) AS txs, min(tx_id) AS tx_id FROM saved GROUP BY ALL`);
  await store.run(`CREATE OR REPLACE TEMP TABLE saved_groups AS
    WITH alone AS (
      SELECT p.block_hash, p.total, p.tx_id, count(DISTINCT s.position) = p.total AS complete
      FROM saved_pages p JOIN saved s USING (source, page) WHERE p.txs = 1 GROUP BY p.block_hash, p.total, p.tx_id)
    SELECT p.block_hash, p.total,
      bool_and(p.txs = 1) AND (count(DISTINCT p.tx_id) = 1
        OR (SELECT bool_and(complete) FROM alone a WHERE a.block_hash = p.block_hash AND a.total = p.total)) AS by_tx
    FROM saved_pages p GROUP BY p.block_hash, p.total`);
  await store.run(`CREATE OR REPLACE TEMP TABLE saved_lists AS
    SELECT s.*, CASE WHEN g.by_tx THEN s.tx_id ELSE '' END AS list,
      md5(${joinedText(SERVED_COLUMNS)}) AS digest
    FROM saved s JOIN saved_groups g USING (block_hash, total)`);

  const lists = await store.rows(
    `SELECT block_hash, total, list, any_value(block_height) AS height, min(source) AS source, count(DISTINCT position) AS held,
       count(DISTINCT (position, digest)) AS different, min(position) AS first, max(position) AS last
     FROM saved_lists GROUP BY block_hash, total, list
     HAVING held <> total OR different <> held OR last >= total ORDER BY height, list`,
    { list: text, height: int, source: int, held: int, different: int, total: int },
  );
  for (const row of lists) {
    const { held, total } = row;
    const [file, list] = [names.get(row.source), describeList(row)];
    if (row.different > held) report.add([`${file}: two saved responses of ${list} have different records at the same offset`]);
    else
      report.add([
        `${file}: the saved responses of ${list} have ${held} of its ${total} records; save every page (offset 0 to ${total - 1})`,
      ]);
  }
  report.throwIfAny((count) => `${count} list(s) of saved responses are incomplete`);

  for (const row of await store.rows(
    `SELECT list, any_value(block_height) AS height, array_to_string(list_sort(list(DISTINCT total)), ' and ') AS totals
     FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT total) > 1 ORDER BY height, list`,
    { list: text, height: int, totals: text },
  )) {
    report.add([`${describeList(row)}: saved responses give the totals ${row.totals}; is one of them filtered by operation_type?`]);
  }
  for (const row of await store.rows(
    `SELECT tx_id, any_value(block_height) AS height, count(DISTINCT position) FILTER (list = '') AS in_block, count(DISTINCT position) FILTER (list <> '') AS alone
     FROM saved_lists WHERE block_hash IN (SELECT block_hash FROM saved_lists WHERE list = '')
     GROUP BY block_hash, tx_id HAVING alone > 0 AND in_block <> alone ORDER BY height, tx_id`,
    { tx_id: text, height: int, in_block: int, alone: int },
  )) {
    report.add([
      `transaction ${row.tx_id}: its saved responses have ${row.alone} records, but the responses of block ${row.height} have ${row.in_block} of them`,
    ]);
  }
  report.throwIfAny((count) => `${count} list(s) of saved responses contradict each other`);

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
  const notices = [...copied, ...(await noticeFiltered(names, store))];
  for (const table of ['saved', 'saved_pages', 'saved_groups', 'saved_lists']) await store.run(`DROP TABLE ${table}`);
  return { records, notices };
}

const describeList = ({ list, height }: { readonly list: string; readonly height: number }): string =>
  list === '' ? `block ${height}` : `transaction ${list}`;

/**
 * Returns a notice about lists whose records all have the same operation. A response does not say whether it was
 * filtered by operation, so other records may be missing.
 */
async function noticeFiltered(names: ReadonlyMap<number, string>, store: Store): Promise<string[]> {
  const [first, ...others] = await store.rows(
    `SELECT list, any_value(block_height) AS height, any_value(operation) AS operation, count(DISTINCT position) AS records, min(source) AS source
     FROM saved_lists GROUP BY block_hash, list HAVING count(DISTINCT operation) = 1 ORDER BY height, list`,
    { list: text, height: int, operation: text, source: int },
  );
  if (first === undefined) return [];
  const more = others.length === 0 ? '' : ` and of ${others.length} more list(s)`;
  return [
    `the saved responses of ${describeList(first)} (${names.get(first.source)})${more} have records of one operation only (${first.operation}); if they were saved with operation_type, records are missing`,
  ];
}

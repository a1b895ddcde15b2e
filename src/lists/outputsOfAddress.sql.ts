/** Writes the lists of unspent outputs by address (lists/unspentOutputs.ts), level by level, the lowest first. */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { GrowingTable } from '../duckdb/growingTable.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { rowParts, sortedRows } from '../duckdb/sortedRows.ts';
import type { Store } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { documentStart, type LevelForm, padded, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import { documentsOf } from '../engine/archive/storedArchive.ts';
import type { DocumentLevel, LevelRange } from '../format/levels.ts';
import { countCrossing } from '../limits.ts';
import { ABOVE_HEIGHTS, SPENT } from './unspentOutputs.ts';

export interface AddressForm extends LevelForm<`outputs.${'addresses' | 'starts'}`> {
  /** Levels of outputs by outpoint that this build keeps from the last build. */
  readonly known: readonly DocumentLevel[];
  readonly ranges: readonly LevelRange[];
  /** View of the runes that outputs received (output, block_height), even if the outputs are now spent. */
  readonly received: string;
  /** A number that is at least that of the outputs of all levels that are not kept. */
  readonly bound: number;
}

/** SQL expression of the sort key of `output` (lists/unspentOutputs.ts): by descending height, then by txid, then by vout. */
const SORT = `lpad((${ABOVE_HEIGHTS} - height)::VARCHAR, 8, '0') || split_part("output", ':', 1) || lpad(split_part("output", ':', 2), 10, '0')`;

/** Begins to write levels. */
export const beginAddresses = (store: Store): Promise<void> =>
  store.run('CREATE OR REPLACE TEMP TABLE list_pages (first BIGINT, key VARCHAR, page BIGINT, start VARCHAR)');

/** Outputs of a level that have an address. */
interface LevelOutputs {
  /** Outputs that the level makes and does not spend. */
  readonly made: GrowingTable<typeof MADE>;
  /** Outputs of lower levels that the level spends. */
  readonly spent: GrowingTable<typeof REMOVED>;
}
const MADE = columns('key VARCHAR, sort VARCHAR, text VARCHAR');
const REMOVED = columns('key VARCHAR, output VARCHAR');

/** Begins a level, whose outputs `addOutputs` then adds. */
export const beginLevel = async (store: Store): Promise<LevelOutputs> => ({
  made: await GrowingTable.create('made_outputs', MADE, store),
  spent: await GrowingTable.create('spent_below', REMOVED, store),
});

/** Adds outputs to a level, from tables of the outputs that it makes, and of those of lower levels that it spends. */
export async function addOutputs({ made, spent }: LevelOutputs, from: { readonly made: string; readonly spent: string }): Promise<void> {
  await made.add(`SELECT url_encode(address) AS key, ${SORT} AS sort,
    '["' || "output" || '",' || place || ',' || replace(runes, chr(9), ',') || ']' AS text FROM ${from.made} WHERE address IS NOT NULL`);
  await spent.add(`SELECT url_encode(address) AS key, "output" FROM ${from.spent} WHERE address IS NOT NULL`);
}

/** Inserts the pages of a kept level into `list_pages`. */
export async function keepStarts(level: DocumentLevel, { old, limits }: AddressForm, store: Store): Promise<void> {
  const pages = function* () {
    for (const { key, values } of old === undefined ? [] : documentsOf(old, level)) {
      const [list = '', number] = key.split(' ');
      for (const [i, start] of values.entries()) yield [list, Number(number) * limits.listPage + i, start];
    }
  };
  const kept = await store.append('kept_pages', columns('key VARCHAR, page BIGINT, start VARCHAR'), pages());
  await store.run(`INSERT INTO list_pages SELECT ${level.first}, * FROM ${kept}; DROP TABLE ${kept}`);
}

/** Bytes of memory that DuckDB needs to sort a row of a list. */
const LIST_BYTES = 1024;

/** Places of rows in the documents of an address: head and removed outputs, which have no place of their own. */
const [HEAD_PLACE, REMOVED_PLACE] = [`' '`, `'~' || text`];

/** Sorts after the number of each page: a page has its index plus 1, and an index has at most 8 digits. */
const MOST_PAGES = 1e8;

/** Writes a level from the outputs that `addOutputs` added, and drops them. */
export async function writeAddresses(range: LevelRange, outputs: LevelOutputs, form: AddressForm, store: Store) {
  const { open, limits, bound } = form;
  const { listPage: page } = limits;
  await placeRemoved(range, outputs.spent, form, store);
  const addresses = open('outputs.addresses', range);
  const all = {
    rows: `SELECT *, false AS is_removed, NULL::BIGINT AS first, NULL::BIGINT AS page FROM ${outputs.made}
      UNION ALL BY NAME SELECT key, "output" AS text, true AS is_removed, first, page FROM level_removed`,
    ...{ bound, key: 'key', rowBytes: LIST_BYTES },
  };
  let pages = 0;
  for await (const part of rowParts(all, limits, store)) {
    // Rows are inserted in the order of the list, so the rowid of a row gives its position.
    pages += await store.count(`CREATE OR REPLACE TEMP TABLE level_part AS ${part};
      CREATE OR REPLACE TEMP TABLE list_heads AS SELECT key, made, coalesce(removals, '') AS removals
        FROM (SELECT key, count(*) FILTER (NOT is_removed) AS made FROM level_part GROUP BY key) LEFT JOIN (${REMOVALS}) USING (key)
        WHERE made > ${page} OR removals IS NOT NULL;
      CREATE OR REPLACE TEMP TABLE long_lists AS SELECT key, sort, text FROM level_part SEMI JOIN (FROM list_heads WHERE made > ${page}) USING (key)
        WHERE NOT is_removed ORDER BY key, sort;
      CREATE OR REPLACE TEMP TABLE list_starts AS SELECT key, min(rowid) AS start FROM long_lists GROUP BY key;
      INSERT INTO list_pages SELECT ${range.first}, key, (l.rowid - start) // ${page}, sort
        FROM long_lists AS l JOIN list_starts USING (key) WHERE (l.rowid - start) % ${page} = 0`);
    await writeTexts(addresses, store.stream(`SELECT ${TEXTS} FROM (FROM (${textsOf(page)}) ORDER BY key, document, place)`));
  }
  await outputs.made.drop();
  await outputs.spent.drop();
  if (pages > 0) countCrossing('listPage');
  const starts = {
    rows: `SELECT key, page, CASE WHEN page % ${page} = 0 THEN ${documentStart(`key || ' ' || ${padded(`page // ${page}`)}`)} ELSE '' END || ${valueText('start')} AS text
      FROM list_pages WHERE first = ${range.first}`,
    ...{ most: pages, key: 'key', within: 'page', select: TEXTS },
  };
  const startsOf = open('outputs.starts', range);
  if (pages > 0) await writeTexts(startsOf, sortedRows(starts, limits, store));
  return { addresses: await addresses.finish(range), starts: await startsOf.finish(range) };
}

/** SQL that selects the removals in the head of each address (`Removals` in lists/unspentOutputs.ts) as JSON. */
const REMOVALS = `SELECT key, string_agg('[' || first || ',' || pages || ']', ',' ORDER BY first) AS removals FROM (
    SELECT key, first, string_agg(page || ',' || removed, ',' ORDER BY page) AS pages FROM (
      SELECT key, first, page, count(*) AS removed FROM level_part WHERE is_removed AND first IS NOT NULL GROUP BY ALL) GROUP BY ALL) GROUP BY key`;

/** Returns SQL that selects the texts of the documents of a part. */
function textsOf(page: number): string {
  const removal = `${padded('first')} || '.' || ${padded('page')}`;
  const placed = 'FROM level_part WHERE is_removed AND first IS NOT NULL';
  return `SELECT DISTINCT key, 0 AS document, '' AS place, ${documentStart('key')} AS text FROM level_part
    UNION ALL SELECT key, 0, ${HEAD_PLACE}, ${valueText(`'[' || made || ',[' || removals || ']]'`)} FROM list_heads
    UNION ALL SELECT key, 0, sort, ${valueText('text')} FROM level_part ANTI JOIN list_starts USING (key) WHERE NOT is_removed
    UNION ALL SELECT key, 0, ${REMOVED_PLACE}, ${valueText(`'["' || text || '"]'`)} FROM level_part WHERE is_removed AND first IS NULL
    UNION ALL SELECT key, 1 + place // ${page}, sort,
      CASE WHEN place % ${page} = 0 THEN ${documentStart(`key || ' ' || ${padded(`place // ${page}`)}`)} ELSE '' END || ${valueText('text')}
      FROM (SELECT key, sort, text, l.rowid - start AS place FROM long_lists AS l JOIN list_starts USING (key))
    UNION ALL SELECT DISTINCT key, ${MOST_PAGES}, ${removal}, ${documentStart(`key || ' ~' || ${removal}`)} ${placed}
    UNION ALL SELECT key, ${MOST_PAGES}, ${removal} || text, ${valueText('text')} ${placed}`;
}

/**
 * Creates `level_removed`, with the level and the page that each removed output is in. Finds them only for addresses that have a list with
 * pages in a lower level, or of which this level removes more outputs than a page has. Documents group the removed outputs of these
 * addresses by page. Outputs that were never made, which only wrong data has, get no level and page. The lowest level removes no outputs,
 * because no level is below it.
 */
async function placeRemoved(range: LevelRange, spent: LevelOutputs['spent'], form: AddressForm, store: Store): Promise<void> {
  const lower = form.ranges.filter(({ last }) => last < range.first);
  const keys = await store.count(`CREATE OR REPLACE TEMP TABLE level_removed AS
      SELECT key, "output", NULL::BIGINT AS first, NULL::BIGINT AS page FROM ${spent} WHERE ${lower.length > 0};
    CREATE OR REPLACE TEMP TABLE placed_keys AS SELECT DISTINCT key FROM level_removed SEMI JOIN list_pages USING (key)
      UNION SELECT key FROM level_removed GROUP BY key HAVING count(*) > ${form.limits.listPage}`);
  if (keys === 0) return;
  const sought = 'SELECT "output" FROM level_removed SEMI JOIN placed_keys USING (key)';
  await store.run(`CREATE OR REPLACE TEMP TABLE removed_heights AS
    SELECT DISTINCT "output", block_height AS height FROM ${form.received} SEMI JOIN (${sought}) USING ("output")`);
  await findHeights(
    `SELECT DISTINCT "output" FROM (${sought}) ANTI JOIN removed_heights USING ("output") ORDER BY "output"`,
    range,
    form,
    store,
  );
  const ranges = lower.map(({ first, last }) => `(${first}, ${last})`).join(', ');
  await store.run(`CREATE OR REPLACE TEMP TABLE found_pages AS
      SELECT r.key, r."output", r.first, coalesce(p.page, 0) AS page FROM (
        SELECT key, "output", l.first, ${SORT} AS sort FROM level_removed SEMI JOIN placed_keys USING (key)
        JOIN removed_heights USING ("output") JOIN (VALUES ${ranges}) AS l(first, last) ON height BETWEEN l.first AND l.last) AS r
      ASOF LEFT JOIN list_pages AS p ON p.key = r.key AND p.first = r.first AND r.sort >= p.start;
    CREATE OR REPLACE TEMP TABLE level_removed AS
      SELECT r.key, r."output", f.first, f.page
      FROM level_removed AS r LEFT JOIN found_pages AS f ON f.key = r.key AND f."output" = r."output"`);
}

/**
 * Finds outputs in the levels of the last build that are below `range`, and inserts them with their heights into `removed_heights`. `sql`
 * selects the outputs, sorted by outpoint.
 */
async function findHeights(sql: string, range: LevelRange, { old, known, scratch }: AddressForm, store: Store): Promise<void> {
  if (old === undefined) return;
  const lines = await writeLines(join(scratch, 'removed-heights.ndjson'), async (to) => {
    for await (const chunk of store.stream(sql)) {
      const outputs = chunk.getRows().map(([output]) => String(output));
      for (const level of known.filter(({ last }) => last < range.first))
        for await (const { key, values } of old.find(level, outputs)) {
          const [first = ''] = values;
          if (first !== SPENT) to.add(JSON.stringify({ output: key, height: Number.parseInt(first.slice(1), 10) }));
        }
    }
  });
  if (lines.count > 0) await store.run(`INSERT INTO removed_heights FROM ${readLines(lines, `"output": 'VARCHAR', height: 'BIGINT'`)}`);
}

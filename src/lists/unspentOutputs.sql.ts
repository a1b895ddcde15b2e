/** Writes unspent outputs (unspentOutputs.ts) from `receive` records and from lists of spent outputs, which only input from a node has. */
import { join } from 'node:path';
import { writeLines } from '../disk/lineFile.ts';
import { isWithin } from '../duckdb/blockRanges.ts';
import { GrowingTable } from '../duckdb/growingTable.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { rowParts, sortedRows } from '../duckdb/sortedRows.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columns } from '../duckdb/table.ts';
import { type BlockInput, type LevelPlan, lastLevel } from '../engine/archive/listedRecords.ts';
import { documentStart, type LevelForm, padded, TEXTS, valueText, writeTexts } from '../engine/archive/makeLevels.ts';
import { documentsOf } from '../engine/archive/storedArchive.ts';
import type { StateTables } from '../engine/state/state.ts';
import type { DocumentLevel } from '../format/levels.ts';
import type { OutputTables } from '../format/listTables.ts';
import { FORMS_OF_ROWS } from '../input/recognise.ts';
import { countCrossing } from '../limits.ts';
import { digitsOf, joinedParts, sumsOf, unitsOf } from './balanceChanges.sql.ts';
import { ABOVE_HEIGHTS, SPENT } from './unspentOutputs.ts';

/** True when the input has all spent outputs, because all its ledgers are from a node, or because no block has records. */
export async function knowsSpent(state: StateTables, store: Store): Promise<boolean> {
  const { others, nodes, blocks } = await store.row(
    `SELECT (SELECT count(*) FROM ${state.blocks}) AS blocks, count(*) FILTER (form = 'ledger' OR form NOT IN (${FORMS_OF_ROWS.map(literal).join(', ')})) AS others, count(*) FILTER (form = 'node-ledger') AS nodes
     FROM ${state.files}`,
    { others: int, nodes: int, blocks: int },
  );
  return (nodes > 0 || blocks === 0) && others === 0;
}

const KINDS = ['outputs', 'addresses', 'starts'] as const;
type OutputKind = (typeof KINDS)[number];

interface OutputForm extends LevelForm<`outputs.${OutputKind}`> {
  /** The blocks of all levels that are not kept. */
  readonly read: BlockInput;
}

/** SQL expression of the sort key of `output` in the list of its address: by descending height, then by txid, then by vout. */
const SORT = `lpad((${ABOVE_HEIGHTS} - height)::VARCHAR, 8, '0') || split_part("output", ':', 1) || lpad(split_part("output", ':', 2), 10, '0')`;

/** Columns of the outputs with an address that a level makes and does not spend, and of those of lower levels that it spends. */
const [MADE, REMOVED] = [columns('key VARCHAR, sort VARCHAR, text VARCHAR'), columns('key VARCHAR, output VARCHAR')];

/** Writes the levels (format/levels.ts) that changed since the last build, the lowest first. Returns all levels. */
export async function writeOutputs(plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<OutputTables> {
  const { limits, open, state, read } = form;
  const before = form.old?.root.lists?.outputs;
  // The runes that outputs received, even if the outputs are now spent.
  await store.run(`CREATE OR REPLACE TEMP VIEW received AS
      SELECT block_height, tx_id || ':' || vout AS "output", tx_index, "timestamp", address, rune_id, amount
      FROM ${read.kept} WHERE operation = 'receive' AND vout IS NOT NULL;
    CREATE OR REPLACE TEMP TABLE list_pages (first BIGINT, key VARCHAR, page BIGINT, start VARCHAR)`);
  const bound = read.records + (await store.number(`SELECT count(*) AS number FROM ${read.spent}`));
  const levels: Record<OutputKind, DocumentLevel[]> = { outputs: [], addresses: [], starts: [] };
  for (const plan of plans) {
    const kept = (kind: OutputKind) => lastLevel(plan, before?.[kind]);
    let level: Record<OutputKind, DocumentLevel | undefined>;
    if (plan.isKept) {
      level = { outputs: kept('outputs'), addresses: kept('addresses'), starts: kept('starts') };
      if (level.starts !== undefined) await keepStarts(level.starts, form, store);
    } else {
      const outputs = open('outputs.outputs', plan);
      const made = await GrowingTable.create('made_outputs', MADE, store);
      const spent = await GrowingTable.create('spent_below', REMOVED, store);
      const rows = `SELECT false AS is_spent, * FROM received WHERE ${isWithin(plan)}
        UNION ALL BY NAME SELECT true AS is_spent, "output", address FROM ${read.spent} WHERE ${isWithin(plan)}`;
      for await (const part of rowParts({ rows, bound, key: '"output"', rowBytes: OUTPUT_BYTES }, limits, store)) {
        await selectOutputs(part, state, store);
        await writeTexts(outputs, store.stream(`SELECT ${TEXTS} FROM (${OUTPUT_TEXTS})`));
        await made.add(`SELECT url_encode(address) AS key, ${SORT} AS sort,
          '["' || "output" || '",' || place || ',' || replace(runes, chr(9), ',') || ']' AS text FROM part_made WHERE address IS NOT NULL`);
        await spent.add('SELECT url_encode(address) AS key, "output" FROM part_spent WHERE address IS NOT NULL');
      }
      await placeRemoved(plan, `${spent}`, plans, form, store);
      await spent.drop();
      level = { outputs: await outputs.finish(plan), ...(await writeAddresses(plan, made, bound, form, store)) };
    }
    for (const kind of KINDS) if (level[kind] !== undefined) levels[kind].push(level[kind]);
  }
  const { hash } = await store.row(`SELECT block_hash AS hash FROM ${state.tip}`, { hash: text });
  return { tipHash: hash, ...levels };
}

/** Bytes of memory that DuckDB needs for a row of an output and a rune. */
const OUTPUT_BYTES = 800;

/** SQL expression of the JSON of an output's rune, with the balance in smallest units. */
const RUNE = `left(to_json([to_json(id), to_json(number), to_json(name), to_json(spaced_name), to_json(divisibility)])::VARCHAR, -1)
  || ',"' || ${digitsOf('upper', 'lower')} || '"]'`;

/**
 * Creates two tables from some outputs of a level, which `part` selects. `part_made`: those that the level makes and does not spend, with
 * their places and runes as JSON. `part_spent`: those of lower levels that it spends.
 */
export async function selectOutputs(part: string, { blocks, runes }: Pick<StateTables, 'blocks' | 'runes'>, store: Store): Promise<void> {
  const [made, spent] = ['(FROM level_outputs WHERE NOT is_spent)', '(FROM level_outputs WHERE is_spent)'];
  // Adds up rows of the same rune.
  const units = `SELECT "output", min(address) AS address, min(block_height) AS height, min(tx_index) AS tx_index, min("timestamp") AS "timestamp",
      id, number, min(name) AS name, min(spaced_name) AS spaced_name, min(divisibility) AS divisibility, ${sumsOf(unitsOf('amount', 'divisibility'), '1')}
    FROM (FROM ${made} ANTI JOIN ${spent} USING ("output")) JOIN (SELECT id, number, name, spaced_name, divisibility FROM ${runes}) ON id = rune_id
    GROUP BY "output", id, number`;
  await store.run(`CREATE OR REPLACE TEMP TABLE level_outputs AS ${part};
    CREATE OR REPLACE TEMP TABLE part_made AS
      SELECT "output", address, height, height || ',"' || block_hash || '",' || tx_index || ',' || "timestamp" AS place, runes
      FROM (SELECT "output", min(address) AS address, min(height) AS height, min(tx_index) AS tx_index, min("timestamp") AS "timestamp",
          string_agg(${RUNE}, chr(9) ORDER BY number, id) AS runes
        FROM (SELECT * EXCLUDE (upper, lower), ${joinedParts('upper', 'lower')} FROM (${units})) GROUP BY "output")
      JOIN (SELECT block_height AS height, block_hash FROM ${blocks}) USING (height);
    CREATE OR REPLACE TEMP TABLE part_spent AS SELECT DISTINCT "output", address FROM ${spent} ANTI JOIN ${made} USING ("output")`);
}

/** SQL that selects the documents of `part_made` and `part_spent`, sorted. */
const OUTPUT_TEXTS = `FROM (
    SELECT "output", ${documentStart('"output"')} || ${valueText(`'[' || place || ',' || coalesce(to_json(address)::VARCHAR, 'null') || ']'`)} || ${valueText('runes')} AS text FROM part_made
    UNION ALL SELECT "output", ${documentStart('"output"')} || ${valueText(`'${SPENT}'`)} FROM part_spent) ORDER BY "output"`;

/** Inserts the pages of a kept level into `list_pages`. */
async function keepStarts(level: DocumentLevel, { old, limits }: OutputForm, store: Store): Promise<void> {
  const pages = function* () {
    for (const { key, values } of old === undefined ? [] : documentsOf(old, level)) {
      const [list = '', number] = key.split(' ');
      for (const [i, start] of values.entries()) yield [list, Number(number) * limits.listPage + i, start];
    }
  };
  const kept = await store.append('kept_pages', columns('key VARCHAR, page BIGINT, start VARCHAR'), pages());
  await store.run(`INSERT INTO list_pages SELECT ${level.first}, * FROM ${kept}; DROP TABLE ${kept}`);
}

/** Places of rows in the documents of an address: head and removed outputs, which have no place of their own. */
const [HEAD_PLACE, REMOVED_PLACE] = [`' '`, `'~' || text`];

/** Sorts after the number of each page: a page has its index plus 1, and an index has at most 8 digits. */
const MOST_PAGES = 1e8;

/** Writes a level of outputs by address from `made`, which it drops, and `level_removed`. Together, they have at most `bound` rows. */
async function writeAddresses(
  range: LevelPlan,
  made: GrowingTable<typeof MADE>,
  bound: number,
  { open, limits }: OutputForm,
  store: Store,
) {
  const { listPage: page } = limits;
  const addresses = open('outputs.addresses', range);
  const all = {
    rows: `SELECT *, false AS is_removed, NULL::BIGINT AS first, NULL::BIGINT AS page FROM ${made}
      UNION ALL BY NAME SELECT key, "output" AS text, true AS is_removed, first, page FROM level_removed`,
    bound,
    key: 'key',
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
  await made.drop();
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

/** SQL that selects the removals in the head of each address (`Removals` in unspentOutputs.ts) as JSON. */
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
 * pages in a lower level, or of which this level removes more outputs than a page has, because documents group these by page. Outputs that
 * were never made, which only wrong data has, get none. The lowest level removes no outputs.
 */
async function placeRemoved(range: LevelPlan, spent: string, plans: readonly LevelPlan[], form: OutputForm, store: Store): Promise<void> {
  const lower = plans.filter(({ last }) => last < range.first);
  const keys = await store.count(`CREATE OR REPLACE TEMP TABLE level_removed AS
      SELECT key, "output", NULL::BIGINT AS first, NULL::BIGINT AS page FROM ${spent} WHERE ${lower.length > 0};
    CREATE OR REPLACE TEMP TABLE placed_keys AS SELECT DISTINCT key FROM level_removed SEMI JOIN list_pages USING (key)
      UNION SELECT key FROM level_removed GROUP BY key HAVING count(*) > ${form.limits.listPage}`);
  if (keys === 0) return;
  const sought = 'SELECT "output" FROM level_removed SEMI JOIN placed_keys USING (key)';
  await store.run(`CREATE OR REPLACE TEMP TABLE removed_heights AS
    SELECT DISTINCT "output", block_height AS height FROM received SEMI JOIN (${sought}) USING ("output")`);
  const others = `SELECT DISTINCT "output" FROM (${sought}) ANTI JOIN removed_heights USING ("output") ORDER BY "output"`;
  await findHeights(others, lower, form, store);
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
 * Finds outputs in the levels of `lower` that this build keeps, and inserts them with their heights into `removed_heights`. `sql` selects
 * the outputs, sorted by outpoint.
 */
async function findHeights(sql: string, lower: readonly LevelPlan[], { old, scratch }: OutputForm, store: Store): Promise<void> {
  const levels = lower.flatMap((plan) => (plan.isKept ? (lastLevel(plan, old?.root.lists?.outputs?.outputs) ?? []) : []));
  if (old === undefined || levels.length === 0) return;
  const lines = await writeLines(join(scratch, 'removed-heights.ndjson'), async (to) => {
    for await (const chunk of store.stream(sql)) {
      const outputs = chunk.getRows().map(([output]) => String(output));
      for (const level of levels)
        for await (const { key, values } of old.find(level, outputs)) {
          const [first = ''] = values;
          if (first !== SPENT) to.add(JSON.stringify({ output: key, height: Number.parseInt(first.slice(1), 10) }));
        }
    }
  });
  if (lines.count > 0) await store.run(`INSERT INTO removed_heights FROM ${readLines(lines, `"output": 'VARCHAR', height: 'BIGINT'`)}`);
}

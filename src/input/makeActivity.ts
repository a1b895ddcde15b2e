/** Converts raw sources to canonical records: one row per record, with the same columns for every form of input. */
import { join } from 'node:path';
import { LEDGER_FIELDS, NODE_LEDGER_FIELDS } from '../contract/fields.ts';
import { type BlockRange, blockRanges } from '../duckdb/blockRanges.ts';
import { readRows } from '../duckdb/readFilesSql.ts';
import { int, MOST_PARTS, type Store } from '../duckdb/store.ts';
import { type ColumnTypes, columns, columnsOf, type Table, type TableWith } from '../duckdb/table.ts';
import { exceeds } from '../limits.ts';
import { canonicalCell, canonicalSelect, isInRange, RECORDS, type Records } from './canonicalRecordSql.ts';
import { HELD, type InputReader } from './inputReader.ts';
import { ledgerSelect } from './joinRunes.ts';
import type { RawSource, Reading, Runes } from './rawSource.ts';
import { FORMS_OF_ROWS, isLedger } from './recognise.ts';
import { assembleSavedResponses } from './savedResponses.ts';

const unionOf = (types: ColumnTypes, queries: readonly string[]): string =>
  queries.length > 0
    ? queries.join(' UNION ALL ')
    : `SELECT ${Object.entries(types).map(([name, type]) => `NULL::${type} AS "${name}"`)} WHERE false`;

/** Columns of outputs that blocks spend. `output` is an outpoint, `txid:vout`. `address` is NULL without an address. */
const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR');

/** Activity of the affected blocks (loadInput.ts). */
export interface Activity {
  /** Records from every file that has a block. */
  readonly records: Records;
  readonly held: Table<typeof HELD>;
  /** Only input from a node has spent outputs. */
  readonly spent: Table<typeof SPENT>;
  /** Ledger rows, from one file per block. Or why the input has none to publish. */
  readonly rows: LedgerRows | { readonly why: string };
  readonly notices: readonly string[];
}

/** Ledger rows in the published form, with the number of their file in `source`. */
export interface LedgerRows {
  readonly table: Table;
  /** True if `table` has the column `spent`. It has this column if all ledgers of the input are from a node. */
  readonly hasSpent: boolean;
}

export async function makeActivity(reader: InputReader, affected: TableWith<'block_height'>): Promise<Activity> {
  const { store } = reader.reading;
  const spent = await listSpent(reader, affected, store);
  const { all, held, notices } = await joinSources(reader, affected, true, reader.reading);
  // Usually every block that was read is affected. Then the view needs no filter.
  const others = await store.number(`SELECT count(*) AS number FROM ${reader.holds} WHERE NOT ${isIn(affected)}`);
  const records = await store.view('activity', RECORDS, others > 0 ? `SELECT * FROM (${all}) WHERE ${isIn(affected)}` : all);
  return { records, held, spent, rows: await listRows(reader, held), notices };
}

/**
 * Reads the files of blocks that no file of this build changes, and returns the records of these blocks, each from one file. `runes` has
 * all runes. Call it after the state has the blocks of this build.
 */
export async function readUnchanged(
  reader: InputReader,
  blocks: TableWith<'block_height'>,
  runes: Runes,
): Promise<Pick<Activity, 'records' | 'spent'>> {
  const { known, store } = reader.reading;
  const files = { sources: await reader.readAgain(blocks), runes, holds: known.held };
  const spent = await listSpent(files, blocks, store);
  const { all, held } = await joinSources(files, blocks, false, reader.reading);
  const chosen = `SELECT (min(source), block_height) FROM ${held} WHERE records > 0 GROUP BY block_height`;
  return { records: await store.view('unchanged', RECORDS, `SELECT * FROM (${all}) WHERE (source, block_height) IN (${chosen})`), spent };
}

const isIn = (blocks: TableWith<'block_height'>): string => `block_height IN (SELECT block_height FROM ${blocks})`;

interface Joinable {
  readonly sources: readonly RawSource[];
  readonly runes: Runes;
  /** Blocks of the files of `sources`, and maybe of others. */
  readonly holds: TableWith<keyof typeof HELD>;
}

/** Joins the records of sources, which may also be of other blocks than `blocks`. Lists the files of each of `blocks`. */
async function joinSources(
  files: Joinable,
  blocks: TableWith<'block_height'>,
  areRendered: boolean,
  reading: Reading,
): Promise<Pick<Activity, 'held' | 'notices'> & { readonly all: string }> {
  const { store } = reading;
  const relations: Records[] = [];
  const direct = files.sources.filter((s) => s.form !== 'runes' && s.form !== 'envelope');
  for (const source of direct) relations.push(await canonicalRecords(source, files, areRendered ? undefined : blocks, reading));
  const ids = direct.flatMap((source) => source.members.map(({ id }) => id));
  const held = await store.table(
    'held',
    HELD,
    `SELECT * FROM ${files.holds} WHERE source IN (${ids.join(', ') || 'NULL'}) AND ${isIn(blocks)}`,
  );
  const envelopes = files.sources.filter((s) => s.form === 'envelope');
  const saved = envelopes.length === 0 ? undefined : await assembleSavedResponses(envelopes, blocks, store);
  if (saved !== undefined) {
    relations.push(saved.records);
    await store.run(`INSERT INTO ${held} SELECT source, block_height, block_hash, count(*) FROM ${saved.records} GROUP BY ALL`);
  }
  const columns = Object.keys(RECORDS).map((c) => `"${c}"`);
  const selects = relations.map((relation) => `SELECT ${columns} FROM ${relation}`);
  return { all: unionOf(RECORDS, selects), held, notices: saved?.notices ?? [] };
}

/**
 * Selects the ledger rows of the blocks in `held`. There are none to publish if any input file with records is not a ledger, because the
 * published rows would lack the blocks of this file.
 */
async function listRows(reader: InputReader, held: Table<typeof HELD>): Promise<Activity['rows']> {
  const { names, sources, reading } = reader;
  if (!reading.keepsRows) return { why: '--no-rows was given' };
  const other = [...names].find(([id]) => !FORMS_OF_ROWS.includes(reader.formOf(id)));
  if (other !== undefined) return { why: `${other[1]} is not a ledger, and only ledgers have all values of rows` };
  const forms = new Set([...names.keys()].map((id) => reader.formOf(id)));
  const hasSpent = !forms.has('ledger');
  const types: ColumnTypes = columnsOf(hasSpent ? NODE_LEDGER_FIELDS : LEDGER_FIELDS);
  // Copies `held`, because the caller later removes blocks without records from `held`. Such blocks can have rows.
  const blocks = `SELECT min(source) AS source, block_height FROM ${held} GROUP BY block_height`;
  const chosen = await reading.store.table('row_blocks', columns('source INTEGER, block_height BIGINT'), blocks);
  const selects = sources
    .filter(({ form }) => isLedger(form))
    .map((source) => {
      const cells = Object.entries(types).map(([name, type]) => `(${canonicalCell(source, name)})::${type} AS "${name}"`);
      const isKept = `(source, ${canonicalCell(source, 'block_height')}) IN (SELECT (source, block_height) FROM ${chosen})`;
      return `SELECT source, ${cells.join(', ')} FROM ${source.relation} WHERE ${isKept}`;
    });
  const all: ColumnTypes = { source: 'INTEGER', ...types };
  return { hasSpent, table: await reading.store.view('rows', all, unionOf(all, selects)) };
}

/** Returns the spent outputs of blocks, of each block from one file. In wrong data, a block may spend an output twice. */
async function listSpent({ sources, holds }: Joinable, blocks: TableWith<'block_height'>, store: Store): Promise<Table<typeof SPENT>> {
  const nodes = sources.filter(({ form }) => form === 'node-ledger');
  const ids = nodes.flatMap(({ members }) => members.map(({ id }) => id)).join(', ') || 'NULL';
  const chosen = `SELECT (min(source), block_height) FROM ${holds} WHERE source IN (${ids}) AND ${isIn(blocks)} GROUP BY block_height`;
  const parts: string[] = [];
  for (const source of nodes) {
    const height = canonicalCell(source, 'block_height');
    const select = `SELECT block_height, split_part(spent, ':', 1) || ':' || split_part(spent, ':', 2) AS "output",
        nullif(split_part(spent, ':', 3), '') AS address
      FROM (SELECT ${height} AS block_height, unnest(string_split(${canonicalCell(source, 'spent')}, ',')) AS spent
        FROM ${source.relation} WHERE spent IS NOT NULL AND (source, ${height}) IN (${chosen}))`;
    parts.push(source.isView ? select : `SELECT * FROM ${await store.table('spent', SPENT, select)}`);
  }
  return store.view('spent', SPENT, unionOf(SPENT, parts));
}

/**
 * Returns the canonical records of a source in the range: a view of Parquet files, or a table. If the blocks of a large source are
 * scattered, a view of files in the store's folder. With `only`, for records that are not rendered, leaves them scattered, and takes only
 * these blocks of files that are no Parquet.
 */
async function canonicalRecords(
  source: RawSource,
  { runes, holds }: Joinable,
  only: TableWith<'block_height'> | undefined,
  reading: Reading,
): Promise<Records> {
  const { range, keepsRows, store } = reading;
  const all = isLedger(source.form) ? ledgerSelect(source, runes) : canonicalSelect(source);
  const select = range === undefined ? all : `SELECT * FROM (${all}) WHERE ${isInRange('block_height', range)}`;
  const records = source.isView
    ? await store.view('canonical', RECORDS, select)
    : await store.table('canonical', RECORDS, only === undefined ? select : `SELECT * FROM (${select}) WHERE ${isIn(only)}`);
  const isRead = only === undefined && keepsRows && isLedger(source.form);
  if (!source.isView && !isRead) await store.run(`DROP TABLE ${source.relation}`);
  if (only !== undefined) return records;
  const heights = source.isView
    ? `(SELECT ${canonicalCell(source, 'block_height')} AS block_height FROM ${source.relation})`
    : `${records}`;
  const ids = source.members.map(({ id }) => id).join(', ');
  const blocks = `SELECT block_height, sum(records) AS records FROM ${holds} WHERE source IN (${ids}) GROUP BY block_height`;
  const ranges = await scatteredRanges(blocks, heights, reading);
  if (ranges === undefined) return records;
  const parts = await dividedRecords(records, ranges, store);
  if (!source.isView) await store.run(`DROP TABLE ${records}`);
  return parts;
}

/** Number of rows that DuckDB reads or skips together. */
const ROW_GROUP = 122_880;

/** Maximum average number of ranges of blocks in a row group, above which the blocks of a source are scattered. */
const MOST_RANGES = 3;

/** Bytes of memory that DuckDB needs for a record. */
const RECORD_BYTES = 1024;

/**
 * Returns the ranges of blocks by which the rows of a source must be divided, because their blocks are scattered: rendering reads one range
 * after the other, and would read all rows each time. Undefined for few rows, and if the blocks are not scattered. `blocks` is SQL of the
 * number of records of each block. `heights` is SQL of the rows' column `block_height`.
 */
export async function scatteredRanges(
  blocks: string,
  heights: string,
  { limits: { servedAtOnce }, store }: { readonly limits: Pick<Reading['limits'], 'servedAtOnce'>; readonly store: Store },
): Promise<readonly BlockRange[] | undefined> {
  const count = await store.number(`SELECT coalesce(sum(records), 0)::BIGINT AS number FROM (${blocks})`);
  if (!exceeds({ servedAtOnce }, 'servedAtOnce', count)) return undefined;
  const counts = await store.view('counts', columns('block_height BIGINT, records BIGINT'), blocks);
  const ranges = await blockRanges(counts, { listedAtOnce: servedAtOnce }, store);
  const groups = await store.rows(
    `SELECT min(block_height) AS first, max(block_height) AS last
     FROM (SELECT block_height, row_number() OVER () // ${Math.min(ROW_GROUP, servedAtOnce)} AS number FROM ${heights}) GROUP BY number`,
    { first: int, last: int },
  );
  const overlaps = groups.flatMap((group) => ranges.filter(({ first, last }) => first <= group.last && last >= group.first)).length;
  return overlaps <= MOST_RANGES * (groups.length + ranges.length) ? undefined : ranges;
}

/** Writes the records of a relation into a file for each range, or for a few ranges, and returns a view of the files. */
async function dividedRecords(records: Records, ranges: readonly BlockRange[], store: Store): Promise<Records> {
  const each = Math.ceil(ranges.length / MOST_PARTS);
  const ends = ranges.filter((_, i) => i % each === each - 1).slice(0, -1);
  const part = `CASE ${ends.map(({ last }, i) => `WHEN block_height <= ${last} THEN ${i}`).join(' ')} ELSE ${ends.length} END`;
  const folder = join(store.scratch, store.nameOf('scattered'));
  const rows = `SELECT *, ${ends.length === 0 ? 0 : part} AS part FROM ${records}`;
  await store.writeRows(rows, folder, { by: 'part', rowBytes: RECORD_BYTES });
  return store.view('canonical', RECORDS, `SELECT ${Object.keys(RECORDS).map((name) => `"${name}"`)} FROM ${readRows(folder)}`);
}

/** Converts raw sources to canonical records: one row per record, with the same columns for every form of input. */
import { LEDGER_FIELDS, NODE_LEDGER_FIELDS } from '../contract/fields.ts';
import type { Store } from '../duckdb/store.ts';
import { type ColumnTypes, columns, columnsOf, type Table, type TableWith } from '../duckdb/table.ts';
import { isInRange } from './blockRange.ts';
import { canonicalCell, canonicalSelect, RECORDS, type Records } from './canonicalRecordSql.ts';
import { HELD, type InputReader } from './inputReader.ts';
import { ledgerSelect } from './joinRunes.ts';
import type { RawSource, Reading } from './rawSource.ts';
import { FORMS_OF_ROWS, isLedger } from './recognise.ts';
import type { Runes } from './runesTable.ts';
import { assembleSavedResponses } from './savedResponses.ts';
import { dividedRecords, scatteredRanges } from './scatteredRecords.ts';

/** Returns SQL that joins the rows of queries with these columns. There may be no query. */
const unionOf = (types: ColumnTypes, queries: readonly string[]): string =>
  queries.length > 0
    ? queries.join(' UNION ALL ')
    : `SELECT ${Object.entries(types).map(([name, type]) => `NULL::${type} AS "${name}"`)} WHERE false`;

/** Columns of outputs that blocks spend. `output` is an outpoint, `txid:vout`. `address` is NULL without an address. */
const SPENT = columns('block_height BIGINT, output VARCHAR, address VARCHAR');

/** Records of the affected blocks (loadInput.ts). */
export interface Activity {
  /** Records of each affected block, from every file that has the block. */
  readonly records: Records;
  /** Files of each affected block. */
  readonly held: Table<typeof HELD>;
  /** Outputs that affected blocks spend. Only input from a node has such outputs. */
  readonly spent: Table<typeof SPENT>;
  /** Ledger rows of affected blocks, from one file per block. Or why the input has none to publish. */
  readonly rows: LedgerRows | { readonly why: string };
  readonly notices: readonly string[];
}

/** Ledger rows in the published form, with the number of their file in `source`. */
export interface LedgerRows {
  readonly table: Table;
  /** True if `table` has the column `spent`. It has this column if all ledgers of the input are from a node. */
  readonly hasSpent: boolean;
}

/** Returns the records of affected blocks from all sources that `reader` has read. */
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

/**
 * Joins the records of sources. Lists the files of each of `blocks`. The records may also be of other blocks. Set `areRendered` if they are
 * rendered.
 */
async function joinSources(
  files: Joinable,
  blocks: TableWith<'block_height'>,
  areRendered: boolean,
  reading: Reading,
): Promise<Pick<Activity, 'held' | 'notices'> & { readonly all: string }> {
  const { store } = reading;
  const { sources, holds } = files;
  const relations: Records[] = [];
  const direct = sources.filter((s) => s.form !== 'runes' && s.form !== 'envelope');
  for (const source of direct) relations.push(await canonicalRecords(source, files, areRendered ? undefined : blocks, reading));
  const ids = direct.flatMap((source) => source.members.map(({ id }) => id));
  const held = await store.table('held', HELD, `SELECT * FROM ${holds} WHERE source IN (${ids.join(', ') || 'NULL'}) AND ${isIn(blocks)}`);
  const envelopes = sources.filter((s) => s.form === 'envelope');
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

/**
 * Returns the spent outputs of blocks, of each block from one file. Scans Parquet files in place. In wrong data, a block may spend an
 * output twice.
 */
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
 * Returns a relation with the source's canonical records in the range. For Parquet files, the relation is a view of them, and for all other
 * files a table. If the blocks of a large source are scattered, it is a view of files in the store's folder. `holds` has the blocks of the
 * source. With `only`, for records that are not rendered, leaves them scattered, and takes only these blocks of files that are no Parquet.
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

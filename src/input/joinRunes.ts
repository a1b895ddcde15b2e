/** Joins all runes tables of the input into one table, and joins the rows of ledger exports with this table. */
import { ACTIVITY_FIELDS, MAX_DIVISIBILITY } from '../contract/fields.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columnsOf, definitionOf, type Table, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import type { BlockRange } from './blocksRead.ts';
import { canonicalCell, isInRange, selectAs } from './canonicalRecordSql.ts';
import { canonicalValue } from './cellSql.ts';
import { namesTable, Report, shorten } from './inputFindings.ts';
import { type KnownInput, type RawSource, RUNES, type Runes } from './rawSource.ts';
import { fieldsOf } from './recognise.ts';

const FIELDS = fieldsOf('runes');
const COLUMNS = FIELDS.map(({ column }) => column);

export interface JoinedRunes {
  readonly all: Runes;
  /** Runes of the files that were read. */
  readonly read: Table<typeof RUNES>;
  /** SQL condition for runes in the state whose files have not changed. The result is never NULL. */
  readonly isKept: string;
}

/** Columns that lists of etchings need. No answer contains `cenotaph`. */
const ETCHING_COLUMNS = COLUMNS.filter((column) => column !== 'cenotaph');

/** True for a column that is NULL or empty if the rune has no such value. In any other column, NULL means unknown. */
const mayBeEmpty = (column: string): boolean => column === 'tx_id' || column === 'symbol' || isTerm(column);
const isTerm = (column: string): boolean => column.startsWith('terms_');

/** Value of `tx_id` for a rune that the protocol itself etched, such as 1:0. */
const NO_TRANSACTION = '0'.repeat(64);

/** Runes tables of a build. */
export interface RunesTables {
  readonly read: readonly RawSource[];
  /** File numbers of unchanged tables, whose runes are in the state. */
  readonly kept: readonly number[];
  readonly readKept: () => Promise<readonly RawSource[]>;
  /** File names by file number. */
  readonly names: ReadonlyMap<number, string>;
}

/**
 * Joins all runes tables into one. Throws an InputError when two rows of a rune contradict each other. If a row lacks a value, another row
 * of the rune may have it. So a rune that is both in an unchanged and in another table needs the rows of all tables.
 */
export async function joinRunes(
  { read: tables, kept: unchanged, readKept, names }: RunesTables,
  known: Runes,
  store: Store,
): Promise<JoinedRunes> {
  await store.run(`CREATE OR REPLACE TEMP TABLE all_runes (source INTEGER, ${definitionOf(columnsOf(FIELDS))})`);
  const add = async (sources: readonly RawSource[]) => {
    for (const source of sources) await store.run(`INSERT INTO all_runes BY NAME ${runesSelect(source)}`);
  };
  await add(tables);
  const isIn = (kept: readonly number[]) => (kept.length === 0 ? 'false' : `coalesce(source IN (${kept.join(', ')}), false)`);
  const isShared = `source IS NULL OR (${isIn(unchanged)} AND id IN (SELECT id FROM all_runes))`;
  const shared = unchanged.length === 0 ? 0 : await store.number(`SELECT count(*) AS number FROM ${known} WHERE ${isShared}`);
  if (shared > 0) await add(await readKept());
  const kept = shared > 0 ? [] : unchanged;
  const several = await store.number('SELECT count(*) - count(DISTINCT id) AS number FROM all_runes');
  await checkRunes(several > 0, names, store);
  // Usually each rune has one row. Then the SQL needs no GROUP BY, which is slow.
  const anyValues = COLUMNS.map((column) => (column === 'id' ? column : `any_value("${column}") AS "${column}"`)).join(', ');
  const source = 'CASE WHEN min(source) = max(source) THEN min(source) END AS source';
  const rows = several > 0 ? `(SELECT ${anyValues}, ${source} FROM all_runes GROUP BY id)` : 'all_runes';
  const values = COLUMNS.map((column) => (isTerm(column) ? `nullif(${column}, '') AS ${column}` : `"${column}"`)).join(', ');
  const isComplete = ETCHING_COLUMNS.map((column) => `"${column}" IS NOT NULL`).join(' AND ');
  const select = `SELECT ${values}, ${isComplete} AS is_complete, source FROM ${rows}`;
  const read = several > 0 ? await store.table('runes', RUNES, select) : await store.view('runes', RUNES, select);
  const isKept = isIn(kept);
  if (kept.length === 0) return { all: read, read, isKept };
  const all = await store.view('all_runes', RUNES, `SELECT ${Object.keys(RUNES)} FROM ${known} WHERE ${isKept} UNION ALL FROM ${read}`);
  return { all, read, isKept };
}

/** Symbol of a rune that was etched without one. An empty symbol means something else: a cenotaph etched the rune. */
const NO_SYMBOL = '¤';

/**
 * Returns SQL of the rows of a runes table, without the columns that the table lacks. A term is `''` if the rune does not have it, and NULL
 * if it is unknown: rows without a premine come from tables that had only the required columns.
 */
function runesSelect(source: RawSource): string {
  const columns = new Map(source.columns.map((column) => [column.field.column, canonicalValue(column)]));
  const empty = (column: string) => {
    const value = column === 'symbol' ? literal(NO_SYMBOL) : `''`;
    return columns.has('premine') ? `CASE WHEN premine IS NOT NULL THEN ${value} END` : value;
  };
  const cells = [...columns].map(
    ([column, value]) => `${mayBeEmpty(column) ? `coalesce(${value}, ${empty(column)})` : value} AS "${column}"`,
  );
  const known = `SELECT source, ${cells.join(', ')} FROM ${source.relation}`;
  if (!columns.has('tx_id')) return known;
  // For rune 1:0, bitcoin-indexer has no tx_id, and `turbo` is false. By ord's rules, the rune is turbo, so `turbo` is set.
  const turbo = columns.has('turbo') ? `, turbo OR coalesce(tx_id IN ('', '${NO_TRANSACTION}'), false) AS turbo` : '';
  return `SELECT * REPLACE (lpad(tx_id, 64, '0') AS tx_id${turbo}) FROM (${known})`;
}

/** Throws an InputError for a rune that is too divisible, or that has rows with different values. */
async function checkRunes(areShared: boolean, names: RunesTables['names'], store: Store): Promise<void> {
  const report = new Report();
  const divisible = `FROM all_runes WHERE divisibility > ${MAX_DIVISIBILITY}`;
  if (!areShared && (await store.number(`SELECT count(*) AS number ${divisible}`)) === 0) return;
  const files = await namesTable(names, store);
  await report.addFound(
    `SELECT [source] AS place, f.name || ': divisibility of rune ' || to_json(left(id, 60)) || ' is ' || divisibility || ', must be at most ${MAX_DIVISIBILITY}' AS line
     FROM (${divisible}) JOIN ${files} f USING (source)`,
    store,
  );
  const others = COLUMNS.filter((column) => column !== 'id');
  const when = (result: (column: string) => string) =>
    others.map((column) => `CASE WHEN min("${column}") <> max("${column}") THEN ${result(column)} END`).join(', ');
  const file = (end: string) => `coalesce(${when((column) => `arg_${end}(source, "${column}")`)})`;
  if (areShared)
    await report.addFound(
      `SELECT [0] AS place, [${file('min')}, ${file('max')}] AS sources, concat_ws(', ', ${when((column) => `'${column}'`)}) AS columns,
         'rune ' || id || ' has two rows with different values of ' || columns AS line FROM all_runes GROUP BY id HAVING columns <> ''`,
      store,
      `(SELECT string_agg(name, ' and ' ORDER BY source) FROM ${files} WHERE list_contains(sources, source)) || ': ' || line`,
    );
  report.throwIfAny((count) => `the runes tables have ${count} error(s)`);
}

/**
 * Returns the unchanged ledgers whose records a change of the runes changes. Returns `all` if a rune was removed, or if its number, names
 * or divisibility changed: records contain no other column. Otherwise returns the numbers of ledgers with a rune that is no longer unknown.
 */
export async function ledgersToReadAgain(
  { read, isKept }: JoinedRunes,
  known: Pick<KnownInput, 'runes' | 'leftOut'>,
  store: Store,
): Promise<'all' | ReadonlySet<number>> {
  const changed =
    await store.number(`SELECT count(*) AS number FROM (FROM ${known.runes} WHERE NOT ${isKept}) AS k LEFT JOIN ${read} AS r ON r.id = k.id
     WHERE (r.number, r.name, r.spaced_name, r.divisibility) IS DISTINCT FROM (k.number, k.name, k.spaced_name, k.divisibility)`);
  if (changed > 0) return 'all';
  const rows = await store.rows(`SELECT DISTINCT source FROM ${known.leftOut} WHERE rune_id IN (SELECT id FROM ${read})`, { source: int });
  return new Set(rows.map((row) => row.source));
}

/**
 * Returns SQL that counts the ledger rows in the range whose rune is not in `runes`. Builds omit them, as the original API server did.
 * Databases of bitcoin-indexer v3.0 have such rows for etchings whose name was already taken, and for the rune `0:0`.
 */
export function leftOutSelect(ledger: RawSource, runes: Runes, range: BlockRange | undefined): string {
  const height = canonicalCell(ledger, 'block_height');
  return `SELECT source, ${height} AS height, rune_id, count(*) FROM ${ledger.relation}
    WHERE rune_id NOT IN (SELECT id FROM ${runes}) AND ${isInRange(height, range)} GROUP BY ALL`;
}

/** Throws an InputError when the runes of all ledger rows are unknown, because then ledgers and runes are from different databases. */
export async function checkRunesAreKnown(
  ledgers: ReadonlyMap<number, string>,
  { holds, allHolds, leftOut }: Record<'holds' | 'allHolds', TableWith<'source' | 'records'>> & Pick<KnownInput, 'leftOut'>,
  known: Pick<KnownInput, 'leftOut'>,
  store: Store,
): Promise<void> {
  if (ledgers.size === 0) return;
  const isLedger = `source IN (${[...ledgers.keys()].join(', ')})`;
  const taken = await store.number(`SELECT coalesce(sum(records), 0) AS number FROM ${allHolds} WHERE ${isLedger}`);
  if (taken > 0) return;
  const [row] = await store.rows(
    `SELECT source, rune_id FROM (FROM ${leftOut} UNION ALL FROM ${known.leftOut} WHERE source NOT IN (SELECT source FROM ${holds}))
     WHERE ${isLedger} ORDER BY source, block_height, rune_id LIMIT 1`,
    { source: int, rune_id: text },
  );
  if (row === undefined) return;
  throw new InputError(`the runes table has none of the runes of ${ledgers.get(row.source)}, such as ${shorten(row.rune_id)}`, [
    'Export ledger and runes from the same database, with all rows of runes.',
  ]);
}

/**
 * SQL of the macro `shift_decimals`, which converts an amount from smallest units: `shift_decimals('18300', 2)` is `183.00`. It works on
 * text, because no number type of DuckDB can represent 2^128 - 1 with 38 decimals.
 */
export const SHIFT_DECIMALS = `CREATE OR REPLACE TEMP MACRO shift_decimals(units, decimals) AS
  CASE WHEN decimals = 0 THEN units
       WHEN length(units) > decimals THEN concat(left(units, (length(units) - decimals)::INTEGER), '.', right(units, decimals::INTEGER))
       ELSE left(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'),
                 (greatest(length(units), decimals + 1) - decimals)::INTEGER)
            || '.' || right(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'), decimals::INTEGER) END`;

/** Returns SQL that selects the canonical records of a ledger export. Omits rows whose rune is not in `runes`. */
export function ledgerSelect(
  source: Pick<RawSource, 'relation' | 'columns'>,
  runes: TableWith<'id' | 'number' | 'name' | 'spaced_name' | 'divisibility'>,
): string {
  const value = (name: string) => canonicalCell(source, name);
  const expressions = new Map<string, string>([
    ['rune_number', 'r.number'],
    ['rune_name', 'r.name'],
    ['rune_spaced_name', 'r.spaced_name'],
    ['amount', 'shift_decimals(amount, r.divisibility)'],
    ['vout', value('output')],
    ['output', `CASE WHEN "output" IS NOT NULL THEN ${value('tx_id')} END`],
  ]);
  const selected = ACTIVITY_FIELDS.map(({ column }) => expressions.get(column) ?? value(column));
  const eventIndex = value('event_index');
  // Both tables have other columns of the same name, such as tx_id.
  const names = `(SELECT id, number, name, spaced_name, divisibility FROM ${runes})`;
  return selectAs(['source', ...selected, eventIndex, eventIndex], `${source.relation} JOIN ${names} r ON r.id = rune_id`);
}

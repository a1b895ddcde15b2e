/** Joins all runes tables of the input into one table, and joins the rows of ledger exports with this table. */
import { ACTIVITY_FIELDS, MAX_DIVISIBILITY } from '../contract/fields.ts';
import { int, literal, type Store, text } from '../duckdb/store.ts';
import { columnsOf, definitionOf, type Table, type TableWith } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { type BlockRange, isInRange } from './blockRange.ts';
import { canonicalCell, selectAs } from './canonicalRecordSql.ts';
import { canonicalValue } from './cellSql.ts';
import { Report, shorten } from './inputFindings.ts';
import type { KnownInput, RawSource } from './rawSource.ts';
import { FIELDS, RUNES, type Runes } from './runesTable.ts';

const COLUMNS: readonly string[] = FIELDS.map(({ column }) => column);

/** The runes of a build. Runes of unchanged files are in the state of the last build. */
export interface JoinedRunes {
  readonly all: Runes;
  /** Runes of the files that were read. */
  readonly read: Table<typeof RUNES>;
  /** SQL condition for runes in the state whose files have not changed. The result is never NULL. */
  readonly isKept: string;
}

/** Columns that lists of etchings need. `cenotaph` is not among them, because no answer contains it. */
const ETCHING_COLUMNS = COLUMNS.filter((column) => column !== 'cenotaph');

/** True for a column that is NULL or empty if the rune has no such value. In any other column, NULL means unknown. */
const mayBeEmpty = (column: string): boolean => column === 'tx_id' || column === 'symbol' || isTerm(column);
const isTerm = (column: string): boolean => column.startsWith('terms_');

/** Value of `tx_id` for a rune that the protocol itself etched, such as 1:0. */
const NO_TRANSACTION = '0'.repeat(64);

/**
 * Joins all runes tables into one. `kept` has the file numbers of unchanged tables, whose runes are in `known`.
 * `ledger` is the name of a ledger that needs the runes, if the input has one. Throws an InputError when two rows of a
 * rune contradict each other, or when there is a ledger but no runes table.
 *
 * If a row lacks a value, the function takes the value from another row of the same rune. For a rune that is both in an
 * unchanged and in another table, it therefore needs the rows of all tables. Then it returns undefined, so that the
 * caller reads all tables and calls the function again without `kept`.
 */
export async function loadRunes(
  runes: readonly RawSource[],
  kept: readonly number[],
  ledger: string | undefined,
  known: Runes,
  store: Store,
): Promise<JoinedRunes | undefined> {
  if (ledger !== undefined && runes.length + kept.length === 0)
    throw new InputError(`${ledger} is a ledger export, but the input has no runes table`, [
      'A ledger has only the ids of runes. Put the export of the runes table (runes.csv or runes.parquet) beside it,',
      'or add it with another --input.',
    ]);
  await store.run(`CREATE OR REPLACE TEMP TABLE all_runes (source INTEGER, ${definitionOf(columnsOf(FIELDS))})`);
  for (const source of runes) await store.run(`INSERT INTO all_runes BY NAME ${runesSelect(source)}`);
  const isKept = kept.length === 0 ? 'false' : `coalesce(source IN (${kept.join(', ')}), false)`;
  if (kept.length > 0) {
    const shared = await store.number(
      `SELECT count(*) AS number FROM ${known} WHERE source IS NULL OR (${isKept} AND id IN (SELECT id FROM all_runes))`,
    );
    if (shared > 0) return undefined;
  }
  const names = new Map(runes.flatMap((source) => source.members.map(({ id, file }) => [id, file.name] as const)));
  const report = new Report();
  await reportDivisibility(names, report, store);
  const several = await store.number('SELECT count(*) - count(DISTINCT id) AS number FROM all_runes');
  if (several > 0) await reportDifferingRunes(names, report, store);
  report.throwIfAny((count) => `the runes tables have ${count} error(s)`);
  // Usually each rune has one row. Then the SQL needs no GROUP BY, which is slow.
  const anyValues = COLUMNS.map((column) => (column === 'id' ? column : `any_value("${column}") AS "${column}"`)).join(', ');
  const source = 'CASE WHEN min(source) = max(source) THEN min(source) END AS source';
  const rows = several > 0 ? `(SELECT ${anyValues}, ${source} FROM all_runes GROUP BY id)` : 'all_runes';
  const values = COLUMNS.map((column) => (isTerm(column) ? `nullif(${column}, '') AS ${column}` : `"${column}"`)).join(', ');
  const isComplete = ETCHING_COLUMNS.map((column) => `"${column}" IS NOT NULL`).join(' AND ');
  const select = `SELECT ${values}, ${isComplete} AS is_complete, source FROM ${rows}`;
  const read = several > 0 ? await store.table('runes', RUNES, select) : await store.view('runes', RUNES, select);
  if (kept.length === 0) return { all: read, read, isKept };
  const columns = Object.keys(RUNES).join(', ');
  const all = await store.view('all_runes', RUNES, `SELECT ${columns} FROM ${known} WHERE ${isKept} UNION ALL FROM ${read}`);
  return { all, read, isKept };
}

/** Symbol of a rune that was etched without one. An empty symbol means something else: a cenotaph etched the rune. */
const NO_SYMBOL = '¤';

/**
 * Returns SQL that selects the rows of a runes table, without the columns that the table lacks. A term is `''` if the
 * rune does not have it, and NULL if it is unknown. Rows without a premine come from tables that had only the required
 * columns, so their terms are unknown.
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
  // For rune 1:0, bitcoin-indexer has no tx_id, and `turbo` is false. By ord's rules, the rune is turbo, so `turbo` is
  // set.
  const turbo = columns.has('turbo') ? `, turbo OR coalesce(tx_id IN ('', '${NO_TRANSACTION}'), false) AS turbo` : '';
  return `SELECT * REPLACE (lpad(tx_id, 64, '0') AS tx_id${turbo}) FROM (${known})`;
}

type Names = ReadonlyMap<number, string>;

async function reportDivisibility(names: Names, report: Report, store: Store): Promise<void> {
  for (const row of await store.rows(
    `SELECT id, divisibility, source FROM all_runes WHERE divisibility > ${MAX_DIVISIBILITY} ORDER BY source, id`,
    { id: text, divisibility: int, source: int },
  )) {
    report.add([
      `${names.get(row.source)}: divisibility of rune ${shorten(row.id)} is ${row.divisibility}, must be at most ${MAX_DIVISIBILITY}`,
    ]);
  }
}

/** Reports runes whose rows have different values in a column, with the files of these rows. */
async function reportDifferingRunes(names: Names, report: Report, store: Store): Promise<void> {
  const others = COLUMNS.filter((column) => column !== 'id');
  const when = (result: (column: string) => string) =>
    others.map((column) => `CASE WHEN min("${column}") <> max("${column}") THEN ${result(column)} END`).join(', ');
  for (const row of await store.rows(
    `SELECT id, concat_ws(', ', ${when((column) => `'${column}'`)}) AS columns,
       coalesce(${when((column) => `arg_min(source, "${column}")`)}) AS a, coalesce(${when((column) => `arg_max(source, "${column}")`)}) AS b
     FROM all_runes GROUP BY id HAVING columns <> '' ORDER BY id`,
    { id: text, columns: text, a: int, b: int },
  )) {
    const files = [...new Set([row.a, row.b].sort((a, b) => a - b).map((source) => names.get(source)))].join(' and ');
    report.add([`${files}: rune ${row.id} has two rows with different values of ${row.columns}`]);
  }
}

/**
 * Returns the unchanged ledgers that must be read again, because a change of the runes changes their records. Returns
 * `all` if a rune was removed, or if its number, names or divisibility changed. Records contain no other column of a
 * rune. Otherwise returns the file numbers of ledgers with an unknown rune that is now in the runes table.
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
 * Returns SQL that counts the ledger rows in the range whose rune is not in `runes`: source, height, rune_id, records.
 * Builds omit these rows, as the original API server did. Databases of bitcoin-indexer v3.0 have such rows for etchings
 * whose name was already taken and for the rune `0:0`.
 */
export function leftOutSelect(ledger: RawSource, runes: Runes, range: BlockRange | undefined): string {
  const height = canonicalCell(ledger, 'block_height');
  return `SELECT source, ${height} AS height, rune_id, count(*) FROM ${ledger.relation}
    WHERE rune_id NOT IN (SELECT id FROM ${runes}) AND ${isInRange(height, range)} GROUP BY ALL`;
}

/**
 * Throws an InputError when the runes of all ledger rows are unknown, because then ledgers and runes are from different
 * databases. `ledgers` has the names of all ledgers by file number, even of ledgers that were not read.
 */
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
 * SQL that creates the macro `shift_decimals`, which converts an amount from smallest units to a decimal number with
 * `decimals` decimals: `shift_decimals('18300', 2)` is `183.00`. The macro works on text, because no number type of
 * DuckDB can represent 2^128 - 1 with 38 decimals.
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
  // Selects only these columns of the runes table, because both tables have other columns of the same name, such as
  // tx_id.
  const names = `(SELECT id, number, name, spaced_name, divisibility FROM ${runes})`;
  return selectAs(['source', ...selected, eventIndex, eventIndex], `${source.relation} JOIN ${names} r ON r.id = rune_id`);
}

/**
 * Joins ledger exports with the runes tables. All runes tables of the input become one table, which all ledgers share.
 */
import { ACTIVITY_FIELDS, MAX_DIVISIBILITY } from '../contract/fields.ts';
import { InputError } from '../errors.ts';
import { int, type Store, text } from '../store/duckdb.ts';
import { type BlockRange, isInRange } from './blockRange.ts';
import { canonicalValue } from './cellSql.ts';
import type { RawSource } from './rawSource.ts';
import { canonicalCell, selectAs } from './recordSql.ts';
import { Report, shorten } from './report.ts';

/**
 * Creates the table `runes`. `ledger` is the name of a ledger that needs it, if any. Throws an InputError when two
 * files differ about a rune, or when there is a ledger but no runes file.
 */
export async function loadRunes(runes: readonly RawSource[], ledger: string | undefined, store: Store): Promise<void> {
  if (ledger !== undefined && runes.length === 0) {
    throw new InputError(`${ledger} is a ledger export, but the input has no runes table`, [
      'A ledger has only the ids of runes. Put the export of the runes table (runes.csv or runes.parquet) beside it,',
      'or add it with another --input.',
    ]);
  }
  const selects = runes.map(
    (source) =>
      `SELECT source, ${source.columns.map((c) => `${canonicalValue(c)} AS ${c.field.column}`).join(', ')} FROM ${source.relation}`,
  );
  const none =
    'SELECT 0 AS source, NULL::VARCHAR AS id, 0 AS number, NULL::VARCHAR AS name, NULL::VARCHAR AS spaced_name, 0 AS divisibility WHERE false';
  await store.run(`CREATE TEMP TABLE all_runes AS ${selects.join(' UNION ALL ') || none}`);
  const names = new Map(runes.flatMap((source) => source.members.map(({ id, file }) => [id, file.name] as const)));
  const report = new Report();
  for (const row of await store.rows(
    `SELECT id, divisibility, source FROM all_runes WHERE divisibility > ${MAX_DIVISIBILITY} ORDER BY source, id`,
    { id: text, divisibility: int, source: int },
  )) {
    report.add([
      `${names.get(row.source)}: divisibility of rune ${shorten(row.id)} is ${row.divisibility}, must be at most ${MAX_DIVISIBILITY}`,
    ]);
  }
  for (const row of await store.rows(
    `SELECT id, min(source) AS a, max(source) AS b FROM all_runes GROUP BY id
     HAVING count(DISTINCT (number, name, spaced_name, divisibility)) > 1 ORDER BY id`,
    { id: text, a: int, b: int },
  )) {
    const files = [...new Set([names.get(row.a), names.get(row.b)])].join(' and ');
    report.add([`${files}: rune ${row.id} has two rows with different values`]);
  }
  report.throwIfAny((count) => `the runes tables have ${count} error(s)`);
  await store.run('CREATE TEMP TABLE runes AS SELECT DISTINCT id, number, name, spaced_name, divisibility FROM all_runes');
}

/**
 * Returns the unchanged ledgers whose records change with the table `runes`: `all` when a rune changed or was removed.
 * Otherwise the file numbers of ledgers with rows that were left out for a rune which the table has now.
 */
export async function ledgersToReadAgain(store: Store): Promise<'all' | ReadonlySet<number>> {
  const { changed } = await store.row(
    `SELECT count(*) AS changed FROM known_runes k LEFT JOIN runes r ON r.id = k.id
     WHERE (r.number, r.name, r.spaced_name, r.divisibility) IS DISTINCT FROM (k.number, k.name, k.spaced_name, k.divisibility)`,
    { changed: int },
  );
  if (changed > 0) return 'all';
  const rows = await store.rows('SELECT DISTINCT source FROM known_left_out WHERE rune_id IN (SELECT id FROM runes)', {
    source: int,
  });
  return new Set(rows.map((row) => row.source));
}

/**
 * Returns SQL of the ledger rows in the range whose rune is not in the table `runes`: source, height, rune_id, records.
 * Builds leave these rows out, as the original API server did. Databases of bitcoin-indexer v3.0 have such rows: of
 * etchings whose name was taken, and of the rune `0:0`.
 */
export function leftOutSelect(ledger: RawSource, range: BlockRange | undefined): string {
  const height = canonicalCell(ledger, 'block_height');
  return `SELECT source, ${height} AS height, rune_id, count(*) FROM ${ledger.relation}
    WHERE rune_id NOT IN (SELECT id FROM runes) AND ${isInRange(height, range)} GROUP BY ALL`;
}

/**
 * Throws an InputError when every ledger row was left out, because then ledgers and runes are from different databases.
 * `ledgers` has the names of all ledgers by file number, also of ledgers that were not read.
 */
export async function checkRunesAreKnown(ledgers: ReadonlyMap<number, string>, store: Store): Promise<void> {
  const isLedger = `source IN (${[...ledgers.keys()].join(', ') || 'NULL'})`;
  const { taken } = await store.row(`SELECT coalesce(sum(records), 0) AS taken FROM all_holds WHERE ${isLedger}`, { taken: int });
  if (taken > 0) return;
  const [row] = await store.rows(
    `SELECT source, rune_id FROM (FROM left_out UNION ALL FROM known_left_out WHERE source NOT IN (SELECT source FROM holds))
     WHERE ${isLedger} ORDER BY source, block_height, rune_id LIMIT 1`,
    { source: int, rune_id: text },
  );
  if (row === undefined) return;
  throw new InputError(`the runes table has none of the runes of ${ledgers.get(row.source)}, such as ${shorten(row.rune_id)}`, [
    'Export ledger and runes from the same database, with all rows of runes.',
  ]);
}

/**
 * SQL macro: `shift_decimals('18300', 2)` is `183.00`. Writes smallest units with as many decimals as the rune's
 * divisibility. It works on text, because no number type can represent 2^128 - 1 with 38 decimals.
 */
export const SHIFT_DECIMALS = `CREATE TEMP MACRO shift_decimals(units, decimals) AS
  CASE WHEN decimals = 0 THEN units
       ELSE left(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'),
                 (greatest(length(units), decimals + 1) - decimals)::INTEGER)
            || '.' || right(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'), decimals::INTEGER) END`;

/**
 * Returns SQL of the canonical records of a ledger export. Rows whose rune is not in the table `runes` are left out.
 */
export function ledgerSelect(source: RawSource): string {
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
  return selectAs(['source', ...selected, eventIndex, eventIndex], `${source.relation} JOIN runes r ON r.id = rune_id`);
}

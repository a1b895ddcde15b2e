/**
 * The runes tables of all inputs as one, which the ledger exports share.
 */
import { MAX_DIVISIBILITY } from '../contract/fields.ts';
import { InputError } from '../errors.ts';
import { type Store, toNumber, toText } from '../store/duckdb.ts';
import { type BlockRange, isInRange } from './blockRange.ts';
import { canonicalValue } from './checks.ts';
import { Report, shorten } from './report.ts';
import { canonicalCell, type RawSource } from './sources.ts';

/**
 * Makes the table `runes`. `ledger` names one of the ledgers that need it, if there are any. Throws an InputError when two files disagree
 * on a rune, or when there is a ledger and no runes file.
 */
export async function loadRunes(runes: readonly RawSource[], ledger: string | undefined, store: Store): Promise<void> {
  if (ledger !== undefined && runes.length === 0) {
    throw new InputError(`${ledger} is a ledger export, and no runes table was found among the inputs`, [
      'A ledger names runes by id only. Put the export of the runes table (runes.csv or runes.parquet) beside it,',
      'or name it with a further --input.',
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
  )) {
    report.add([
      `${names.get(toNumber(row['source']))}: divisibility of rune ${shorten(row['id'])} is ${toNumber(row['divisibility'])}, must be at most ${MAX_DIVISIBILITY}`,
    ]);
  }
  for (const row of await store.rows(
    `SELECT id, min(source) AS a, max(source) AS b FROM all_runes GROUP BY id
     HAVING count(DISTINCT (number, name, spaced_name, divisibility)) > 1 ORDER BY id`,
  )) {
    const files = [...new Set([names.get(toNumber(row['a'])), names.get(toNumber(row['b']))])].join(' and ');
    report.add([`${files}: rune ${toText(row['id'])} is there twice with different values`]);
  }
  report.throwIfAny((count) => `the runes tables have ${count} fault(s)`);
  await store.run('CREATE TEMP TABLE runes AS SELECT DISTINCT id, number, name, spaced_name, divisibility FROM all_runes');
}

/**
 * Returns which of the ledgers that the last build read have other records now because of their runes: all of them (`all`) when a rune
 * changed or is gone, and else those with rows that were left out for a rune that the table `runes` has now.
 */
export async function ledgersToReadAgain(store: Store): Promise<'all' | ReadonlySet<number>> {
  const { changed } = await store.row(
    `SELECT count(*) AS changed FROM known_runes k LEFT JOIN runes r ON r.id = k.id
     WHERE (r.number, r.name, r.spaced_name, r.divisibility) IS DISTINCT FROM (k.number, k.name, k.spaced_name, k.divisibility)`,
  );
  if (toNumber(changed) > 0) return 'all';
  const rows = await store.rows('SELECT DISTINCT source FROM known_left_out WHERE rune_id IN (SELECT id FROM runes)');
  return new Set(rows.map((row) => toNumber(row['source'])));
}

/**
 * SQL of the ledger rows in the range whose rune is not in the table `runes`: source, block_height, rune_id, records. Builds leave these rows out, as the
 * server that used to answer this API did: databases of bitcoin-indexer v3.0 have rows of etchings whose name was taken, and of `0:0`.
 */
export function leftOutSelect(ledger: RawSource, range: BlockRange | undefined): string {
  const height = canonicalCell(ledger, 'block_height');
  return `SELECT source, ${height} AS height, rune_id, count(*) FROM ${ledger.relation}
    WHERE rune_id NOT IN (SELECT id FROM runes) AND ${isInRange(height, range)} GROUP BY ALL`;
}

/**
 * Throws an InputError when rows of ledgers were left out and none was taken: then runes and ledgers are not of one database. `ledgers` are the files by
 * source number, with those that were not read again.
 */
export async function checkRunesAreKnown(ledgers: ReadonlyMap<number, string>, store: Store): Promise<void> {
  const isLedger = `source IN (${[...ledgers.keys()].join(', ') || 'NULL'})`;
  const { taken } = await store.row(`SELECT coalesce(sum(records), 0) AS taken FROM all_holds WHERE ${isLedger}`);
  if (toNumber(taken) > 0) return;
  const [row] = await store.rows(
    `SELECT source, rune_id FROM (FROM left_out UNION ALL FROM known_left_out WHERE source NOT IN (SELECT source FROM holds))
     WHERE ${isLedger} ORDER BY source, block_height, rune_id LIMIT 1`,
  );
  if (row === undefined) return;
  throw new InputError(
    `the runes table knows none of the runes of ${ledgers.get(toNumber(row['source']))}, such as ${shorten(row['rune_id'])}`,
    ['Export ledger and runes from the same database, and runes whole.'],
  );
}

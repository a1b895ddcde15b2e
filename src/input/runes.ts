/**
 * The runes tables of all inputs as one, which the ledger exports share.
 */
import { MAX_DIVISIBILITY } from '../contract/fields.ts';
import { InputError } from '../errors.ts';
import { type Store, toNumber, toText } from '../store/duckdb.ts';
import { canonicalValue } from './checks.ts';
import { reportRecords } from './explain.ts';
import { Report, shorten } from './report.ts';
import type { RawSource } from './sources.ts';

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

/** Whether a rune that the last build knew is another now, or gone, so that records of unchanged ledgers change. New runes change none. */
export async function haveRunesChanged(store: Store): Promise<boolean> {
  const { changed } = await store.row(
    `SELECT count(*) AS changed FROM known_runes k LEFT JOIN runes r ON r.id = k.id
     WHERE (r.number, r.name, r.spaced_name, r.divisibility) IS DISTINCT FROM (k.number, k.name, k.spaced_name, k.divisibility)`,
  );
  return toNumber(changed) > 0;
}

/** Adds the ledger rows whose rune is not in any runes table: the recorded server drops them silently, a mirror must not. */
export const reportUnknownRunes = (ledger: RawSource, report: Report, store: Store): Promise<void> =>
  reportRecords(ledger, 'rune_id NOT IN (SELECT id FROM runes)', report, store, (where, row) => [
    `${where}: rune_id ${shorten(row['rune_id'])} is not in the runes table`,
  ]);

/** Checks the records of a source, and reports the invalid ones: file, line and broken rule. */
import { attempt } from '../attempt.ts';
import { RULES } from '../contract/fields.ts';
import { duckdbMessage, isAboutFile } from '../duckdb/duckdbErrors.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, int, literal, nullable, type Store, text } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { EQUAL_INDEX, rulesOf, validity } from './canonicalRecordSql.ts';
import { type Report, shorten } from './inputFindings.ts';
import { memberNamedIn, type RawSource } from './rawSource.ts';
import { isBlank, linesOf } from './readSource.ts';

/**
 * Returns the view of Parquet files with canonical columns if every cell is valid and canonical, such as a lower-case hash without prefix;
 * otherwise undefined. Exports of this program and of the indexer are canonical, and need no conversion when they are read again. Throws an
 * InputError if a file is broken.
 */
export async function inCanonicalForm(source: RawSource, store: Store): Promise<RawSource | undefined> {
  const columns = source.columns.map((column) => (column.shape === 'text' ? { ...column, shape: 'canonical' as const } : column));
  // Columns of free text have no rule, so the check alone would not read them. Lengths do, so damage is found before rendering.
  const unruled = columns
    .filter((c) => c.shape === 'canonical' && c.field.kind === 'text')
    .map((c) => `, max(strlen(${identifier(c.field.column)}))`);
  try {
    const other = `count(*) FILTER (WHERE NOT (${validity(columns)})) AS number`;
    return (await store.number(`SELECT ${other}${unruled.join('')} FROM ${source.relation}`)) === 0 ? { ...source, columns } : undefined;
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    // Some messages of DuckDB do not name the file.
    let broken = memberNamedIn(source.members, error);
    for (const member of source.members) {
      const read = store.run(`SELECT max(strlen(COLUMNS(*)::VARCHAR)) FROM ${readFiles('parquet', [member.path])}`);
      if (!(await read.then(() => false, isAboutFile))) continue;
      broken = member;
      break;
    }
    throw new InputError(`${broken?.file.name} is broken Parquet: ${duckdbMessage(error)}`);
  }
}

/**
 * Columns that locate a record: its file, the number of the record or saved response in the file, and the position of the record in a saved
 * response. `broken` has the names of its broken rules. No field has one of these names.
 */
const PLACE = { source: int, place: int, item: nullable(int), broken: text };

export async function reportBadRecords(source: RawSource, report: Report, store: Store): Promise<void> {
  const isBad = `NOT (${validity(source.columns)})`;
  const bad = await store.number(`SELECT count(*) AS number FROM ${source.relation} WHERE ${isBad}`);
  if (bad === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const asText = Object.fromEntries(source.columns.map((c) => [c.field.column, nullable(text)]));
  const broken = rulesOf(source.columns).map(([name, rule]) => `CASE WHEN NOT ${rule} THEN ${literal(name)} END`);
  const item = source.form === 'envelope' ? 'item' : 'NULL AS item';
  // Numbering is slow, so records are numbered only if one is invalid. A view of Parquet files may skip rows, so counting its rows would
  // give wrong numbers. Instead, a view has a column with the row's number in its file.
  const number = source.isView ? `${source.order} + 1` : `dense_rank() OVER (PARTITION BY source ORDER BY ${source.order})`;
  const rows = await store.rows(
    `SELECT source, place, ${item}, concat_ws(',', ${broken}) AS broken, ${cells}
     FROM (SELECT *, ${number} AS place FROM ${source.relation})
     WHERE ${isBad} ORDER BY source, place, item LIMIT ${report.room}`,
    { ...asText, ...PLACE },
  );
  const faults: string[] = [];
  for (const { id, file, path } of source.members) {
    const found = rows.filter((row) => row.source === id);
    const records = new Set(found.map(({ place }) => place));
    const lines = found.length > 0 && source.unit === 'line' ? await lineNumbers(path, records) : undefined;
    for (const row of found) {
      const result = row.item === undefined ? '' : ` results[${row.item - 1}]`;
      const where = `${file.name} ${source.unit} ${lines?.get(row.place) ?? row.place}${result}`;
      for (const name of row.broken.split(',')) faults.push(`${where}: ${faultOf(name, source, row)}`);
    }
  }
  // The total is the number of faults of the records that were read here, plus one fault for each further invalid record.
  report.add(faults, Math.max(bad - rows.length, 0) + faults.length);
}

/** Returns the lines of records of an NDJSON file: after a blank line, other numbers than those of the records. */
async function lineNumbers(path: string, records: ReadonlySet<number>): Promise<ReadonlyMap<number, number>> {
  const lines = new Map<number, number>();
  let [line, record] = [0, 0];
  for await (const bytes of linesOf(path)) {
    line += 1;
    if (!isBlank(bytes)) record += 1;
    if (records.has(record) && !lines.has(record)) lines.set(record, line);
  }
  return lines;
}

function faultOf(name: string, { columns, unit }: RawSource, row: Readonly<Record<string, unknown>>): string {
  const column = columns.find(({ field }) => field.column === (name === EQUAL_INDEX ? 'output' : name));
  if (column === undefined) throw new Error(`no column has the rule ${name}`);
  const { field, shape } = column;
  const path = unit === 'row' ? field.column : field.path;
  const cell = row[field.column];
  if (typeof cell !== 'string') return `${path} is missing`;
  // Parses strictly, because DuckDB also accepts NaN, Infinity, and commas before a closing bracket.
  const value: unknown = shape === 'json' ? attempt(() => JSON.parse(cell)) : cell;
  if (value === undefined) return `${path} ${shorten(cell)} is not valid JSON (NaN and Infinity are not allowed)`;
  const shown = `${path} ${shorten(value)}`;
  if (name === EQUAL_INDEX) return `${shown} names output ${String(value).split(':')[1]}, but vout is ${row['vout']}`;
  // JSON.parse turns 1.0 into 1.
  const isInteger = field.kind === 'integer' && Number.isSafeInteger(value) && Number(value) >= 0;
  return `${shown} ${isInteger ? 'must be written as a plain integer, without fraction or exponent' : RULES[field.kind].rule}`;
}

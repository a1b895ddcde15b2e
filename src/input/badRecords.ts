/**
 * Reports the invalid records of a source: file, line and broken rule. The SQL check does not say which rule is broken,
 * so the zod schemas of the contract check these records again.
 */
import type { z } from 'zod';
import { attempt } from '../attempt.ts';
import { RULES } from '../contract/fields.ts';
import { activityInput, textRow, textRule } from '../contract/schemas.ts';
import { identifier, int, nullable, type Store, text } from '../duckdb/store.ts';
import { validity } from './canonicalRecordSql.ts';
import { type Report, shorten } from './inputFindings.ts';
import type { RawSource } from './rawSource.ts';
import { isBlank, linesOf } from './readLines.ts';

/**
 * Columns that locate a record: its file, the number of the record or saved response in the file, and the position of
 * the record in a saved response. None of these names is the name of a field, because the fields are in the same row.
 */
const PLACE = { source: int, place: int, item: nullable(int) };

export async function reportBadRecords(source: RawSource, report: Report, store: Store): Promise<void> {
  const isBad = `NOT (${validity(source.columns)})`;
  const bad = await store.number(`SELECT count(*) AS number FROM ${source.relation} WHERE ${isBad}`);
  if (bad === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const asText = Object.fromEntries(source.columns.map((c) => [c.field.column, nullable(text)]));
  const item = source.form === 'envelope' ? 'item' : 'NULL AS item';
  // Numbering is slow, so records are numbered only if one is invalid. A view of Parquet files may skip rows, so
  // counting its rows would give wrong numbers. Instead, a view has a column with the row's number in its file.
  const number = source.isView ? `${source.order} + 1` : `dense_rank() OVER (PARTITION BY source ORDER BY ${source.order})`;
  const rows = await store.rows(
    `SELECT source, place, ${item}, ${cells.join(', ')}
     FROM (SELECT *, ${number} AS place FROM ${source.relation})
     WHERE ${isBad} ORDER BY source, place, item LIMIT ${report.room}`,
    { ...asText, ...PLACE },
  );
  const lines = new Map<number, ReadonlyMap<number, number>>();
  const faults: string[] = [];
  for (const row of rows) {
    const member = source.members.find(({ id }) => id === row.source);
    if (member === undefined) throw new Error(`no input file has the id ${row.source}`);
    if (source.unit === 'line' && !lines.has(member.id)) lines.set(member.id, await lineNumbers(member.path));
    const number = lines.get(member.id)?.get(row.place) ?? row.place;
    const result = row.item === undefined ? '' : ` results[${row.item - 1}]`;
    for (const fault of recordFaults(source, `${member.file.name} ${source.unit} ${number}${result}`, row)) faults.push(fault);
  }
  // The total is the number of faults of the records that were read here, plus one fault for each further invalid
  // record.
  report.add(faults, Math.max(bad - rows.length, 0) + faults.length);
}

/** Returns line numbers by record number for an NDJSON file. The two numbers differ after a blank line. */
async function lineNumbers(path: string): Promise<Map<number, number>> {
  const lines = new Map<number, number>();
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    if (!isBlank(bytes)) lines.set(lines.size + 1, line);
  }
  return lines;
}

/** Cells of a record as text, by column. */
type Cells = Readonly<Record<string, unknown>>;

/** Returns a message for each rule that a record breaks. `where` locates the record: `input/a.ndjson line 3`. */
function recordFaults(source: RawSource, where: string, row: Cells): string[] {
  const { value, issues } = source.unit === 'row' ? checkCells(source, row) : checkJson(source, row);
  // The SQL check found an error, but the schemas do not, which is a bug of this program. The record is still rejected.
  if (issues.length === 0) return [`${where}: the record was rejected by the SQL check; please report this bug`];
  return issues.map(({ path, message }) => {
    const found = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], value);
    return `${where}: ${path.join('.')}${found === undefined || found === null ? '' : ` ${shorten(found)}`} ${message}`;
  });
}

interface Checked {
  readonly value: unknown;
  readonly issues: readonly Pick<z.core.$ZodIssue, 'path' | 'message'>[];
}

function checkCells(source: RawSource, row: Cells): Checked {
  const value = Object.fromEntries(source.columns.map(({ field }) => [field.column, row[field.column]]));
  return { value, issues: textRow(source.columns.map((c) => c.field)).safeParse(value).error?.issues ?? [] };
}

function checkJson(source: RawSource, row: Cells): Checked {
  const value: Record<string, unknown> = { rune: {}, location: {} };
  const issues: Checked['issues'][number][] = [];
  for (const { field } of source.columns) {
    const cell = row[field.column];
    // Parses strictly, because DuckDB also accepts NaN, Infinity, and commas before a closing bracket.
    const parsed: unknown = typeof cell === 'string' ? attempt(() => JSON.parse(cell)) : undefined;
    if (typeof cell === 'string' && parsed === undefined)
      return { value: row, issues: [{ path: [field.column], message: 'is not valid JSON (NaN and Infinity are not allowed)' }] };
    const [head = '', tail] = field.path.split('.');
    if (tail === undefined) value[head] = parsed;
    else (value[head] as Record<string, unknown>)[tail] = parsed;
    if (field.kind !== 'integer' || textRule('integer').safeParse(cell).success) continue;
    const isWhole = Number.isSafeInteger(parsed) && Number(parsed) >= 0;
    // The schema of a record does not find these errors: JSON.parse turns 1.0 into 1, and `total` and `offset` are
    // fields of a saved response, not of a record.
    if (isWhole) issues.push({ path: field.path.split('.'), message: 'must be written as a plain integer, without fraction or exponent' });
    else if (field.column.startsWith('page_')) issues.push({ path: [field.path], message: RULES.integer.rule });
  }
  return { value, issues: [...issues, ...(activityInput.safeParse(value).error?.issues ?? [])] };
}

/**
 * Reports the invalid records of a source: file, line and broken rule. The SQL check does not say which rule is broken,
 * so the cells of these records are checked again.
 */
import { attempt } from '../attempt.ts';
import { type FieldKind, MAX_AMOUNT, MAX_INTEGER, RULES } from '../contract/fields.ts';
import { identifier, int, nullable, type Store, text } from '../duckdb/store.ts';
import { validity } from './canonicalRecordSql.ts';
import type { RawColumn } from './cellSql.ts';
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

/** Returns a message for each rule that a record breaks. `where` locates the record: `input/a.ndjson line 3`. */
function recordFaults(source: RawSource, where: string, row: Readonly<Record<string, unknown>>): string[] {
  const cells = source.columns.map((column) => checkedCell(column, row[column.field.column]));
  const output = cells.find(({ field: { kind } }) => kind === 'output');
  const vout = cells.find(({ field: { column } }) => column === 'vout');
  const index = output?.fault === undefined ? outpointIndex(String(output?.value)) : undefined;
  const found = cells.map(({ field, value, fault }) => {
    const isOther = field.kind === 'output' && index !== undefined && isPresent(vout?.value) && Number(vout?.value) !== index;
    const what = isOther ? `names output ${index}, but vout is ${vout?.value}` : fault;
    const name = source.unit === 'row' ? field.column : field.path;
    return what === undefined ? [] : `${where}: ${name}${isPresent(value) ? ` ${shorten(value)}` : ''} ${what}`;
  });
  const faults = found.flat();
  // The SQL check found an error, but this check does not, which is a bug of this program. The record is still rejected.
  return faults.length > 0 ? faults : [`${where}: the record was rejected by the SQL check; please report this bug`];
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** Returns a cell with its value, and says which rule it breaks, if any. */
function checkedCell({ field, shape }: RawColumn, cell: unknown) {
  const { kind, required } = field;
  const text = typeof cell === 'string' ? cell : '';
  // Parses strictly, because DuckDB also accepts NaN, Infinity, and commas before a closing bracket.
  const value: unknown = shape === 'json' && text !== '' ? attempt(() => JSON.parse(text)) : cell;
  if (value === undefined && text !== '') return { field, value: text, fault: 'is not valid JSON (NaN and Infinity are not allowed)' };
  if (!isPresent(value)) return { field, value, fault: required ? 'is missing' : undefined };
  const isNumber = shape === 'json' && kind === 'integer';
  const isRight = isNumber ? Number.isSafeInteger(value) && Number(value) >= 0 : typeof value === 'string' && follows(kind, value);
  if (!isRight) return { field, value, fault: RULES[kind].rule };
  // JSON.parse turns 1.0 into 1.
  const isPlain = !isNumber || follows(kind, text);
  return { field, value, fault: isPlain ? undefined : 'must be written as a plain integer, without fraction or exponent' };
}

/** True if a text follows the rule of its kind of fields. */
function follows(kind: FieldKind, text: string): boolean {
  if (kind !== 'text' && !new RegExp(`^${RULES[kind].pattern}$`).test(text)) return false;
  if (kind === 'integer') return Number(text) <= MAX_INTEGER;
  if (kind === 'output') return (outpointIndex(text) ?? 0) <= MAX_INTEGER;
  if (!['amount', 'units', 'count'].includes(kind)) return true;
  // The digits without the decimal point are the number of smallest units.
  const digits = text.replace('.', '');
  return digits.length <= 80 && BigInt(digits) <= MAX_AMOUNT;
}

/** Returns the index in an outpoint `txid:vout`. Undefined for an output without an index. */
const outpointIndex = (output: string): number | undefined =>
  output.includes(':') ? Number(output.slice(output.indexOf(':') + 1)) : undefined;

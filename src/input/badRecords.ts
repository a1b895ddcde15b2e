/** Reports the invalid records of a source: file, line and broken rule. */
import { identifier, int, nullable, type Store, text } from '../duckdb/store.ts';
import { validity } from './canonicalRecordSql.ts';
import type { Report } from './inputFindings.ts';
import type { RawSource } from './rawSource.ts';
import { isBlank, linesOf } from './readLines.ts';
import { recordFaults } from './recordFaults.ts';

/**
 * Columns that locate a record: its file, the number of the record or saved response in the file, and the position of
 * the record in a saved response. The names differ from those of all fields, which are in the same row.
 */
const PLACE = { source: int, place: int, item: nullable(int) };

export async function reportBadRecords(source: RawSource, report: Report, store: Store): Promise<void> {
  const isBad = `NOT (${validity(source)})`;
  const bad = await store.number(`SELECT count(*) AS number FROM ${source.relation} WHERE ${isBad}`);
  if (bad === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const asText = Object.fromEntries(source.columns.map((c) => [c.field.column, nullable(text)]));
  const item = source.form === 'envelope' ? 'item' : 'NULL AS item';
  // Numbering is slow, so records are numbered only if one is invalid. A view may skip rows of its file, so counting
  // its rows would give wrong numbers. The view has the row number in the file instead.
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
    if (member === undefined) throw new Error(`no file has the number ${row.source}`);
    if (source.unit === 'line' && !lines.has(member.id)) lines.set(member.id, await lineNumbers(member.path));
    const number = lines.get(member.id)?.get(row.place) ?? row.place;
    const result = row.item === undefined ? '' : ` results[${row.item - 1}]`;
    for (const fault of recordFaults(source, `${member.file.name} ${source.unit} ${number}${result}`, row)) faults.push(fault);
  }
  // A record may break several rules, so there may be more faults than records.
  report.add(faults, Math.max(bad - rows.length, 0) + faults.length);
}

/** Returns line numbers by record number for an NDJSON file. The two differ if the file has blank lines. */
async function lineNumbers(path: string): Promise<Map<number, number>> {
  const lines = new Map<number, number>();
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    if (!isBlank(bytes)) lines.set(lines.size + 1, line);
  }
  return lines;
}

/**
 * Says in people's words what is wrong with the records that the bulk check refused. The schemas are asked, not a second set of rules.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { z } from 'zod';
import { activityInput, textRow, textRule } from '../contract/schemas.ts';
import { identifier, type Row, type Store, toNumber } from '../store/duckdb.ts';
import { describe, type Finding, type Report } from './report.ts';
import { type RawSource, validity } from './sources.ts';

/** Adds the bad records of one source to the report. */
export async function reportBadRecords(source: RawSource, report: Report, store: Store): Promise<void> {
  const rule = validity(source);
  const { bad } = await store.row(`SELECT count(*) FILTER (NOT (${rule})) AS bad FROM ${source.relation}`);
  if (toNumber(bad) === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const item = source.form === 'envelope' ? ', item' : '';
  const rows = await store.rows(
    `SELECT ${source.ordinal} AS ordinal${item}, ${cells.join(', ')} FROM ${source.relation}
     WHERE NOT (${rule}) ORDER BY ordinal${item} LIMIT ${report.room}`,
  );
  const lines = await lineNumbers(
    source,
    rows.map((row) => toNumber(row['ordinal'])),
  );
  const findings = rows.flatMap((row) => explain(source, row, lines));
  // A record may break several rules, so there can be more findings than bad records.
  report.add(findings.map(describe), Math.max(toNumber(bad) - rows.length, 0) + findings.length);
}

function explain(source: RawSource, row: Row, lines: ReadonlyMap<number, number>): Finding[] {
  const ordinal = toNumber(row['ordinal']);
  const result = row['item'] === undefined ? '' : ` results[${toNumber(row['item']) - 1}]`;
  const where = `${source.file.name} ${source.unit} ${lines.get(ordinal) ?? ordinal}${result}`;
  const { value, issues } = source.unit === 'row' ? checkCells(source, row) : checkJson(source, row);
  const findings = issues.map((issue) => ({
    where,
    field: issue.path.join('.'),
    value: issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], value),
    rule: issue.message,
  }));
  if (findings.length > 0) return findings;
  // The two checks disagree: a fault of this program, which must not pass the record all the same.
  return [{ where, field: 'the record', value: undefined, rule: 'was refused by the bulk check; please report this' }];
}

interface Checked {
  readonly value: unknown;
  readonly issues: readonly Pick<z.core.$ZodIssue, 'path' | 'message'>[];
}

function checkCells(source: RawSource, row: Row): Checked {
  const value = Object.fromEntries(source.columns.map(({ field }) => [field.column, row[field.column]]));
  return { value, issues: textRow(source.columns.map((c) => c.field)).safeParse(value).error?.issues ?? [] };
}

function checkJson(source: RawSource, row: Row): Checked {
  const value: Record<string, unknown> = { rune: {}, location: {} };
  const issues: Checked['issues'][number][] = [];
  for (const { field } of source.columns) {
    const cell = row[field.column];
    const parsed: unknown = typeof cell === 'string' ? JSON.parse(cell) : undefined;
    const [head = '', tail] = field.path.split('.');
    if (tail === undefined) value[head] = parsed;
    else (value[head] as Record<string, unknown>)[tail] = parsed;
    // The envelope's own numbers are not part of an Activity.
    if (field.column.startsWith('page_') && !(typeof parsed === 'number' && textRule('integer').safeParse(cell).success)) {
      issues.push({ path: [field.path], message: textRule('integer').safeParse(undefined).error?.issues[0]?.message ?? '' });
    }
  }
  return { value, issues: [...issues, ...(activityInput.safeParse(value).error?.issues ?? [])] };
}

/** The line of each record of an NDJSON file; records are not lines where some lines are blank. */
async function lineNumbers(source: RawSource, records: readonly number[]): Promise<Map<number, number>> {
  const lines = new Map<number, number>();
  if (source.unit !== 'line') return lines;
  const wanted = new Set(records);
  const last = Math.max(...records);
  let line = 0;
  let record = 0;
  const reader = createInterface({ input: createReadStream(source.path), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const text of reader) {
    line += 1;
    if (text.trim() === '') continue;
    record += 1;
    if (wanted.has(record)) lines.set(record, line);
    if (record >= last) break;
  }
  reader.close();
  return lines;
}

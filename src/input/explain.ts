/**
 * Says in people's words what is wrong with the records that the bulk check refused. The schemas are asked, not a second set of rules.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { z } from 'zod';
import { RULES } from '../contract/fields.ts';
import { activityInput, textRow, textRule } from '../contract/schemas.ts';
import { identifier, type Row, type Store, toNumber } from '../store/duckdb.ts';
import { describe, type Finding, type Report } from './report.ts';
import { type Member, type RawSource, validity } from './sources.ts';

/** Adds the records of a source that break a rule of their fields. */
export const reportBadRecords = (source: RawSource, report: Report, store: Store): Promise<void> =>
  reportRecords(source, `NOT (${validity(source)})`, report, store, (where, row) => explain(source, where, row).map(describe));

/**
 * Adds the records for which `condition` (SQL) holds: `explain` says what is wrong with one, given where it is (`input/a.ndjson line 3`)
 * and its cells as text.
 */
export async function reportRecords(
  source: RawSource,
  condition: string,
  report: Report,
  store: Store,
  explain: (where: string, row: Row) => string[],
): Promise<void> {
  const { bad } = await store.row(`SELECT count(*) AS bad FROM ${source.relation} WHERE ${condition}`);
  if (toNumber(bad) === 0) return;
  const cells = source.columns.map((c) => `${identifier(c.field.column)}::VARCHAR AS ${identifier(c.field.column)}`);
  const item = source.form === 'envelope' ? ', item' : '';
  // Only now, with something to report, are records numbered within their files.
  const rows = await store.rows(
    `SELECT source, number${item}, ${cells.join(', ')}
     FROM (SELECT *, dense_rank() OVER (PARTITION BY source ORDER BY ${source.order}) AS number FROM ${source.relation})
     WHERE ${condition} ORDER BY source, number${item} LIMIT ${report.room}`,
  );
  const places = new Places(source);
  const lines: string[] = [];
  for (const row of rows) lines.push(...explain(await places.of(row), row));
  // A record may break several rules, so there can be more lines than bad records.
  report.add(lines, Math.max(toNumber(bad) - rows.length, 0) + lines.length);
}

function explain(source: RawSource, where: string, row: Row): Finding[] {
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
    if (field.kind !== 'integer' || textRule('integer').safeParse(cell).success) continue;
    const isWhole = Number.isSafeInteger(parsed) && Number(parsed) >= 0;
    // The envelope's own numbers are not part of an Activity, and JSON.parse makes 1 of 1.0.
    if (isWhole) issues.push({ path: field.path.split('.'), message: 'must be written as a plain integer, without fraction or exponent' });
    else if (field.column.startsWith('page_')) issues.push({ path: [field.path], message: RULES.integer.rule });
  }
  return { value, issues: [...issues, ...(activityInput.safeParse(value).error?.issues ?? [])] };
}

/** Names the places of records. */
class Places {
  readonly #source: RawSource;
  /** Of NDJSON files: the line of each record; records are not lines where some lines are blank. */
  readonly #lines = new Map<number, Map<number, number>>();

  constructor(source: RawSource) {
    this.#source = source;
  }

  /** For a row with `source`, `number` (of the record, or of the saved response, in the file) and perhaps `item`. */
  async of(row: Row): Promise<string> {
    const member = this.#source.members.find(({ id }) => id === toNumber(row['source']));
    if (member === undefined) throw new Error(`no file has the number ${toNumber(row['source'])}`);
    const number = toNumber(row['number']);
    const place = this.#source.unit === 'line' ? ((await this.#linesOf(member)).get(number) ?? number) : number;
    const result = row['item'] === undefined ? '' : ` results[${toNumber(row['item']) - 1}]`;
    return `${member.file.name} ${this.#source.unit} ${place}${result}`;
  }

  async #linesOf(member: Member): Promise<Map<number, number>> {
    const known = this.#lines.get(member.id);
    if (known !== undefined) return known;
    const lines = new Map<number, number>();
    let line = 0;
    for await (const text of createInterface({ input: createReadStream(member.path), crlfDelay: Number.POSITIVE_INFINITY })) {
      line += 1;
      if (text.trim() !== '') lines.set(lines.size + 1, line);
    }
    this.#lines.set(member.id, lines);
    return lines;
  }
}

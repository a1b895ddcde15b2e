/**
 * What is wrong with one record: the schemas are asked, not a second set of rules.
 */
import type { z } from 'zod';
import { RULES } from '../contract/fields.ts';
import { activityInput, textRow, textRule } from '../contract/schemas.ts';
import type { Row } from '../store/duckdb.ts';
import type { Finding } from './report.ts';
import type { RawSource } from './sources.ts';

/** The rules that a refused record breaks; `row` has its cells as text and `where` says where it is. */
export function judge(source: RawSource, where: string, row: Row): Finding[] {
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

const NOT_JSON = Symbol('not JSON');

/** DuckDB reads NaN and Infinity, and commas before a closing bracket. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

function checkJson(source: RawSource, row: Row): Checked {
  const value: Record<string, unknown> = { rune: {}, location: {} };
  const issues: Checked['issues'][number][] = [];
  for (const { field } of source.columns) {
    const cell = row[field.column];
    const parsed = typeof cell === 'string' ? parseJson(cell) : undefined;
    if (parsed === NOT_JSON) {
      return { value: row, issues: [{ path: [field.column], message: 'is not JSON, which has no NaN and no Infinity' }] };
    }
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

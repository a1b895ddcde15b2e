/**
 * Explains why a record is invalid. Checks the record again with the zod schemas of the contract, which give reasons.
 */
import type { z } from 'zod';
import { RULES } from '../contract/fields.ts';
import { activityInput, textRow, textRule } from '../contract/schemas.ts';
import { shorten } from './inputFindings.ts';
import type { RawSource } from './rawSource.ts';

/** Cells of a record as text, by column. */
type Cells = Readonly<Record<string, unknown>>;

/** Returns a message for each rule that a record breaks. `where` locates the record: `input/a.ndjson line 3`. */
export function recordFaults(source: RawSource, where: string, row: Cells): string[] {
  const { value, issues } = source.unit === 'row' ? checkCells(source, row) : checkJson(source, row);
  // The SQL check found an error, but the schemas do not, which is a bug. The record is still rejected.
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

const NOT_JSON = Symbol('not JSON');

/** Parses strictly, because DuckDB also accepts NaN, Infinity, and commas before a closing bracket. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

function checkJson(source: RawSource, row: Cells): Checked {
  const value: Record<string, unknown> = { rune: {}, location: {} };
  const issues: Checked['issues'][number][] = [];
  for (const { field } of source.columns) {
    const cell = row[field.column];
    const parsed = typeof cell === 'string' ? parseJson(cell) : undefined;
    if (parsed === NOT_JSON) {
      return { value: row, issues: [{ path: [field.column], message: 'is not valid JSON (NaN and Infinity are not allowed)' }] };
    }
    const [head = '', tail] = field.path.split('.');
    if (tail === undefined) value[head] = parsed;
    else (value[head] as Record<string, unknown>)[tail] = parsed;
    if (field.kind !== 'integer' || textRule('integer').safeParse(cell).success) continue;
    const isWhole = Number.isSafeInteger(parsed) && Number(parsed) >= 0;
    // The schema does not see these errors: JSON.parse turns 1.0 into 1, and the schema has no `total` and `offset`,
    // which are fields of a response.
    if (isWhole) issues.push({ path: field.path.split('.'), message: 'must be written as a plain integer, without fraction or exponent' });
    else if (field.column.startsWith('page_')) issues.push({ path: [field.path], message: RULES.integer.rule });
  }
  return { value, issues: [...issues, ...(activityInput.safeParse(value).error?.issues ?? [])] };
}

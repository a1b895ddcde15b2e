/**
 * The bulk check: every rule of contract/fields.ts as an SQL predicate, and every canonical value as an SQL expression.
 *
 * A cell of an input comes in one of four shapes: JSON text ("840000", "\"mint\""), plain text (CSV, and columns cast to text), plain text
 * that is its own canonical value (only so checked), or a native integer. NULL is no value.
 */
import { type Field, MAX_AMOUNT, MAX_INTEGER, RULES } from '../contract/fields.ts';
import { identifier, literal } from '../store/duckdb.ts';

export type Shape = 'json' | 'text' | 'canonical' | 'integer';

/** One column of a raw table. */
export interface RawColumn {
  readonly field: Field;
  readonly shape: Shape;
}

/** DuckDB's integer types that need no text check. HUGEINT and DECIMAL are checked as text. */
const INTEGER_TYPES = /^U?(TINYINT|SMALLINT|INTEGER|BIGINT)$/;
/** Types that hold several values or raw bytes, and types that cannot hold the numbers exactly. */
export const NESTED_TYPES = /\[|^(?:STRUCT|MAP|UNION|BLOB)/;
export const INEXACT_TYPES = /^(FLOAT|DOUBLE|REAL)$/;

export const shapeOf = (field: Field, type: string): Shape => (field.kind === 'integer' && INTEGER_TYPES.test(type) ? 'integer' : 'text');

/** What `canonicalValue` and `outputHex` give. */
const CANONICAL_HASH = '[0-9a-f]{64}';
const CANONICAL_OUTPUT = '[0-9a-f]+';

/** The cell as plain text: a JSON string is unquoted. */
function text(column: RawColumn): string {
  const cell = identifier(column.field.column);
  if (column.shape === 'integer') return `${cell}::VARCHAR`;
  if (column.shape !== 'json' || column.field.kind === 'integer') return cell;
  return `json_extract_string(${cell}, '$')`;
}

/** Whether the cell keeps the field's rule; never NULL. */
export function isValid(column: RawColumn): string {
  const { field, shape } = column;
  const cell = identifier(field.column);
  const rule = presentRule(column);
  if (field.required) return `(${cell} IS NOT NULL AND ${rule})`;
  return rule === 'true' ? rule : `(${cell} IS NULL OR ${rule})`;

  function presentRule({ field: { kind } }: RawColumn): string {
    if (shape === 'integer') return `${cell} BETWEEN 0 AND ${MAX_INTEGER}`;
    const matches = (pattern: string) => `regexp_full_match(${shape === 'json' ? cell : text(column)}, ${literal(pattern)})`;
    const quoted = (pattern: string) => (shape === 'json' ? `"${pattern}"` : pattern);
    switch (kind) {
      case 'integer':
        return `(${matches(RULES.integer.pattern)} AND TRY_CAST(${cell} AS BIGINT) <= ${MAX_INTEGER})`;
      case 'text':
        return shape === 'json' ? `starts_with(${cell}, '"')` : 'true';
      case 'amount':
      case 'units': {
        const digits = `ltrim(replace(${text(column)}, '.', ''), '0')`;
        const fits = `(length(${digits}) < 39 OR (length(${digits}) = 39 AND ${digits} <= '${MAX_AMOUNT}'))`;
        // Nearly all amounts are too short to be too large; CASE spares them the exact test, which AND and OR would not.
        return `(${matches(quoted(RULES[kind].pattern))} AND CASE WHEN strlen(${cell}) < 39 THEN true ELSE ${fits} END)`;
      }
      case 'hash':
        return matches(shape === 'canonical' ? CANONICAL_HASH : quoted(RULES.hash.pattern));
      case 'output':
        if (shape === 'canonical') return matches(CANONICAL_OUTPUT);
        return `(${matches(quoted(RULES.output.pattern))} AND CASE WHEN contains(${cell}, ':') THEN ${outpointIndex(column)} <= ${MAX_INTEGER} ELSE true END)`;
      default:
        return matches(quoted(RULES[kind].pattern));
    }
  }
}

/** The canonical value of a cell: BIGINT for integers, lower-case digits without prefix for hashes, text otherwise. */
export function canonicalValue(column: RawColumn): string {
  if (column.shape === 'canonical' && column.field.kind !== 'integer') return identifier(column.field.column);
  switch (column.field.kind) {
    case 'integer':
      return column.shape === 'integer' ? `${identifier(column.field.column)}::BIGINT` : `${text(column)}::BIGINT`;
    case 'hash': {
      // The last 64 digits: a hash has no escapes, so of JSON they end before the quote.
      const cell = identifier(column.field.column);
      return `lower(substr(${cell}, length(${cell}) - ${column.shape === 'json' ? 64 : 63}, 64))`;
    }
    default:
      return text(column);
  }
}

/** The hex part of an `output` cell, lower case, without prefix and without the index of an outpoint. */
export function outputHex(column: RawColumn): string {
  if (column.shape === 'canonical') return identifier(column.field.column);
  const output = text(column);
  const hex = `CASE WHEN contains(${output}, ':') THEN split_part(${output}, ':', 1) ELSE ${output} END`;
  return `lower(CASE WHEN ${output}[2] IN ('x', 'X') THEN substr(${hex}, 3) ELSE ${hex} END)`;
}

/** Whether an `output` cell is an outpoint, which has an index. */
export const isOutpoint = (column: RawColumn): string =>
  column.shape === 'canonical' ? 'false' : `contains(${identifier(column.field.column)}, ':')`;

/** The index in an `output` cell that is an outpoint; NULL when it has none. */
export const outpointIndex = (column: RawColumn): string =>
  column.shape === 'canonical' ? 'NULL::BIGINT' : `TRY_CAST(nullif(split_part(${text(column)}, ':', 2), '') AS BIGINT)`;

/** Returns SQL for one cell: a check of its field's rule (contract/fields.ts), and its canonical value. NULL means no value. */
import { type Field, type FieldKind, MAX_AMOUNT, MAX_INTEGER, RULES } from '../contract/fields.ts';
import { identifier, literal } from '../duckdb/store.ts';

/** Format of a cell: JSON text such as `"mint"` with its quotes, plain text, text that must already be canonical, or a native integer. */
export type Shape = 'json' | 'text' | 'canonical' | 'integer';

export interface RawColumn {
  readonly field: Field;
  readonly shape: Shape;
}

/** Types of DuckDB whose cells are checked as numbers. All others are checked as text. */
const INTEGER_TYPES = /^U?(TINYINT|SMALLINT|INTEGER|BIGINT)$/;

/** Types of DuckDB from which the values of a field are read, and the words of messages for them. */
const TYPES: Readonly<Record<'flag' | 'number' | 'text', { readonly pattern: RegExp; readonly words: string }>> = {
  flag: { pattern: /^(?:VARCHAR|BOOLEAN)$/, words: 'BOOLEAN or text (VARCHAR)' },
  number: { pattern: /^(?:VARCHAR$|U?(?:TINYINT|SMALLINT|INTEGER|BIGINT)$|DECIMAL)/, words: 'an integer, DECIMAL or text (VARCHAR)' },
  text: { pattern: /^VARCHAR$/, words: 'text (VARCHAR)' },
};

export const typesOf = ({ kind }: Field): (typeof TYPES)['text'] =>
  TYPES[kind === 'flag' ? 'flag' : ['integer', 'amount', 'units', 'count'].includes(kind) ? 'number' : 'text'];

export const shapeOf = (field: Field, type: string): Shape => (field.kind === 'integer' && INTEGER_TYPES.test(type) ? 'integer' : 'text');

/** Patterns of canonical values. The rules of other kinds of fields allow only canonical values. */
const CANONICAL: Readonly<Partial<Record<FieldKind, string>>> = {
  hash: '[0-9a-f]{64}',
  hashOrNone: '(?:[0-9a-f]{64})?',
  output: '[0-9a-f]+',
};

/** Returns the SQL of the cell's plain text. JSON strings lose their quotes. */
function text(column: RawColumn): string {
  const cell = identifier(column.field.column);
  if (column.shape === 'integer') return `${cell}::VARCHAR`;
  if (column.shape !== 'json' || column.field.kind === 'integer') return cell;
  return `json_extract_string(${cell}, '$')`;
}

/** Returns SQL that is true if the cell follows its field's rule. The result is never NULL. */
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
    const canonical = shape === 'canonical' ? CANONICAL[kind] : undefined;
    if (canonical !== undefined) return matches(canonical);
    switch (kind) {
      case 'integer':
        return `(${matches(RULES.integer.pattern)} AND TRY_CAST(${cell} AS BIGINT) <= ${MAX_INTEGER})`;
      case 'text':
        return shape === 'json' ? `starts_with(${cell}, '"')` : 'true';
      case 'amount':
      case 'units':
      case 'count': {
        const digits = `ltrim(replace(${text(column)}, '.', ''), '0')`;
        const fits = `(length(${digits}) < 39 OR (length(${digits}) = 39 AND ${digits} <= '${MAX_AMOUNT}'))`;
        // Short amounts are always small enough. CASE skips the slow comparison for short amounts, but AND and OR would compute it for all.
        return `(${matches(quoted(RULES[kind].pattern))} AND CASE WHEN strlen(${cell}) < 39 THEN true ELSE ${fits} END)`;
      }
      case 'output':
        return `(${matches(quoted(RULES.output.pattern))} AND CASE WHEN contains(${cell}, ':') THEN ${outpointIndex(column)} <= ${MAX_INTEGER} ELSE true END)`;
      default:
        return matches(quoted(RULES[kind].pattern));
    }
  }
}

/** Returns the SQL of the canonical value: a BIGINT, a BOOLEAN, or text; of a hash, lower-case hex without prefix. */
export function canonicalValue(column: RawColumn): string {
  const { field, shape } = column;
  const cell = identifier(field.column);
  if (field.kind === 'flag') return `${text(column)}::BOOLEAN`;
  if (field.kind === 'integer') return `${cell}::BIGINT`;
  if (shape === 'canonical' || (field.kind !== 'hash' && field.kind !== 'hashOrNone')) return text(column);
  // The hash is the last 64 characters, or in JSON text the 64 characters before the closing quote.
  return `lower(substr(${cell}, length(${cell}) - ${shape === 'json' ? 64 : 63}, 64))`;
}

/** Returns the SQL of an `output` cell's hex digits: lower case, without prefix and without `:vout`. */
export function outputHex(column: RawColumn): string {
  if (column.shape === 'canonical') return identifier(column.field.column);
  const output = text(column);
  const hex = `CASE WHEN contains(${output}, ':') THEN split_part(${output}, ':', 1) ELSE ${output} END`;
  return `lower(CASE WHEN ${output}[2] IN ('x', 'X') THEN substr(${hex}, 3) ELSE ${hex} END)`;
}

/** Returns SQL that is true when an `output` cell is an outpoint, `txid:vout`. */
export const isOutpoint = (column: RawColumn): string =>
  column.shape === 'canonical' ? 'false' : `contains(${identifier(column.field.column)}, ':')`;

/** Returns the SQL of the `vout` of an outpoint in an `output` cell; NULL for any other cell. */
export const outpointIndex = (column: RawColumn): string =>
  column.shape === 'canonical' ? 'NULL::BIGINT' : `TRY_CAST(nullif(split_part(${text(column)}, ':', 2), '') AS BIGINT)`;

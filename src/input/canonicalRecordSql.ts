/** Returns SQL that checks all fields of records, selects their canonical columns, and lists their blocks. */
import { ACTIVITY_FIELDS, EVENT_INDEX } from '../contract/fields.ts';
import { identifier } from '../duckdb/store.ts';
import { columnsOf, type Table } from '../duckdb/table.ts';
import type { BlockRange } from './blocksRead.ts';
import { canonicalValue, isOutpoint, isValid, outpointIndex, outputHex, type RawColumn } from './cellSql.ts';
import type { RawSource } from './rawSource.ts';

/** Columns of canonical records, from every form of input. Within a transaction, the API lists the record with the highest `ord` first. */
export const RECORDS = { source: 'INTEGER', ...columnsOf([...ACTIVITY_FIELDS, EVENT_INDEX]), ord: 'BIGINT' } as const;
export type Records = Table<typeof RECORDS>;

const CANONICAL_COLUMNS = Object.keys(RECORDS);

/** Columns that clients see, quoted. */
export const SERVED_COLUMNS = ACTIVITY_FIELDS.map(({ column }) => identifier(column));

/** ORDER BY expressions of served order. */
export const SERVED_ORDER = 'block_height, tx_index DESC, ord DESC';

/** Name of the rule that the index of an outpoint must be equal to `vout`. No column has this name. */
export const EQUAL_INDEX = 'index of output';

/** Returns the rules of valid records: SQL that is never NULL, by the name of a column or EQUAL_INDEX. */
export function rulesOf(columns: readonly RawColumn[]): (readonly [name: string, rule: string])[] {
  const rules = columns.map((column) => [column.field.column, isValid(column)] as const);
  const output = columns.find((c) => c.field.kind === 'output');
  if (output === undefined || !columns.some((c) => c.field.column === 'vout')) return rules;
  const isEqual = `coalesce(${outpointIndex(output)} = TRY_CAST(vout AS BIGINT), true)`;
  return [...rules, [EQUAL_INDEX, `CASE WHEN contains("output", ':') THEN ${isEqual} ELSE true END`]];
}

export const validity = (columns: readonly RawColumn[]): string =>
  rulesOf(columns)
    .map(([, rule]) => rule)
    .filter((rule) => rule !== 'true')
    .join(' AND ');

/** Returns the SQL of a column's canonical value. Throws when the source lacks the column. */
export function canonicalCell(source: Pick<RawSource, 'columns'>, name: string): string {
  const column = source.columns.find((c) => c.field.column === name);
  if (column === undefined) throw new Error(`the source has no column ${name}`);
  return canonicalValue(column);
}

export const isInRange = (height: string, range: BlockRange | undefined): string =>
  range === undefined ? 'true' : `${height} BETWEEN ${range.from} AND ${range.to}`;

/** Returns SQL that selects source, height, hash, and number of records of each block: only of records for which `isCounted` is true. */
export function blocksSelect(source: RawSource, range: BlockRange | undefined, isCounted = 'true'): string {
  const [height, hash] = [canonicalCell(source, 'block_height'), canonicalCell(source, 'block_hash')];
  return `SELECT source, ${height} AS height, ${hash} AS hash, count(*) FILTER (${isCounted}) FROM ${source.relation}
    WHERE ${isInRange(height, range)} GROUP BY ALL`;
}

/** Returns SQL for the canonical records and the columns `more` of a source of the form `activity`, `envelope` or `flat`. */
export function canonicalSelect(source: RawSource, more: readonly string[] = []): string {
  const columnOf = (name: string) => source.columns.find((c) => c.field.column === name);
  const value = (name: string) => (columnOf(name) === undefined ? 'NULL::BIGINT' : canonicalCell(source, name));
  const output = columnOf('output');
  const selected = ACTIVITY_FIELDS.map(({ column }) => {
    if (column === 'output' && output !== undefined) return outputHex(output);
    if (column === 'vout' && output !== undefined)
      return `CASE WHEN ${isOutpoint(output)} THEN coalesce(${value('vout')}, ${outpointIndex(output)}) ELSE ${value('vout')} END`;
    return value(column);
  });
  const eventIndex = value(EVENT_INDEX.column);
  return selectAs(['source', ...selected, eventIndex, `coalesce(${eventIndex}, -${source.order})`], source.relation, more);
}

/** Returns a query for canonical records. `expressions` has the SQL of each column of RECORDS, in the same order. */
export const selectAs = (expressions: readonly string[], from: string, more: readonly string[] = []): string =>
  `SELECT ${[...expressions.map((e, i) => `${e} AS ${identifier(CANONICAL_COLUMNS[i] ?? '')}`), ...more].join(', ')} FROM ${from}`;

/**
 * Turns a recognised file into a relation of the store: first its cells as they are (`raw`, with every value still checkable), then
 * canonical records. Text forms become tables, since they are parsed once; Parquet stays where it is and becomes a view.
 */
import { ACTIVITY_FIELDS, EVENT_INDEX, type Field, LEDGER_FIELDS, RUNE_FIELDS } from '../contract/fields.ts';
import { InputError } from '../errors.ts';
import { identifier, literal, type Store, toNumber } from '../store/duckdb.ts';
import { canonicalValue, INEXACT_TYPES, isValid, outpointIndex, outputHex, type RawColumn, shapeOf } from './checks.ts';
import type { InputFile } from './discover.ts';
import { duckdbMessage, MAXIMUM_OBJECT_BYTES, type Recognised, type TableForm } from './recognise.ts';

/** A file's cells in the store, before they are known to be good. */
export interface RawSource {
  readonly id: number;
  readonly file: InputFile;
  readonly form: 'activity' | 'envelope' | TableForm;
  /** What a record of it is called in reports. */
  readonly unit: 'line' | 'record' | 'row';
  /** The plain file, for reports that look a line up. */
  readonly path: string;
  readonly relation: string;
  /** SQL of a record's 1-based number in the file. */
  readonly ordinal: string;
  readonly columns: readonly RawColumn[];
  /** Whether reading it again costs nothing that a table would save. */
  readonly isView: boolean;
}

/** The columns of canonical records, in the order of every canonical relation. `ord` descending is served order in a transaction. */
export const CANONICAL_COLUMNS = ['source', ...ACTIVITY_FIELDS.map((f) => f.column), 'event_index', 'ord'] as const;

/** The envelope's own fields that saved responses are put together by. */
const ENVELOPE_FIELDS: readonly Field[] = ['total', 'offset'].map((name) => ({
  column: `page_${name}`,
  path: name,
  kind: 'integer',
  required: true,
}));

const RUNE_TYPE = 'STRUCT(id JSON, number JSON, name JSON, spaced_name JSON)';
const LOCATION_TYPE = 'STRUCT(block_hash JSON, block_height JSON, tx_id JSON, tx_index JSON, vout JSON, "output" JSON, "timestamp" JSON)';
const ACTIVITY_TYPES: readonly [string, string][] = [
  ['rune', RUNE_TYPE],
  ['address', 'JSON'],
  ['receiver_address', 'JSON'],
  ['amount', 'JSON'],
  ['operation', 'JSON'],
  ['location', LOCATION_TYPE],
];

const FORM_FIELDS: Readonly<Record<TableForm, readonly Field[]>> = {
  flat: [...ACTIVITY_FIELDS, EVENT_INDEX],
  ledger: LEDGER_FIELDS,
  runes: RUNE_FIELDS,
};

/** Reads one file into the store. Throws an InputError when it is broken as a whole (syntax, column types). */
export async function readSource(recognised: Recognised, id: number, store: Store): Promise<RawSource | undefined> {
  const { file, form } = recognised;
  try {
    switch (form) {
      case 'no-records':
        return undefined;
      case 'activity':
      case 'envelope':
        return await readJson(recognised, id, store);
      default:
        return await readTable(recognised, id, store);
    }
  } catch (error) {
    if (error instanceof InputError || !isReadError(error)) throw error;
    const what = 'layout' in recognised ? 'JSON' : recognised.format === 'csv' ? 'CSV' : 'Parquet';
    throw new InputError(`${file.name} is broken ${what}: ${duckdbMessage(error)}`);
  }
}

/** DuckDB's errors about data; out of memory and full disks are not the input's fault. */
const isReadError = (error: unknown): boolean =>
  error instanceof Error && !/Out of Memory|No space left|could not write/i.test(error.message);

async function readJson(
  recognised: Recognised & { form: 'activity' | 'envelope' | 'no-records' },
  id: number,
  store: Store,
): Promise<RawSource> {
  const { file, path, layout } = recognised;
  const isEnvelope = recognised.form === 'envelope';
  const types = isEnvelope
    ? `total: 'JSON', "offset": 'JSON', results: ${literal(`STRUCT(${ACTIVITY_TYPES.map(([n, t]) => `${n} ${t}`).join(', ')})[]`)}`
    : ACTIVITY_TYPES.map(([name, type]) => `${name}: ${literal(type)}`).join(', ');
  const scan = `read_json(${literal(path)}, format = ${literal(layout)}, compression = 'uncompressed',
    maximum_object_size = ${MAXIMUM_OBJECT_BYTES}, columns = {${types}})`;
  const cells = (record: string) => ACTIVITY_FIELDS.map((f) => `${record}${f.path} AS ${identifier(f.column)}`).join(', ');
  const relation = `raw_${id}`;
  if (isEnvelope) {
    await store.run(`CREATE TEMP TABLE pages_${id} AS SELECT total, "offset", results FROM ${scan}`);
    await checkPages(file, id, store);
    await store.run(
      `CREATE TEMP TABLE ${relation} AS
       SELECT page, item, page_total, page_offset, ${cells('r.')}
       FROM (SELECT rowid + 1 AS page, total AS page_total, "offset" AS page_offset, unnest(results) AS r,
                    generate_subscripts(results, 1) AS item FROM pages_${id})`,
    );
    await store.run(`DROP TABLE pages_${id}`);
  } else {
    await store.run(`CREATE TEMP TABLE ${relation} AS SELECT ${cells('')} FROM ${scan}`);
  }
  const fields = isEnvelope ? [...ENVELOPE_FIELDS, ...ACTIVITY_FIELDS] : ACTIVITY_FIELDS;
  return {
    id,
    file,
    path,
    form: isEnvelope ? 'envelope' : 'activity',
    unit: layout === 'newline_delimited' ? 'line' : 'record',
    relation,
    ordinal: isEnvelope ? 'page' : 'rowid + 1',
    columns: fields.map((field) => ({ field, shape: 'json' as const })),
    isView: false,
  };
}

async function checkPages(file: InputFile, id: number, store: Store): Promise<void> {
  const { page } = await store.row(`SELECT min(rowid + 1) AS page FROM pages_${id} WHERE results IS NULL`);
  if (page !== null && page !== undefined) {
    throw new InputError(`${file.name} response ${page}: results is missing`, [
      'A saved response has the keys limit, offset, total and results.',
    ]);
  }
}

async function readTable(recognised: Recognised & { form: TableForm }, id: number, store: Store): Promise<RawSource> {
  const { file, path, form, format, columns } = recognised;
  const types = new Map(columns.map((c) => [c.name, c.type]));
  const fields = FORM_FIELDS[form].filter((f) => types.has(f.column));
  const raw: RawColumn[] = fields.map((field) => {
    const type = types.get(field.column) ?? 'VARCHAR';
    if (INEXACT_TYPES.test(type) && field.kind !== 'text') {
      throw new InputError(`${file.name}: column ${field.column} is ${type}, which cannot hold its values exactly`, [
        field.kind === 'integer' ? 'Write it as BIGINT.' : 'Write it as text (VARCHAR).',
      ]);
    }
    return { field, shape: shapeOf(field, type) };
  });
  const cells = raw.map(({ field, shape }) =>
    shape === 'integer' ? identifier(field.column) : `${identifier(field.column)}::VARCHAR AS ${identifier(field.column)}`,
  );
  const relation = `raw_${id}`;
  if (format === 'parquet') {
    const scan = `read_parquet(${literal(path)}, file_row_number = true)`;
    await store.run(`CREATE TEMP VIEW ${relation} AS SELECT file_row_number, ${cells.join(', ')} FROM ${scan}`);
  } else {
    const types = columns.map((c) => `${literal(c.name)}: 'VARCHAR'`).join(', ');
    // PostgreSQL's CSV: an unquoted empty field is NULL, "" is an empty string.
    await store.run(
      `CREATE TEMP TABLE ${relation} AS SELECT ${cells.join(', ')}
       FROM read_csv(${literal(path)}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', nullstr = '',
         allow_quoted_nulls = false, compression = 'none', columns = {${types}})`,
    );
  }
  return {
    id,
    file,
    path,
    form,
    unit: 'row',
    relation,
    ordinal: format === 'parquet' ? 'file_row_number + 1' : 'rowid + 1',
    columns: raw,
    isView: format === 'parquet',
  };
}

/** SQL of "every field of this record keeps its rule". */
export function validity(source: RawSource): string {
  const rules = source.columns.map(isValid).filter((rule) => rule !== 'true');
  const output = source.columns.find((c) => c.field.kind === 'output');
  const vout = source.columns.find((c) => c.field.column === 'vout');
  if (output !== undefined && vout !== undefined) {
    rules.push(`coalesce(${outpointIndex(output)} = TRY_CAST(vout AS BIGINT), true)`);
  }
  return rules.join(' AND ');
}

/** SQL of the canonical records of an activity, envelope or flat source; `more` are further columns. */
export function canonicalSelect(source: RawSource, more: readonly string[] = []): string {
  const columns = new Map(source.columns.map((c) => [c.field.column, c]));
  const value = (name: string) => {
    const column = columns.get(name);
    return column === undefined ? 'NULL::BIGINT' : canonicalValue(column);
  };
  const output = columns.get('output');
  const selected = ACTIVITY_FIELDS.map(({ column }) => {
    if (column === 'output' && output !== undefined) return outputHex(output);
    if (column === 'vout' && output !== undefined) return `coalesce(${value('vout')}, ${outpointIndex(output)})`;
    return value(column);
  });
  const eventIndex = value(EVENT_INDEX.column);
  const all = [`${source.id}`, ...selected, eventIndex, `coalesce(${eventIndex}, -(${source.ordinal}))`];
  return named(all, source.relation, more);
}

/**
 * `shift_decimals('18300', 2)` is `183.00`: smallest units as a decimal with exactly as many decimals as the rune's divisibility. By text,
 * because no number type holds 2^128 - 1 with 38 decimals.
 */
export const SHIFT_DECIMALS = `CREATE TEMP MACRO shift_decimals(units, decimals) AS
  CASE WHEN decimals = 0 THEN units
       ELSE left(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'),
                 (greatest(length(units), decimals + 1) - decimals)::INTEGER)
            || '.' || right(lpad(units, greatest(length(units), decimals + 1)::INTEGER, '0'), decimals::INTEGER) END`;

/** SQL of the canonical records of a ledger export; `runes` is the checked table of all runes. */
export function ledgerSelect(source: RawSource): string {
  const columns = new Map(source.columns.map((c) => [c.field.column, c]));
  const value = (name: string) => {
    const column = columns.get(name);
    if (column === undefined) throw new Error(`a ledger without ${name}`);
    return canonicalValue(column);
  };
  const expressions = new Map<string, string>([
    ['rune_number', 'r.number'],
    ['rune_name', 'r.name'],
    ['rune_spaced_name', 'r.spaced_name'],
    ['amount', 'shift_decimals(amount, r.divisibility)'],
    ['vout', value('output')],
    ['output', `CASE WHEN "output" IS NOT NULL THEN ${value('tx_id')} END`],
  ]);
  const selected = ACTIVITY_FIELDS.map(({ column }) => expressions.get(column) ?? value(column));
  const all = [`${source.id}`, ...selected, value('event_index'), value('event_index')];
  return named(all, `${source.relation} JOIN runes r ON r.id = rune_id`);
}

const named = (expressions: readonly string[], from: string, more: readonly string[] = []): string =>
  `SELECT ${[...expressions.map((e, i) => `${e} AS ${identifier(CANONICAL_COLUMNS[i] ?? '')}`), ...more].join(', ')} FROM ${from}`;

/** A file is scanned once for each batch of blocks, so a big one must hold its blocks together; else it is sorted once. */
const SORT_FROM_RECORDS = 200_000;
/** How often a height may be covered by the row groups of a Parquet file before sorting is cheaper. */
const MOST_OVERLAP = 3;

/** Whether batches of blocks can be read from this Parquet file directly, judged by its row groups' statistics. */
export async function isClustered(path: string, store: Store): Promise<boolean> {
  const groups = await store.row(
    `SELECT sum(rows) AS rows, sum(high - low + 1) / (max(high) - min(low) + 1) AS overlap, count(*) FILTER (low IS NULL) AS unknown
     FROM (SELECT row_group_num_rows AS rows, TRY_CAST(stats_min_value AS DOUBLE) AS low, TRY_CAST(stats_max_value AS DOUBLE) AS high
           FROM parquet_metadata(${literal(path)}) WHERE path_in_schema = 'block_height')`,
  );
  if (toNumber(groups['rows']) < SORT_FROM_RECORDS) return true;
  return toNumber(groups['unknown']) === 0 && toNumber(groups['overlap']) <= MOST_OVERLAP;
}

/** Whether a canonical table holds its blocks more or less together. */
export async function isTableClustered(table: string, store: Store): Promise<boolean> {
  const { n } = await store.row(`SELECT count(*) AS n FROM ${table}`);
  if (toNumber(n) < SORT_FROM_RECORDS) return true;
  const counts = await store.row(
    `SELECT count(*) FILTER (WHERE height IS DISTINCT FROM before) AS runs, approx_count_distinct(height) AS heights
     FROM (SELECT block_height AS height, lag(block_height) OVER () AS before FROM ${table})`,
  );
  return toNumber(counts['runs']) <= 2 * toNumber(counts['heights']) + 16;
}

/** Served order: blocks ascending, in a block the last transaction first, in a transaction the last event first. */
export const SERVED_ORDER = 'block_height, tx_index DESC, ord DESC';

/**
 * Turns recognised files into relations of the store: first their cells as they are (`raw`, with every value still checkable), then
 * canonical records. Files of the same form and columns are read together. Text forms become tables, since they are parsed once; Parquet
 * stays where it is and becomes a view.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { ACTIVITY_FIELDS, EVENT_INDEX, type Field, LEDGER_FIELDS, RUNE_FIELDS } from '../contract/fields.ts';
import { InputError, messageOf } from '../errors.ts';
import { identifier, literal, type Store, toNumber, toText } from '../store/duckdb.ts';
import { readFiles, readParquetGroups } from '../store/files.ts';
import { type BlockRange, isInRange, mayBeInRange } from './blockRange.ts';
import { whereBroken } from './brokenJson.ts';
import {
  canonicalValue,
  INEXACT_TYPES,
  isOutpoint,
  isValid,
  NESTED_TYPES,
  outpointIndex,
  outputHex,
  type RawColumn,
  shapeOf,
} from './checks.ts';
import type { InputFile } from './discover.ts';
import type { ReadMeasure } from './readMeasure.ts';
import { duckdbMessage, isAboutFile, printable, type Recognised, type TableForm } from './recognise.ts';

/** A file of a raw source. */
export interface Member {
  /** The number that records carry as `source`; in the order of file names. */
  readonly id: number;
  readonly file: InputFile;
  /** The plain file: the input, or its unpacked copy. */
  readonly path: string;
  /** Size of that file. */
  readonly bytes: number;
}

/** The cells of some files alike, in the store, before they are known to be good. */
export interface RawSource {
  readonly form: 'activity' | 'envelope' | TableForm;
  readonly members: readonly Member[];
  /** What a record is called in reports. */
  readonly unit: 'line' | 'record' | 'row';
  /** Has the column `source` besides the cells. */
  readonly relation: string;
  /** SQL of a number that grows with the records of a file: its order, not its place. */
  readonly order: string;
  readonly columns: readonly RawColumn[];
  /** Whether reading it again costs nothing that a table would save. */
  readonly isView: boolean;
}

/** The columns of canonical records, in the order of every canonical relation. `ord` descending is served order in a transaction. */
export const CANONICAL_COLUMNS = ['source', ...ACTIVITY_FIELDS.map((f) => f.column), 'event_index', 'ord'] as const;

/** The envelope's own fields, which saved responses are put together by. */
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

/** A recognised file with the number that its records will carry. */
export type Numbered = Recognised & { readonly id: number };

/** Files that one scan can read: the same form and layout, and for tables the same columns. */
export function groupAlike(files: readonly Numbered[]): Numbered[][] {
  const groups = new Map<string, Numbered[]>();
  for (const file of files) {
    const key = JSON.stringify('layout' in file ? [file.form, file.layout] : [file.form, file.format, file.columns]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [file]);
    else group.push(file);
  }
  return [...groups.values()];
}

/**
 * Reads files alike into the store. Of a table whose heights are integers only the rows in `range` are read, and those without a height that can be; other forms are read and checked whole.
 * Throws an InputError when one is broken as a whole (syntax, column types).
 */
export async function readSource(
  files: readonly Numbered[],
  range: BlockRange | undefined,
  store: Store,
  measure: ReadMeasure,
): Promise<RawSource> {
  const [first] = files;
  if (first === undefined) throw new Error('no files to read');
  const members = files.map(({ id, file, path, bytes }) => ({ id, file, path, bytes }));
  try {
    if (!('layout' in first)) return await readTable(first, members, range, store, measure);
    const source = await readJson(first, members, store, measure);
    if (first.layout === 'array') for (const member of members) checkEnd(member);
    return source;
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const what = 'layout' in first ? 'JSON' : first.format === 'csv' ? 'CSV' : 'Parquet';
    const culprit = culpritOf(members, error);
    const byLine = 'layout' in first && first.layout === 'newline_delimited';
    const place = 'layout' in first && culprit !== undefined ? await whereBroken(culprit.path, culprit.bytes, byLine) : undefined;
    throw new InputError(`${culprit?.file.name} is broken ${what}: ${printable(place ?? duckdbMessage(error))}`);
  }
}

/** Throws an InputError for an array without its closing bracket, which DuckDB does not miss after a comma. */
function checkEnd({ file, path, bytes }: Member): void {
  const handle = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(4096);
    for (let end = bytes; end > 0; ) {
      const start = Math.max(end - buffer.length, 0);
      const text = buffer.toString('latin1', 0, readSync(handle, buffer, 0, end - start, start)).trimEnd();
      if (text.endsWith(']')) return;
      if (text !== '') break;
      end = start;
    }
  } finally {
    closeSync(handle);
  }
  throw new InputError(`${file.name} is broken JSON: the array does not end with ]`, ['It was cut off; fetch or write it again.']);
}

/** The column that DuckDB puts a record's file into: a name that no input has. */
const SOURCE_FILE = '__mirror_source_file';

const pathsOf = (members: readonly Member[]): string[] => members.map(({ path }) => path);

/** SQL of a record's `source`: the number of the file that it is from. */
async function sourceNumber(members: readonly Member[], store: Store): Promise<string> {
  const [first] = members;
  if (first === undefined) throw new Error('no files to read');
  if (members.length === 1) return `${first.id}`;
  // An enumeration of the names turns each into a small number by a hash look-up.
  const type = `files_${first.id}`;
  await store.run(`CREATE TYPE ${type} AS ENUM (${members.map(({ path }) => literal(path)).join(', ')})`);
  return `list_extract([${members.map(({ id }) => id).join(', ')}]::INTEGER[], enum_code(${SOURCE_FILE}::${type}) + 1)`;
}

/** How much there is to read of the members. */
export const bytesOf = (members: readonly Member[]): number => members.reduce((sum, { bytes }) => sum + bytes, 0);

/** DuckDB holds buffers for every text file of a scan, so thousands of them are read in portions. */
const FILES_A_SCAN = 64;

/** Makes a table of what `select` reads from the members, in their order; it is given the SQL of `source` and the files to read. */
async function fillTable(
  table: string,
  members: readonly Member[],
  store: Store,
  measure: ReadMeasure,
  select: (source: string, some: readonly Member[]) => string,
): Promise<void> {
  for (let i = 0; i < members.length; i += FILES_A_SCAN) {
    const some = members.slice(i, i + FILES_A_SCAN);
    const sql = select(await sourceNumber(some, store), some);
    await measure.scan(bytesOf(some), () => store.run(i === 0 ? `CREATE TEMP TABLE ${table} AS ${sql}` : `INSERT INTO ${table} ${sql}`));
  }
}

const SMALLEST_OBJECT_BYTES = 4 * 1024 * 1024;
const LARGEST_OBJECT_BYTES = 128 * 1024 * 1024;

async function readJson(
  first: Numbered & { layout: string },
  members: readonly Member[],
  store: Store,
  measure: ReadMeasure,
): Promise<RawSource> {
  const isEnvelope = first.form === 'envelope';
  // DuckDB's buffers are twice this for each thread. A record is small; a saved response may be a whole file.
  const largest = isEnvelope ? members.reduce((most, { bytes }) => Math.max(most, bytes), 0) + 1 : 0;
  const objectBytes = Math.min(Math.max(largest, SMALLEST_OBJECT_BYTES), LARGEST_OBJECT_BYTES);
  const types = isEnvelope
    ? `total: 'JSON', "offset": 'JSON', results: ${literal(`STRUCT(${ACTIVITY_TYPES.map(([n, t]) => `${n} ${t}`).join(', ')})[]`)}`
    : ACTIVITY_TYPES.map(([name, type]) => `${name}: ${literal(type)}`).join(', ');
  const options = [
    `filename = '${SOURCE_FILE}', format = ${literal(first.layout)}, compression = 'uncompressed'`,
    `maximum_object_size = ${objectBytes}, columns = {${types}}`,
  ];
  const scan = (some: readonly Member[]) => readFiles('json', pathsOf(some), options);
  const cells = (record: string) => ACTIVITY_FIELDS.map((f) => `${record}${f.path} AS ${identifier(f.column)}`).join(', ');
  const relation = `raw_${first.id}`;
  if (isEnvelope) {
    const pages = `pages_${first.id}`;
    await fillTable(
      pages,
      members,
      store,
      measure,
      (source, some) => `SELECT ${source} AS source, total, "offset", results FROM ${scan(some)}`,
    );
    await checkPages(pages, members, store);
    await store.run(
      `CREATE TEMP TABLE ${relation} AS
       SELECT source, page, item, page_total, page_offset, ${cells('r.')}
       FROM (SELECT source, rowid AS page, total AS page_total, "offset" AS page_offset, unnest(results) AS r,
                    generate_subscripts(results, 1) AS item FROM ${pages})`,
    );
    await store.run(`DROP TABLE ${pages}`);
  } else {
    await fillTable(relation, members, store, measure, (source, some) => `SELECT ${source} AS source, ${cells('')} FROM ${scan(some)}`);
  }
  const fields = isEnvelope ? [...ENVELOPE_FIELDS, ...ACTIVITY_FIELDS] : ACTIVITY_FIELDS;
  return {
    form: isEnvelope ? 'envelope' : 'activity',
    members,
    unit: first.layout === 'newline_delimited' ? 'line' : 'record',
    relation,
    order: isEnvelope ? 'page' : 'rowid',
    columns: fields.map((field) => ({ field, shape: 'json' as const })),
    isView: false,
  };
}

/** Throws an InputError for a response without results, or with none where its total says that there are some. */
async function checkPages(pages: string, members: readonly Member[], store: Store): Promise<void> {
  const [row] = await store.rows(
    `SELECT source, number, results IS NULL AS is_missing, coalesce(total, 'missing') AS total, coalesce("offset", 'missing') AS "offset"
     FROM (SELECT source, results, total::VARCHAR AS total, "offset"::VARCHAR AS "offset",
             row_number() OVER (PARTITION BY source ORDER BY rowid) AS number FROM ${pages})
     WHERE results IS NULL OR (len(results) = 0 AND NOT coalesce(total = '0' OR TRY_CAST(total AS BIGINT) <= TRY_CAST("offset" AS BIGINT), false))
     ORDER BY source, number LIMIT 1`,
  );
  if (row === undefined) return;
  const place = `${members.find(({ id }) => id === toNumber(row['source']))?.file.name} response ${toNumber(row['number'])}`;
  if (row['is_missing'] === true) {
    throw new InputError(`${place}: results is missing`, ['A saved response has the keys limit, offset, total and results.']);
  }
  throw new InputError(`${place}: results is empty, though total is ${toText(row['total'])} and offset is ${toText(row['offset'])}`, [
    'The list has records at this offset. Save the response again.',
  ]);
}

async function readTable(
  first: Numbered & { form: TableForm },
  members: readonly Member[],
  range: BlockRange | undefined,
  store: Store,
  measure: ReadMeasure,
): Promise<RawSource> {
  const { file, form, format, columns } = first;
  const types = new Map(columns.map((c) => [c.name, c.type]));
  const raw: RawColumn[] = FORM_FIELDS[form]
    .filter((f) => types.has(f.column))
    .map((field) => {
      const type = types.get(field.column) ?? 'VARCHAR';
      if (NESTED_TYPES.test(type)) {
        throw new InputError(`${file.name}: column ${field.column} is ${type}, not a single value`, [
          'Write it as text (VARCHAR) or BIGINT.',
        ]);
      }
      if (INEXACT_TYPES.test(type) && field.kind !== 'text') {
        throw new InputError(`${file.name}: column ${field.column} is ${type}, which cannot hold its values exactly`, [
          field.kind === 'integer' ? 'Write it as BIGINT.' : 'Write it as text (VARCHAR).',
        ]);
      }
      return { field, shape: shapeOf(field, type) };
    });
  if (types.has('file_row_number')) {
    throw new InputError(`${file.name} has a column file_row_number, a name that DuckDB needs for itself`, [
      'Write it without that column.',
    ]);
  }
  const cells = raw.map(({ field, shape }) =>
    shape === 'integer' ? identifier(field.column) : `${identifier(field.column)}::VARCHAR AS ${identifier(field.column)}`,
  );
  const relation = `raw_${first.id}`;
  if (format === 'parquet') {
    const source = await sourceNumber(members, store);
    // DuckDB passes over whole row groups, or reads no more than the heights of them.
    const hasHeights = raw.some(({ field, shape }) => field.column === 'block_height' && shape === 'integer');
    const isWanted = mayBeInRange('block_height', hasHeights ? range : undefined);
    const scan = readFiles('parquet', pathsOf(members), [`filename = '${SOURCE_FILE}', file_row_number = true`]);
    await store.run(
      `CREATE TEMP VIEW ${relation} AS SELECT ${source} AS source, file_row_number, ${cells.join(', ')} FROM ${scan} WHERE ${isWanted}`,
    );
  } else {
    const texts = columns.map((c) => `${literal(c.name)}: 'VARCHAR'`).join(', ');
    // PostgreSQL's CSV: an unquoted empty field is NULL, "" is an empty string.
    const options = [
      `filename = '${SOURCE_FILE}', auto_detect = false, header = true, delim = ',', quote = '"', escape = '"'`,
      `nullstr = '', allow_quoted_nulls = false, compression = 'none', columns = {${texts}}`,
    ];
    await fillTable(
      relation,
      members,
      store,
      measure,
      (source, some) => `SELECT ${source} AS source, ${cells.join(', ')} FROM ${readFiles('csv', pathsOf(some), options)}`,
    );
  }
  return {
    form,
    members,
    unit: 'row',
    relation,
    order: format === 'parquet' ? 'file_row_number' : 'rowid',
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
    // Only an outpoint has an index to disagree with.
    rules.push(`CASE WHEN contains("output", ':') THEN coalesce(${outpointIndex(output)} = TRY_CAST(vout AS BIGINT), true) ELSE true END`);
  }
  return rules.join(' AND ');
}

/**
 * Whether every cell is valid and its own canonical value (hashes in lower case without prefix), as in exports that this program or the
 * indexer made. Then nothing has to be computed each time that the records are read. Reads all of a view: throws an InputError when a file is broken.
 */
export async function isInCanonicalForm(source: RawSource, store: Store): Promise<boolean> {
  const rule = validity(withCanonicalCells(source));
  // Texts that may be anything have no rule, and a file may be broken in them too: their lengths are asked so that they are read here.
  const unruled = source.columns
    .filter((c) => c.shape === 'text' && c.field.kind === 'text')
    .map((c) => `max(strlen(${identifier(c.field.column)}))`);
  try {
    const { other } = await store.row(
      `SELECT count(*) FILTER (WHERE NOT (${rule})) AS other${unruled.map((u) => `, ${u}`).join('')} FROM ${source.relation}`,
    );
    return toNumber(other) === 0;
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const culprit = await brokenMember(source.members, store);
    throw new InputError(`${(culprit ?? culpritOf(source.members, error))?.file.name} is broken Parquet: ${duckdbMessage(error)}`);
  }
}

/** The first member that cannot be read as a whole: not every message of DuckDB names the file. */
async function brokenMember(members: readonly Member[], store: Store): Promise<Member | undefined> {
  for (const member of members) {
    try {
      await store.rows(`SELECT max(strlen(COLUMNS(*)::VARCHAR)) FROM ${readFiles('parquet', [member.path])}`);
    } catch (error) {
      if (isAboutFile(error)) return member;
    }
  }
  return undefined;
}

/** The member that DuckDB's message names. */
const culpritOf = (members: readonly Member[], error: unknown): Member | undefined =>
  members.find(({ path }) => messageOf(error).includes(path)) ?? members[0];

/** The source with its text columns taken as they are. */
export const withCanonicalCells = (source: RawSource): RawSource => ({
  ...source,
  columns: source.columns.map((column) => (column.shape === 'text' ? { ...column, shape: 'canonical' } : column)),
});

/** SQL of the canonical value of a column that the source must have. */
export function canonicalCell(source: RawSource, name: string): string {
  const column = source.columns.find((c) => c.field.column === name);
  if (column === undefined) throw new Error(`a source without ${name}`);
  return canonicalValue(column);
}

/**
 * SQL of which blocks in the range the source's files hold: source, block_height, block_hash, records. Rows for which `isCounted` is false are no records; a
 * block with no other rows has 0.
 */
export function heldSelect(source: RawSource, range: BlockRange | undefined, isCounted = 'true'): string {
  const [height, hash] = [canonicalCell(source, 'block_height'), canonicalCell(source, 'block_hash')];
  return `SELECT source, ${height} AS height, ${hash} AS hash, count(*) FILTER (${isCounted}) FROM ${source.relation}
    WHERE ${isInRange(height, range)} GROUP BY ALL`;
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
    if (column === 'vout' && output !== undefined) {
      return `CASE WHEN ${isOutpoint(output)} THEN coalesce(${value('vout')}, ${outpointIndex(output)}) ELSE ${value('vout')} END`;
    }
    return value(column);
  });
  const eventIndex = value(EVENT_INDEX.column);
  return named(['source', ...selected, eventIndex, `coalesce(${eventIndex}, -${source.order})`], source.relation, more);
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

/** SQL of the canonical records of a ledger export; `runes` is the checked table of all runes. Rows of other runes are left out. */
export function ledgerSelect(source: RawSource): string {
  const value = (name: string) => canonicalCell(source, name);
  const expressions = new Map<string, string>([
    ['rune_number', 'r.number'],
    ['rune_name', 'r.name'],
    ['rune_spaced_name', 'r.spaced_name'],
    ['amount', 'shift_decimals(amount, r.divisibility)'],
    ['vout', value('output')],
    ['output', `CASE WHEN "output" IS NOT NULL THEN ${value('tx_id')} END`],
  ]);
  const selected = ACTIVITY_FIELDS.map(({ column }) => expressions.get(column) ?? value(column));
  const eventIndex = value('event_index');
  return named(['source', ...selected, eventIndex, eventIndex], `${source.relation} JOIN runes r ON r.id = rune_id`);
}

const named = (expressions: readonly string[], from: string, more: readonly string[] = []): string =>
  `SELECT ${[...expressions.map((e, i) => `${e} AS ${identifier(CANONICAL_COLUMNS[i] ?? '')}`), ...more].join(', ')} FROM ${from}`;

/** Served order: blocks ascending, in a block the last transaction first, in a transaction the last event first. */
export const SERVED_ORDER = 'block_height, tx_index DESC, ord DESC';

/** Input is scanned once for each batch of blocks, so a big one must hold its blocks together; else it is sorted once. */
const SORT_FROM_RECORDS = 200_000;
/** How often a height may be covered by the row groups of Parquet files before sorting is cheaper. */
const MOST_OVERLAP = 3;

/** Whether batches of blocks can be read from these Parquet files directly, judged by their row groups' statistics. */
export async function isClustered(source: RawSource, store: Store): Promise<boolean> {
  const groups = await store.row(
    `SELECT sum(rows) AS rows, sum(high - low + 1) / (max(high) - min(low) + 1) AS overlap, count(*) FILTER (low IS NULL) AS unknown
     FROM (SELECT row_group_num_rows AS rows, TRY_CAST(stats_min_value AS DOUBLE) AS low, TRY_CAST(stats_max_value AS DOUBLE) AS high
           FROM ${readParquetGroups(pathsOf(source.members))} WHERE path_in_schema = 'block_height')`,
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

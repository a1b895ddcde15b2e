/**
 * Detects the form of an input file from its content: the first bytes, the keys of the first JSON object, or the
 * columns of a table. File names do not matter.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import {
  ACTIVITY_FIELDS,
  EVENT_INDEX,
  type Field,
  LEDGER_FIELDS,
  NODE_LEDGER_FIELDS,
  RUNE_DETAILS,
  RUNE_FIELDS,
  START_OUTPUT_FIELDS,
  START_RUNE_FIELDS,
} from '../contract/fields.ts';
import { duckdbMessage, isAboutFile, printable } from '../duckdb/duckdbErrors.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { type Store, text } from '../duckdb/store.ts';
import { columnsOf } from '../duckdb/table.ts';
import { InputError } from '../errors.ts';
import { decompress, withoutMark } from './decompress.ts';
import type { InputFile } from './discover.ts';
import { unreadable } from './unreadable.ts';

/** Layout of a JSON file, in DuckDB's terms. */
type JsonLayout = 'newline_delimited' | 'array' | 'unstructured';

export type TableForm = 'ledger' | 'node-ledger' | 'runes' | 'flat';

/** Forms of the files of a start (readStart.ts), which are not records. */
export type StartForm = 'start-outputs' | 'start-runes';

/**
 * Forms of ledgers, and of the files that pulls and exports write beside ledgers. If the input has only these forms,
 * the runes table has the runes of all records, because builds omit ledger rows of unknown runes.
 */
export const FORMS_OF_ROWS: readonly string[] = ['ledger', 'node-ledger', 'runes', 'start-outputs', 'start-runes', 'no-records'];

/** True for the form of a ledger from an indexer's database or from a node. */
export const isLedger = (form: string): boolean => form === 'ledger' || form === 'node-ledger';

interface TableColumn {
  /** Name as spelled in the file. */
  readonly name: string;
  /** DuckDB's type; always VARCHAR in CSV files. */
  readonly type: string;
}

interface Common {
  readonly file: InputFile;
  /** Path of the file that DuckDB reads, which is the input itself or its unpacked copy. */
  readonly path: string;
  readonly bytes: number;
}

type StartTable = Common & { readonly form: StartForm };

export const isStart = (found: Recognised): found is StartTable => START_FORMS.some(([form]) => form === found.form);

export type Recognised =
  | (Common & { readonly form: 'activity' | 'envelope' | 'no-records'; readonly layout: JsonLayout })
  | StartTable
  | (Common & { readonly form: TableForm; readonly format: 'csv' | 'parquet'; readonly columns: readonly TableColumn[] });

/** Number of bytes at the start of a file that are read to detect its form. */
const HEAD_BYTES = 256 * 1024;

const KNOWN_FORMATS = [
  'Known formats: JSON with the keys rune and location (activity records), or results and total (saved responses);',
  `a ledger export with the columns ${LEDGER_FIELDS.map((f) => f.column).join(', ')};`,
  `a runes table with the columns ${RUNE_FIELDS.map((f) => f.column).join(', ')};`,
  `a flat table with the columns ${ACTIVITY_FIELDS.map((f) => f.column).join(', ')}, and optionally ${EVENT_INDEX.column}.`,
];

/** Detects the form of a file. Unpacks a compressed file to `scratch`. Throws an InputError for an unknown form. */
export async function recognise(file: InputFile, store: Store, scratch: string): Promise<Recognised> {
  let path = file.path;
  let { head, bytes } = readHead(file, path);
  if (head.length === 0) throw new InputError(`${file.name} is empty (0 bytes)`, ['Remove it, or write it again.']);
  const magic = head.toString('hex', 0, 4);
  if (magic === '50415231') return recogniseParquet({ file, path, bytes }, store);
  const compression = magic.startsWith('1f8b') ? 'gzip' : magic === '28b52ffd' ? 'zstd' : undefined;
  if (compression !== undefined) {
    path = scratch;
    await decompress(file, compression, path);
    ({ head, bytes } = readHead(file, path));
    if (bytes === 0) throw new InputError(`${file.name} is empty after unpacking (0 bytes)`, ['Remove it, or write it again.']);
  }
  const common: Common = { file, path, bytes };
  const content = head.toString('utf8').replace(/^\ufeff/, '');
  const first = content.trimStart()[0];
  if (first === '{' || first === '[') {
    if (!head.subarray(0, 3).equals(BYTE_ORDER_MARK)) return recogniseJson(common, content);
    const plain = `${scratch}.without-mark`;
    await withoutMark(path, plain);
    return recogniseJson({ ...common, path: plain }, content);
  }
  return recogniseCsv(common, content);
}

/** Bytes that some editors write before UTF-8 text. DuckDB rejects them in JSON. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Reads the first bytes and the size of the file at `path`, which is `file` or its unpacked copy. */
function readHead(file: InputFile, path: string): { head: Buffer; bytes: number } {
  let handle: number | undefined;
  try {
    handle = openSync(path, 'r');
    const buffer = Buffer.allocUnsafe(HEAD_BYTES);
    const length = readSync(handle, buffer, 0, HEAD_BYTES, 0);
    return { head: buffer.subarray(0, length), bytes: fstatSync(handle).size };
  } catch (error) {
    throw unreadable(file.name, error);
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

function recogniseJson(common: Common, head: string): Recognised {
  const layout = jsonLayout(head);
  if (head.replace(/\s/g, '') === '[]') return { ...common, form: 'no-records', layout };
  const keys = topLevelKeys(head);
  // An index of published Parquet files, or the list of blocks of a pull.
  if (keys.join() === 'ranges' || keys[0] === 'sources') return { ...common, form: 'no-records', layout };
  if (keys.includes('rune') || keys.includes('location')) return { ...common, form: 'activity', layout };
  if (keys.includes('results') && keys.includes('total')) return { ...common, form: 'envelope', layout };
  throw unrecognised(common.file, `its first JSON object has the keys ${keys.slice(0, 12).join(', ') || '(none)'}`);
}

/**
 * Returns the top-level keys of the first object in a JSON text. The text may be cut off, because it is only the
 * beginning of a file. Takes linear time.
 */
function topLevelKeys(text: string): string[] {
  const keys: string[] = [];
  const token = /[{}[\]:]|"(?:[^"\\]|\\.)*(?:"|$)/gsy;
  let depth = 0;
  let last = '';
  for (let at = text.indexOf('{'); at >= 0 && at < text.length; ) {
    token.lastIndex = at;
    const [found] = token.exec(text) ?? [];
    at += found?.length ?? 1;
    if (found === undefined) continue;
    if (found === '{' || found === '[') depth += 1;
    else if (found === '}' || found === ']') depth -= 1;
    else if (found === ':' && depth === 1) keys.push(last.slice(1, -1));
    if (depth === 0) break;
    last = found;
  }
  return keys;
}

function jsonLayout(head: string): JsonLayout {
  const text = head.trimStart();
  if (text.startsWith('[')) return 'array';
  const end = text.indexOf('\n');
  if (end < 0) return 'newline_delimited';
  try {
    JSON.parse(text.slice(0, end));
    return 'newline_delimited';
  } catch {
    // The first line is not complete JSON. The file is either a pretty-printed object, or NDJSON with a broken first
    // line.
    const rest = text.slice(end + 1).trimStart();
    return rest.startsWith('{') ? 'newline_delimited' : 'unstructured';
  }
}

function recogniseCsv(common: Common, head: string): Recognised {
  const line = head.slice(0, head.search(/\r?\n|$/));
  const cells = [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((match) => match[1] ?? '');
  // The pattern also matches an empty text at the end of the line, which is not a column.
  if (cells.length > 1) cells.pop();
  const columns = cells.map((cell) => ({ name: cell.replace(/^"(.*)"$/, '$1').replaceAll('""', '"'), type: 'VARCHAR' }));
  // DuckDB does not distinguish names of columns by case.
  const names = new Set<string>();
  const twice = columns.find(({ name }) => names.size === names.add(name.toLowerCase()).size);
  if (twice !== undefined)
    throw new InputError(`${common.file.name} has two columns with the name ${printable(twice.name)}`, ['Remove one of them.']);
  return { ...common, form: recogniseTable(common.file, columns), format: 'csv', columns };
}

async function recogniseParquet(common: Common, store: Store): Promise<Recognised> {
  try {
    const rows = await store.rows(`DESCRIBE SELECT * FROM ${readFiles('parquet', [common.path])}`, {
      column_name: text,
      column_type: text,
    });
    const columns = rows.map((row) => ({ name: row.column_name, type: row.column_type }));
    const start = recogniseStart(columns);
    if (start !== undefined) return { ...common, form: start };
    return { ...common, form: recogniseTable(common.file, columns), format: 'parquet', columns };
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    throw new InputError(`${common.file.name} is broken Parquet: ${duckdbMessage(error)}`);
  }
}

/**
 * Forms of tables, the columns that each form requires, and the columns that it may have. A table has the first of
 * these forms for which it has all required columns.
 */
const FORMS: readonly [TableForm, string, readonly Field[], (readonly Field[])?][] = [
  ['flat', 'a flat activity table', ACTIVITY_FIELDS, [EVENT_INDEX]],
  ['node-ledger', 'ledger rows from a node', NODE_LEDGER_FIELDS],
  ['ledger', 'a ledger export', LEDGER_FIELDS],
  ['runes', 'a runes table', RUNE_FIELDS, RUNE_DETAILS],
];

/** Returns all columns that a form may have. */
export const fieldsOf = (form: TableForm): Field[] =>
  FORMS.flatMap(([name, , required, more = []]) => (name === form ? [...required, ...more] : []));

/** Forms of Parquet files that only pulls write. A file must have exactly these columns and types. */
const START_FORMS: readonly [StartForm, readonly Field[]][] = [
  ['start-outputs', START_OUTPUT_FIELDS],
  ['start-runes', START_RUNE_FIELDS],
];

function recogniseStart(columns: readonly TableColumn[]): StartForm | undefined {
  const found = JSON.stringify(columns.map(({ name, type }) => [name, type]));
  return START_FORMS.find(([, fields]) => JSON.stringify(Object.entries(columnsOf(fields))) === found)?.[0];
}

function recogniseTable(file: InputFile, columns: readonly TableColumn[]): TableForm {
  const names = new Set(columns.map((c) => c.name));
  const forms = FORMS.map(([form, label, fields]) => {
    const missing = fields.filter((f) => !names.has(f.column)).map((f) => f.column);
    return { form, label, missing, share: (fields.length - missing.length) / fields.length };
  });
  const whole = forms.find(({ missing }) => missing.length === 0);
  if (whole !== undefined) return whole.form;
  const [near] = forms.sort((a, b) => b.share - a.share);
  if (near !== undefined && near.share >= 0.6)
    throw new InputError(`${file.name} looks like ${near.label} but lacks the column(s) ${near.missing.join(', ')}`, KNOWN_FORMATS);
  const seen = columns.map((c) => c.name).join(', ');
  throw unrecognised(file, `its first line has the columns ${seen.length > 120 ? `${seen.slice(0, 120)}…` : seen}`);
}

const unrecognised = (file: InputFile, why: string): InputError =>
  new InputError(`${file.name} has an unrecognised format: ${printable(why)}`, KNOWN_FORMATS);

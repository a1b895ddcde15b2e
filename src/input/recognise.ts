/** Detects the form of a file, of any name, from its first bytes, the keys of its first JSON object, or the columns of a table. */
import { closeSync, createReadStream, createWriteStream, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { attempt } from '../attempt.ts';
import {
  ACTIVITY_FIELDS,
  EVENT_INDEX,
  type Field,
  LEDGER_FIELDS,
  NODE_LEDGER_FIELDS,
  RUNE_DETAILS,
  RUNE_FIELDS,
} from '../contract/fields.ts';
import { duckdbMessage, isAboutFile, printable } from '../duckdb/duckdbErrors.ts';
import { ParquetError, parquetFacts } from '../duckdb/parquetFacts.ts';
import { type LineEnd, readParquetSchemas } from '../duckdb/readFilesSql.ts';
import { int, nullable, type Store, text } from '../duckdb/store.ts';
import { codeOf, InputError } from '../errors.ts';
import type { NumberedFile } from './changedFiles.ts';
import { decompress } from './decompress.ts';
import type { InputFile } from './discover.ts';
import { shorten } from './inputFindings.ts';
import { readable, unreadable } from './unreadable.ts';

type TableForm = 'ledger' | 'node-ledger' | 'runes' | 'flat';
export type Form = 'activity' | 'envelope' | 'no-records' | TableForm;

/** Forms of ledgers and of the files beside them. With only these, the runes table has the runes of all records: builds omit other rows. */
export const FORMS_OF_ROWS: readonly string[] = ['ledger', 'node-ledger', 'runes', 'no-records'];

/** True for a ledger from an indexer's database or from a node. */
export const isLedger = (form: string): boolean => form === 'ledger' || form === 'node-ledger';

interface TableColumn {
  /** Name as spelled in the file. */
  readonly name: string;
  /** DuckDB's type, or `nested` for lists and structs; always VARCHAR in CSV files. */
  readonly type: string;
}

export interface Member extends NumberedFile {
  /** Path of the input itself or of its unpacked copy. */
  readonly path: string;
  readonly bytes: number;
}

export interface Recognised extends Member {
  readonly form: Form;
  /** Format of a table, or layout of a JSON file, in DuckDB's terms. */
  readonly format: 'parquet' | 'csv' | 'newline_delimited' | 'array' | 'unstructured';
  /** Columns of a table. Empty for JSON. */
  readonly columns: readonly TableColumn[];
  /** Line end of a CSV file. */
  readonly lineEnd?: LineEnd;
}

/** Number of bytes at the start of a file that are read to detect its form. */
const HEAD_BYTES = 256 * 1024;

const KNOWN_FORMATS = [
  'Known formats: JSON with the keys rune and location (activity records), or results and total (saved responses);',
  `a ledger export with the columns ${LEDGER_FIELDS.map((f) => f.column).join(', ')};`,
  `a runes table with the columns ${RUNE_FIELDS.map((f) => f.column).join(', ')};`,
  `a flat table with the columns ${ACTIVITY_FIELDS.map((f) => f.column).join(', ')}, and optionally ${EVENT_INDEX.column}.`,
];

/** Unpacks a compressed file into the folder `scratch`. Throws an InputError for an unknown form. */
export async function recognise({ id, file }: NumberedFile, store: Store, scratch: string): Promise<Recognised> {
  let path = file.path;
  let { head, bytes } = readHead(file, path);
  if (bytes === 0) throw new InputError(`${file.name} is empty (0 bytes)`, ['Remove it, or write it again.']);
  const kind = kindOf(head);
  if (kind === 'Parquet') return recogniseParquet({ id, file, path, bytes }, store);
  const isPacked = kind === 'gzip' || kind === 'zstd';
  if (isPacked) {
    path = join(scratch, `${id}.plain`);
    await decompress(file, kind, path);
    ({ head, bytes } = readHead(file, path));
    if (bytes === 0) throw new InputError(`${file.name} is empty after unpacking (0 bytes)`, ['Remove it, or write it again.']);
  }
  const inner = kindOf(head);
  if (inner !== undefined)
    throw new InputError(`${file.name} is ${isPacked ? `${inner} in ${kind}` : inner}, which a build does not read`, [
      'Write it as Parquet, or as UTF-8 text, which may be compressed once with gzip or zstd.',
    ]);
  const text = head.toString('utf8').replace(/^\ufeff/, '');
  if (!/^\s*[{[]/.test(text)) return recogniseCsv({ id, file, path, bytes }, text, head.length === bytes);
  if (head.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
    const marked = createReadStream(path, { start: BYTE_ORDER_MARK.length });
    path = join(scratch, `${id}.without-mark`);
    await pipeline(marked, createWriteStream(path));
  }
  return recogniseJson({ id, file, path, bytes }, text);
}

/** Patterns of the first bytes of files that are not UTF-8 text, in hex digits. */
const KINDS = [
  ['Parquet', /^50415231/],
  ['gzip', /^1f8b/],
  ['zstd', /^28b52ffd/],
  ['zip', /^504b0304/],
  ['bzip2', /^425a683/],
  ['xz', /^fd377a58/],
  // With a byte order mark, or without one and ASCII characters at the beginning.
  ['UTF-16 text', /^(?:fffe|feff|00..00..|..00..00)/],
] as const;

const kindOf = (head: Buffer): (typeof KINDS)[number][0] | undefined => {
  const start = head.toString('hex', 0, 4);
  return KINDS.find(([, pattern]) => pattern.test(start))?.[0];
};

/** Bytes that some editors write before UTF-8 text. DuckDB rejects them in JSON. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Reads the first bytes and the size of the file at `path`, which is `file` or its unpacked copy. */
const readHead = (file: InputFile, path: string): { head: Buffer; bytes: number } =>
  readable(file.name, () => {
    const handle = openSync(path, 'r');
    try {
      const buffer = Buffer.allocUnsafe(HEAD_BYTES);
      const length = readSync(handle, buffer, 0, HEAD_BYTES, 0);
      return { head: buffer.subarray(0, length), bytes: fstatSync(handle).size };
    } finally {
      closeSync(handle);
    }
  });

function recogniseJson(member: Member, head: string): Recognised {
  const keys = topLevelKeys(head);
  const isIndex = keys[0] === 'sources' || (keys[0] === 'version' && keys[1] === 'sources');
  const as = (form: Form): Recognised => ({ ...member, form, format: jsonLayout(head), columns: [] });
  if (isIndex || head.replace(/\s/g, '') === '[]') return as('no-records');
  if (keys.includes('rune') || keys.includes('location')) return as('activity');
  if (keys.includes('results') && keys.includes('total')) return as('envelope');
  throw unrecognised(member.file, `its first JSON object has the keys ${keys.slice(0, 12).join(', ') || '(none)'}`);
}

/** Returns the top-level keys of the first object in a JSON text, which may be cut off. Takes linear time. */
function topLevelKeys(text: string): string[] {
  const keys: string[] = [];
  // The text may end within an escape.
  const token = /[{}[\]:]|"(?:[^"\\]|\\(?:.|$))*(?:"|$)/gsy;
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

function jsonLayout(head: string): 'newline_delimited' | 'array' | 'unstructured' {
  const text = head.trimStart();
  if (text.startsWith('[')) return 'array';
  const end = text.indexOf('\n');
  if (end < 0 || attempt(() => JSON.parse(text.slice(0, end))) !== undefined) return 'newline_delimited';
  // The first line is not complete JSON. The file is either a pretty-printed object, or NDJSON with a broken first line.
  const rest = text.slice(end + 1).trimStart();
  return rest.startsWith('{') ? 'newline_delimited' : 'unstructured';
}

/** A cell of the first line of a CSV file, with what follows it. As in DuckDB, a quoted cell begins with its quotation mark. */
const HEADER_CELL = /("(?:[^"]|"")*"|[^",\r\n][^,\r\n]*|)(,|\r\n|\n|\r|$)/y;

/**
 * Reads the columns and the line end of a CSV file from its first line. DuckDB gets only this line end, and reads the first line as a row,
 * which readTable.ts compares with these columns: if DuckDB guessed the line end, a line break in a name could make it skip all rows.
 */
function recogniseCsv(member: Member, head: string, isWhole: boolean): Recognised {
  const { file } = member;
  const names: string[] = [];
  let end = ',';
  for (let at = 0; end === ','; at = HEADER_CELL.lastIndex) {
    HEADER_CELL.lastIndex = at;
    const found = HEADER_CELL.exec(head);
    if (found === null)
      throw new InputError(`${file.name}: column ${names.length + 1} of its first line is not valid CSV: ${shorten(head.slice(at))}`, [
        'Close its quotation mark before the comma or the end of the line, and write a quotation mark within a name twice.',
      ]);
    const [, cell = '', next = ''] = found;
    names.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    end = next;
  }
  if (end === '' && !isWhole)
    throw new InputError(`${file.name}: its first line has more than ${HEAD_BYTES / 1024} KB`, ['Shorten the names of its columns.']);
  const columns = names.map((name) => ({ name, type: 'VARCHAR' }));
  return { ...member, form: recogniseTable(file, columns), format: 'csv', lineEnd: LINE_ENDS[end] ?? '\\n', columns };
}

const LINE_ENDS: Readonly<Record<string, LineEnd>> = { '\r\n': '\\r\\n', '\r': '\\r' };

/** Throws an InputError for two columns of one name. DuckDB ignores its case, and renames the second. Several may have no name. */
function checkNames(file: InputFile, names: readonly string[]): void {
  const seen = new Set<string>();
  const twice = names.find((name) => name !== '' && seen.size === seen.add(name.toLowerCase()).size);
  if (twice !== undefined) throw new InputError(`${file.name} has two columns with the name ${shorten(twice)}`, ['Remove one of them.']);
}

async function recogniseParquet(member: Member, store: Store): Promise<Recognised> {
  const { file, path } = member;
  try {
    // Throws for lengths in the file that DuckDB would believe.
    parquetFacts(path);
    const columns = await columnsInParquet(path, store);
    return { ...member, form: recogniseTable(file, columns), format: 'parquet', columns };
  } catch (error) {
    if (error instanceof ParquetError || isAboutFile(error))
      throw new InputError(`${file.name} is broken Parquet: ${duckdbMessage(error)}`, [
        'The file is damaged or cut off; fetch or write it again.',
      ]);
    throw codeOf(error) === undefined ? error : unreadable(file.name, error);
  }
}

/** Returns the columns as the file spells them: DuckDB renames the second of two equal names. */
async function columnsInParquet(path: string, store: Store): Promise<TableColumn[]> {
  const [, ...elements] = await store.rows(
    `SELECT name, num_children, coalesce(duckdb_type, 'nested') AS type FROM ${readParquetSchemas([path])}`,
    { name: text, num_children: nullable(int), type: text },
  );
  const columns: TableColumn[] = [];
  // Each element is followed by the elements within it.
  let within = 0;
  for (const { name, type, num_children: children = 0 } of elements) {
    if (within === 0) columns.push({ name, type });
    else within -= 1;
    within += children;
  }
  return columns;
}

/** Forms of tables, with required and further columns. A table has the first form whose required columns it has. */
const FORMS: readonly [TableForm, string, readonly Field[], (readonly Field[])?][] = [
  ['flat', 'a flat activity table', ACTIVITY_FIELDS, [EVENT_INDEX]],
  ['node-ledger', 'ledger rows from a node', NODE_LEDGER_FIELDS],
  ['ledger', 'a ledger export', LEDGER_FIELDS],
  ['runes', 'a runes table', RUNE_FIELDS, RUNE_DETAILS],
];

export const fieldsOf = (form: Form): Field[] =>
  FORMS.flatMap(([name, , required, more = []]) => (name === form ? [...required, ...more] : []));

function recogniseTable(file: InputFile, columns: readonly TableColumn[]): TableForm {
  const all = columns.map(({ name }) => name);
  checkNames(file, all);
  const names = new Set(all);
  const forms = FORMS.map(([form, label, fields]) => {
    const missing = fields.filter((f) => !names.has(f.column)).map((f) => f.column);
    return { form, label, missing, share: (fields.length - missing.length) / fields.length };
  });
  const whole = forms.find(({ missing }) => missing.length === 0);
  if (whole !== undefined) return whole.form;
  const [near] = forms.sort((a, b) => b.share - a.share);
  if (near !== undefined && near.share >= 0.6)
    throw new InputError(`${file.name} looks like ${near.label} but lacks the column(s) ${near.missing.join(', ')}`, KNOWN_FORMATS);
  const seen = all.join(', ');
  throw unrecognised(file, `its first line has the columns ${seen.length > 120 ? `${seen.slice(0, 120)}…` : seen}`);
}

const unrecognised = (file: InputFile, why: string): InputError =>
  new InputError(`${file.name} has an unrecognised format: ${printable(why)}`, KNOWN_FORMATS);

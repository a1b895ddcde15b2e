/** Reads tables: ledger exports, runes tables and flat activity tables, as CSV or Parquet. */
import { type Field, MAX_INTEGER } from '../contract/fields.ts';
import { readCsv, readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, int, literal } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { isInRange } from './canonicalRecordSql.ts';
import { shapeOf, typesOf } from './cellSql.ts';
import { shorten } from './inputFindings.ts';
import { fillTable, pathsOf, type RawSource, type Reading, sourceNumber } from './rawSource.ts';
import { type Form, fieldsOf, type Member, type Recognised } from './recognise.ts';

/** A column that a build reads. Its position `place` in the file is counted from 0. */
interface Wanted {
  readonly field: Field;
  readonly place: number;
  readonly type: string;
}

/** Reads CSV into a table, or creates a view of Parquet. Throws an InputError for unsuitable types and for headers that DuckDB misreads. */
export async function readTable(
  { file, form, format, columns, lineEnd }: Recognised,
  members: readonly Member[],
  reading: Reading,
): Promise<RawSource> {
  const isView = format === 'parquet';
  const wanted = fieldsOf(form).flatMap((field): Wanted[] => {
    const place = columns.findIndex(({ name }) => name === field.column);
    return place < 0 ? [] : [{ field, place, type: columns[place]?.type ?? '' }];
  });
  const relation = reading.store.nameOf('raw');
  if (isView) {
    const reserved = columns.find(({ name }) => ['file_row_number', 'file_index'].includes(name.toLowerCase()));
    if (reserved !== undefined)
      throw new InputError(`${file.name} has a column ${reserved.name}, whose name is reserved`, ['Rename or remove that column.']);
    await viewParquet(relation, form, wanted, members, reading);
  } else {
    // The names of the file are not in the SQL, because a name may be empty, or have characters that SQL does not allow.
    const names = columns.map((_, place) => `c${place}`);
    const cells = wanted.map(({ field, place }) => `c${place} AS ${identifier(field.column)}`);
    const scan = (paths: readonly string[]) => readCsv(paths, names, lineEnd ?? '\\n', ['header = false']);
    await fillTable(relation, members, cells.join(', '), scan, reading);
    await takeHeaders(relation, wanted, members, reading);
  }
  return {
    form,
    members,
    unit: 'row',
    relation,
    order: isView ? 'file_row_number' : 'rowid',
    columns: wanted.map(({ field, type }) => ({ field, shape: shapeOf(field, type) })),
    isView,
  };
}

/** Removes the first row of each CSV file. Records could be lost if DuckDB reads its header in another way than `recognise`. */
async function takeHeaders(relation: string, wanted: readonly Wanted[], members: readonly Member[], { store }: Reading): Promise<void> {
  const isFirst = `rowid IN (SELECT min(rowid) FROM ${relation} GROUP BY source)`;
  const isHeader = wanted.map(({ field: { column } }) => `${identifier(column)} IS NOT DISTINCT FROM ${literal(column)}`).join(' AND ');
  const rows = await store.rows(`SELECT source FROM ${relation} WHERE ${isFirst} AND ${isHeader}`, { source: int });
  const sources = new Set(rows.map(({ source }) => source));
  const other = members.find(({ id }) => !sources.has(id));
  if (other !== undefined)
    throw new InputError(
      `${other.file.name}: DuckDB does not find the columns ${wanted.map(({ field }) => field.column).join(', ')} in its first line`,
      ['Write the names of the columns as plain text, without quotation marks and line breaks.'],
    );
  await store.run(`DELETE FROM ${relation} WHERE ${isFirst}`);
}

/** Creates a view of Parquet files: with integer heights, of the rows in the range and of those with an invalid height. */
async function viewParquet(
  relation: string,
  form: Form,
  wanted: readonly Wanted[],
  members: readonly Member[],
  { range, store }: Reading,
): Promise<void> {
  const source = sourceNumber(members);
  const scan = readFiles('parquet', pathsOf(members));
  const cells: string[] = [];
  for (const { field, type } of wanted) {
    const name = identifier(field.column);
    const types = typesOf(field);
    const isRead = types.pattern.test(type);
    cells.push(shapeOf(field, type) === 'integer' ? name : `${isRead ? name : 'NULL'}::VARCHAR AS ${name}`);
    if (isRead) continue;
    // A column without values may have any type. NaN is no value: some programs write it for a missing value.
    const isValue = ['FLOAT', 'DOUBLE'].includes(type) ? `NOT isnan(${name})` : `${name} IS NOT NULL`;
    const [row] = await store.rows(`SELECT ${source} AS source FROM ${scan} WHERE ${isValue} LIMIT 1`, { source: int });
    const file = members.find(({ id }) => id === row?.source)?.file.name;
    if (file !== undefined)
      throw new InputError(`${file}: column ${field.column} has the type ${shorten(type)}, but its values must be ${types.words}`);
  }
  // DuckDB skips a row group if its statistics show that all heights are outside the range. Otherwise it reads the heights first, and other
  // columns only if a height is in the range. A runes table is read in full, because blocks may use runes that were etched below the range.
  const hasHeights =
    form !== 'runes' && wanted.some(({ field, type }) => field.column === 'block_height' && shapeOf(field, type) === 'integer');
  // An invalid height is in no range, but must be read to be rejected.
  const isWanted =
    hasHeights && range !== undefined
      ? `${isInRange('block_height', range)} OR block_height IS NULL OR block_height NOT BETWEEN 0 AND ${MAX_INTEGER}`
      : 'true';
  await store.run(
    `CREATE TEMP VIEW ${relation} AS SELECT ${source} AS source, file_row_number, ${cells.join(', ')} FROM ${scan} WHERE ${isWanted}`,
  );
}

/** Reads tables: ledger exports, runes tables and flat activity tables, as CSV or Parquet. */
import { readCsv, readFiles } from '../duckdb/readFilesSql.ts';
import { identifier } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { mayBeInRange } from './blockRange.ts';
import { INEXACT_TYPES, NESTED_TYPES, type RawColumn, shapeOf } from './cellSql.ts';
import { fillTable, SOURCE_FILE, sourceNumber } from './fillTable.ts';
import { type Member, type Numbered, pathsOf, type RawSource, type Reading } from './rawSource.ts';
import { fieldsOf, type TableForm } from './recognise.ts';

/** Reads CSV into a table, or creates a view of Parquet. Throws an InputError for a column type that loses values. */
export async function readTable(first: Numbered & { form: TableForm }, members: readonly Member[], reading: Reading): Promise<RawSource> {
  const { range, store } = reading;
  const { file, form, format, columns } = first;
  const types = new Map(columns.map((c) => [c.name, c.type]));
  const raw: RawColumn[] = fieldsOf(form)
    .filter((f) => types.has(f.column))
    .map((field) => {
      const type = types.get(field.column) ?? 'VARCHAR';
      if (NESTED_TYPES.test(type))
        throw new InputError(`${file.name}: column ${field.column} is ${type}, not a single value`, [
          'Write it as text (VARCHAR) or BIGINT.',
        ]);
      if (INEXACT_TYPES.test(type) && field.kind !== 'text')
        throw new InputError(`${file.name}: column ${field.column} is ${type}, which cannot store its values exactly`, [
          field.kind === 'integer' ? 'Write it as BIGINT.' : 'Write it as text (VARCHAR).',
        ]);
      return { field, shape: shapeOf(field, type) };
    });
  if (types.has('file_row_number'))
    throw new InputError(`${file.name} has a column file_row_number, which DuckDB reserves`, ['Rename or remove that column.']);
  const cells = raw.map(({ field, shape }) =>
    shape === 'integer' ? identifier(field.column) : `${identifier(field.column)}::VARCHAR AS ${identifier(field.column)}`,
  );
  const relation = store.nameOf('raw');
  if (format === 'parquet') {
    const source = await sourceNumber(members, store);
    // If the statistics of a row group show that all of its heights are outside the range, DuckDB skips the group.
    // Otherwise it reads the heights first, and the other columns only if a height is in the range. A runes table is
    // read in full, because blocks in the range may use runes that were etched below the range.
    const hasHeights = form !== 'runes' && raw.some(({ field, shape }) => field.column === 'block_height' && shape === 'integer');
    const isWanted = mayBeInRange('block_height', hasHeights ? range : undefined);
    const scan = readFiles('parquet', pathsOf(members), [`filename = '${SOURCE_FILE}', file_row_number = true`]);
    await store.run(
      `CREATE TEMP VIEW ${relation} AS SELECT ${source} AS source, file_row_number, ${cells.join(', ')} FROM ${scan} WHERE ${isWanted}`,
    );
  } else {
    const names = columns.map(({ name }) => name);
    const options = [`filename = '${SOURCE_FILE}'`, 'header = true'];
    await fillTable(relation, members, cells.join(', '), (paths) => readCsv(paths, names, options), reading);
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

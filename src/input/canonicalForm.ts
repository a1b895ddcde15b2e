/** Finds Parquet files whose cells are all canonical. Their records need no conversion when they are read again. */
import { duckdbMessage, isAboutFile } from '../duckdb/duckdbErrors.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, type Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { validity } from './canonicalRecordSql.ts';
import { memberNamedIn, type RawSource } from './rawSource.ts';

/**
 * Returns the source with canonical columns if every cell is valid and canonical, such as a lower-case hash without prefix; otherwise
 * undefined. Exports of this program and of the indexer are canonical. Reads all rows of the view. Throws an InputError if a file is
 * broken.
 */
export async function inCanonicalForm(source: RawSource, store: Store): Promise<RawSource | undefined> {
  const columns = source.columns.map((column) => (column.shape === 'text' ? { ...column, shape: 'canonical' as const } : column));
  // Columns of free text have no rule, so the check alone would not read them. Computing the lengths of the texts reads these columns, so
  // that damage is found now and not while rendering.
  const unruled = columns
    .filter((c) => c.shape === 'canonical' && c.field.kind === 'text')
    .map((c) => `, max(strlen(${identifier(c.field.column)}))`);
  try {
    const other = `count(*) FILTER (WHERE NOT (${validity(columns)})) AS number`;
    return (await store.number(`SELECT ${other}${unruled.join('')} FROM ${source.relation}`)) === 0 ? { ...source, columns } : undefined;
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    // Some messages of DuckDB do not name the file.
    let broken = memberNamedIn(source.members, error);
    for (const member of source.members) {
      const read = store.run(`SELECT max(strlen(COLUMNS(*)::VARCHAR)) FROM ${readFiles('parquet', [member.path])}`);
      if (!(await read.then(() => false, isAboutFile))) continue;
      broken = member;
      break;
    }
    throw new InputError(`${broken?.file.name} is broken Parquet: ${duckdbMessage(error)}`);
  }
}

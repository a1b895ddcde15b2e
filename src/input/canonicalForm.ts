/** Finds Parquet files whose cells are all canonical. Their records need no conversion when they are read again. */
import { duckdbMessage, isAboutFile } from '../duckdb/duckdbErrors.ts';
import { readFiles } from '../duckdb/readFilesSql.ts';
import { identifier, type Store } from '../duckdb/store.ts';
import { InputError } from '../errors.ts';
import { validity } from './canonicalRecordSql.ts';
import { type Member, memberNamedIn, type RawSource } from './rawSource.ts';

/**
 * True if every cell is valid and canonical, such as a lower-case hash without prefix. Exports of this program and of
 * the indexer are canonical. Reads all rows of the view. Throws an InputError if a file is broken.
 */
export async function isInCanonicalForm(source: RawSource, store: Store): Promise<boolean> {
  const rule = validity(withCanonicalCells(source).columns);
  // Columns of free text have no rule, so the check alone would not read them. Computing the lengths of the texts reads
  // these columns, so that damage is found now and not while rendering.
  const unruled = source.columns
    .filter((c) => c.shape === 'text' && c.field.kind === 'text')
    .map((c) => `max(strlen(${identifier(c.field.column)}))`);
  try {
    const other = await store.number(
      `SELECT count(*) FILTER (WHERE NOT (${rule})) AS number${unruled.map((u) => `, ${u}`).join('')} FROM ${source.relation}`,
    );
    return other === 0;
  } catch (error) {
    if (!isAboutFile(error)) throw error;
    const broken = await brokenMember(source.members, store);
    throw new InputError(`${(broken ?? memberNamedIn(source.members, error))?.file.name} is broken Parquet: ${duckdbMessage(error)}`);
  }
}

/** Returns the first file that cannot be read. Needed because some messages of DuckDB do not name the file. */
async function brokenMember(members: readonly Member[], store: Store): Promise<Member | undefined> {
  for (const member of members) {
    try {
      await store.run(`SELECT max(strlen(COLUMNS(*)::VARCHAR)) FROM ${readFiles('parquet', [member.path])}`);
    } catch (error) {
      if (isAboutFile(error)) return member;
    }
  }
  return undefined;
}

export const withCanonicalCells = (source: RawSource): RawSource => ({
  ...source,
  columns: source.columns.map((column) => (column.shape === 'text' ? { ...column, shape: 'canonical' } : column)),
});

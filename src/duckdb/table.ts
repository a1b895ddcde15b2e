/**
 * Tables and views of the store, as typed objects: code that creates a table passes it on, and SQL templates insert it: `FROM ${kept}`. So
 * the types of a function's parameters show which tables it needs.
 */
import type { Field } from '../contract/fields.ts';

export type ColumnType = 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'DOUBLE' | 'HUGEINT' | 'BOOLEAN';
export type ColumnTypes = Readonly<Record<string, ColumnType>>;

/** A table or view. A parameter that needs certain columns also accepts a table with more columns. */
export class Table<Names extends ColumnTypes = ColumnTypes> {
  /** Called only by the store and the state, which choose the names. */
  constructor(
    private readonly name: string,
    readonly columns: Names,
  ) {}

  toString(): string {
    return this.name;
  }
}

export type TableWith<Names extends string> = Table<Readonly<Record<Names, ColumnType>>>;

/** Result type of `columns(sql)`. */
export type Columns<Sql extends string> = Sql extends `${infer One}, ${infer Others}`
  ? Columns<One> & Columns<Others>
  : Sql extends `${infer Name} ${infer Type extends ColumnType}`
    ? Readonly<Record<Name, Type>>
    : never;

/** Parses columns that are written as in CREATE TABLE, such as `tx_id VARCHAR, records BIGINT`. */
export const columns = <const Sql extends string>(sql: Sql): Columns<Sql> =>
  Object.fromEntries(sql.split(', ').map((column) => column.split(' '))) as Columns<Sql>;

/** Returns the column type of each field. Amounts are text, because some have too many digits for any number type. */
export const columnsOf = <Name extends string>(fields: readonly Field<Name>[]): Readonly<Record<Name, ColumnType>> =>
  Object.fromEntries(
    fields.map(({ column, kind }) => [column, kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR']),
  ) as Record<Name, ColumnType>;

export const definitionOf = (columns: ColumnTypes): string =>
  Object.entries(columns)
    .map(([name, type]) => `"${name}" ${type}`)
    .join(', ');

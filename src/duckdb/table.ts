/**
 * Tables and views of the store, as values. Code that reads one gets the value from the code that made it, and names it
 * in templates of SQL: `SELECT * FROM ${kept}`. So the types show which step needs which table.
 */
import type { Field } from '../contract/fields.ts';

export type ColumnType = 'VARCHAR' | 'BIGINT' | 'INTEGER' | 'HUGEINT' | 'BOOLEAN';
/** Columns in their order. */
export type ColumnTypes = Readonly<Record<string, ColumnType>>;

/** A table or view. One with more columns can stand for one with fewer. */
export class Table<Names extends ColumnTypes = ColumnTypes> {
  readonly #name: string;
  readonly columns: Names;

  /** Only the store and the state choose names. */
  constructor(name: string, columns: Names) {
    this.#name = name;
    this.columns = columns;
  }

  /** Returns the name in SQL. */
  toString(): string {
    return this.#name;
  }
}

/** A table that has at least these columns. */
export type TableWith<Names extends string> = Table<Readonly<Record<Names, ColumnType>>>;

/** Columns that are written as in CREATE TABLE. */
export type Columns<Sql extends string> = Sql extends `${infer One}, ${infer Others}`
  ? Columns<One> & Columns<Others>
  : Sql extends `${infer Name} ${infer Type extends ColumnType}`
    ? Readonly<Record<Name, Type>>
    : never;

/** Parses columns that are written as in CREATE TABLE, such as `tx_id VARCHAR, records BIGINT`. */
export const columns = <const Sql extends string>(sql: Sql): Columns<Sql> =>
  Object.fromEntries(sql.split(', ').map((column) => column.split(' '))) as Columns<Sql>;

/** Returns the columns of fields. Text keeps the digits of amounts, which no number type has. */
export const columnsOf = <Name extends string>(fields: readonly Field<Name>[]): Readonly<Record<Name, ColumnType>> =>
  Object.fromEntries(
    fields.map(({ column, kind }) => [column, kind === 'integer' ? 'BIGINT' : kind === 'flag' ? 'BOOLEAN' : 'VARCHAR']),
  ) as Record<Name, ColumnType>;

/** Returns columns as CREATE TABLE takes them. */
export const definitionOf = (columns: ColumnTypes): string =>
  Object.entries(columns)
    .map(([name, type]) => `"${name}" ${type}`)
    .join(', ');

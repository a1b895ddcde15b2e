/** A table to which a build adds parts. All but the first go to compressed files: DuckDB would spill a table to twice the space or more. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readRows } from './readFilesSql.ts';
import type { Store } from './store.ts';
import { type ColumnTypes, Table } from './table.ts';

export class GrowingTable<C extends ColumnTypes> extends Table<C> {
  readonly #folder: string;
  #isEmpty = true;

  private constructor(
    private readonly first: Table<C>,
    private readonly store: Store,
  ) {
    super(`all_${first}`, first.columns);
    this.#folder = join(store.scratch, `${this}`);
  }

  static async create<C extends ColumnTypes>(label: string, columns: C, store: Store): Promise<GrowingTable<C>> {
    const table = new GrowingTable(await store.table(label, columns), store);
    await store.run(`CREATE TEMP VIEW ${table} AS FROM ${table.first}`);
    return table;
  }

  /** Adds the rows of a query, which has the columns of the table in any order. */
  async add(rows: string): Promise<void> {
    if (this.#isEmpty) await this.store.run(`INSERT INTO ${this.first} BY NAME ${rows}`);
    else {
      await this.store.writeRows(rows, this.#folder);
      await this.store.run(`CREATE OR REPLACE TEMP VIEW ${this} AS FROM ${this.first} UNION ALL BY NAME FROM ${readRows(this.#folder)}`);
    }
    this.#isEmpty = false;
  }

  async drop(): Promise<void> {
    await this.store.run(`DROP VIEW ${this}; DROP TABLE ${this.first}`);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

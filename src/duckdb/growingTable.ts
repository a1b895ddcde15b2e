/**
 * A table to which a build adds rows part by part. Above `listedAtOnce` rows, it writes them to compressed files: DuckDB
 * would spill its own tables without compression, to twice the disk space or more.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { exceeds, type WorkLimits } from '../limits.ts';
import { readRows } from './readFilesSql.ts';
import type { Store } from './store.ts';
import { type ColumnTypes, definitionOf, Table } from './table.ts';

export class GrowingTable<C extends ColumnTypes> extends Table<C> {
  readonly #recent: string;
  readonly #folder: string;
  /** Number of rows in the table `#recent`. The others are in files. */
  #rows = 0;
  #hasFiles = false;

  private constructor(
    name: string,
    columns: C,
    private readonly limits: Pick<WorkLimits, 'listedAtOnce'>,
    private readonly store: Store,
  ) {
    super(name, columns);
    this.#recent = store.nameOf(`recent_${name}`);
    this.#folder = join(store.scratch, name);
  }

  /** Creates an empty table. */
  static async create<C extends ColumnTypes>(
    label: string,
    columns: C,
    limits: Pick<WorkLimits, 'listedAtOnce'>,
    store: Store,
  ): Promise<GrowingTable<C>> {
    const table = new GrowingTable(store.nameOf(label), columns, limits, store);
    await table.#begin();
    return table;
  }

  #begin(): Promise<void> {
    const files = this.#hasFiles ? `UNION ALL BY NAME FROM ${readRows(this.#folder)}` : '';
    return this.store.run(`CREATE OR REPLACE TEMP TABLE ${this.#recent} (${definitionOf(this.columns)});
      CREATE OR REPLACE TEMP VIEW ${this} AS FROM ${this.#recent} ${files}`);
  }

  /** Adds the rows of a query, which has the columns of the table in any order. */
  async add(rows: string): Promise<void> {
    this.#rows += await this.store.count(`INSERT INTO ${this.#recent} BY NAME ${rows}`);
    if (!exceeds(this.limits, 'listedAtOnce', this.#rows)) return;
    await this.store.writeRows(`FROM ${this.#recent}`, this.#folder);
    this.#hasFiles = true;
    this.#rows = 0;
    await this.#begin();
  }

  /** Removes the table and its files. */
  async drop(): Promise<void> {
    await this.store.run(`DROP VIEW ${this}; DROP TABLE ${this.#recent}`);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

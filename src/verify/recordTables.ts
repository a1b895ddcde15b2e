/** Tables of the records that change balances, to make the lists of balances and outputs again. */
import { join } from 'node:path';
import { LineFile } from '../disk/lineFile.ts';
import { readLines } from '../duckdb/readFilesSql.ts';
import { columns, type Table } from '../duckdb/table.ts';
import { exceeds } from '../limits.ts';
import { CHANGING } from '../lists/balanceChanges.sql.ts';
import type { Activity } from './checkBlock.ts';
import type { Verification } from './verification.ts';

const RECEIVED = {
  ...columns('output VARCHAR, height BIGINT, hash VARCHAR, tx_index BIGINT'),
  ...columns('timestamp BIGINT, address VARCHAR, rune VARCHAR, units VARCHAR'),
} as const;

/** Runes that outputs received. `units` is a decimal string in units of the rune. */
export type Received = Table<typeof RECEIVED>;

const CHANGES: ReadonlySet<string> = new Set(['receive', 'send', 'burn']);

export class RecordTables {
  /** Lines that are not in the tables yet. */
  #lines: LineFile | undefined;

  private constructor(
    private readonly verification: Verification,
    readonly records: Table<typeof CHANGING>,
    /** Undefined for an archive without outputs. */
    readonly received: Received | undefined,
  ) {}

  static async begin(verification: Verification, hasOutputs: boolean): Promise<RecordTables> {
    const { store } = verification;
    const received = hasOutputs ? await store.table('received', RECEIVED) : undefined;
    return new RecordTables(verification, await store.table('changing', CHANGING), received);
  }

  async add(height: number, records: readonly Activity[]): Promise<void> {
    this.#lines ??= new LineFile(join(this.verification.scratch, 'records.ndjson'));
    for (const record of records) {
      const { rune, address, operation, amount } = record;
      // A record without an address changes no balance, so it is stored only if `received` needs its output.
      const received = this.received !== undefined && operation === 'receive' ? this.#outputOf(record) : undefined;
      if (received === undefined && (address === undefined || !CHANGES.has(operation))) continue;
      this.#lines.add(JSON.stringify({ height, rune: rune.id, address, operation, units: amount, ...received }));
    }
    if (exceeds(this.verification.limits, 'linesPerLoad', this.#lines.count)) await this.load();
  }

  #outputOf({ location }: Activity) {
    const { tx_id, vout, block_hash, tx_index, timestamp } = location;
    if (vout === undefined) return undefined;
    return { output: `${tx_id.slice(-64)}:${vout}`, hash: block_hash.slice(-64), tx_index, timestamp };
  }

  /** Moves all lines into the tables. */
  async load(): Promise<void> {
    if (this.#lines === undefined) return;
    this.#lines.end();
    const types = Object.entries({ ...RECEIVED, operation: 'VARCHAR' }).map(([name, type]) => `"${name}": '${type}'`);
    const lines = readLines(this.#lines, types.join(', '));
    const { store } = this.verification;
    await store.run(`INSERT INTO ${this.records}
      SELECT height, rune, address, operation, units FROM ${lines} WHERE address IS NOT NULL`);
    if (this.received !== undefined)
      await store.run(`INSERT INTO ${this.received}
        SELECT * EXCLUDE (operation) REPLACE (coalesce(units, '0') AS units) FROM ${lines} WHERE "output" IS NOT NULL`);
    this.#lines = undefined;
  }
}

/** Collects the records of pages in Parquet files, as the canonical records from which builds make lists. */
import { join } from 'node:path';
import { LineFile } from '../disk/lineFile.ts';
import { readFiles, readLines } from '../duckdb/readFilesSql.ts';
import { RECORDS, type Records } from '../input/canonicalRecordSql.ts';
import { exceeds } from '../limits.ts';
import type { Verification } from './verification.ts';

const LOCATION = 'block_hash VARCHAR, block_height BIGINT, tx_id VARCHAR, tx_index BIGINT, vout BIGINT, "timestamp" BIGINT';
const RECORD = `rune STRUCT(id VARCHAR, number BIGINT, name VARCHAR, spaced_name VARCHAR), address VARCHAR, receiver_address VARCHAR,
  amount VARCHAR, operation VARCHAR, location STRUCT(${LOCATION})`;

/**
 * SQL expression of each column of RECORDS that is no column of the record or its location. Hex has no prefix. No list is
 * made from `output`.
 */
const CELLS: Readonly<Record<string, string>> = {
  source: '0::INTEGER',
  rune_id: 'rune.id',
  rune_number: 'rune.number',
  rune_name: 'rune.name',
  rune_spaced_name: 'rune.spaced_name',
  block_hash: 'right(block_hash, 64)',
  tx_id: 'right(tx_id, 64)',
  output: 'NULL::VARCHAR',
  event_index: 'NULL::BIGINT',
};

export class PublishedRecords {
  /** Lines that are in no Parquet file yet. */
  #lines: LineFile | undefined;
  readonly #files: string[] = [];

  constructor(private readonly verification: Pick<Verification, 'store' | 'scratch' | 'limits'>) {}

  /** Adds the records of a block, each as the JSON of a page, in served order. */
  async add(records: readonly string[]): Promise<void> {
    this.#lines ??= new LineFile(join(this.verification.scratch, 'records.ndjson'));
    for (const [i, record] of records.entries()) this.#lines.add(`{"ord":${-i},"record":${record}}`);
    if (exceeds(this.verification.limits, 'linesPerLoad', this.#lines.count)) await this.#load();
  }

  async #load(): Promise<void> {
    if (this.#lines === undefined) return;
    this.#lines.end();
    const { store, scratch } = this.verification;
    const folder = join(scratch, store.nameOf('records'));
    const cells = Object.keys(RECORDS).map((name) => `${CELLS[name] ?? `"${name}"`} AS "${name}"`);
    const lines = readLines(this.#lines, `ord: 'BIGINT', record: 'STRUCT(${RECORD})'`);
    const flat = `SELECT * EXCLUDE (location), unnest(location) FROM (SELECT ord, unnest(record) FROM ${lines})`;
    await store.writeRows(`SELECT ${cells.join(', ')} FROM (${flat})`, folder);
    this.#files.push(join(folder, 'rows.parquet'));
    this.#lines = undefined;
  }

  /** Returns a view of all records. */
  async end(): Promise<Records> {
    await this.#load();
    const columns = Object.entries(RECORDS);
    const { store } = this.verification;
    if (this.#files.length === 0) return store.table('records', RECORDS);
    return store.view('records', RECORDS, `SELECT ${columns.map(([name]) => `"${name}"`)} FROM ${readFiles('parquet', this.#files)}`);
  }
}

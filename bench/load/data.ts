/**
 * Makes the data of the load benchmark: the same invented records as builds of both layouts, and as tables of bitcoin-indexer, whose
 * database Hiro's server queried.
 */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { DuckDBConnection } from '@duckdb/node-api';
import { from as copyFrom } from 'pg-copy-streams';
import { LAYOUTS, type Layout } from '../../src/pages/mirrorOptions.ts';
import { testBuild } from '../../test/support/build.ts';
import { type Database, SCHEMA } from '../../test/support/postgres.ts';
import { generate } from '../generate.ts';
import { withDuckDB } from '../withDuckDB.ts';
import { type DataFacts, FIRST_PAGE, PAGE_SIZES } from './mix.ts';

/** Paths of the records in every form that a host needs. */
export interface Data {
  readonly facts: DataFacts;
  /** Folder of the build of each layout. */
  readonly builds: Readonly<Record<Layout, string>>;
  /** Folder with CSV files of bitcoin-indexer's tables. */
  readonly tables: string;
}

/** Makes about `records` records below `folder`, and builds of them in dialect `hiro`. */
export async function makeData(records: number, folder: string): Promise<Data> {
  const made = await generate(records, join(folder, 'data'), ['parquet']);
  const inputs = [made.oldest, made.history, ...made.recent].map((name) => join(folder, 'data', 'parquet', `${name}.parquet`));
  const builds = { files: join(folder, 'files'), archive: join(folder, 'archive') };
  for (const layout of LAYOUTS) await testBuild(builds[layout], { inputs, layout, dialect: 'hiro', pageSizes: PAGE_SIZES });
  return withDuckDB(folder, async (duckdb) => {
    await duckdb.run(`CREATE VIEW records AS SELECT * FROM read_parquet([${inputs.map((path) => `'${path}'`).join()}])`);
    for (const [table, sql] of Object.entries(TABLES))
      await duckdb.run(`COPY (${sql}) TO '${join(folder, `${table}.csv`)}' (FORMAT csv, HEADER false)`);
    return { facts: await factsOf(duckdb), builds, tables: folder };
  });
}

/** Divisibility of every rune: the number of decimals in the amounts of generate.ts. */
const DIVISIBILITY = 5;

/** SQL queries that make bitcoin-indexer's tables from the records. Amounts are integers, and `output` is the index of an output. */
const TABLES = {
  runes: `SELECT rune_id, rune_number, any_value(rune_name), any_value(rune_spaced_name), repeat('0', 64), 1, 0, repeat('0', 64), ${DIVISIBILITY}, 0, 'x',
    NULL, NULL, NULL, NULL, NULL, NULL, false, false, 0 FROM records GROUP BY rune_id, rune_number ORDER BY rune_number`,
  ledger: `SELECT rune_id, block_hash, block_height, tx_index, event_index, tx_id, vout, address, receiver_address, replace(amount, '.', '')::HUGEINT, operation,
    "timestamp" FROM records ORDER BY block_height, tx_index, event_index`,
};

/** Columns of each further index of the table `ledger`. SCHEMA creates the first index. */
const INDEXES = ['(tx_id, output)', '(rune_id)', '(address, rune_id)'];

/** Fills an empty database as bitcoin-indexer does: in the order of the chain, after the indexes were created. */
export async function fill({ sql }: Database, { tables }: Data): Promise<void> {
  await sql.query(SCHEMA);
  for (const columns of INDEXES) await sql.query(`CREATE INDEX ON ledger ${columns}`);
  for (const table of Object.keys(TABLES)) {
    await pipeline(createReadStream(join(tables, `${table}.csv`)), sql.query(copyFrom(`COPY ${table} FROM STDIN (FORMAT csv)`)));
    await sql.query(`VACUUM ANALYZE ${table}`);
  }
}

async function factsOf(duckdb: DuckDBConnection): Promise<DataFacts> {
  const counts = async (column: string) => {
    const reader = await duckdb.runAndReadAll(`SELECT ${column}, count(*)::INTEGER FROM records GROUP BY ALL ORDER BY ALL`);
    return reader.getRows().map(([id, total]) => ({ id: String(id), total: Number(total) }));
  };
  const [blocks, transactions] = [await counts('block_height'), await counts('tx_id')];
  return {
    records: blocks.reduce((sum, { total }) => sum + total, 0),
    blocks: blocks.map(({ id, total }) => ({ height: Number(id), total })),
    transactions,
    longTransactions: transactions.filter(({ total }) => total > FIRST_PAGE),
  };
}

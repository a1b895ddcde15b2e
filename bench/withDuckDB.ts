import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';

/** Runs `work` on a new database, in memory unless it gets a path. Data that does not fit goes to a folder below `folder`. */
export async function withDuckDB<Result>(
  folder: string,
  work: (connection: DuckDBConnection) => Promise<Result>,
  database = ':memory:',
): Promise<Result> {
  const instance = await DuckDBInstance.create(database, { memory_limit: '2GB', temp_directory: join(folder, '.temporary') });
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/**
 * Reads Parquet files as a build does: `parquetProcess.ts FILE...` checks each file, and then lets DuckDB read it. Prints for each file
 * whether the check and DuckDB accepted it, and at last the peak of its memory in MB.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ParquetError, parquetFacts } from '../../src/duckdb/parquetFacts.ts';
import { readFiles } from '../../src/duckdb/readFilesSql.ts';
import { Store } from '../../src/duckdb/store.ts';

async function main(folder = '', ...names: string[]): Promise<void> {
  const store = await Store.open({ memoryLimit: '300MB', threads: 1, scratch: join(folder, 'scratch') });
  for (const name of names) {
    const path = join(folder, name);
    try {
      parquetFacts(path);
      await store.run(`SELECT max(strlen(COLUMNS(*)::VARCHAR)) FROM ${readFiles('parquet', [path])}`);
      console.log(`${name} accepted`);
    } catch (error) {
      console.log(`${name} ${error instanceof ParquetError ? `refused: ${error.message}` : 'unreadable'}`);
    }
  }
  console.log(Number(/VmHWM:\s+([0-9]+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024);
}

void main(...process.argv.slice(2));

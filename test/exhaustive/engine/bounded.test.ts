/**
 * Profiles every statement of builds that have many times more records than they may group, sort or join at once. So a step that takes all
 * of the input at once is found here, and not by an operator with all of history.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeManyOutputs } from '../../../bench/manyOutputs.ts';
import { Progress } from '../../../src/cli/progress.ts';
import { verify } from '../../../src/verify/verify.ts';
import { RecordingLog, temporaryFolder, testBuild, tree } from '../../support/build.ts';
import { limitsWith } from '../../support/limits.ts';

/** Maximum number of rows that a step may take at once, and what its operators may have: parts are not cut exactly. */
const AT_ONCE = 3000;
const MOST = 2 * AT_ONCE;
const CHAIN = { first: 4000, transactions: 400, runes: 101, addresses: 301 };

interface Operator {
  readonly operator_type?: string;
  readonly operator_cardinality?: number;
  readonly children?: readonly Operator[];
}

/** Returns the numbers of rows that the operators of a statement hold in memory: groups, sorted rows, sides of joins. */
function heldBy({ operator_type: type = '', operator_cardinality: rows = 0, children = [] }: Operator): number[] {
  const held = /GROUP_BY|ORDER_BY|^WINDOW/.test(type) ? [rows] : /JOIN/.test(type) ? [children[1]?.operator_cardinality ?? 0] : [];
  return [...held, ...children.flatMap(heldBy)];
}

const folder = temporaryFolder();
const held: { readonly rows: number; readonly sql: string }[] = [];
const { run, runAndReadAll, stream } = DuckDBConnection.prototype;
const originals = { run, runAndReadAll, stream };

/** Connections whose statements DuckDB profiles, each into its own file, with their last statements. */
const profiled = new Map<DuckDBConnection, { readonly path: string; sql: string }>();

/** Reads the profile of the last statement of a connection. DuckDB writes it when the statement ends. */
function readProfile({ path, sql }: { readonly path: string; readonly sql: string }): void {
  if (!existsSync(path)) return;
  held.push({ rows: Math.max(0, ...heldBy(JSON.parse(readFileSync(path, 'utf8')) as Operator)), sql });
  rmSync(path);
}

/** Turns on the profiles of a connection, and reads the profile of its last statement. */
async function begin(connection: DuckDBConnection, sql: string): Promise<void> {
  const last = profiled.get(connection);
  if (last !== undefined) {
    readProfile(last);
    last.sql = sql;
    return;
  }
  const path = join(folder, `profile${profiled.size}.json`);
  profiled.set(connection, { path, sql });
  for (const setting of [`enable_profiling = 'json'`, `profiling_output = '${path}'`]) await run.call(connection, `SET ${setting}`);
  // The profile of the second setting is none of the statements.
  rmSync(path, { force: true });
}

beforeAll(() => {
  Object.assign(DuckDBConnection.prototype, {
    // DuckDB profiles only the last of several statements, so each of them runs alone.
    async run(this: DuckDBConnection, sql: string) {
      const statements = await this.extractStatements(sql);
      let result: unknown;
      for (let i = 0; i < statements.count; i += 1) {
        await begin(this, sql);
        const prepared = await statements.prepare(i);
        result = await prepared.run();
        // It keeps the hash tables of its plan until it is destroyed.
        prepared.destroySync();
      }
      return result;
    },
    async runAndReadAll(this: DuckDBConnection, sql: string) {
      await begin(this, sql);
      return runAndReadAll.call(this, sql);
    },
    async stream(this: DuckDBConnection, sql: string) {
      await begin(this, sql);
      return stream.call(this, sql);
    },
  });
});

afterAll(() => {
  Object.assign(DuckDBConnection.prototype, originals);
});

/** An upper level changes a small part of many long lists, and has all of these lists. */
const LEVELS = { listLevels: { steps: [64, 4, 2], unsettled: 4 } };
/** The lists of the layouts differ only in their records, so only one layout has very many pages of lists. */
const PUBLISHED = { archive: { ...LEVELS, listPage: 4 }, files: LEVELS };
const BOUNDS = {
  ...{ listedAtOnce: AT_ONCE, sortedAtOnce: AT_ONCE, servedAtOnce: AT_ONCE },
  ...{ keptRecords: 1000, batchRecords: 2000, linesPerLoad: AT_ONCE },
};
const [input, out] = [join(folder, 'input'), join(folder, 'out')];

/** Returns the statements that take too many rows at once. */
async function tooLarge(work: () => Promise<unknown>): Promise<string[]> {
  profiled.clear();
  held.length = 0;
  await work();
  for (const last of profiled.values()) readProfile(last);
  return held.filter(({ rows }) => rows > MOST).map(({ rows, sql }) => `${rows} rows: ${sql.replace(/\s+/g, ' ').slice(0, 300)}`);
}

describe.each(['archive', 'files'] as const)('A build of 16,000 records in layout %s', (layout) => {
  const limits = limitsWith({ ...BOUNDS, ...PUBLISHED[layout] });
  const build = () => testBuild(out, { inputs: [input], lists: true, parquet: true, limits, layout });
  afterAll(() => {
    for (const name of ['out', 'out.cache', 'input']) rmSync(join(folder, name), { recursive: true, force: true });
  });

  it('groups, sorts and joins a bounded number of rows at once', async () => {
    await writeManyOutputs(input, { ...CHAIN, last: 4019 });
    expect(await tooLarge(build)).toEqual([]);
    // The profiles are those of the build.
    expect(Math.max(...held.map(({ rows }) => rows))).toBeGreaterThan(AT_ONCE / 2);
  });

  it('holds no more when a block follows', async () => {
    await writeManyOutputs(input, { ...CHAIN, last: 4020 }, 4020);
    expect(await tooLarge(build)).toEqual([]);
  });

  it('is verified by steps that hold no more', async () => {
    const progress = new Progress(new RecordingLog(), false);
    expect(await tooLarge(() => verify(out, progress, undefined, limits))).toEqual([]);
    expect(Math.max(...held.map(({ rows }) => rows))).toBeGreaterThan(AT_ONCE / 2);
  });

  it.runIf(layout === 'archive')('holds no more when 20 blocks follow, across the end of all levels', async () => {
    await writeManyOutputs(input, { ...CHAIN, last: 4040 }, 4021);
    expect(await tooLarge(build)).toEqual([]);
  });

  it.runIf(layout === 'archive')('has the files of a build that takes all rows at once', async () => {
    const whole = join(folder, 'whole');
    await testBuild(whole, { inputs: [input], lists: true, parquet: true, limits: limitsWith(PUBLISHED[layout]), layout });
    expect(tree(out)).toEqual(tree(whole));
  });
});

it('A build of blocks in 19 files of statistics sums the runes of a bounded number of files at once', async () => {
  const [most, work] = [MOST / 3, join(folder, 'many')];
  await writeManyOutputs(join(work, 'input'), { first: 4000, last: 5899, transactions: 12, runes: 199, addresses: 301 });
  const limits = limitsWith({ ...BOUNDS, listedAtOnce: most / 2 });
  const builds = () => testBuild(join(work, 'out'), { inputs: [join(work, 'input')], lists: false, limits, layout: 'archive' });
  await tooLarge(builds);
  const sums = held.filter(({ sql }) => sql.includes('state.block_runes') && sql.includes('GROUP BY first, rune_id'));
  expect(sums.length).toBeGreaterThan(3);
  expect(sums.filter(({ rows }) => rows > most)).toEqual([]);
});

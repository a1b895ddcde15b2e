/** Tests incremental builds. After any change of the input, the result equals a full build, and unaffected files are not touched. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import {
  failedBuild,
  filesBelow,
  RecordingLog,
  type TestBuild,
  temporaryFolder,
  testBuild,
  tree,
  writeFiles,
} from '../../support/build.ts';
import { run, runProcess } from '../../support/cli.ts';
import { check } from '../../support/outputs.ts';
import { hex, ndjson, record, words } from '../../support/records.ts';

/** Writes one input file for each of these blocks, and builds them. */
async function built(heights: readonly number[], options: Omit<TestBuild, 'inputs'> = {}) {
  const work = temporaryFolder();
  const [out, input] = [join(work, 'out'), join(work, 'in')];
  const put = (height: number, text: string) => writeFiles(input, { [`${height}.ndjson`]: text });
  for (const height of heights) put(height, ndjson(blockOf(height)));
  const build = async (more: Partial<TestBuild> = {}) => {
    const log = new RecordingLog();
    const result = await testBuild(out, { inputs: [input], ...options, log, ...more });
    const loaded = log.infos.find(({ event }) => event === 'loaded')?.figures;
    return { ...result, filesRead: loaded?.['files_read'], full: loaded?.['full'], notices: log.notices };
  };
  await build();
  const fresh = async (more: Partial<TestBuild> = {}) => {
    await testBuild(join(work, 'fresh'), { inputs: [input], ...options, full: true, ...more });
    return tree(join(work, 'fresh'));
  };
  return { work, out, input, put, build, fresh };
}

const blockOf = (height: number, amount = '1', txs = 3) =>
  Array.from({ length: txs * 25 }, (_, i) => record(height, txs - Math.floor(i / 25), { amount }));

const OLD = new Date('2001-01-01');
const age = (folder: string) => {
  for (const path of filesBelow(folder)) utimesSync(join(folder, path), OLD, OLD);
};
const young = (folder: string) => filesBelow(folder).filter((path) => statSync(join(folder, path)).mtime > OLD);

it('two builds in one process write the same files as builds in separate processes', async () => {
  const work = temporaryFolder();
  const flags = (name: string) => ['--input', 'in', '--out', name, '--cache', `${name}.cache`, '--lists'];
  for (const height of [1, 2]) {
    writeFiles(work, { [`in/${height}.ndjson`]: ndjson(blockOf(height)) });
    const finished = [await run('build', flags('here'), work), await runProcess('build', flags('there'), work)];
    expect(finished.map(({ code }) => code)).toEqual([0, 0]);
    expect(tree(join(work, 'here'))).toEqual(tree(join(work, 'there')));
  }
});

describe('an incremental build', () => {
  it('reads only the new file, writes only its block, and does not touch other files', async () => {
    const { out, put, build } = await built([1, 2, 3]);
    age(out);
    put(4, ndjson(blockOf(4)));
    const { filesRead, blocks, removed } = await build();
    expect({ filesRead, blocks, removed }).toMatchObject({ filesRead: 1, blocks: { written: 1, gone: 0 }, removed: 0 });
    const own = words(`
        .rune-activity-mirror docs/index.html index.html openapi.json runes/v1/blocks.json runes/v1/changes/4.json runes/v1/changes/index.json
        runes/v1/digests/0.json runes/v1/feed.json runes/v1/index.json runes/v1/manifest.json runes/v1/stats.json runes/v1/stats/0.json
      `);
    const ids = new Set([1, 2, 3].map((tx) => hex(`tx 4 ${tx}`)));
    for (const path of young(out).filter((p) => !own.includes(p))) {
      const isOfBlock = /blocks\/(4|0x[0-9a-f]{64})[./]/.test(path) && (path.includes('/4') || path.includes(hex('block 4')));
      expect(isOfBlock || [...ids].some((id) => path.includes(id))).toBe(true);
    }
    expect(young(out).length).toBeGreaterThan(20);
  });

  it('of unchanged input reads nothing and touches nothing, also when the files have new times or names', async () => {
    const { out, input, build } = await built([1, 2, 3]);
    age(out);
    expect(await build()).toMatchObject({ filesRead: 0, wasFull: false, blocks: { written: 0, gone: 0 } });
    age(input);
    expect(await build()).toMatchObject({ filesRead: 0, wasFull: false });
    renameSync(join(input, '2.ndjson'), join(input, 'renamed.ndjson'));
    expect(await build()).toMatchObject({ filesRead: 0, wasFull: false });
    expect(await build()).toMatchObject({ filesRead: 0, wasFull: false });
    expect(young(out)).toEqual([]);
  });

  it('writes only the changed block of a file with many blocks', async () => {
    const { out, input, build } = await built([9]);
    const write = (amount: string) => writeFiles(input, { '9.ndjson': ndjson([...blockOf(1), ...blockOf(2, amount), ...blockOf(3)]) });
    write('1');
    await build();
    age(out);
    write('2');
    expect(await build()).toMatchObject({ filesRead: 1, blocks: { written: 1, gone: 0 } });
    expect(young(out)).toContain('runes/v1/blocks/2.json');
    expect(young(out)).not.toContain('runes/v1/blocks/1.json');
  });

  it.each([
    ['the dialect', { dialect: 'hiro' as const }],
    ['the page sizes', { pageSizes: [5, 30] }],
    ['--full', { full: true }],
  ])('builds everything when %s changes', async (_, more) => {
    const { out, build, fresh } = await built([1, 2]);
    expect(await build(more)).toMatchObject({ wasFull: true });
    expect(tree(out)).toEqual(await fresh(more));
    expect(await build({ ...more, full: false })).toMatchObject({ wasFull: false, filesRead: 0 });
  });

  it('refuses a transaction that an unchanged file has too, and changes nothing', async () => {
    const { out, put, build } = await built([1, 2]);
    const before = tree(out);
    put(3, ndjson([record(3, 1, { location: { tx_id: `0x${hex('tx 1 2')}` } })]));
    const error = await build().catch((e: Error) => e);
    expect(error).toMatchObject({
      exitCode: 2,
      details: [expect.stringMatching(new RegExp(`^tx_id ${hex('tx 1 2')} is in two blocks: 1 and 3 .*1.ndjson, .*3.ndjson`))],
    });
    expect(tree(out)).toEqual(before);
    put(3, ndjson(blockOf(3)));
    expect(await build()).toMatchObject({ wasFull: false, blocks: { written: 1 } });
  });

  it('refuses a block that differs from a copy in an unchanged file, and a hash that an unchanged file has at another height', async () => {
    const { input, build } = await built([1, 2]);
    writeFiles(input, { 'copy.ndjson': ndjson(blockOf(1, '7')) });
    expect(await build().catch((e: Error) => e)).toMatchObject({ details: [expect.stringContaining('block 1 differs between')] });
    writeFiles(input, { 'copy.ndjson': ndjson([record(8, 1, { location: { block_hash: `0x${hex('block 2')}` } })]) });
    expect(await build().catch((e: Error) => e)).toMatchObject({
      details: [expect.stringMatching(new RegExp(`^block hash ${hex('block 2')} is at two heights: 2 .* and 8`))],
    });
  });

  it('reads other ledgers again when one of their runes changed, but not when a rune is new to them', async () => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const ledger = (height: number, rune: string) =>
      `rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp\n${rune},${hex(`block ${height}`)},${height},1,0,${hex(`tx ${height}`)},0,bc1q,,12345,receive,1\n`;
    const runes = (...rows: string[]) => ['id,number,name,spaced_name,divisibility', ...rows, ''].join('\n');
    const build = async (files: Record<string, string>) => {
      writeFiles(input, files);
      const log = new RecordingLog();
      const result = await testBuild(out, { inputs: [input], log });
      await testBuild(join(work, 'fresh'), { inputs: [input], full: true });
      expect(tree(out)).toEqual(tree(join(work, 'fresh')));
      return [log.infos[0]?.figures?.['files_read'], result.blocks.written];
    };
    await build({ 'l1.csv': ledger(1, '1:1'), 'runes.csv': runes('1:1,0,AAA,AAA,2') });
    expect(await build({ 'l2.csv': ledger(2, '1:2'), 'runes.csv': runes('1:1,0,AAA,AAA,2', '1:2,1,BBB,BBB,0') })).toEqual([2, 1]);
    expect(await build({ 'runes.csv': runes('1:1,0,AAA,AAA,3', '1:2,1,BBB,BBB,0') })).toEqual([3, 1]);
    // If a rune is removed from the table, builds omit its rows from the output. When the rune returns, the build reads only those ledger
    // files again that have its rows.
    expect(await build({ 'runes.csv': runes('1:2,1,BBB,BBB,0') })).toEqual([3, 0]);
    expect(await build({ 'runes.csv': runes('1:1,0,AAA,AAA,2', '1:2,1,BBB,BBB,0') })).toEqual([2, 1]);
  });
});

it('a build that changes nothing, even a full one, touches no page', async () => {
  const { out, input, build } = await built([1, 2]);
  const times = () => filesBelow(join(out, 'runes')).map((path) => [path, statSync(join(out, 'runes', path), { bigint: true }).ctimeNs]);
  const before = times();
  writeFiles(input, { 'copy.ndjson': ndjson(blockOf(1)) });
  expect(await build()).toMatchObject({ filesRead: 2, blocks: { written: 0, gone: 0 } });
  await build({ full: true });
  expect(times()).toEqual(before);
});

describe('unusual names and times', () => {
  it.each(['mirror:1', '~', "it's [a] *"])('of the output and the cache: %j', async (name) => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const before = filesBelow(work);
    for (const height of [1, 2]) {
      writeFiles(work, { [`in/${height}.ndjson`]: ndjson([record(height, 1)]) });
      const { code, stderr } = await run('build', ['--input', 'in', '--out', `${name}/out`, '--cache', `${name}/cache`], work);
      expect([code, stderr]).toEqual([0, expect.not.stringContaining('cannot be used')]);
    }
    expect(
      filesBelow(work)
        .filter((path) => !before.includes(path) && !/^in\//.test(path))
        .every((path) => path.startsWith(`${name}/`)),
    ).toBe(true);
    expect(existsSync(join(work, name, 'cache/state.duckdb'))).toBe(true);
  });

  it('of folders that look like DuckDB partition columns: a renamed folder changes nothing', async () => {
    const work = temporaryFolder();
    const input = join(work, 'in');
    const cells = (height: number) => `${hex(`block ${height}`)},${height},1`;
    const flat = `rune_id,rune_number,rune_name,rune_spaced_name,address,receiver_address,amount,operation,block_hash,block_height,tx_index,tx_id,vout,output,timestamp\n1:1,0,A,A,bc1q,,1,mint,${cells(1)},${hex('tx 1')},,,1\n`;
    writeFiles(input, {
      'a/flat.csv': flat,
      'b/ledger.csv': `rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp\n1:1,${cells(2)},0,${hex('tx 2')},0,bc1q,,1,mint,1\n`,
      'b/runes.csv': 'id,number,name,spaced_name,divisibility\n1:1,0,A,A,2\n',
      'c/records.ndjson': ndjson([record(3, 1)]),
      'd/answer.json': JSON.stringify({ limit: 20, offset: 0, total: 1, results: [record(4, 1)] }),
    });
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(work, 'scratch') });
    writeFiles(input, { 'e/flat.csv': flat.replace(cells(1), cells(5)).replace(hex('tx 1'), hex('tx 5')) });
    await store.run(
      `COPY (SELECT * REPLACE (block_height::BIGINT AS block_height) FROM read_csv('${input}/e/flat.csv', all_varchar = true)) TO '${input}/e/flat.parquet'`,
    );
    store.close();
    rmSync(join(input, 'e/flat.csv'));
    const plain = await testBuild(join(work, 'plain'), { inputs: [input], threads: 1, parquet: true });
    expect(plain.manifest.blocks).toBe(5);
    const [out, cache] = [join(work, 'address=evil/out'), join(work, 'timestamp=7')];
    const options = { inputs: [input], cache, threads: 1, parquet: true };
    const names = ['address=evil', 'rune_id=9%3A9', 'operation=burn', 'results=x', 'block_height=7'];
    for (const [i, name] of names.entries()) renameSync(join(input, 'abcde'[i] ?? ''), join(input, name));
    await testBuild(out, options);
    expect(tree(out)).toEqual(tree(join(work, 'plain')));
    // A folder name like `tx_index=9` must not add a column when the next build reads its own Parquet files.
    writeFiles(input, { 'tx_index=9/more.ndjson': ndjson([record(6, 1)]) });
    await testBuild(out, options);
    await testBuild(join(work, 'fresh'), { ...options, cache: join(work, 'fresh.cache') });
    expect(tree(out)).toEqual(tree(join(work, 'fresh')));
    await check(out);
  });

  it('of a cache with a question mark, which DuckDB does not allow, are refused before anything is written', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')], cache: join(work, 'why?') });
    expect([error.exitCode, error.message]).toEqual([3, expect.stringContaining('has a question mark in its path')]);
    expect(existsSync(join(work, 'out'))).toBe(false);
  });

  it('of input files: a time that does not fit into 64 bits', async () => {
    const { input, put, build } = await built([1]);
    put(2, ndjson(blockOf(2)));
    utimesSync(join(input, '2.ndjson'), new Date('2400-01-01'), new Date('2400-01-01'));
    expect(await build()).toMatchObject({ wasFull: false });
    expect(await build()).toMatchObject({ filesRead: 0 });
  });
});

const DAMAGED = /^the cache is damaged \((?:IO|Catalog) Error: .*\) and was moved to .*state[.]duckdb[.]damaged$/;

describe('a damaged cache', () => {
  const KINDS: readonly (readonly [name: string, damage: (cache: string) => void, reason: RegExp])[] = [
    ['lost', (cache) => rmSync(cache, { recursive: true }), /there is no cache/],
    ['no database', (cache) => writeFileSync(join(cache, 'state.duckdb'), 'nonsense'.repeat(5000)), DAMAGED],
    ['cut off', (cache) => truncateSync(join(cache, 'state.duckdb'), 20_000), DAMAGED],
    [
      'a folder',
      (cache) => {
        rmSync(join(cache, 'state.duckdb'));
        mkdirSync(join(cache, 'state.duckdb'));
      },
      DAMAGED,
    ],
    ['empty', (cache) => writeFileSync(join(cache, 'state.duckdb'), ''), DAMAGED],
  ];
  it(`${KINDS.map(([name]) => name).join(', ')} costs a full build, and no wrong one`, async () => {
    const { out, input, put, build, fresh } = await built([1, 2, 3]);
    const aside = join(`${out}.cache`, 'state.duckdb.damaged');
    const smaller = await fresh({ inputs: [1, 2].map((height) => join(input, `${height}.ndjson`)) });
    for (const [name, damage, reason] of KINDS) {
      rmSync(aside, { recursive: true, force: true });
      damage(`${out}.cache`);
      rmSync(join(input, '3.ndjson'));
      const { wasFull, full, notices } = await build();
      expect([name, wasFull, full]).toEqual([name, true, expect.stringMatching(reason)]);
      expect(notices).toEqual(reason === DAMAGED ? [`${full}; everything is built again`] : []);
      expect([name, existsSync(aside)]).toEqual([name, reason === DAMAGED]);
      expect(tree(out)).toEqual(smaller);
      put(3, ndjson(blockOf(3)));
      expect([name, await build()]).toMatchObject([name, { wasFull: false, filesRead: 1 }]);
    }
    expect(tree(out)).toEqual(await fresh());
  });

  it('stays when a build fails for another reason, and the build reports that reason', async () => {
    const { out, work, put, build } = await built([1, 2]);
    put(3, ndjson(blockOf(3)));
    const log = new RecordingLog();
    log.info = () => {
      throw new TypeError('a fault of this program');
    };
    const failing = testBuild(out, { inputs: [join(work, 'in')], log });
    await expect(failing).rejects.toThrow(new TypeError('a fault of this program'));
    expect(existsSync(join(`${out}.cache`, 'state.duckdb.damaged'))).toBe(false);
    expect(await build()).toMatchObject({ wasFull: false, notices: [] });
  });

  it('of another output, or older than the output, causes a full build', async () => {
    const { work, out, put, build, fresh } = await built([1, 2]);
    cpSync(`${out}.cache`, join(work, 'older'), { recursive: true });
    put(3, ndjson(blockOf(3)));
    await build();
    put(4, ndjson(blockOf(4)));
    expect(await build({ cache: join(work, 'older') })).toMatchObject({
      wasFull: true,
      full: 'the output does not match the cache',
    });
    expect(tree(out)).toEqual(await fresh());
  });
});

describe('an output that another program changed', () => {
  it('is built in full when it was emptied', async () => {
    const { out, build, fresh } = await built([1, 2]);
    rmSync(out, { recursive: true });
    expect(await build()).toMatchObject({ wasFull: true });
    expect(tree(out)).toEqual(await fresh());
    expect(existsSync(join(out, '.rune-activity-mirror.lock'))).toBe(false);
  });

  it('gets the scripts and pages of this program again, if they are from another commit', async () => {
    const { out, build, fresh } = await built([1, 2]);
    writeFiles(out, { 'explorer.js': 'of another commit', 'docs/index.html': '', 'runes/v1/stats.json': '{' });
    rmSync(join(out, 'openapi.json'));
    // Replaces a file by a pipe without a writer. A program that reads from it would wait forever.
    execFileSync('mkfifo', [join(out, 'openapi.json')]);
    expect(await build()).toMatchObject({ wasFull: false, blocks: { written: 0 } });
    expect(tree(out)).toEqual(await fresh());
  });

  it('is repaired by --full', async () => {
    const { out, build, fresh } = await built([1, 2]);
    rmSync(join(out, 'runes/v1/blocks/1.json'));
    writeFileSync(join(out, 'runes/v1/blocks/2.json'), 'x');
    const folder = join(out, 'runes/v1/transactions', `0x${hex('tx 1 1')}.json`);
    rmSync(folder);
    mkdirSync(folder);
    writeFiles(out, { 'runes/v1/transactions/stranger.json': '{}', 'runes/v1/digests/9000.json': '{}' });
    expect(await build()).toMatchObject({ wasFull: false });
    await expect(check(out)).rejects.toThrow(/finding/);
    await build({ full: true });
    expect(tree(out)).toEqual(await fresh());
    await check(out);
  });
});

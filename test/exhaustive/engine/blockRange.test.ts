/** Tests `--blocks` with every input format: a build of a range equals a build from input that has only the blocks of this range. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, it } from 'vitest';
import { literal } from '../../../src/duckdb/store.ts';
import { CONFORMANCE_INPUTS, failedBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { run } from '../../support/cli.ts';
import { indexWith } from '../../support/nodeRows.ts';
import { hex, ndjson, record } from '../../support/records.ts';

/** Returns the recorded rows, except those of the block with 5,000 records, which would take most of the time. */
const rowsOf = (ledger: string) => `(FROM read_csv(${literal(ledger)}, all_varchar = true) WHERE block_height <> '840001')`;

describe('a build of a range', () => {
  it('reads Parquet heights that are integers or text, and ledgers', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'in'));
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
    const reader = await connection.runAndReadAll(`SELECT DISTINCT block_height::INTEGER AS height FROM ${rowsOf(ledger)} ORDER BY height`);
    const heights = reader.getRows().map(([height]) => Number(height));
    const [from = 0, to = 0] = [heights.at(1), heights.at(-2)];
    const copy = (columns: string, where: string, path: string, format: string) =>
      connection.run(`COPY (SELECT ${columns} FROM ${rowsOf(ledger)} WHERE ${where}) TO ${literal(join(work, path))} (FORMAT ${format})`);
    await copy('*', `block_height::BIGINT BETWEEN ${from} AND ${to}`, 'only.csv', 'csv');
    await copy('* REPLACE (block_height::BIGINT AS block_height)', 'true', 'integers.parquet', 'parquet');
    await copy('*', 'true', 'texts.parquet', 'parquet');
    await testBuild(join(work, 'only'), { inputs: [join(work, 'only.csv'), runes] });
    for (const input of ['integers.parquet', 'texts.parquet']) {
      const { manifest } = await testBuild(join(work, input, '..', `${input}.out`), {
        inputs: [join(work, input), runes],
        blocks: { from, to },
      });
      expect(manifest.heights.flat().every((height) => height >= from && height <= to)).toBe(true);
      expect(tree(join(work, `${input}.out`))).toEqual(tree(join(work, 'only')));
    }
  });

  it('refuses Parquet rows without a height and names their position, as a build of all blocks does', async () => {
    const work = temporaryFolder();
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
    for (const [i, height] of ['NULL', '-1', `${2 ** 53}`].entries()) {
      const path = join(work, `${i}.parquet`);
      const changed = `CASE WHEN row_number() OVER () = 3000 THEN ${height} ELSE block_height::BIGINT END`;
      await connection.run(
        `COPY (SELECT * REPLACE (${changed} AS block_height) FROM ${rowsOf(ledger)}) TO ${literal(path)} (FORMAT parquet)`,
      );
      const inputs = [path, runes];
      const all = await failedBuild(join(work, 'all'), { inputs });
      expect([all.exitCode, all.details[0]]).toEqual([2, expect.stringMatching(/^.*\.parquet row 3000: block_height /)]);
      for (const blocks of [
        { from: 0, to: 840_003 },
        { from: 840_004, to: 2 ** 53 - 1 },
      ]) {
        const piece = await failedBuild(join(work, 'piece'), { inputs, blocks });
        expect([piece.exitCode, piece.details]).toEqual([all.exitCode, all.details]);
      }
    }
  });

  it('does not reuse the state of a build of all blocks', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1), record(2, 1), record(3, 1)]) });
    const build = (blocks?: { from: number; to: number }) => testBuild(join(work, 'out'), { inputs: [join(work, 'in')], blocks });
    expect(await build()).toMatchObject({ manifest: { blocks: 3 } });
    expect(await build({ from: 2, to: 3 })).toMatchObject({ wasFull: true, manifest: { blocks: 2 }, removed: 6 });
    writeFiles(work, { 'in/b.ndjson': ndjson([record(1, 2, { location: { tx_id: hex('x'), block_hash: hex('y') } }), record(4, 1)]) });
    // Block 1 has another hash now, but it is outside of the range, so the build does not compare it.
    expect(await build({ from: 2, to: 9 })).toMatchObject({ manifest: { blocks: 3 } });
  });

  it('is refused if it has no record', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')], blocks: { from: 2, to: 9 } });
    expect([error.exitCode, error.message]).toEqual([2, 'the input has no activity records of the blocks from 2 to 9']);
  });

  it.each([
    ['1..2', 0],
    ['1..', 0],
    ['..2', 0],
    ['1..1', 0],
    ['..', 1],
    ['2..1', 1],
    ['1', 1],
    ['1-2', 1],
    ['-5..', 0],
    ['-0..', 1],
    ['-2..9', 1],
    ['-2', 1],
    ['..-2', 1],
    ['1..x', 1],
  ])('spelled %s has exit code %i', async (text, expected) => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const { code, stderr } = await run('build', ['--input', 'in', `--blocks=${text}`], work);
    expect([code, stderr]).toEqual([
      expected,
      expected === 0 ? '' : expect.stringMatching(/^Error: --blocks .* must be a range of heights/),
    ]);
  });
});

describe('a build of the last blocks', () => {
  const blocks = (...heights: number[]) => ndjson(heights.map((height) => record(height, 1)));
  const heightsOf = async (work: string, ...flags: string[]) => {
    const { code, stderr } = await run('build', ['--log', 'json', '--out', 'dist', ...flags], work);
    expect([code, stderr]).toEqual([0, '']);
    return (JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')) as { heights: unknown }).heights;
  };

  it('counts heights from the highest block that has records or was read, and moves with that block', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'input/a.ndjson': blocks(5, 6, 7, 9) });
    expect(await heightsOf(work, '--blocks', '-3..')).toEqual([
      [7, 7],
      [9, 9],
    ]);
    expect(await heightsOf(work, '--blocks', '-100..')).toEqual([
      [5, 7],
      [9, 9],
    ]);
    expect(await heightsOf(work, '--blocks=-1..')).toEqual([[9, 9]]);
    writeFiles(work, { 'input/index.json': indexWith({ sources: [{ rules: 'ord', blocks: [[5, 10]] }] }) });
    expect(await heightsOf(work, '--blocks', '-2..')).toEqual([[9, 9]]);
    writeFiles(work, { 'input/b.ndjson': blocks(11, 12) });
    expect(await heightsOf(work, '--blocks', '-2..')).toEqual([[11, 12]]);
    await testBuild(join(work, 'fresh'), { inputs: [join(work, 'input')], blocks: { from: 11, to: Number.MAX_SAFE_INTEGER } });
    expect(tree(join(work, 'dist'))).toEqual(tree(join(work, 'fresh')));
  });
});

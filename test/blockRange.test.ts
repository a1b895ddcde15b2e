/** `--blocks`: a build of a range equals a build of input that has only these blocks, whatever form it is in. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LAYOUTS } from '../src/pages/lists.ts';
import { literal } from '../src/store/duckdb.ts';
import { CONFORMANCE_INPUTS, failedBuild, temporaryFolder, testBuild, tree, writeFiles } from './support/build.ts';
import { run } from './support/cli.ts';
import { CHANGES, History } from './support/history.ts';
import { hex, ndjson, record } from './support/records.ts';

describe('a build of a range', () => {
  it('equals one of input that holds only these blocks, also after changes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
        fc.array(fc.constantFrom(...CHANGES), { minLength: 2, maxLength: 6 }),
        fc.constantFrom(...LAYOUTS),
        async (numbers, changes, layout) => {
          const work = temporaryFolder();
          const random = () => numbers.next().value;
          const history = new History(random);
          const written = new Map<string, string>();
          for (const [i, step] of [[], changes].entries()) {
            for (const change of step) history[change]();
            history.write(join(work, 'in'), written);
            const heights = [...history.blocks.keys()].sort((a, b) => a - b);
            const pick = () => heights[Math.floor(random() * heights.length)] ?? 0;
            const [a, b] = [pick(), pick()];
            const blocks = { from: Math.min(a, b), to: Math.max(a, b) };
            history.write(join(work, `only-${i}`), new Map(), (height) => height >= blocks.from && height <= blocks.to);
            const options = { layout, pageSizes: [2, 4] };
            await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
            await testBuild(join(work, `expected-${i}`), { inputs: [join(work, `only-${i}`)], ...options });
            expect(tree(join(work, 'out'))).toEqual(tree(join(work, `expected-${i}`)));
            // Once more, going on from the last build.
            const { wasFull } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], ...options, blocks });
            expect(wasFull).toBe(false);
          }
        },
      ),
      { numRuns: Number(process.env['FC_RUNS'] ?? 12), endOnFailure: true },
    );
  }, 3_600_000);

  it('reads Parquet whose heights are integers, or text, or a ledger', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'in'));
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
    const reader = await connection.runAndReadAll(
      `SELECT DISTINCT block_height::INTEGER AS height FROM read_csv(${literal(ledger)}, all_varchar = true) ORDER BY height`,
    );
    const heights = reader.getRows().map(([height]) => Number(height));
    const [from = 0, to = 0] = [heights.at(1), heights.at(-2)];
    const copy = (columns: string, where: string, path: string, format: string) =>
      connection.run(
        `COPY (SELECT ${columns} FROM read_csv(${literal(ledger)}, all_varchar = true) WHERE ${where}) TO ${literal(join(work, path))} (FORMAT ${format})`,
      );
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

  it('refuses Parquet with rows of no height, as a build of all does, and says where they are', async () => {
    const work = temporaryFolder();
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const [ledger = '', runes = ''] = CONFORMANCE_INPUTS;
    for (const [i, height] of ['NULL', '-1', `${2 ** 53}`].entries()) {
      const path = join(work, `${i}.parquet`);
      const changed = `CASE WHEN row_number() OVER () = 4000 THEN ${height} ELSE block_height::BIGINT END`;
      await connection.run(
        `COPY (SELECT * REPLACE (${changed} AS block_height) FROM read_csv(${literal(ledger)}, all_varchar = true)) TO ${literal(path)} (FORMAT parquet)`,
      );
      const inputs = [path, runes];
      const all = await failedBuild(join(work, 'all'), { inputs });
      expect([all.exitCode, all.details[0]]).toEqual([2, expect.stringMatching(/^.*\.parquet row 4000: block_height /)]);
      for (const blocks of [
        { from: 0, to: 840_003 },
        { from: 840_004, to: 2 ** 53 - 1 },
      ]) {
        const piece = await failedBuild(join(work, 'piece'), { inputs, blocks });
        expect([piece.exitCode, piece.details]).toEqual([all.exitCode, all.details]);
      }
    }
  });

  it('is another build: the cache of the whole is not gone on from', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1), record(2, 1), record(3, 1)]) });
    const build = (blocks?: { from: number; to: number }) => testBuild(join(work, 'out'), { inputs: [join(work, 'in')], blocks });
    expect(await build()).toMatchObject({ manifest: { blocks: 3 } });
    expect(await build({ from: 2, to: 3 })).toMatchObject({ wasFull: true, manifest: { blocks: 2 }, removed: 5 });
    writeFiles(work, { 'in/b.ndjson': ndjson([record(1, 2, { location: { tx_id: hex('x'), block_hash: hex('y') } }), record(4, 1)]) });
    // What is outside is not compared either: block 1 has another hash now.
    expect(await build({ from: 2, to: 9 })).toMatchObject({ manifest: { blocks: 3 } });
  });

  it('without any record is refused', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const error = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')], blocks: { from: 2, to: 9 } });
    expect([error.exitCode, error.message]).toEqual([2, 'the input holds no activity records of the blocks from 2 to 9']);
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
    ['-5..', 1],
    ['1..x', 1],
  ])('is written as %s: exit code %i', async (text, expected) => {
    const work = temporaryFolder();
    writeFiles(work, { 'in/a.ndjson': ndjson([record(1, 1)]) });
    const { code, stderr } = await run('build', ['--input', 'in', `--blocks=${text}`], work);
    expect([code, stderr]).toEqual([
      expected,
      expected === 0 ? '' : expect.stringMatching(/^Error: --blocks .* must be a range of heights/),
    ]);
  });
});

/**
 * Tests ledger rows whose rune is not in the runes table, as in databases of bitcoin-indexer v3.0. Builds omit these rows, and report their
 * number and their runes.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { manifest as manifestSchema } from '../../../src/contract/schemas.ts';
import { Store } from '../../../src/duckdb/store.ts';
import { failedBuild, RecordingLog, type TestBuild, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { check } from '../../support/outputs.ts';
import { hex, ndjson, record } from '../../support/records.ts';

const RUNES = ['1:0', '2:0', '3:0', '4:0'] as const;

/** Blocks by height. A block has the rune id of each of its transactions. */
type Blocks = ReadonlyMap<number, readonly string[]>;

const ledger = (blocks: Blocks): string =>
  `rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp\n${[...blocks]
    .flatMap(([height, runes]) =>
      runes.map((rune, i) => `${rune},${hex(`block ${height}`)},${height},${i},0,${hex(`tx ${height} ${i}`)},0,bc1q,,12345,receive,1\n`),
    )
    .join('')}`;

const runesTable = (known: Iterable<string>): string =>
  `id,number,name,spaced_name,divisibility\n${[...known].map((id) => `${id},${Number.parseInt(id, 10)},R${id},R${id},2\n`).join('')}`;

const EXAMPLE: Blocks = new Map([
  [10, ['1:0', '0:0', '1:0']],
  [11, ['0:0', '9:9']],
  [12, ['2:0', '9:9', '0:0']],
]);

async function example(options: Omit<TestBuild, 'inputs'> = {}) {
  const work = temporaryFolder();
  const [input, out, log] = [join(work, 'in'), join(work, 'out'), new RecordingLog()];
  writeFiles(input, { 'ledger.csv': ledger(EXAMPLE), 'runes.csv': runesTable(['1:0', '2:0']) });
  const build = async (more: Omit<TestBuild, 'inputs'> = {}) =>
    (await testBuild(out, { inputs: [input], log, threads: 1, ...options, ...more })).manifest;
  return { input, out, log, build };
}

describe('rows without a rune', () => {
  it('are left out, counted and named in the manifest, the summary and the log, and the output verifies', async () => {
    const { out, log, build } = await example();
    const manifest = await build();
    const leftOut = { rows: 5, runes: ['0:0', '9:9'], more_runes: 0 };
    expect(manifest).toMatchObject({
      records: 3,
      blocks: 2,
      heights: [
        [10, 10],
        [12, 12],
      ],
      left_out: leftOut,
    });
    expect(manifestSchema.parse(JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8')))).toEqual(manifest);
    expect(log.infos.at(-1)?.figures).toMatchObject({ left_out: leftOut });
    expect(log.summaryRows.get('left out')).toBe('5 ledger rows whose rune is not in the runes table: 0:0, 9:9');
    const { total, results } = JSON.parse(readFileSync(join(out, 'runes/v1/blocks/10.json'), 'utf8'));
    expect([total, results.map(({ location }: { location: { tx_index: number } }) => location.tx_index)]).toEqual([2, [2, 0]]);
    await check(out);
    log.summaryRows.clear();
    expect(await build()).toEqual(manifest);
    expect(log.summaryRows.get('left out')).toMatch(/^5 ledger rows/);
  });

  it('are left out of Parquet, of layout archive and of input from Parquet files', async () => {
    const { input, out, build } = await example({ layout: 'archive', parquet: true });
    const manifest = await build();
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: join(out, '../scratch') });
    for (const name of ['ledger', 'runes']) {
      const columns = name === 'ledger' ? '* REPLACE (block_height::BIGINT AS block_height)' : '*';
      await store.run(
        `COPY (SELECT ${columns} FROM read_csv('${input}/${name}.csv', all_varchar = true)) TO '${input}/${name}.parquet' (FORMAT parquet)`,
      );
      rmSync(join(input, `${name}.csv`));
    }
    store.close();
    expect(await build()).toEqual(manifest);
    expect(manifest.left_out?.rows).toBe(5);
    await check(out);
  });

  it('are counted only within --blocks', async () => {
    const { build } = await example();
    const blocks = { from: 11, to: 12 };
    expect(await build({ blocks, dryRun: true })).toMatchObject({ heights: [[12, 12]], left_out: { rows: 4, runes: ['0:0', '9:9'] } });
  });

  it('are counted once if a block has copies; copies with and without records differ', async () => {
    const { input, build } = await example();
    const manifest = await build();
    writeFiles(input, { 'copy.csv': ledger(EXAMPLE) });
    expect(await build()).toEqual(manifest);
    writeFiles(input, { 'copy.csv': ledger(new Map([[11, ['0:0']]])), 'other.ndjson': ndjson([record(11, 7)]) });
    await expect(build()).rejects.toMatchObject({
      details: [expect.stringMatching(/^block 11 differs between .* \(0 records\) and /)],
    });
  });

  it('are reported with 20 runes and the number of other runes', async () => {
    const { input, log, build } = await example();
    const runes = Array.from({ length: 23 }, (_, i) => `7:${String(i).padStart(2, '0')}`);
    writeFiles(input, { 'ledger.csv': ledger(new Map([[10, ['1:0', ...runes, '7:22']]])) });
    expect(await build()).toMatchObject({ left_out: { rows: 24, runes: ['7:22', ...runes.slice(0, 19)], more_runes: 3 } });
    expect(log.summaryRows.get('left out')).toMatch(/^24 ledger rows .*: 7:22, 7:00, .*, 7:18 and 3 more$/);
  });

  it('are an error if the runes table has none of the runes, also after a change of one file', async () => {
    const { input, out, build } = await example();
    await build();
    const before = tree(out);
    rmSync(join(input, 'ledger.csv'));
    writeFiles(input, { 'none.csv': ledger(new Map([[11, ['9:9']]])), 'other.ndjson': ndjson([record(20, 1)]) });
    const error = await failedBuild(out, { inputs: [input] });
    expect([error.exitCode, error.message]).toEqual([
      2,
      expect.stringMatching(/^the runes table has none of the runes of .*none\.csv, such as "9:9"$/),
    ]);
    expect(tree(out)).toEqual(before);
    writeFiles(input, { 'ledger.csv': ledger(new Map([[10, ['1:0']]])) });
    expect(await build()).toMatchObject({ records: 2, left_out: { rows: 1, runes: ['9:9'], more_runes: 0 } });
    rmSync(join(input, 'ledger.csv'));
    expect((await failedBuild(out, { inputs: [input] })).exitCode).toBe(2);
  });
});

describe('after any change of ledgers and runes', () => {
  it('an incremental build equals a full build and has only records with a rune', async () => {
    const step = fc.record({
      known: fc.uniqueArray(fc.constantFrom(...RUNES), { minLength: 1 }),
      // Heights of the blocks in each file, or none. Two files may have the same block.
      files: fc.record({
        a: fc.subarray([1, 2, 3]),
        b: fc.subarray([3, 4]),
        c: fc.subarray([4, 5, 6]),
      }),
    });
    const chain = fc.array(fc.array(fc.constantFrom(...RUNES), { minLength: 1, maxLength: 4 }), { minLength: 6, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(chain, fc.array(step, { minLength: 5, maxLength: 5 }), async (chain, steps) => {
        const work = temporaryFolder();
        const [input, out] = [join(work, 'in'), join(work, 'out')];
        const options = { inputs: [input], threads: 1, pageSizes: [2, 4], operationPages: false };
        // A block that is always in the input, so that neither the mirror nor its runes table is ever empty.
        const always: Blocks = new Map([[100, ['100:0']]]);
        writeFiles(input, { 'always.csv': ledger(always) });
        for (const { known, files } of steps) {
          writeFileSync(join(input, 'runes.csv'), runesTable([...known, '100:0']));
          for (const [name, heights] of Object.entries(files)) {
            const blocks = new Map(heights.map((height) => [height, chain[height - 1] ?? []]));
            if (heights.length === 0) rmSync(join(input, `${name}.csv`), { force: true });
            else writeFiles(input, { [`${name}.csv`]: ledger(blocks) });
          }
          const { manifest } = await testBuild(out, options);
          const rows = [...new Set(Object.values(files).flat())].flatMap((height) => chain[height - 1] ?? []);
          const without = rows.filter((rune) => !known.includes(rune as (typeof RUNES)[number]));
          expect([manifest.records, manifest.left_out?.rows ?? 0]).toEqual([rows.length - without.length + 1, without.length]);
          expect([...(manifest.left_out?.runes ?? [])].sort()).toEqual([...new Set(without)].sort());
          // A dry run of a full build is enough for the comparison, because the manifest has digests of all records.
          const full = await testBuild(join(work, 'full'), { ...options, dryRun: true });
          expect(manifest).toEqual(full.manifest);
        }
        await testBuild(join(work, 'full'), options);
        expect(tree(out)).toEqual(tree(join(work, 'full')));
      }),
      // More histories: FC_RUNS=100 npm run test:exhaustive -- input/leftOut.
      { numRuns: Number(process.env['FC_RUNS'] ?? 3), endOnFailure: true },
    );
  }, 3_600_000);
});

/** Builds one data set from every input format, and expects the same tree, byte for byte. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DIALECTS, type Dialect } from '../../../src/pages/mirrorOptions.ts';
import { failedBuild, RecordingLog, temporaryFolder, testBuild, treeOfRecords, writeFiles } from '../../support/build.ts';
import { describeForms, type Envelope, reference, store } from '../../support/inputForms.ts';
import { hex, ndjson, record } from '../../support/records.ts';

/**
 * Heights of blocks with 1 to 240 records each. Two of these blocks have records of only one operation. The test of mixed formats has two
 * files with the same four of these blocks.
 */
const FEW = [840_000, 840_002, 840_008, 840_012, 840_019, 840_020, 840_021, 840_023, 840_024, 840_026];
describeForms(
  (height) => FEW.includes(height),
  (form) => DIALECTS.filter((_, i) => i === form % DIALECTS.length),
);

describe('hundreds of files', () => {
  it('are read with little memory, and a faulty one is named correctly', async () => {
    const work = temporaryFolder();
    const files = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`${1000 + i}.ndjson`, ndjson([record(i, 2), record(i, 1)])]));
    writeFiles(join(work, 'in'), files);
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], memoryLimit: '300MB' });
    expect(manifest).toMatchObject({ heights: [[0, 1199]], records: 2400 });
    writeFiles(join(work, 'in'), { '1300.ndjson': ndjson([record(300, 2), { ...record(300, 1), operation: 'x' }]) });
    const { details } = await failedBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(details).toHaveLength(1);
    expect(details[0]).toContain('/in/1300.ndjson line 2: operation "x"');
  });
});

describe('file names', () => {
  it('with wildcards, quotes and other scripts name exactly one file', async () => {
    const work = temporaryFolder();
    const names = ['a[1].ndjson', 'a1.ndjson', '**.ndjson', 'a?b.ndjson', 'o\'clock "x".ndjson', 'données 记录.ndjson', '{a,b}.ndjson'];
    writeFiles(join(work, 'in'), Object.fromEntries(names.map((name, i) => [name, ndjson([record(i, 1)])])));
    const { manifest } = await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(manifest).toMatchObject({ heights: [[0, 6]], records: 7 });
    for (const [i, name] of names.entries()) {
      const { manifest } = await testBuild(join(work, `one-${i}`), { inputs: [join(work, 'in', name)] });
      expect(manifest).toMatchObject({ heights: [[i, i]], records: 1 });
    }
    const columns =
      'rune_id, 0 AS rune_number, rune_name, rune_spaced_name, address, receiver_address, amount, operation, block_hash, block_height, tx_id, tx_index, vout, output, timestamp';
    await store.run(`COPY (SELECT ${columns} FROM flat WHERE block_height = 840000) TO '${join(work, 'x[0-9].parquet')}'`);
    await store.run(`COPY (SELECT ${columns} FROM flat WHERE block_height = 840002) TO '${join(work, 'x5.parquet')}'`);
    const { manifest: parquet } = await testBuild(join(work, 'parquet'), {
      inputs: [join(work, 'x[0-9].parquet'), join(work, 'x5.parquet')],
    });
    expect(parquet).toMatchObject({
      heights: [
        [840000, 840000],
        [840002, 840002],
      ],
    });
  });

  it('may look like columns: additional columns are ignored', async () => {
    const work = temporaryFolder();
    await store.run(`COPY (SELECT *, 'x' AS filename, 'a,"b"' AS "odd, ""name""" FROM flat) TO '${join(work, 'a.csv')}' (header)`);
    await testBuild(join(work, 'out'), { inputs: [join(work, 'a.csv')] });
    expect(treeOfRecords(join(work, 'out'))).toEqual(reference.get('contract'));
  });
});

describe('the output folder inside the input folder', () => {
  it('is not read as input', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
    for (let i = 0; i < 2; i += 1) {
      const { manifest } = await testBuild(join(work, 'dist'), { inputs: [work] });
      expect(manifest.records).toBe(1);
    }
  });

  it('is refused as the only input', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
    await testBuild(join(work, 'dist'), { inputs: [join(work, 'a.ndjson')] });
    const mine = join(work, 'dist/runes/v1/blocks/mine.ndjson');
    writeFileSync(mine, ndjson([record(5, 1)]));
    const { message } = await failedBuild(join(work, 'dist'), { inputs: [mine] });
    expect(message).toBe(`the input ${mine} is in the output or cache folder, whose files builds replace and remove`);
    expect(readFileSync(mine, 'utf8')).toBe(ndjson([record(5, 1)]));
  });
});

describe('saved responses', () => {
  const page = (offset: number, total: number, results: unknown[]) => JSON.stringify({ limit: 60, offset, total, results });
  const total = (out: string, path: string) => (JSON.parse(readFileSync(join(out, 'runes/v1', path), 'utf8')) as Envelope).total;

  it('of transactions alone build only the records that they have', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 1), record(5, 2)];
    writeFiles(work, { 'in/a.json': page(0, 1, [a]), 'in/b.json': page(0, 2, [b, { ...b, amount: '2' }]), 'in/c.json': page(0, 0, []) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(3);
  });

  it('of a block and of its transactions agree', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 2), record(5, 1)];
    writeFiles(work, { 'in/block.json': page(0, 2, [a, b]), 'in/tx.json': page(0, 1, [b]) });
    const log = new RecordingLog();
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')], log });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(2);
    expect(log.notices).toEqual([
      '1 record(s) are in several saved responses; one copy of each is used',
      expect.stringContaining('have records of one operation only (receive)'),
    ]);
  });

  it('whose pages have one transaction each are recognised as a block', async () => {
    const work = temporaryFolder();
    const [a, b] = [record(5, 2), record(5, 1)];
    writeFiles(work, { 'in/0.json': page(0, 2, [a]), 'in/1.json': page(1, 2, [b]) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in')] });
    expect(total(join(work, 'out'), 'blocks/5.json')).toBe(2);
    expect(total(join(work, 'out'), `transactions/${b.location.tx_id}.json`)).toBe(1);
  });
});

describe('values', () => {
  it('keep every text: quotes, control characters, empty strings, other scripts', async () => {
    const work = temporaryFolder();
    const control = String.fromCharCode(...Array.from({ length: 0x20 }, (_, i) => i + 1));
    const name = `"\\ ${control}\u007f\u2028é😀 },{"rune":`;
    const records = [
      record(7, 3, { rune: { id: '', number: 0, name, spaced_name: '\\u000B' }, address: '' }),
      record(7, 2, { address: name }),
    ];
    writeFiles(work, { 'in.ndjson': ndjson(records) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'in.ndjson')] });
    const expected = JSON.stringify({ limit: 20, offset: 0, total: 2, results: records });
    expect(readFileSync(join(work, 'out/runes/v1/blocks/7.json'), 'utf8')).toBe(
      expected.replace('"address":"","amount"', '"address":"","amount"'),
    );
  });

  it('distinguish vout 0, no vout, null and an outpoint, in both dialects', async () => {
    const work = temporaryFolder();
    const id = hex('outpoint');
    const outputs = [
      { vout: 0, output: `0x${id}` },
      { vout: 3, output: `${id}:3` },
      { vout: undefined, output: `0X${id.toUpperCase()}:7` },
      { vout: undefined, output: `0x${id}` },
      { vout: 5, output: undefined },
      { vout: null, output: null },
    ];
    writeFiles(work, {
      'in.ndjson': ndjson(outputs.map((o, i) => ({ ...record(7, 9 - i), location: { ...record(7, 9 - i).location, ...o } }))),
    });
    const expected: Record<Dialect, unknown[]> = {
      contract: [
        [0, `0x${id}`],
        [3, `0x${id}`],
        [7, `0x${id}`],
        [undefined, `0x${id}`],
        [5, undefined],
        [undefined, undefined],
      ],
      hiro: [
        [0, `${id}:0`],
        [3, `${id}:3`],
        [7, `${id}:7`],
        [undefined, id],
        [5, undefined],
        [undefined, undefined],
      ],
    };
    for (const dialect of DIALECTS) {
      const out = join(work, dialect);
      await testBuild(out, { inputs: [join(work, 'in.ndjson')], dialect });
      const { results } = JSON.parse(readFileSync(join(out, 'runes/v1/blocks/7.json'), 'utf8')) as Envelope;
      expect(results.map((r) => [r.location.vout, r.location.output])).toEqual(expected[dialect]);
      expect(JSON.stringify(results)).not.toContain('null');
    }
  });
});

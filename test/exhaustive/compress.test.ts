/** Tests the compressed files next to pages: which of them exist, their content, and their removal with the page. */
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ENCODINGS, type Encoding } from '../../src/pages/mirrorOptions.ts';
import { CONFORMANCE_INPUTS, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from '../support/build.ts';
import { expectCompressedPages } from '../support/outputs.ts';
import { ndjson, record } from '../support/records.ts';

const work = temporaryFolder();

const without = (files: Record<string, string>) =>
  Object.fromEntries(Object.entries(files).filter(([path]) => !/[.](?:br|gz)$/.test(path)));

describe('a build with --compress', () => {
  const [plain, compressed] = [join(work, 'plain'), join(work, 'compressed')];
  beforeAll(async () => {
    for (const [out, compress] of [
      [plain, []],
      [compressed, ENCODINGS],
    ] as const)
      await testBuild(out, { inputs: CONFORMANCE_INPUTS, blocks: { from: 840_002, to: 840_039 }, compress });
  });

  it('has the same pages as a build without the flag, and names the encodings in the manifest', () => {
    const manifest = (out: string) => JSON.parse(readFileSync(join(out, 'runes/v1/manifest.json'), 'utf8'));
    expect(manifest(compressed)).toEqual({ ...manifest(plain), compress: ['br', 'gz'] });
    const [a, b] = [tree(plain), without(tree(compressed))];
    for (const files of [a, b]) delete files['runes/v1/manifest.json'];
    expect(b).toEqual(a);
  });

  it('compresses each page with three or more records in each encoding, and no other file', () => expectCompressedPages(compressed));

  it('stores the files of a hash as hard links to the files of the height', () => {
    const [hash = ''] = filesBelow(join(compressed, 'runes/v1/blocks')).filter((path) => /^0x[0-9a-f]{64}\/60\/0[.]json[.]gz$/.test(path));
    expect(statSync(join(compressed, 'runes/v1/blocks', hash)).nlink).toBe(2);
  });
});

describe('compressed files', () => {
  const block = (records: number) => ndjson(Array.from({ length: records }, (_, i) => record(5, i)));
  const sidecars = (out: string) => filesBelow(out).filter((path) => /[.](?:br|gz)$/.test(path));
  const list = (out: string, name: string) => readFileSync(join(`${out}.cache`, `changes/${name}.txt`), 'utf8').split('\n');
  const build = (out: string, compress: readonly Encoding[]) => testBuild(out, { inputs: [`${out}.in`], compress });

  it('are removed when their page gets too few records, or when the flag is omitted', async () => {
    const out = join(work, 'out');
    writeFiles(`${out}.in`, { '5.ndjson': block(3) });
    await build(out, ['gz']);
    expect(sidecars(out).filter((path) => path.includes('blocks/5'))).toEqual([
      'runes/v1/blocks/5.json.gz',
      'runes/v1/blocks/5/receive.json.gz',
    ]);
    expect(list(out, 'added')).toContain('runes/v1/blocks/5.json.gz');

    writeFiles(`${out}.in`, { '5.ndjson': block(2) });
    expect(await build(out, ['gz'])).toMatchObject({ wasFull: false });
    expect(sidecars(out)).toEqual([]);
    expect(list(out, 'removed')).toContain('runes/v1/blocks/5.json.gz');

    writeFiles(`${out}.in`, { '5.ndjson': block(40) });
    await build(out, ENCODINGS);
    expect(sidecars(out).some((path) => path.endsWith('.br'))).toBe(true);
    await build(out, ['gz']);
    expect(sidecars(out).some((path) => path.endsWith('.br'))).toBe(false);
    expect(list(out, 'removed')).toContain('runes/v1/blocks/5.json.br');
  });

  it('that were lost are written again by a full build', async () => {
    const out = join(work, 'lost');
    writeFiles(`${out}.in`, { '5.ndjson': block(30) });
    await build(out, ENCODINGS);
    const before = tree(out);
    for (const path of sidecars(out)) rmSync(join(out, path));
    await testBuild(out, { inputs: [`${out}.in`], compress: ENCODINGS, full: true });
    expect(tree(out)).toEqual(before);
  });

  it('for other flags are removed by a full build', async () => {
    const out = join(work, 'strange');
    // Writes two transactions: one with one record, and one with five.
    writeFiles(`${out}.in`, {
      '5.ndjson': ndjson([record(5, 0), ...[1, 2, 3, 4, 5].map((i) => record(5, 1, { location: { vout: i } }))]),
    });
    await build(out, ['gz']);
    const before = tree(out);
    const pages = filesBelow(out).filter((path) => /^runes\/v1\/transactions\/0x[0-9a-f]{64}[.]json$/.test(path));
    expect(pages.map((path) => existsSync(join(out, `${path}.gz`))).sort()).toEqual([false, true]);
    for (const path of pages) writeFiles(out, { [`${path}.br`]: '', [`${path}.zst`]: '' });
    const short = pages.find((path) => !existsSync(join(out, `${path}.gz`)));
    writeFiles(out, { [`${short}.gz`]: '' });
    await testBuild(out, { inputs: [`${out}.in`], compress: ['gz'], full: true });
    expect(tree(out)).toEqual(before);
  });
});

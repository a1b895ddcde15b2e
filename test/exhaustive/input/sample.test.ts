/** Tests that builds never use the sample in place of missing data. The sample is only for trials. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manifest } from '../../../src/contract/schemas.ts';
import { filesBelow, temporaryFolder, tree, writeFiles } from '../../support/build.ts';
import { ROOT, run } from '../../support/cli.ts';
import { ndjson, record } from '../../support/records.ts';

const SAMPLE = join(ROOT, 'sample');

/** Makes a folder like a fresh checkout. It has the sample, and an input folder without data. */
function checkout(): string {
  const work = temporaryFolder();
  const sample = Object.fromEntries(filesBelow(SAMPLE).map((path) => [`sample/${path}`, readFileSync(join(SAMPLE, path), 'utf8')]));
  writeFiles(work, { ...sample, 'input/README.md': '# Input\n' });
  return work;
}

const manifestOf = (work: string) => manifest.parse(JSON.parse(readFileSync(join(work, 'dist/runes/v1/manifest.json'), 'utf8')));
const explorerOf = (work: string) => readFileSync(join(work, 'dist/index.html'), 'utf8');
const DATA = { 'input/a.ndjson': ndjson([record(5, 1)]) };

describe('a build without --input', () => {
  it('uses the sample while the input folder is empty, and says so in its output, manifest and explorer', async () => {
    const work = checkout();
    const built = await run('build', [], work);
    expect([built.code, built.stderr]).toEqual([0, expect.stringContaining('this build uses the sample in sample (invented runes')]);
    expect(manifestOf(work)).toMatchObject({ sample: true, lists: { etchings: { total: 34 } } });
    expect(explorerOf(work)).toContain('This is sample data.');
    const before = tree(join(work, 'dist'));
    expect((await run('build', [], work)).stdout).toContain('is up to date');
    expect(tree(join(work, 'dist'))).toEqual(before);
  });

  it('uses data if there is any, and replaces a mirror of the sample', async () => {
    const work = checkout();
    expect((await run('build', [], work)).code).toBe(0);
    writeFiles(work, DATA);
    expect(await run('build', [], work)).toMatchObject({ code: 0, stderr: '' });
    expect(manifestOf(work)).toMatchObject({ heights: [[5, 5]], blocks: 1 });
    expect([manifestOf(work).sample, explorerOf(work).includes('sample')]).toEqual([undefined, false]);
  });

  it.each([
    ['after a pull that failed', 'input/pulled', []],
    ['with --blocks', 'input', ['--blocks', '840000..']],
    ['with --blocks and without an input folder', undefined, ['--blocks', '840000..']],
  ])('does not use the sample %s, but says how to get data or the sample', async (_, folder, flags) => {
    const work = checkout();
    if (folder === undefined) rmSync(join(work, 'input'), { recursive: true });
    else mkdirSync(join(work, folder), { recursive: true });
    const { code, stderr } = await run('build', flags, work);
    const what = folder === undefined ? 'input not found: input' : 'the input folder input has no data files';
    expect([code, stderr.split('\n')]).toEqual([
      2,
      [
        `Error: ${what}`,
        expect.stringContaining('Fetch blocks with npm run pull, or name your data with --input'),
        '  To try the program, write sample data with npm run sample, and build with --input sample.',
        '',
      ],
    ]);
    expect(filesBelow(work)).not.toContain('dist/runes/v1/manifest.json');
  });

  it('does not use the sample if --input has no data', async () => {
    const work = checkout();
    expect((await run('build', ['--input', 'input'], work)).code).toBe(2);
  });
});

describe('a mirror of data', () => {
  it.each([
    ['the sample by default', []],
    ['the sample as --input', ['--input', 'sample']],
    ['blocks of the sample', ['--input', 'sample', '--blocks', '2000002..2000003']],
    ['the sample beside data', ['--input', 'sample', '--input', 'more']],
    ['the sample, in a dry run', ['--input', 'sample', '--dry-run']],
    ['the sample, in full', ['--input', 'sample', '--full']],
  ])('is not replaced with %s', async (_, flags) => {
    const work = checkout();
    writeFiles(work, { 'more/a.ndjson': ndjson([record(5, 1)]) });
    expect((await run('build', ['--input', 'more'], work)).code).toBe(0);
    const before = tree(join(work, 'dist'));
    const { code, stderr } = await run('build', flags, work);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(
        'Error: the input has invented blocks of the sample, and the output dist is a mirror of other data; nothing was changed\n',
      ),
    ]);
    expect(tree(join(work, 'dist'))).toEqual(before);
  });
});

describe('the sample', () => {
  it('is marked also if only some of its blocks are built', async () => {
    const work = checkout();
    expect((await run('build', ['--input', 'sample', '--blocks', '..2000001'], work)).code).toBe(0);
    expect(manifestOf(work)).toMatchObject({ sample: true, blocks: 2 });
  });

  it('has times in the past, in the order of its blocks', () => {
    const [, ...rows] = readFileSync(join(SAMPLE, 'ledger.csv'), 'utf8').trim().split('\n');
    const times = rows.map((row) => Number(/,(?:etching|mint|burn|send|receive),([0-9]+),/.exec(row)?.[1]));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThan(Date.UTC(2024, 4) / 1000);
  });
});

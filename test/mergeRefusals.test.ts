/** Merges that cannot be: what does not fit together is refused before anything is written; and the command from outside. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { MERGE_COMMAND } from '../src/merge/command.ts';
import { LOCK } from '../src/write/outputFolder.ts';
import { filesBelow, temporaryFolder, tree, writeFiles } from './support/build.ts';
import { ROOT, run } from './support/cli.ts';
import { blockOf, buildParts, check, contents, failedMerge, testMerge } from './support/merge.ts';
import { hex, record } from './support/records.ts';

describe('what does not fit together', () => {
  const work = temporaryFolder();
  const at = (name: string) => join(work, name);
  const out = at('out');
  let copies = 0;
  /** A copy of part `a` to be damaged. */
  const copy = (damage: (folder: string) => void, of = 'a'): string => {
    copies += 1;
    const folder = at(`copy-${copies}`);
    cpSync(at(of), folder, { recursive: true });
    damage(folder);
    return folder;
  };
  const edit = (folder: string, path: string, from: string | RegExp, to: string) =>
    writeFileSync(join(folder, path), readFileSync(join(folder, path), 'utf8').replace(from, to));

  beforeAll(async () => {
    await buildParts(work, {
      a: [...blockOf(1), ...blockOf(2), ...blockOf(3)],
      b: blockOf(4),
      over: [...blockOf(2), ...blockOf(3), ...blockOf(9)],
    });
    await buildParts(work, { hash: [record(8, 1, { location: { block_hash: `0x${hex('block 1')}` } })] });
    await buildParts(work, { tx: [record(8, 1, { location: { tx_id: `0x${hex('tx 1 1')}` } })] });
    await buildParts(
      work,
      { packed: blockOf(4), packedTx: [record(8, 1, { location: { tx_id: `0x${hex('tx 4 1')}` } })] },
      { layout: 'packed' },
    );
    await buildParts(work, { hiro: blockOf(4) }, { dialect: 'hiro' });
    await buildParts(work, { sizes: blockOf(4) }, { pageSizes: [20, 60, 100] });
    await buildParts(work, { plain: blockOf(4) }, { operationPages: false });
    await buildParts(work, { gz: blockOf(4) }, { compress: ['gz'] });
    await buildParts(work, { url: blockOf(4) }, { siteUrl: 'https://example.org/' });
    await testMerge(out, [at('a')]);
  });

  const MANIFEST = 'runes/v1/manifest.json';
  const DIGESTS = 'runes/v1/digests/0.json';
  const STATS = 'runes/v1/stats/0.json';
  const INDEX = `runes/v1/transactions/${hex('tx 4 1')[0]}.json`;
  it.each<[string, () => string[], RegExp]>([
    ['is not there', () => [at('none')], /^the part .*none does not exist$/],
    ['is a file', () => [at('in-a/a.ndjson')], /is no output of a build: .* is a file, not a folder$/],
    ['is no output', () => [at('in-a')], /is no output of a build: .* holds files that this program did not make/],
    ['is an empty folder', () => [temporaryFolder()], /is empty$/],
    ['lost its marker', () => [copy((folder) => rmSync(join(folder, '.rune-activity-mirror')))], /has no .rune-activity-mirror$/],
    [
      'is unfinished',
      () => [copy((folder) => writeFileSync(join(folder, '.rune-activity-mirror'), 'A build is at work'))],
      /is unfinished: a build is at work on it, or died$/,
    ],
    ['has no manifest', () => [copy((folder) => rmSync(join(folder, MANIFEST)))], /is unfinished/],
    [
      'is of another version',
      () => [copy((folder) => edit(folder, MANIFEST, /"version": "[^"]+"/, '"version": "0.0.9"'))],
      /is of version 0\.0\.9, and this program of /,
    ],
    [
      'has a manifest of another form',
      () => [copy((folder) => edit(folder, MANIFEST, '"blocks"', '"block"'))],
      /is damaged: .*manifest.json cannot be/,
    ],
    ...(
      [
        [
          'transactions',
          '900719925474099',
          'manifest.json cannot be read \\(transactions: 900719925474099 transactions do not have 225 records\\)',
        ],
        ['records', '900719925474099', 'its files of digests have other records than its manifest'],
        ['blocks', '2', 'its files of digests have other blocks than its manifest'],
        ['heights', '[[1, 4]]', 'its files of digests have other heights than its manifest'],
      ] as const
    ).map(([key, value, fault]): [string, () => string[], RegExp] => [
      `has other ${key} than its manifest says`,
      () => [copy((folder) => edit(folder, MANIFEST, new RegExp(`"${key}": (?:\\d+|\\[[^]*?\\]\\s*\\])`), `"${key}": ${value}`))],
      new RegExp(`is damaged: .*${fault}$`),
    ]),
    [
      'has prefixes of another length than its transactions ask for',
      () => [copy((folder) => edit(folder, MANIFEST, '"transaction_prefix": 1', '"transaction_prefix": 12'), 'packed')],
      /is damaged: .*transaction_prefix: 3 transactions have prefixes of 1 digits\)$/,
    ],
    ['lost a file of digests', () => [copy((folder) => rmSync(join(folder, DIGESTS)))], /is damaged: its files of digests do not come to/],
    [
      'has half a file of digests',
      () => [copy((folder) => edit(folder, DIGESTS, ']}', ''))],
      /is damaged: runes\/v1\/digests\/0.json cannot be read/,
    ],
    [
      'has a block twice in a file of digests',
      () => [copy((folder) => edit(folder, DIGESTS, /(\n\{.*\})/, '$1,$1'))],
      /is damaged: runes\/v1\/digests\/0.json cannot be read \(its heights are not ascending/,
    ],
    [
      'lost a file of figures',
      () => [copy((folder) => rmSync(join(folder, STATS)))],
      /is damaged: runes\/v1\/stats\/0.json cannot be used \(ENOENT/,
    ],
    ...(
      [
        ['broken', ']}\n', '', 'Expected'],
        ['that break their schema', '"records":75', '"records":"75"', 'blocks.0.records: '],
        ['spelled otherwise', '"records":', '"records": ', 'its runes are not in order, or it is not spelled as a build spells it'],
        ['of other heights', '{"height":1,', '{"height":101,', 'its heights are not ascending, or belong into another file'],
        ['of other blocks', '{"height":1,', '{"height":0,', 'it has other blocks than the files of digests'],
        ['with a wrong count of a block', /"send":[0-9]+/, '"send":1', 'block 1 has other records than operations'],
        ['with a wrong count of a rune', /"mint":[0-9]+(.*\n\]\}\n)$/, '"mint":1$1', 'rune 840000:1 has other records than operations'],
        ['with a rune too many', /(\n\{"id".*)(\n\]\}\n)$/, '$1,$1$2', 'its runes are not in order'],
        ['with a rune more', /(\n\{"id":")(.*)(\n\]\}\n)$/, '$1$2,$19$2$3', 'its runes have other records than its blocks'],
      ] as const
    ).map(([what, from, to, fault]): [string, () => string[], RegExp] => [
      `has figures ${what}`,
      () => [copy((folder) => edit(folder, STATS, from, to))],
      new RegExp(`is damaged: runes/v1/stats/0.json cannot be used \\(${fault}`),
    ]),
    [
      'has figures with other transactions',
      () => [copy((folder) => edit(folder, STATS, '"transactions":3', '"transactions":4'))],
      /is damaged: its files of figures count 10 transactions, and its manifest says 9$/,
    ],
    ['has another site URL', () => [at('a'), at('url')], /has another site URL than .*: https:\/\/example.org\/, not none$/],
    [
      'lost a transaction',
      () => [copy((folder) => rmSync(join(folder, `runes/v1/transactions/0x${hex('tx 1 1')}.json`)))],
      /is damaged: runes\/v1\/transactions has 8 transactions, and its manifest says 9$/,
    ],
    [
      'lost a file of the index',
      () => [copy((folder) => rmSync(join(folder, 'runes/v1/transactions/a.json')), 'packed')],
      /is damaged: runes\/v1\/transactions\/a.json is missing$/,
    ],
    [
      'has the index of other transactions',
      () => [copy((folder) => edit(folder, INDEX, /"0x[0-9a-f]{64}"/, `"0x${'0'.repeat(64)}"`), 'packed')],
      /is damaged: runes\/v1\/transactions\/[0-9a-f].json is not in order$/,
    ],
    [
      'has an index of other blocks',
      () => [copy((folder) => edit(folder, INDEX, /\["([0-9]+)-0x[0-9a-f]{8}"/, '["$1-0x00000000"'), 'packed')],
      /is damaged: runes\/v1\/transactions\/[0-9a-f].json has an entry of no block that the part holds \("0x/,
    ],
    ['has another layout', () => [at('a'), at('packed')], /^the part .*packed has another layout than .*a: packed, not files$/],
    ['has another dialect', () => [at('a'), at('hiro')], /has another dialect than .*: hiro, not contract$/],
    ['has other page sizes', () => [at('a'), at('sizes')], /has another page sizes than .*: 20,60,100, not 20,60$/],
    ['has compressed files', () => [at('a'), at('gz')], /has another choice of compressed files than .*: gz, not none$/],
    ['has no pages by operation', () => [at('a'), at('plain')], /has another pages by operation than .*: no, not yes$/],
    ['is given twice', () => [at('a'), at('a')], /is given twice$/],
    [
      'is given under two names',
      () => {
        symlinkSync(at('b'), at('b-link'));
        return [at('b'), at('b-link')];
      },
      /b-link is given twice, as .*b too$/,
    ],
    ['is the output', () => [at('a'), out], /is the output folder itself$/],
    ['lies in the output', () => [at('a'), join(out, 'runes')], /lies in the output folder/],
    ['holds the output', () => [work], /holds the output folder/],
  ])('a part that %s is refused with exit code 2, and nothing is changed', async (_, parts, message) => {
    const named = parts();
    const before = tree(out);
    const error = await failedMerge(out, named);
    expect([error.exitCode, error.message, error.details.at(-1)]).toEqual([2, expect.stringMatching(message), 'Nothing was written.']);
    expect(error.details.length).toBeGreaterThan(1);
    expect(tree(out)).toEqual(before);
    expect(existsSync(join(out, LOCK))).toBe(false);
  });

  it.each<[string, string[], string, RegExp]>([
    ['heights', ['a', 'b', 'over'], 'heights are in two parts', /^2 to 3: .*a and .*over$/],
    ['a block hash', ['a', 'hash'], 'a block hash is at two heights', new RegExp(`^${hex('block 1')}: 1 in .*a and 8 in .*hash$`)],
    ['a transaction in layout files', ['a', 'tx'], 'a transaction is in two parts', new RegExp(`^${hex('tx 1 1')}: .*a and .*tx$`)],
    [
      'a transaction in layout packed',
      ['packed', 'packedTx'],
      'a transaction is in two parts',
      new RegExp(`^${hex('tx 4 1')}: block 4 of .*packed and block 8 of .*packedTx$`),
    ],
  ])('%s in two parts: refused with exit code 2, and nothing is changed', async (_, parts, message, detail) => {
    const before = tree(out);
    const error = await failedMerge(out, parts.map(at));
    expect([error.exitCode, error.message, error.details]).toEqual([
      2,
      message,
      [expect.stringMatching(detail), expect.stringContaining('Build the parts of'), 'Nothing was written.'],
    ]);
    expect(tree(out)).toEqual(before);
  });

  it('an output of someone else is refused, and so is a cache that would be published', async () => {
    writeFiles(work, { 'someone/file.txt': 'x' });
    const error = await failedMerge(at('someone'), [at('a')]);
    expect([error.exitCode, error.message, filesBelow(at('someone'))]).toEqual([
      2,
      expect.stringContaining('holds files that this program did not make'),
      ['file.txt'],
    ]);
    expect(await failedMerge(out, [at('a')], join(out, 'cache'))).toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('would be published'),
    });
    expect(await failedMerge(out, [at('a')], join(at('a'), 'cache'))).toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('is in the part'),
    });
    expect(existsSync(join(at('a'), 'cache'))).toBe(false);
  });

  it.each([
    ['files', 'a', 'runes/v1/blocks/2.json'],
    ['files', 'a', 'runes/v1/blocks/2/20/40.json'],
    ['packed', 'packed', 'runes/v1/pointers/4.json'],
  ])(
    'a page that a part lost, in layout %s, is noticed before the manifest: exit code 3, and the output is unfinished',
    async (_, of, path) => {
      const part = copy((folder) => rmSync(join(folder, path)), of);
      const target = join(temporaryFolder(), 'out');
      await testMerge(target, [at(of)]);
      const before = contents(target);
      const error = await failedMerge(target, [part]);
      expect([error.exitCode, error.message]).toEqual([3, expect.stringContaining('is damaged, or was changed while it was merged')]);
      expect(contents(target)).toEqual(before);
      await expect(check(target)).rejects.toThrow(/finding/);
      await testMerge(target, [at(of)]);
      await check(target);
    },
  );
});

describe('two at once', () => {
  it.each(['output', 'cache'])('on one %s: the second stops with exit code 3, and nothing is changed', async (what) => {
    const work = temporaryFolder();
    const [part = ''] = await buildParts(work, { a: blockOf(1) });
    const out = join(work, 'out');
    await testMerge(out, [part]);
    const code = `const { DuckDBInstance } = require('@duckdb/node-api');
      DuckDBInstance.create(process.argv[1]).then(() => console.log('held')); setInterval(() => undefined, 1000);`;
    const file = what === 'output' ? join(out, LOCK) : join(`${out}.cache`, 'merge.lock');
    const holder = spawn(process.execPath, ['-e', code, file], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    const before = tree(out);
    const error = await failedMerge(out, [part]);
    expect([error.exitCode, error.message, error.details]).toEqual([
      3,
      expect.stringMatching(new RegExp(`^another build is at work on the ${what} folder .* \\(process \\d+\\)$`)),
      ['Wait until it is done, then merge again.'],
    ]);
    expect(tree(out)).toEqual(before);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    writeFiles(`${out}.cache`, { 'merge.lock': 'half a file' });
    await testMerge(out, [part]);
    await check(out);
    expect([existsSync(join(out, LOCK)), existsSync(join(`${out}.cache`, 'merge.lock'))]).toEqual([false, false]);
  });
});

describe('npm run merge', () => {
  it('says what it did, in text and in JSON, and names every flag in its help', async () => {
    const work = temporaryFolder();
    await buildParts(work, { a: blockOf(1), b: blockOf(2) });
    const text = await run('merge', ['dist', 'a', 'b'], work);
    expect([text.code, text.stderr, text.stdout]).toEqual([
      0,
      '',
      expect.stringMatching(/^Merged 2 parts into dist: [\d,]+ files of 6 transactions and 2 blocks, in [\d.]+ s\.\n(?: {2}.*\n)+$/),
    ]);
    expect(existsSync(join(work, '.cache/merge/changes/added.txt'))).toBe(true);
    const json = await run('merge', ['--log', 'json', '--cache=c', 'dist', 'a', 'b'], work);
    expect(JSON.parse(json.stdout)).toMatchObject({
      event: 'merged',
      parts: 2,
      blocks: 2,
      written: 0,
      kept: filesBelow(join(work, 'dist')).length - 1,
      copied: 0,
      removed: 0,
    });
    const help = await run('merge', ['--help'], work);
    expect([help.code, help.stdout.split('\n')[0]]).toEqual([0, 'Usage: npm run merge -- [flags] OUT PART...']);
    for (const flag of MERGE_COMMAND.flags) expect(help.stdout).toContain(`--${flag.name}`);
  });

  it.each([
    [[], 'OUT PART... must be given'],
    [['dist'], 'OUT PART... must be given'],
    [['dist', ''], 'OUT PART... must be given'],
    [['dist', 'a', '--full'], 'there is no flag --full'],
    [['dist', 'a', '--log', 'xml'], '--log "xml" must be one of text, json'],
  ])('refuses %j with exit code 1', async (flags, message) => {
    const { code, stderr } = await run('merge', flags, temporaryFolder());
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Error: ${message}`)]);
  });

  it('refuses a part with exit code 2', async () => {
    const { code, stderr } = await run('merge', ['dist', 'a'], temporaryFolder());
    expect([code, stderr]).toEqual([2, 'Error: the part a does not exist\n  Name the output folder of a build.\n  Nothing was written.\n']);
  });
});

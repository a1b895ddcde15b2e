/** Tests that verification accepts correct builds, and finds every kind of damage. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { Progress } from '../../src/cli/progress.ts';
import { crossings } from '../../src/limits.ts';
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { verify } from '../../src/verify/verify.ts';
import { CONFORMANCE_INPUTS, filesBelow, RecordingLog, temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { run } from '../support/cli.ts';
import { limitsWith } from '../support/limits.ts';
import { check, copyOf } from '../support/outputs.ts';
import { hex, ndjson, record } from '../support/records.ts';

/** Returns the findings of verification. */
async function findings(out: string): Promise<readonly string[]> {
  try {
    await check(out);
    return [];
  } catch (error) {
    if (error instanceof VerificationError) return error.details.slice(0, -1);
    throw error;
  }
}

const work = temporaryFolder();
const whole = join(work, 'whole');
const ID = `0x${hex('tx 5 1')}`;
const HASH = `0x${hex('block 5')}`;
beforeAll(async () => {
  const many = Array.from({ length: 70 }, (_, i) => record(5, 1, { amount: `${i}`, operation: i % 2 === 0 ? 'send' : 'receive' }));
  writeFiles(work, { 'a.ndjson': ndjson([record(3, 1), record(5, 2), ...many, record(6, 1), record(2005, 1)]) });
  await testBuild(whole, { inputs: [join(work, 'a.ndjson')] });
});

const copy = () => copyOf(whole);

describe('the output of a build', () => {
  it.each(DIALECTS)('verifies: the sample in dialect %s, in each layout', async (dialect) => {
    for (const layout of LAYOUTS) {
      const out = join(temporaryFolder(), 'out');
      await testBuild(out, {
        inputs: [SAMPLE_INPUT],
        dialect,
        layout,
        pageSizes: [10, 25, 60],
        operationPages: dialect === 'hiro',
      });
      await check(out);
    }
  });

  it('verifies as a copy without hard links, and verification leaves no files', async () => {
    const [folder, { TMPDIR }] = [temporaryFolder(), process.env];
    process.env['TMPDIR'] = folder;
    try {
      expect(await findings(copy())).toEqual([]);
    } finally {
      if (TMPDIR === undefined) delete process.env['TMPDIR'];
      else process.env['TMPDIR'] = TMPDIR;
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it('has a digest that depends only on the data and follows from the pages', async () => {
    const folder = temporaryFolder();
    const digests = new Set<string>();
    // Omits the block with 5,000 records, which would take most of the time.
    const recorded = { inputs: CONFORMANCE_INPUTS, blocks: { from: 840_002, to: 840_039 } };
    for (const [i, dialect] of DIALECTS.entries()) {
      const { manifest } = await testBuild(join(folder, dialect), { ...recorded, dialect, pageSizes: [7 + i, 50] });
      digests.add(manifest.digest);
    }
    const all = join(folder, 'all');
    const { manifest } = await testBuild(all, { ...recorded, pageSizes: [20, 100_000] });
    digests.add(manifest.digest);
    expect(digests.size).toBe(1);

    const lines = createHash('sha256');
    for (const name of filesBelow(join(all, 'runes/v1/blocks'))
      .filter((p) => /^\d+\.json$/.test(p))
      .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))) {
      const height = name.replace('.json', '');
      const largest = join(all, 'runes/v1/blocks', height, '100000/0.json');
      const hasMore = readdirSync(join(all, 'runes/v1/blocks', height)).includes('100000');
      const page = readFileSync(hasMore ? largest : join(all, 'runes/v1/blocks', name), 'utf8');
      const records = page.slice(page.indexOf('"results":[') + '"results":['.length, -2);
      lines.update(`${height} ${createHash('sha256').update(records).digest('hex')}\n`);
    }
    expect(lines.digest('hex')).toBe(manifest.digest);
  });
});

it('the output of a build verifies with pages that are loaded in parts of any size', async () => {
  for (const lineBytes of [1, 300, 5000]) {
    const before = crossings.get('lineBytes') ?? 0;
    await verify(whole, new Progress(new RecordingLog(), false), undefined, limitsWith({ lineBytes }));
    expect(crossings.get('lineBytes')).toBeGreaterThan(before);
  }
});

describe('verification finds', () => {
  const v1 = 'runes/v1';
  it.each<[string, (out: string) => void, RegExp]>([
    ['a missing transaction', (out) => rmSync(join(out, v1, `transactions/${ID}.json`)), /transactions\/0x\w+\.json is missing/],
    ['a missing page', (out) => rmSync(join(out, v1, `transactions/${ID}/60/60.json`)), /60\/60\.json is missing/],
    ['a missing block page', (out) => rmSync(join(out, v1, 'blocks/5/60/60.json')), /^runes\/v1\/blocks\/5\/60\/60\.json: ENOENT/],
    [
      'a compressed file where none belongs',
      (out) => writeFileSync(join(out, v1, 'blocks/6.json.gz'), gzipSync(readFileSync(join(out, v1, 'blocks/6.json')))),
      /blocks\/6\.json\.gz is not part of this build$/,
    ],
    ['a missing hash path', (out) => rmSync(join(out, v1, `blocks/${HASH}/send.json`)), /send\.json is missing/],
    ['a changed hash path', (out) => writeFileSync(join(out, v1, `blocks/${HASH}.json`), '{}'), /differs from runes\/v1\/blocks\/5\.json/],
    [
      'a page cut short',
      (out) => edit(out, `${v1}/transactions/${ID}/20/20.json`, (t) => t.slice(0, -10)),
      /is not the page that a build makes/,
    ],
    [
      'a changed digit',
      (out) => edit(out, `${v1}/blocks/6.json`, (t) => t.replace('"1.50"', '"1.51"')),
      /block 6: its records have the digest/,
    ],
    ['a broken page', (out) => edit(out, `${v1}/blocks/6.json`, (t) => t.slice(1)), /blocks\/6\.json: it begins with /],
    [
      'a page that breaks the contract',
      (out) => edit(out, `${v1}/blocks/6.json`, (t) => t.replace('"receive"', '"give"')),
      /results\.0\.operation/,
    ],
    [
      'a page with the hash of another block',
      (out) => edit(out, `${v1}/blocks/6.json`, (t) => t.replace(/"block_hash":"0x.{4}/, '"block_hash":"0x0000')),
      /block 6: record 0 belongs to block 6, 0x0000/,
    ],
    [
      'a wrong total in the second page of a block between others',
      (out) => edit(out, `${v1}/blocks/5/60/60.json`, (t) => t.replace('"total":71', '"total":72')),
      /60\.json: it begins with .*72.*, expected .*71/,
    ],
    [
      'a page that lacks its last record',
      (out) => edit(out, `${v1}/blocks/5/60/60.json`, (t) => `${t.slice(0, t.lastIndexOf(',{"rune":'))}]}`),
      /blocks\/5\/60\/60\.json: it has 10 records, expected 11/,
    ],
    [
      'pages without an end, without records, and with a line feed',
      (out) => {
        edit(out, `${v1}/blocks/5/60/60.json`, (t) => t.slice(0, -1));
        edit(out, `${v1}/blocks/6.json`, (t) => t.replace('"results":[{', '"results":[{\n'));
        edit(out, `${v1}/blocks/2005.json`, (t) => t.replace(/"results":.*/, '"results":[]}'));
      },
      /json: it is not a complete page of rune-activity-mirror/,
    ],
    [
      'a stranger',
      (out) => writeFiles(out, { 'notes.txt': 'x', [`${v1}/blocks/7.json`]: '{}' }),
      /^(notes\.txt is not part of this build; builds do not remove it|runes\/v1\/blocks\/7\.json is not part of this build$)/,
    ],
    ['a temporary file', (out) => writeFileSync(join(out, v1, 'blocks/5.json.tmp'), ''), /5\.json\.tmp is not part of this build/],
    ['all files of digests that are gone', (out) => rmSync(join(out, v1, 'digests'), { recursive: true }), /digests\/0\.json is missing/],
    ['a file of digests that is gone', (out) => rmSync(join(out, v1, 'digests/2000.json')), /digests\/2000\.json is missing/],
    [
      'a wrong digest',
      (out) => edit(out, `${v1}/digests/0.json`, (t) => t.replace(/"digest":"[0-9a-f]{4}/, '"digest":"0000')),
      /block 3: its records have the digest/,
    ],
    ['digests that are no JSON', (out) => writeFileSync(join(out, v1, 'digests/0.json'), 'x'), /digests\/0\.json: Unexpected token/],
    [
      'a wrong manifest',
      (out) => edit(out, `${v1}/manifest.json`, (t) => t.replace('"records": 74', '"records": 75')),
      /has records 75, but the output has 74|index\.html/,
    ],
    ...(
      [
        ['stats/0.json', '"receive":38'],
        ['stats/0.json', '"name":"TESTRUNE"'],
        ['stats.json', '"records":74'],
        ['blocks.json', '"transactions":2'],
        ['feed.json', '71 records'],
      ] as const
    ).map(([path, was]): [string, (out: string) => void, RegExp] => [
      `a change in ${path} of ${was}`,
      (out) =>
        edit(out, `${v1}/${path}`, (t) =>
          t.replace(
            was,
            was.replace(/.(?="?$)/, (c) => (c === '9' ? '8' : '9')),
          ),
        ),
      new RegExp(`^${v1}/${path} is not the file that a build makes`),
    ]),
    ['a missing file of stats', (out) => rmSync(join(out, v1, 'stats/2000.json')), /stats\/2000\.json is missing/],
    ['stats of no block', (out) => writeFiles(out, { [`${v1}/stats/900.json`]: '{}' }), /stats\/900\.json is not part of this build$/],
    ['a wrong status', (out) => writeFileSync(join(out, v1, 'index.json'), '{}'), /index\.json is not the file that a build makes/],
    [
      'digests that are a file',
      (out) => {
        rmSync(join(out, v1, 'digests'), { recursive: true });
        writeFileSync(join(out, v1, 'digests'), '');
      },
      /digests\/0\.json is missing/,
    ],
    [
      'more records than can be',
      (out) => edit(out, `${v1}/digests/0.json`, (t) => t.replace('"records":71', '"records":500000000000')),
      /more than the whole build has/,
    ],
    [
      'an unfinished build',
      (out) => writeFileSync(join(out, '.rune-activity-mirror'), 'A build is running here'),
      /the last build did not finish/,
    ],
    [
      'a folder in the place of a page',
      (out) => {
        rmSync(join(out, v1, `transactions/${ID}.json`));
        writeFiles(out, { [`${v1}/transactions/${ID}.json/x`]: '' });
      },
      /is not a regular file/,
    ],
    ...['blocks/6.json', 'blocks/5/20/20.json', `blocks/${HASH}.json`, `transactions/${ID}/60/60.json`, 'digests/0.json', 'stats.json'].map(
      (path): [string, (out: string) => void, RegExp] => [
        `a symbolic link in the place of ${path}`,
        (out) => moveAndLink(join(out, v1, path)),
        /is not a regular file/,
      ],
    ),
    [
      'a symbolic link in the place of a folder of one file',
      (out) => moveAndLink(join(out, v1, 'blocks/6')),
      /runes\/v1\/blocks\/6 is not part of this build/,
    ],
    ...['blocks/6.json', 'blocks/5/20/20.json', 'digests/0.json', 'blocks.json'].map((path): [string, (out: string) => void, RegExp] => [
      `a pipe in the place of ${path}`,
      (out) => putPipe(join(out, v1, path)),
      /is not a regular file/,
    ]),
    [
      'a pipe in the place of the manifest',
      (out) => putPipe(join(out, v1, 'manifest.json')),
      /last build did not finish|manifest\.json cannot be read: is not a regular file/,
    ],
    [
      'blocks that changed places',
      (out) => {
        renameSync(join(out, v1, 'blocks/6.json'), join(out, v1, 'x'));
        renameSync(join(out, v1, 'blocks/2005.json'), join(out, v1, 'blocks/6.json'));
        renameSync(join(out, v1, 'x'), join(out, v1, 'blocks/2005.json'));
      },
      /block 6: record 0 belongs to block 2005/,
    ],
  ])('%s', async (_, damage, finding) => {
    const out = copy();
    damage(out);
    const found = await findings(out);
    expect(found.length).toBeGreaterThan(0);
    expect(found[0]).toMatch(finding);
  });

  it.each([
    ['transactions', '4000000000', 'transactions: 4000000000 transactions cannot have only 74 records'],
    ['blocks', '7', 'blocks: 7 blocks cannot have only 5 transactions'],
  ])('an impossible number in the manifest: %s %s', async (key, value, fault) => {
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { inputs: [join(work, 'a.ndjson')], layout: 'archive' });
    edit(out, `${v1}/manifest.json`, (text) => text.replace(new RegExp(`"${key}": \\d+`), `"${key}": ${value}`));
    expect(await findings(out)).toContainEqual(`${v1}/manifest.json cannot be read: ${fault}`);
  });

  it.each(LAYOUTS)('hashes and digests that are not hex, and heights below 0: layout %s', async (layout) => {
    const out = join(temporaryFolder(), 'out');
    await testBuild(out, { inputs: [join(work, 'a.ndjson')], layout });
    const path = `${v1}/digests/0.json`;
    const text = readFileSync(join(out, path), 'utf8');
    for (const [key, change] of [
      ['hash', (value: string) => value.replace(/.$/, 'x')],
      ['digest', (value: string) => value.slice(1)],
      ['height', () => '-5'],
      ['records', () => '-1'],
    ] as const) {
      writeFileSync(join(out, path), text.replace(new RegExp(`(?<="${key}":"?)[0-9a-f]+`), change));
      expect((await findings(out))[0]).toMatch(new RegExp(`^${path}: blocks\\.0\\.${key}: `));
    }
  });
});

let moved = 0;
/** Moves a file or a folder out of the output, and puts a symbolic link in its place. */
function moveAndLink(path: string): void {
  moved += 1;
  const elsewhere = join(work, `moved-${moved}`);
  renameSync(path, elsewhere);
  symlinkSync(elsewhere, path);
}

function putPipe(path: string): void {
  rmSync(path);
  execFileSync('mkfifo', [path]);
}

function edit(out: string, path: string, change: (text: string) => string): void {
  const text = readFileSync(join(out, path), 'utf8');
  expect(change(text)).not.toBe(text);
  writeFileSync(join(out, path), change(text));
}

describe('npm run verify', () => {
  it('reports success with the numbers of files and records', async () => {
    const { code, stdout } = await run('verify', ['--dir', whole], work);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/ is correct: \d+ files of 4 blocks, digest [0-9a-f]{64}, in [\d.]+ s\.\n {2}records +74\n/),
    ]);
    const json = await run('verify', ['--dir', whole, '--log', 'json'], work);
    expect(JSON.parse(json.stdout)).toMatchObject({ event: 'verified', blocks: 4, records: 74, peak_rss_mb: expect.any(Number) });
  });

  it('ends with exit code 4 and the first 20 findings', async () => {
    const out = copy();
    // Damages all pages except those from which verification reads the records of the block.
    const pages = filesBelow(out).filter((path) => /v1\/(transactions|blocks)\//.test(path) && !/blocks\/(\d+\.json|5\/60)/.test(path));
    for (const path of pages) writeFileSync(join(out, path), 'x');
    const { code, stderr } = await run('verify', ['--dir', out], work);
    expect(code).toBe(4);
    const lines = stderr.trim().split('\n');
    expect(lines[0]).toMatch(/^Error: .* failed verification: \d+ finding\(s\)$/);
    const count = Number(/(\d+) finding/.exec(lines[0] ?? '')?.[1]);
    expect(lines.slice(1, 21).every((line) => line.includes('runes/v1/'))).toBe(true);
    expect(lines.slice(21)).toEqual([`  … and ${count - 20} more`, expect.stringContaining('--full')]);
  });

  it('of a folder that is not an output ends with exit code 2', async () => {
    const { code, stderr } = await run('verify', ['--dir', join(work, 'nothing')], work);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not the output of a build: runes/v1/manifest.json not found')]);
  });
});

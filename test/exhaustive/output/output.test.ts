/** Tests which files of the output folder a build changes, keeps and removes. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Store } from '../../../src/duckdb/store.ts';
import { removeOutdated } from '../../../src/engine/removeOutdated.ts';
import { DiskSink } from '../../../src/engine/render/diskSink.ts';
import { emitFiles } from '../../../src/engine/render/pageFiles.ts';
import { claimOutput, finishOutput, inspectOutput, MARKER, releaseOutput } from '../../../src/output/outputFolder.ts';
import { CONFORMANCE_INPUTS, failedBuild, filesBelow, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { withFault } from '../../support/ioFaults.ts';
import { hex, ndjson, record } from '../../support/records.ts';

/** Builds one block with one record, for tests that need no particular data. */
async function small(work = temporaryFolder()): Promise<{ work: string; out: string; input: string }> {
  const [out, input] = [join(work, 'out'), join(work, 'a.ndjson')];
  writeFiles(work, { 'a.ndjson': ndjson([record(5, 1)]) });
  await testBuild(out, { inputs: [input] });
  return { work, out, input };
}

describe('a build of the sample', () => {
  it('has hard links for block hashes', async () => {
    const out = join(temporaryFolder(), 'dist');
    await testBuild(out, { inputs: [SAMPLE_INPUT] });
    const blocks = join(out, 'runes/v1/blocks');
    const hash = readdirSync(blocks).find((name) => name.startsWith('0x00000000f00d99dc') && name.endsWith('.json')) ?? '';
    for (const path of ['.json', '/60/0.json', '/send.json', '/send/20/20.json']) {
      expect(statSync(`${blocks}/2000007${path}`).ino).toBe(statSync(`${blocks}/${hash.replace('.json', '')}${path}`).ino);
    }
  });
});

it('has the digests of 1,000 heights in a file, also after a change of the last of them', async () => {
  const work = temporaryFolder();
  const heightsIn = (first: number) =>
    (JSON.parse(readFileSync(join(work, `out/runes/v1/digests/${first}.json`), 'utf8')) as { blocks: { height: number }[] }).blocks.map(
      ({ height }) => height,
    );
  for (const amount of ['1', '2']) {
    const records = [0, 999, 1000, 1001, 1500, 2000].map((height) => record(height, 1, height === 999 ? { amount } : {}));
    writeFiles(work, { 'a.ndjson': ndjson(records) });
    await testBuild(join(work, 'out'), { inputs: [join(work, 'a.ndjson')] });
    expect([0, 1000, 2000].map(heightsIn)).toEqual([[0, 999], [1000, 1001, 1500], [2000]]);
  }
});

describe('the marker', () => {
  it('has a second line while a build runs, which hosting/upload.sh counts', async () => {
    const out = join(temporaryFolder(), 'dist');
    const lines = () => readFileSync(join(out, MARKER), 'utf8').split('\n').length - 1;
    const store = await Store.open({ memoryLimit: '200MB', threads: 1, scratch: temporaryFolder() });
    try {
      await claimOutput(out, inspectOutput(out), store);
      expect(lines()).toBe(2);
      finishOutput(out);
      expect(lines()).toBe(1);
      await releaseOutput(out, store);
    } finally {
      store.close();
    }
  });
});

describe('a second full build', () => {
  it.each([
    ['other records', { inputs: ['b'] }],
    ['another dialect', { inputs: ['a'], dialect: 'hiro' as const }],
    ['other page sizes', { inputs: ['a'], pageSizes: [5, 10, 25] }],
    ['a ledger', { inputs: CONFORMANCE_INPUTS }],
  ])('of %s equals a fresh build, and removes obsolete files', async (_name, { inputs, ...options }) => {
    const work = temporaryFolder();
    const many = (height: number, tx: number, n: number, amount: string) => Array.from({ length: n }, () => record(height, tx, { amount }));
    writeFiles(work, {
      // Replaces block 6 by a block with another hash, shrinks block 7, removes block 8, and moves a transaction.
      'a/a.ndjson': ndjson([...many(5, 1, 70, '1'), ...many(6, 1, 70, '1'), ...many(7, 1, 130, '1'), ...many(8, 1, 70, '1')]),
      'b/b.ndjson': ndjson([
        ...many(5, 1, 70, '1'),
        ...many(6, 1, 70, '1').map((r) => ({ ...r, location: { ...r.location, block_hash: hex('other') } })),
        ...many(7, 1, 5, '2'),
        record(9, 1, { location: { tx_id: `0x${hex('tx 8 1')}` } }),
      ]),
    });
    const paths = inputs.map((path) => join(path.startsWith('/') ? '/' : work, path));
    await testBuild(join(work, 'out'), { inputs: [join(work, 'a')] });
    // Files that a killed build has left behind, and the compressed pages of earlier versions, must be removed too.
    writeFiles(join(work, 'out/runes/v1'), {
      'blocks/5.json.tmp': '{',
      'transactions/0xab.json.tmp': '{',
      'blocks/77/20/20.json': '{}',
      'blocks/5/zz.json': '{}',
      'blocks/5/60/0.json.gz': '',
      [`blocks/0x${hex('block 5')}.json.br`]: '',
      [`transactions/0x${hex('tx 5 1')}.json.gz`]: '',
    });
    writeFileSync(join(work, 'out/runes/v1/blocks/5.json'), '{"half');
    await testBuild(join(work, 'out'), { inputs: paths, ...options, full: true });
    await testBuild(join(work, 'fresh'), { inputs: paths, ...options });
    expect(tree(join(work, 'out'))).toEqual(tree(join(work, 'fresh')));
    const folders = (root: string) => readdirSync(root, { recursive: true, withFileTypes: true }).filter((e) => e.isDirectory()).length;
    expect(folders(join(work, 'out'))).toBe(folders(join(work, 'fresh')));
  });

  it('replaces a page that has a hard link below the block hash', async () => {
    const work = temporaryFolder();
    const build = async (amount: string) => {
      writeFiles(work, { 'a.ndjson': ndjson([record(5, 1, { amount })]) });
      await testBuild(join(work, 'out'), { inputs: [join(work, 'a.ndjson')] });
    };
    await build('1');
    await build('2');
    const [byHeight, byHash] = ['5', `0x${hex('block 5')}`].map((name) => join(work, `out/runes/v1/blocks/${name}.json`));
    expect(readFileSync(byHash ?? '', 'utf8')).toContain('"amount":"2"');
    expect(statSync(byHash ?? '').ino).toBe(statSync(byHeight ?? '').ino);
  });
});

it.each([false, true])('a build after lists became shorter equals a fresh build, whether it is full: %s', async (full) => {
  const work = temporaryFolder();
  const many = (height: number, tx: number, n: number, amount: string) => Array.from({ length: n }, () => record(height, tx, { amount }));
  const build = async (out: string, records: readonly ReturnType<typeof record>[]) => {
    writeFiles(work, { 'in/a.ndjson': ndjson(records) });
    await testBuild(join(work, out), { inputs: [join(work, 'in')], full });
  };
  await build('out', [...many(5, 1, 70, '1'), ...many(7, 1, 130, '1'), ...many(7, 2, 70, '1'), ...many(8, 1, 130, '1')]);
  // Of block 7, one transaction loses its second page, another all of them. Block 8 keeps its number of pages.
  const later = [...many(5, 1, 70, '1'), ...many(7, 1, 61, '1'), ...many(7, 2, 5, '1'), ...many(8, 1, 125, '2')];
  await build('out', later);
  await build('fresh', later);
  expect(tree(join(work, 'out'))).toEqual(tree(join(work, 'fresh')));
});

describe('an output folder', () => {
  it('that another program made stays unchanged', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'out/precious.txt': 'x' });
    const error = await failedBuild(join(work, 'out'), { inputs: [SAMPLE_INPUT] });
    expect([error.exitCode, error.message]).toEqual([
      2,
      `the output folder ${join(work, 'out')} contains files that this program did not make; nothing was changed`,
    ]);
    expect(filesBelow(join(work, 'out'))).toEqual(['precious.txt']);
  });

  it('whose folders of lists, of digests or of the API page are symbolic links is refused', async () => {
    const { work, out, input } = await small();
    writeFiles(work, { 'elsewhere/keep.json': 'x' });
    for (const [folder, full] of [
      ['runes/v1/transactions', false],
      ['runes/v1/digests', true],
      ['docs', true],
    ] as const) {
      renameSync(join(out, folder), join(work, 'before'));
      symlinkSync(join(work, 'elsewhere'), join(out, folder));
      const { message } = await failedBuild(out, { inputs: [input], full });
      expect(message).toBe(`${join(out, folder)} is a symbolic link; a build would write and remove files outside the output folder`);
      expect(filesBelow(join(work, 'elsewhere'))).toEqual(['keep.json']);
      rmSync(join(out, folder));
      renameSync(join(work, 'before'), join(out, folder));
    }
  });

  it('with links and pipes in place of deeper folders and temporary files is repaired, and nothing outside of it changes', async () => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in/a.ndjson')];
    const [id, hash] = [`0x${hex('tx 5 1')}`, `0x${hex('block 7')}`];
    const build = async (heights: readonly number[], amount: string, full: boolean) => {
      const records = heights.flatMap((height) => Array.from({ length: 25 }, () => record(height, 1, { amount })));
      writeFiles(work, { 'in/a.ndjson': ndjson(records) });
      await testBuild(out, { inputs: [input], full });
      await testBuild(join(work, `fresh-${amount}`), { inputs: [input] });
      expect(tree(out)).toEqual(tree(join(work, `fresh-${amount}`)));
    };
    await build([5, 6, 7], '1', false);
    for (const full of [false, true]) {
      const outside = join(work, `outside-${full}`);
      // The links lead to folders outside of the output. Their files have names that a build writes or removes, but no build may touch
      // them.
      const folders = ['runes/v1/blocks/5', `runes/v1/transactions/${id}`, `runes/v1/blocks/${hash}`, 'runes/v1/blocks/7'];
      for (const [i, folder] of folders.entries()) {
        renameSync(join(out, folder), join(work, `outside-${full}-${i}`));
        symlinkSync(join(work, `outside-${full}-${i}`), join(out, folder));
      }
      writeFiles(outside, { file: 'mine' });
      for (const name of [
        '.rune-activity-mirror.tmp',
        '.rune-activity-mirror.lock',
        'runes/v1/manifest.json.tmp',
        'runes/v1/blocks/5.json.tmp',
      ])
        symlinkSync(join(outside, 'file'), join(out, name));
      const before = [0, 1, 2, 3].map((i) => tree(join(work, `outside-${full}-${i}`)));
      // Changes one block, and removes another.
      await build([5, 6], full ? '3' : '2', full);
      expect([0, 1, 2, 3].map((i) => tree(join(work, `outside-${full}-${i}`)))).toEqual(before);
      expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('mine');
      rmSync(join(out, 'runes/v1/blocks/7'), { force: true });
      await build([5, 6, 7], full ? '5' : '4', false);
    }
  });

  it('with a link above a file that is removed loses the link, not the file of a stranger', async () => {
    const work = temporaryFolder();
    writeFiles(work, { 'outside/c.json': 'mine', 'out/runes/v1/search/d.json': '' });
    symlinkSync(join(work, 'outside'), join(work, 'out/runes/v1/search/ab'));
    const removal = { root: join(work, 'out'), site: { layout: 'archive' } } as Parameters<typeof removeOutdated>[0];
    const paths = ['runes/v1/search/ab/c.json', 'runes/v1/search/ab/e.json', 'runes/v1/search/d.json'];
    expect(await removeOutdated(removal, paths, {} as Parameters<typeof removeOutdated>[2])).toBe(1);
    expect(filesBelow(work)).toEqual(['outside/c.json']);
  });

  it('with a pipe in place of its manifest or marker is repaired', async () => {
    const { out, input } = await small();
    const before = tree(out);
    for (const name of ['runes/v1/manifest.json', '.rune-activity-mirror']) {
      rmSync(join(out, name));
      execFileSync('mkfifo', [join(out, name)]);
      await testBuild(out, { inputs: [input] });
      expect(tree(out)).toEqual(before);
    }
  });

  it('that is a file is refused', async () => {
    const work = temporaryFolder();
    writeFiles(work, { out: 'x' });
    expect((await failedBuild(join(work, 'out'), { inputs: [SAMPLE_INPUT] })).message).toBe(
      `the output ${join(work, 'out')} is a file, not a folder`,
    );
  });

  it('that is empty, or lost its marker but has a manifest, is used', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'out'));
    const { out, input } = await small(work);
    const before = tree(out);
    rmSync(join(out, '.rune-activity-mirror'));
    await testBuild(out, { inputs: [input] });
    expect(tree(out)).toEqual(before);
  });

  it('on a file system without hard links is written with copies', async () => {
    // Makes calls fail to simulate a file system that limits the number of links. No such file system is available here, and /dev/shm has
    // no limit.
    const { out, input } = await small();
    const before = tree(out);
    const [byHeight, byHash] = ['5', `0x${hex('block 5')}`].map((name) => join(out, `runes/v1/blocks/${name}.json`)) as [string, string];
    expect(statSync(byHash).ino).toBe(statSync(byHeight).ino);
    rmSync(byHash);
    const calls = await withFault([out], 'linkSync', 'EPERM', async () => void (await testBuild(out, { inputs: [input], full: true })));
    expect(calls).toContain(`linkSync ${byHeight}`);
    expect(tree(out)).toEqual(before);
    expect(statSync(byHash).ino).not.toBe(statSync(byHeight).ino);
  });

  it.skipIf(process.getuid?.() === 0)('that cannot be written is an error with advice', async () => {
    const work = temporaryFolder();
    mkdirSync(join(work, 'locked'));
    chmodSync(join(work, 'locked'), 0o555);
    const error = await failedBuild(join(work, 'locked/out'), { inputs: [SAMPLE_INPUT], cache: join(work, 'cache') });
    expect([error.exitCode, error.details]).toEqual([
      3,
      ['This user may not read or write there. Change the permissions, or choose another folder with --out.'],
    ]);
    mkdirSync(join(work, 'unreadable'), { mode: 0o300 });
    await expect(failedBuild(join(work, 'unreadable'), { inputs: [SAMPLE_INPUT], cache: join(work, 'cache') })).resolves.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining('the output cannot be read: EACCES'),
    });
  });
});

describe('an invalid id', () => {
  const block = { height: 5, hash: hex('block 5'), records: 1, first: 0, firstTx: 0, transactions: 1, operations: [0, 0, 0, 0, 1] };
  const whole = { ...block, digest: hex('digest') };
  const ids = { tx: hex('tx'), path: `../../../../${hex('x')}`.slice(0, 64), upper: hex('tx').toUpperCase().replace(/[0-9]/g, 'A') };

  it.each([
    ['a tx id that is a path', ids.path, whole],
    ['a tx id in capitals', ids.upper, whole],
    ['a block hash that is a path', ids.tx, { ...whole, hash: ids.path }],
    ['a short block hash', ids.tx, { ...whole, hash: 'ab' }],
  ] as const)('never becomes a path that is written: %s', (_, txId, of) => {
    const root = join(temporaryFolder(), 'a/b/c/d/out');
    mkdirSync(root, { recursive: true });
    const site = { layout: 'files', dialect: 'hiro', pageSizes: [20], operationPages: false, parquet: false } as const;
    const json = Buffer.from('{"rune":1},');
    const batch = {
      blocks: [of],
      bytes: json,
      offsets: Uint32Array.of(0, json.length),
      operations: Uint8Array.of(4),
      txIds: Buffer.from(txId),
      txRecords: Uint32Array.of(1),
    };
    expect(() => emitFiles(batch, of, site, new DiskSink(root))).toThrow('cannot be part of a path');
    expect(filesBelow(join(root, '../../../..')).filter((path) => !path.startsWith('b/c/d/out/runes/v1/'))).toEqual([]);
  });

  it.each(['transactions SET tx_id', 'blocks SET block_hash'])('never becomes a path that is removed: %s', async (column) => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    writeFiles(input, { 'a.ndjson': ndjson([record(5, 1)]), 'b.ndjson': ndjson([record(6, 1)]) });
    await testBuild(out, { inputs: [input], dialect: 'hiro' });
    writeFiles(out, { 'runes/precious.json': 'x' });
    const store = await Store.open({ memoryLimit: '100MB', threads: 1, scratch: join(work, 'scratch') });
    try {
      await store.run(`ATTACH '${out}.cache/state.duckdb' AS state`);
      await store.run(`UPDATE state.${column} = '../../precious' WHERE block_height = 6`);
    } finally {
      store.close();
    }
    rmSync(join(input, 'b.ndjson'));
    await expect(testBuild(out, { inputs: [input], dialect: 'hiro' })).rejects.toThrow('"../../precious" cannot be part of a path');
    expect(readFileSync(join(out, 'runes/precious.json'), 'utf8')).toBe('x');
  });
});

describe('memory', () => {
  it('that is too small is an error with advice, and leaves no output', async () => {
    const work = temporaryFolder();
    const error = await failedBuild(join(work, 'out'), { inputs: CONFORMANCE_INPUTS, memoryLimit: '1MB' });
    expect([error.exitCode, error.details]).toEqual([
      3,
      ['Raise --memory-limit, or lower --threads of a build: every thread needs memory.', expect.stringContaining('report this step: ')],
    ]);
    expect(existsSync(join(work, 'out'))).toBe(false);
  });
});

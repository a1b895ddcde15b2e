/** Tests `verify --against`, which reports which mirrors have the same blocks and lists. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import type { ListTables } from '../../../src/format/listTables.ts';
import { renderRoot } from '../../../src/format/root.ts';
import { LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { compareMirrors } from '../../../src/verify/compareMirrors.ts';
import type { VerificationError } from '../../../src/verify/findings.ts';
import { readOther } from '../../../src/verify/otherMirror.ts';
import { MANIFEST, putFile } from '../../support/archives.ts';
import { RecordingLog, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { ROOT, run } from '../../support/cli.ts';
import { limitsWith } from '../../support/limits.ts';
import { indexWith } from '../../support/nodeRows.ts';
import { copyOf } from '../../support/outputs.ts';
import { hex, ndjson, record } from '../../support/records.ts';
import { startServer } from '../../support/server.ts';

const work = temporaryFolder();
const whole = join(work, 'whole');
beforeAll(async () => {
  writeFiles(work, { 'a.ndjson': ndjson([record(5, 2), record(5, 1), record(6, 1), record(2005, 1)]) });
  await testBuild(whole, { inputs: [join(work, 'a.ndjson')] });
});

const copy = () => copyOf(whole);

const edit = (out: string, path: string, change: (text: string) => string): void =>
  writeFileSync(join(out, path), change(readFileSync(join(out, path), 'utf8')));

type Etchings = NonNullable<ListTables['etchings']>;

/** Changes the lists in the root of a copy of a build, with right names and digests. Returns the copy. */
function forged(dist: string, change: (lists: ListTables & { readonly etchings: Etchings }) => ListTables): string {
  const out = copyOf(dist);
  const { root } = StoredArchive.in(out) as StoredArchive;
  const content = gzipSync(renderRoot({ ...root, lists: root.lists && change(root.lists as never) }));
  edit(out, MANIFEST, (text) => JSON.stringify({ ...JSON.parse(text), archive: { root: putFile(out, content), bytes: content.length } }));
  return out;
}

/** Returns input with three runes. Their symbol is in the etchings, but not in the records. */
function etched(symbol: string, heights = [100, 101, 102]): Record<string, string> {
  const runes = heights.map((height, number) =>
    [`${height}:1`, number, `RUNE${'ABCD'[number]}`, `RUNE${'ABCD'[number]}`, hex(`b${height}`), height, 1, hex(`t${height}`)].join(),
  );
  const rows = heights.map((height) =>
    [`${height}:1`, hex(`b${height}`), height, 1, 0, hex(`t${height}`), '', '', '', '', 'etching', height].join(),
  );
  return {
    'ledger.csv': [LEDGER, ...rows, ''].join('\n'),
    'runes.csv': [RUNES, ...runes.map((rune, i) => `${rune},1,70,${symbol},5,9,,,,,f,f,${100 + i}`), ''].join('\n'),
  };
}

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';

describe('npm run verify -- --against', () => {
  const built = async (files: Readonly<Record<string, string>>, options: object = {}): Promise<string> => {
    const folder = temporaryFolder();
    writeFiles(folder, Object.fromEntries(Object.entries(files).map(([name, text]) => [`input/${name}`, text])));
    await testBuild(join(folder, 'dist'), { inputs: [join(folder, 'input')], ...options });
    return join(folder, 'dist');
  };
  const against = (other: string, dir = whole) => run('verify', ['--dir', dir, '--against', other], work);
  const many = (from: number, to: number, amount: string) =>
    ndjson(Array.from({ length: to - from + 1 }, (_, i) => record(from + i, 1, { amount })));

  it('of another folder or URL with the same data reports equality', async () => {
    const server = await startServer(whole);
    for (const other of [copy(), `http://127.0.0.1:${server.port}`, `http://127.0.0.1:${server.port}/runes/v1/`]) {
      const { code, stdout } = await against(other);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^.* and .* have the same data: digest [0-9a-f]{64}\.$/m)]);
    }
    await server.close();
  });

  it('of a mirror with other blocks reports which blocks differ, how many, and by which rules the mirrors were built', async () => {
    const indexed = (first: number, last: number) => indexWith({ sources: [{ rules: 'bitcoin-indexer', blocks: [[first, last]] }] });
    const [one, two] = [
      await built({ 'a.ndjson': many(1, 30, '1'), 'index.json': indexed(1, 30) }),
      await built({ 'a.ndjson': `${many(10, 22, '2')}${many(23, 31, '1').replaceAll(hex('block 25'), hex('fork 25'))}` }),
    ];
    const server = await startServer(two);
    const base = `http://127.0.0.1:${server.port}`;
    const { code, stderr } = await against(base, one);
    await server.close();
    const first = '10..22, 25';
    expect([code, stderr.split('\n')]).toEqual([
      4,
      [
        `Error: ${one} and ${base} differ in 14 of the 21 blocks that all of them have; the lowest of these is block 10`,
        `  ${one} ≠ ${base}: 14 blocks, ${first}`,
        '  different block hashes, so of another chain: 1 block, 25',
        `  ${one} lacks 1 block, 31`,
        `  ${base} lacks 9 blocks, 1..9`,
        `  rows of ${one}: from a database of bitcoin-indexer (blocks 1..30)`,
        `  rows of ${base}: its manifest does not say from where`,
        '',
      ],
    ]);
    const part = await built({ 'a.ndjson': many(5, 10, '1') });
    const covered = await against(part, one);
    expect([covered.code, covered.stderr, covered.stdout]).toEqual([
      0,
      '',
      expect.stringContaining(`${one} and ${part} agree in the 6 blocks that all of them have.\n  ${part} lacks 24 blocks, 1..4, 11..30`),
    ]);
    const later = await built({ 'a.ndjson': many(40, 41, '1') });
    const apart = await against(later, one);
    expect([apart.code, apart.stderr]).toEqual([4, expect.stringContaining(`${one} and ${later} have no block in common\n`)]);
  });

  it('of several mirrors verifies none, and says which of them agree', async () => {
    const [one, two, three] = [
      await built({ 'a.ndjson': many(1, 5, '1') }),
      await built({ 'a.ndjson': many(1, 5, '1') }),
      await built({ 'a.ndjson': `${many(1, 3, '1')}${many(4, 5, '2')}` }),
    ];
    edit(one, 'runes/v1/blocks/1.json', () => 'damaged');
    const compare = (...mirrors: readonly string[]) =>
      run(
        'verify',
        mirrors.flatMap((mirror) => ['--against', mirror]),
        work,
      );
    expect(await compare(one, two)).toMatchObject({ code: 0, stdout: expect.stringContaining(`${one} and ${two} have the same data`) });
    const { code, stderr } = await compare(one, two, three);
    expect([code, stderr]).toEqual([
      4,
      expect.stringContaining('differ in 2 of the 5 blocks that all of them have; the lowest of these is block 4'),
    ]);
    expect(stderr).toContain(`  ${one} = ${two} ≠ ${three}: 2 blocks, 4..5\n`);
    // With --dir, verification also checks the folder itself.
    expect(await run('verify', ['--dir', one, '--against', two, '--against', three], work)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('failed verification'),
    });
  });

  it.each(LAYOUTS)('of mirrors in layout %s with the same blocks says which lists differ', async (layout) => {
    const [one, packed, other] = [
      await built(etched('$'), { layout }),
      await built(etched('$'), { layout, limits: limitsWith({ documentMember: 100 }) }),
      await built(etched('%'), { layout }),
    ];
    const server = await startServer(packed);
    const base = `http://127.0.0.1:${server.port}`;
    // The documents of both mirrors are equal, but they are divided into other members, and so into other files. The mirrors must still
    // count as equal.
    const equal = await run('verify', ['--against', one, '--against', base], work);
    expect([equal.stderr, equal.stdout]).toEqual(['', expect.stringContaining(`equal lists: ${one}, ${base}`)]);
    const { code, stderr } = await run('verify', ['--against', one, '--against', base, '--against', other], work);
    await server.close();
    expect([code, stderr.split('\n')]).toEqual([
      4,
      [
        `Error: ${one}, ${base} and ${other} have the same blocks, but differ in their lists`,
        `  etchings, blocks 80 to 102: ${one} = ${base} ≠ ${other}`,
        `  names of runes, blocks 80 to 102: ${one} = ${base} ≠ ${other}`,
        '',
      ],
    ]);
  });

  it('of mirrors whose records are equal says which of their rows differ, or that none do', async () => {
    const spending = (outpoint: string, heights?: number[]) => {
      const { 'ledger.csv': ledger = '', ...files } = etched('$', heights);
      const [, ...rows] = ledger.trim().split('\n');
      return { ...files, 'ledger.csv': [`${LEDGER},spent`, ...rows.map((row, i) => `${row},${i === 1 ? outpoint : ''}`), ''].join('\n') };
    };
    const one = await built(spending(`${hex('t100')}:0`), { parquet: true });
    const [same, other] = [
      await built(spending(`${hex('t100')}:0`), { parquet: true, layout: 'archive' }),
      await built(spending(`${hex('t100')}:1`), { parquet: true }),
    ];
    const server = await startServer(one);
    const base = `http://127.0.0.1:${server.port}`;
    const equal = await run('verify', ['--against', base, '--against', same], work);
    expect([equal.stderr, equal.stdout]).toEqual(['', expect.stringContaining('equal rows: 3 ranges of blocks')]);
    const { code, stderr } = await run('verify', ['--against', base, '--against', same, '--against', other], work);
    await server.close();
    expect([code, stderr.split('\n')]).toEqual([
      4,
      [
        `Error: ${base}, ${same} and ${other} have the same blocks, but differ in their rows`,
        `  rows of blocks 101..101: ${base} = ${same} ≠ ${other}`,
        '',
      ],
    ]);
    const longer = await built(spending(`${hex('t100')}:1`, [100, 101, 102, 103]), { parquet: true });
    const missing = await run('verify', ['--against', same, '--against', longer], work);
    expect([missing.code, missing.stderr.split('\n').slice(0, 3)]).toEqual([
      4,
      [
        `Error: ${same} and ${longer} agree in the records of the 3 blocks that all of them have, but differ in their rows`,
        `  rows of blocks 101..101: ${same} ≠ ${longer}`,
        `  ${same} lacks 1 block, 103`,
      ],
    ]);
    const [index = ''] = readdirSync(join(other, 'rows')).filter((name) => name.startsWith('index-'));
    edit(other, `rows/${index}`, (text) => text.replace('"rows":1', '"rows":2'));
    const damaged = await run('verify', ['--against', same, '--against', other], work);
    expect([damaged.code, damaged.stderr]).toEqual([2, expect.stringContaining('its SHA-256 differs from the manifest')]);
  });

  it('of windows names the blocks that each of them lacks, and compares only rows and lists of the same blocks', async () => {
    const windowOf = async (blocks: string) => {
      const out = join(temporaryFolder(), 'dist');
      const { code } = await run('build', ['--input', join(ROOT, 'sample'), '--blocks', blocks, '--out', out], work);
      expect(code).toBe(0);
      return out;
    };
    const [one, later] = [await windowOf('2000003..'), await windowOf('2000010..')];
    const { code, stderr, stdout } = await run('verify', ['--against', one, '--against', later], work);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`${one} and ${later} agree in the 166 blocks that all of them have.\n  ${later} lacks 6 blocks, 2000003..`);
    // The files for the blocks from 2000000 on are called alike, but have other rows.
    expect(stdout).toContain('equal rows: 87 ranges of blocks');
    expect(stdout).toContain(`lists of ${later} that were not compared, blocks 1999872 to 2000159: etchings, names of runes`);
  });

  it('of a mirror whose root hides a list or a level finds this, and other levels are named', async () => {
    const [one, other] = [await built(etched('$'), { layout: 'archive' }), await built(etched('%'), { layout: 'archive' })];
    const compare = async (out: string) => {
      const log = new RecordingLog();
      const mirrors = await Promise.all([one, out].map((folder) => readOther(folder, log)));
      return compareMirrors(mirrors, log).then(
        () => log.infos.map(({ message }) => message).join('\n'),
        ({ message, details }: VerificationError) => [message, ...details].join('\n').replaceAll(out, 'OTHER').replaceAll(one, 'ONE'),
      );
    };
    const withLevels = (
      { etchings, ...lists }: ListTables & { readonly etchings: Etchings },
      change: (levels: Etchings['levels']) => Etchings['levels'],
    ): ListTables => ({ ...lists, etchings: { ...etchings, levels: change(etchings.levels), runes: change(etchings.runes) } });
    // Levels that do not follow from the last block.
    const DAMAGED = 'OTHER has lists that cannot be compared: the root of the archive is damaged';
    const OTHER_LEVELS = { listLevels: { steps: [4032, 144, 48], unsettled: 8 } };
    const wrong: [finding: string, out: string][] = [
      [DAMAGED, forged(other, (lists) => withLevels(lists, (all) => all.map((one) => ({ ...one, first: 1 }))))],
      ['etchings, blocks 80 to 102: ONE ≠ OTHER', forged(other, (lists) => withLevels(lists, () => []))],
      ['OTHER has other lists than its manifest', forged(other, ({ etchings: _, ...lists }) => lists)],
      [DAMAGED, forged(other, (lists) => ({ ...lists, tip: 103 }))],
      ['OTHER has lists in levels of other sizes', await built(etched('%'), { layout: 'archive', limits: limitsWith(OTHER_LEVELS) })],
    ];
    for (const [finding, out] of wrong) expect(await compare(out)).toContain(finding);
    // The newest level of a mirror with a newer block has no partner. Lists with other page sizes cannot be compared.
    const newer = await built(etched('$', [100, 101, 102, 103]), { layout: 'archive' });
    expect(await compare(newer)).toContain(`lists of ${newer} that were not compared, blocks 96 to 103: etchings, names of runes`);
    expect(await compare(forged(other, (lists) => ({ ...lists, page: 7 })))).toMatch(
      /not compared: the lists of .*, which has none, or in another form/,
    );
  });

  it.each([
    ['no folder', () => join(work, 'nothing'), 2, /nothing cannot be compared: ENOENT/],
    [
      'a folder whose digests are of another build',
      () => {
        const out = copy();
        edit(out, 'runes/v1/digests/0.json', (text) => text.replace(/"digest":"[0-9a-f]{4}/, '"digest":"0000'));
        return out;
      },
      2,
      /cannot be compared: its block digests do not match the digest in its manifest/,
    ],
    ['a URL with a password', () => 'https://user:SECRET@host', 1, /--against must be a folder, or an http\(s\) URL/],
    ['a URL with a password and no user', () => 'https://:SECRET@host', 1, /--against must be a folder, or an http\(s\) URL/],
    ['another kind of URL', () => 'ftp://SECRET', 1, /--against must be a folder, or an http\(s\) URL/],
  ])('of %s is refused', async (_, other, exitCode, message) => {
    const { code, stderr } = await against(other());
    expect([code, stderr]).toEqual([exitCode, expect.stringMatching(message)]);
    expect(stderr).not.toContain('SECRET');
  });

  it('of a server that is not a mirror is refused', async () => {
    const server = await startServer(whole);
    const { code, stderr } = await against(`http://127.0.0.1:${server.port}/elsewhere`);
    await server.close();
    expect([code, stderr]).toEqual([2, expect.stringMatching(/elsewhere is not a mirror of this program/)]);
  });
});

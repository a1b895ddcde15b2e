/** Tests which fields etchings have with each kind of input, and what happens if files of etchings are faulty. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DocumentWriter } from '../../../src/engine/archive/documentWriter.ts';
import { documentsOf, StoredArchive, type StoredDocument } from '../../../src/engine/archive/storedArchive.ts';
import { gzipMember } from '../../../src/engine/render/compress.ts';
import { describe as describeArchive } from '../../../src/engine/writeArchive.ts';
import { type Root, renderRoot } from '../../../src/format/root.ts';
import { LIMITS } from '../../../src/limits.ts';
import { LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { VerificationError } from '../../../src/verify/findings.ts';
import { MANIFEST, putFile } from '../../support/archives.ts';
import { temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { lineOf } from '../../support/documents.ts';
import { limitsWith } from '../../support/limits.ts';
import { exportOf, indexWith, rowsWithoutAddress } from '../../support/nodeRows.ts';
import { check, copyOf } from '../../support/outputs.ts';
import { hex } from '../../support/records.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';
const rune = (number: number, height: number, name: string) =>
  `${height}:1,${number},${name},${name},${hex(`b${height}`)},${height},1,${hex(`t${height}`)},1,70,$,5,9,,,,,f,f,${height}`;
const row = (id: string, height: number, tx: number, operation: string, amount = '') =>
  `${id},${hex(`b${height}`)},${height},${tx},0,${hex(`t${height} ${tx}`)},,,,${amount},${operation},${height}`;
const ROWS = [
  row('100:1', 100, 1, 'etching'),
  row('100:1', 102, 1, 'mint', '5'),
  row('103:1', 103, 1, 'etching'),
  row('100:1', 103, 2, 'burn', '2'),
];
const ledger = (rows: readonly string[]) => [LEDGER, ...rows, ''].join('\n');
const runes = (...rows: readonly string[]) => [RUNES, ...rows, ''].join('\n');
const BOTH = [rune(0, 100, 'OLD'), rune(1, 103, 'NEW')];

const hosts: LocalHost[] = [];
afterAll(async () => {
  for (const host of hosts) await host.close();
});

/** Builds from files. Returns the output, and a function that requests a path below `/runes/v1`. */
async function mirrorOf(files: Readonly<Record<string, string>>, options: object = {}) {
  const work = temporaryFolder();
  writeFiles(join(work, 'in'), files);
  const out = join(work, 'out');
  const { manifest } = await testBuild(out, { inputs: [join(work, 'in')], ...options });
  await check(out);
  const host = await startServer(out);
  hosts.push(host);
  const get = async (path: string) => {
    const { status, body } = await host.send('GET', `/runes/v1/${path}`);
    return { status, body: JSON.parse(body) as Record<string, unknown> };
  };
  return { out, manifest, get };
}

const FULL = {
  current: '7.3',
  minted: '0.5',
  total_mints: '1',
  mint_percentage: '11.1111',
  mintable: true,
  burned: '0.2',
  total_burns: '1',
  premine: '7.0',
};

describe('etchings', () => {
  it.each(LAYOUTS)('of layout %s have counts if the data begins at the first block that may have runes', async (layout) => {
    const { get, manifest } = await mirrorOf({ 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) }, { layout });
    expect(manifest.lists).toEqual({ etchings: { total: 2, counts: true } });
    expect(await get('etchings/old')).toMatchObject({ status: 200, body: { id: '100:1', supply: FULL } });
    expect(await get('etchings/2')).toEqual({
      status: 404,
      body: { statusCode: 404, error: 'Not Found', message: 'there is no such rune' },
    });
    expect(await get('etchings?limit=1')).toMatchObject({ status: 200, body: { total: 2, results: [{ id: '103:1' }] } });
  });

  it.each<[string, string, string]>([
    ['the block of an etching is missing', ledger(ROWS.slice(1)), runes(...BOTH)],
    ['older runes are missing', ledger(ROWS.slice(2, 3)), runes(rune(1, 103, 'NEW'))],
  ])('have only the premine if %s', async (_, rows, table) => {
    const { get, manifest } = await mirrorOf({ 'ledger.csv': rows, 'runes.csv': table });
    expect(manifest.lists?.etchings).not.toHaveProperty('counts');
    const { body } = await get('etchings/NEW');
    expect(body['supply']).toEqual({ premine: '7.0' });
  });

  it('end at the tip: a rune that is etched later is unknown', async () => {
    const { get, manifest } = await mirrorOf(
      { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) },
      { layout: 'archive', blocks: { from: 0, to: 102 } },
    );
    expect(manifest.lists).toEqual({ etchings: { total: 1, counts: true } });
    expect((await get('etchings/NEW')).status).toBe(404);
    expect((await get('etchings/OLD')).body['supply']).toMatchObject({ current: '7.5', total_burns: '0' });
  });

  it('have the runes of a level without blocks', async () => {
    const { get, manifest } = await mirrorOf(
      { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) },
      { layout: 'archive', blocks: { from: 103, to: 103 }, limits: limitsWith({ listLevels: { steps: [2], unsettled: 1 } }) },
    );
    expect(manifest.lists?.etchings).toEqual({ total: 2 });
    expect(await get('etchings/OLD')).toMatchObject({ status: 200, body: { id: '100:1' } });
  });

  const record = (height: number, id: string, name: string, amount: string) =>
    `${JSON.stringify({
      rune: { id, number: 0, name, spaced_name: name },
      amount,
      operation: 'mint',
      location: { block_hash: hex(`b${height}`), block_height: height, tx_id: hex(`x${height}`), tx_index: 9, timestamp: height },
    })}\n`;

  it('have only the premine if the amounts of a rune have other decimals than the rune', async () => {
    const files = { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH), 'a.ndjson': record(104, '100:1', 'OLD', '1.50') };
    const { get } = await mirrorOf(files);
    expect((await get('etchings/OLD')).body['supply']).toEqual({ premine: '7.0' });
    expect((await get('etchings/NEW')).body['supply']).toMatchObject({ current: '7.0' });
  });

  it.each(LAYOUTS)('of layout %s without the runes table have only names, and are complete when it is back', async (layout) => {
    const work = temporaryFolder();
    const [out, input] = [join(work, 'out'), join(work, 'in')];
    const options = { inputs: [input], layout, lists: true, limits: limitsWith({ listLevels: { steps: [4, 2], unsettled: 1 } }) };
    const records = [100, 101, 103, 106].map((height) =>
      record(height, height === 100 ? '90:1' : '100:1', height === 100 ? 'VERYOLD' : 'OLD', '1.5'),
    );
    const table = { 'runes.csv': runes(rune(0, 90, 'VERYOLD'), rune(1, 100, 'OLD')) };
    const made: Record<string, string>[] = [];
    for (const isTabled of [true, false, true]) {
      rmSync(join(input, 'runes.csv'), { force: true });
      writeFiles(input, { 'a.ndjson': records.join(''), ...(isTabled ? table : {}) });
      const { manifest, wasFull } = await testBuild(out, options);
      expect([wasFull, manifest.lists?.etchings !== undefined]).toEqual([made.length === 0, isTabled]);
      if (made.length < 2) await check(out);
      made.push(tree(out));
    }
    rmSync(join(input, 'runes.csv'));
    await testBuild(join(work, 'full'), options);
    expect(made.slice(1)).toEqual([tree(join(work, 'full')), made[0]]);
  });

  it.each<[string, Readonly<Record<string, string>>]>([
    ['activity records alone', { 'a.ndjson': record(104, '100:1', 'OLD', '1.5') }],
    [
      'a runes table without all columns',
      { 'ledger.csv': ledger(ROWS), 'runes.csv': 'id,number,name,spaced_name,divisibility\n100:1,0,OLD,OLD,1\n103:1,1,NEW,NEW,1\n' },
    ],
    [
      'records of a rune that the runes table lacks',
      { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH), 'a.ndjson': record(104, '90:1', 'LOST', '1') },
    ],
  ])('are refused with 501 if the input has %s', async (_, files) => {
    const { get, manifest, out } = await mirrorOf(files);
    expect(manifest).not.toHaveProperty('lists');
    expect(existsSync(join(out, 'archive'))).toBe(false);
    const message =
      'this mirror does not have etchings; it has: activity by transaction and block. Builds have etchings with a complete runes table in their input';
    expect(await get('etchings/OLD')).toEqual({ status: 501, body: { statusCode: 501, error: 'Not Implemented', message } });
  });
});

describe('data', () => {
  it.each([
    ['read all blocks', [[100, 103]], true],
    ['began later, above data that does not say what was read', [[102, 103]], true],
    [
      'left out a block without an etching',
      [
        [100, 100],
        [102, 103],
      ],
      false,
    ],
    [
      'left out a block that the input has from elsewhere',
      [
        [100, 101],
        [103, 103],
      ],
      true,
    ],
  ])('whose sources %s', async (_, blocks, hasCounts) => {
    const sources = indexWith({ sources: [{ rules: 'bitcoin-indexer', blocks }] });
    const { manifest } = await mirrorOf({ 'a.csv': ledger(ROWS), 'runes.csv': runes(...BOTH), 'index.json': sources });
    expect(manifest.lists?.etchings).toEqual({ total: 2, ...(hasCounts ? { counts: true } : {}) });
  });
});

/** Changes to the files of an archive that have etchings. The names and checksums of the changed files are right. */
interface Forgery {
  /** Changes the documents of etchings in the lowest level. */
  readonly lines?: (documents: StoredDocument[]) => StoredDocument[];
  /** Changes the documents of names in the lowest level. */
  readonly names?: (documents: readonly StoredDocument[]) => StoredDocument[];
  readonly root?: (root: Root) => Root;
}

async function forge(
  out: string,
  { lines = (all) => all, names = (all) => [...all], root: changed = (root) => root }: Forgery,
): Promise<void> {
  const archive = StoredArchive.in(out);
  const { root } = archive;
  const put = (content: Uint8Array) => putFile(out, content);
  const { lists } = root;
  const [level, ...levels] = lists?.etchings?.levels ?? [];
  const [table, ...tables] = lists?.names ?? [];
  if (lists?.etchings === undefined || level === undefined || table === undefined) throw new Error('no etchings');
  const writer = new DocumentWriter(root.objectSize, LIMITS, (parts) => put(Buffer.concat(parts)));
  for (const document of lines([...documentsOf(archive, level)])) writer.addLines(lineOf(document));
  const keyWriter = new DocumentWriter(root.objectSize, LIMITS, (parts) => put(Buffer.concat(parts)), true);
  for (const document of names([...documentsOf(archive, table)])) keyWriter.addLines(lineOf(document));
  const etchings = { ...lists.etchings, levels: [(await writer.finish(level)) ?? level, ...levels] };
  const forged = changed({ ...root, lists: { ...lists, etchings, names: [(await keyWriter.finish(table)) ?? table, ...tables] } });
  const text = gzipMember(Buffer.from(renderRoot(forged)));
  const name = { root: put(text), bytes: text.length };
  const manifest = JSON.parse(readFileSync(join(out, MANIFEST), 'utf8')) as { bytes: number };
  const before = describeArchive(archive.name, root).bytes;
  const bytes = manifest.bytes - before + describeArchive(name, forged).bytes;
  writeFileSync(join(out, MANIFEST), `${JSON.stringify({ ...manifest, archive: name, bytes }, null, 2)}\n`);
}

const replaced =
  (from: string | RegExp, to: string) =>
  (documents: readonly StoredDocument[]): StoredDocument[] =>
    documents.map(({ key, values }) => ({ key, values: values.map((value) => value.replace(from, to)) }));

describe('verification of etchings', () => {
  const layout = 'archive';
  let plain: string;
  let withRows: string;
  beforeAll(async () => {
    plain = (await mirrorOf({ 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) }, { layout })).out;
    withRows = (await mirrorOf(exportOf(rowsWithoutAddress()), { layout, lists: true, parquet: true })).out;
  });
  /** Returns the error of verification after a forgery in a copy of an output. */
  async function errorAfter(forgery: Forgery, of: string): Promise<unknown> {
    const out = copyOf(of);
    await forge(out, forgery);
    return check(out).catch((caught: unknown) => caught);
  }

  it.each<[string, Forgery, string]>([
    ['a wrong supply', { lines: replaced(/,"(\d+)"\]\]$/, ',"1$1"]]') }, 'has wrong data of the etching with the ordinal 00000000'],
    [
      'a wrong number of mints',
      { lines: replaced(/\[(\d+),(\d+),"/, '[1$1,$2,"') },
      'has wrong data of the etching with the ordinal 00000000',
    ],
    ['another ordinal of a name', { names: replaced('[', '[1') }, 'has wrong names with the key'],
    ['a missing name', { names: (all) => all.slice(1) }, 'has wrong names with the key'],
    ['another id of a name', { names: replaced('"]', '1"]') }, 'has wrong names with the key'],
    [
      'another total',
      {
        root: (root) => ({
          ...root,
          lists: root.lists && { ...root.lists, etchings: root.lists.etchings && { ...root.lists.etchings, total: 1 } },
        }),
      },
      'has other etchings than a build makes',
    ],
    [
      'no etchings in the root',
      { root: (root) => ({ ...root, lists: root.lists && { ...root.lists, etchings: undefined } }) },
      'differ in whether there are etchings',
    ],
    [
      'no names in the root',
      { root: (root) => ({ ...root, lists: root.lists && { ...root.lists, names: [] } }) },
      'has wrong names with the key',
    ],
  ])('finds %s', async (_, forgery, finding) => {
    const error = await errorAfter(forgery, plain);
    expect(error).toBeInstanceOf(VerificationError);
    expect((error as VerificationError).details).toContainEqual(expect.stringContaining(finding));
  });

  it.each([
    ['a block hash', /(?<=\],"\d+",")[0-9a-f]{4}/, '0000'],
    ['a txid', /(?<=",\d+,")[0-9a-f]{4}(?=[0-9a-f]{60}")/, '0000'],
    ['a tx index', /(?<="),1(?=,17\d+,)/, ',7'],
    ['a time', /,17(?=\d{8},)/, ',16'],
    ['a name', /(?<=^\["[^"]*",\d+,"[^"]*",")A/, 'A•'],
  ])('finds %s that is not that of the record', async (_, from, to) => {
    const error = await errorAfter({ lines: replaced(from, to) }, withRows);
    expect((error as VerificationError).details).toContainEqual(expect.stringContaining('the etching 1:1 does not match its record'));
  });

  it.each([
    ['premine', /(?<=\],")\d+/, '9'],
    ['symbol', /(?<=^\["[^"]*",\d+,"[^"]*","[^"]*",\d+,")[^"]+/, '?'],
    ['term', /(true|false),\[(?:null|"[^"]*")/, '$1,["77"'],
  ])('finds another %s than in the published rows', async (_, from, to) => {
    const error = await errorAfter({ lines: replaced(from, to) }, withRows);
    expect((error as VerificationError).details).toContainEqual(expect.stringMatching(/index-.*: its rune 1:1 differs from the etching/));
  });

  it('finds another symbol in an older version of an etching', async () => {
    // The block of the last mint is in a higher level, which has the newest version.
    const rows = [...ROWS, row('100:1', 9000, 1, 'mint', '5')];
    const { out } = await mirrorOf({ 'ledger.csv': ledger(rows), 'runes.csv': runes(...BOTH) }, { layout });
    const lines = (all: StoredDocument[]) => all.map((one, i) => (i === 0 ? (replaced(',"$",', ',"!",')([one])[0] ?? one) : one));
    const error = await errorAfter({ lines }, out);
    const finding = 'has wrong data of the etching with the ordinal 00000000';
    expect((error as VerificationError).details).toContainEqual(expect.stringContaining(finding));
  });
});

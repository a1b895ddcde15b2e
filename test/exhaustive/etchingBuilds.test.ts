/** What a build can say about etchings depends on its input, and what is wrong with their files. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/site.ts';
import { VerificationError } from '../../src/verify/findings.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { check } from '../support/outputs.ts';
import { hex } from '../support/records.ts';
import { type LocalHost, startServer } from '../support/server.ts';

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

/** Builds from files, and returns the output and a function that asks for a path below `/runes/v1`. */
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

describe.each(LAYOUTS)('etchings of layout %s', (layout) => {
  it('have counts if the data begins at the first rune block', async () => {
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
    const { get, manifest } = await mirrorOf({ 'ledger.csv': rows, 'runes.csv': table }, { layout });
    expect(manifest.lists?.etchings).not.toHaveProperty('counts');
    const { body } = await get('etchings/NEW');
    expect(body['supply']).toEqual({ premine: '7.0' });
  });

  it('end at the tip: a rune that is etched later is unknown', async () => {
    const { get, manifest } = await mirrorOf(
      { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) },
      { layout, blocks: { from: 0, to: 102 } },
    );
    expect(manifest.lists).toEqual({ etchings: { total: 1, counts: true } });
    expect((await get('etchings/NEW')).status).toBe(404);
    expect((await get('etchings/OLD')).body['supply']).toMatchObject({ current: '7.5', total_burns: '0' });
  });

  const record = (height: number, id: string, name: string, amount: string) =>
    `${JSON.stringify({
      rune: { id, number: 0, name, spaced_name: name },
      amount,
      operation: 'mint',
      location: { block_hash: hex(`b${height}`), block_height: height, tx_id: hex(`x${height}`), tx_index: 9, timestamp: height },
    })}\n`;

  it('of a rune whose amounts have other decimals than it has only the premine', async () => {
    const files = { 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH), 'a.ndjson': record(104, '100:1', 'OLD', '1.50') };
    const { get } = await mirrorOf(files, { layout });
    expect((await get('etchings/OLD')).body['supply']).toEqual({ premine: '7.0' });
    expect((await get('etchings/NEW')).body['supply']).toMatchObject({ current: '7.0' });
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
    const { get, manifest, out } = await mirrorOf(files, { layout });
    expect(manifest).not.toHaveProperty('lists');
    expect(existsSync(join(out, 'runes/v1/lists'))).toBe(false);
    const message = 'this mirror does not have etchings; it has: activity by transaction and block';
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
    const sources = JSON.stringify({ sources: [{ rules: 'bitcoin-indexer', blocks }] });
    const { manifest } = await mirrorOf({ 'a.csv': ledger(ROWS), 'runes.csv': runes(...BOTH), 'blocks.json': sources });
    expect(manifest.lists?.etchings).toEqual({ total: 2, ...(hasCounts ? { counts: true } : {}) });
  });
});

describe('verification of etchings in layout files', () => {
  it.each<[string, (out: string) => void, string]>([
    ['a wrong supply', (out) => change(out, 'etchings/0.json', '"current":"7.3"', '"current":"7.4"'), '100:1 is not as its records say'],
    ['a wrong flag', (out) => change(out, 'etchings/0.json', '"mintable":true', '"mintable":false'), '100:1 is not as its records say'],
    ['a missing line', (out) => change(out, 'etchings/0.json', /,\n.*\n/, '\n'), 'is not a complete page'],
    ['another order', (out) => change(out, 'etchings/0.json', /\n(.*),\n(.*)\n/, '\n$2,\n$1\n'), 'is not in order'],
    ['a wrong name', (out) => change(out, 'names/0.json', '"OLD":0', '"OLD":1'), 'runes/v1/lists/names/0.json'],
    ['a missing file', (out) => rmSync(join(out, 'runes/v1/lists/names/0.json')), 'runes/v1/lists/names/0.json'],
    [
      'a file too many',
      (out) => writeFileSync(join(out, 'runes/v1/lists/etchings/1.json'), '{}'),
      'lists/etchings/1.json is not part of this build',
    ],
  ])('finds %s', async (_, damage, finding) => {
    const { out } = await mirrorOf({ 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) });
    damage(out);
    const error = await check(out).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(VerificationError);
    expect((error as VerificationError).details).toContainEqual(expect.stringContaining(finding));
  });

  it('a full build removes files that it does not need', async () => {
    const { out } = await mirrorOf({ 'ledger.csv': ledger(ROWS), 'runes.csv': runes(...BOTH) });
    writeFileSync(join(out, 'runes/v1/lists/etchings/7.json'), '{}');
    await testBuild(out, { inputs: [join(out, '../in')], full: true });
    expect(readdirSync(join(out, 'runes/v1/lists/etchings'))).toEqual(['0.json']);
    await check(out);
  });
});

function change(out: string, path: string, from: string | RegExp, to: string): void {
  const file = join(out, 'runes/v1/lists', path);
  const text = readFileSync(file, 'utf8');
  const changed = text.replace(from, to);
  expect(changed).not.toBe(text);
  writeFileSync(file, changed);
}

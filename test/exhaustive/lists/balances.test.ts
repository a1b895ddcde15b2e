/**
 * Tests balances and holders. Sends the recorded requests to the local server, which has a build of the same data in dialect hiro. Also
 * tests which input a build needs for balances.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoredArchive } from '../../../src/engine/archive/storedArchive.ts';
import { archivePath } from '../../../src/pages/filePaths.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { fileServer } from '../../support/archives.ts';
import { RecordingLog, temporaryFolder, testBuild, tree, writeFiles } from '../../support/build.ts';
import { Mirror } from '../../support/bundledClient.ts';
import { limitsWith } from '../../support/limits.ts';
import { ModelHistory } from '../../support/modelHistory.ts';
import { check } from '../../support/outputs.ts';
import { ETCHING_INPUTS, replay } from '../../support/recordedLists.ts';
import { hex } from '../../support/records.ts';
import { randomFor } from '../../support/seed.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

/** Number of recorded answers that each rule overrides (test/support/recordedLists.ts). If a number changes, the API has changed. */
const EXCEPTIONS: Readonly<Record<string, number>> = {
  'an address of more than 100 characters is malformed': 2,
  'an empty address is malformed': 2,
  'bech32 in upper case is found': 4,
  'each answer has its own ETag': 2,
  'equal balances have an order': 14,
  'errors have one shape': 13,
  'malformed percent-encoding is a malformed address': 1,
  'names are compared without case and spacers': 1,
  'numbers are decimal digits up to 2^53 - 1': 5,
  'the recorded server failed': 8,
  'total is the number of entries': 92,
  'what was burned is not held': 48,
  'zero balances are left out of lists': 62,
};

describe('the recorded requests for balances and holders', () => {
  const out = join(temporaryFolder(), 'out');
  let host: LocalHost | undefined;

  beforeAll(async () => {
    await testBuild(out, { inputs: ETCHING_INPUTS, dialect: 'hiro', layout: 'archive', lists: true });
    host = await startServer(out);
  });
  afterAll(async () => host?.close());

  it('are answered as recorded, or as a rule says', async () => {
    expect(await replay('balances', () => host)).toEqual({ requests: 218, wrong: [], counts: EXCEPTIONS });
  });

  it('are answered by the client module from the files alone', async () => {
    const base = `http://127.0.0.1:${host?.port}`;
    const mirror = new Mirror(base);
    const { results } = await mirror.holders('v', { limit: 2 });
    const [first] = results;
    expect(results.length).toBe(2);
    expect(await mirror.holder(3, first?.address ?? '')).toEqual(first);
    expect(await mirror.holder(3, 'nobody')).toBeUndefined();
    const { results: balances, total } = await mirror.balances(first?.address ?? '', { limit: 60 });
    expect(total).toBe(balances.length);
    expect(balances).toContainEqual({
      ...first,
      rune: { id: '840000:16', number: 3, name: 'V', spaced_name: 'V' },
    });
    await expect(mirror.balances('')).rejects.toMatchObject({ statusCode: 400 });
  });
});

const LEDGER = 'rune_id,block_hash,block_height,tx_index,event_index,tx_id,output,address,receiver_address,amount,operation,timestamp';
const RUNES =
  'id,number,name,spaced_name,block_hash,block_height,tx_index,tx_id,divisibility,premine,symbol,terms_amount,terms_cap,terms_height_start,terms_height_end,terms_offset_start,terms_offset_end,turbo,cenotaph,timestamp';
const rune = (number: number, height: number, name: string) =>
  `${height}:1,${number},${name},${name},${hex(`b${height}`)},${height},1,${hex(`t${height}`)},1,70,$,5,9,,,,,f,f,${height}`;
const row = (id: string, height: number, tx: number, operation: string, address = '', amount = '') =>
  `${id},${hex(`b${height}`)},${height},${tx},0,${hex(`t${height} ${tx}`)},,${address},,${amount},${operation},${height}`;
const INPUT = {
  'ledger.csv': [
    LEDGER,
    row('100:1', 100, 1, 'etching'),
    row('100:1', 100, 2, 'receive', 'ann', '70'),
    row('100:1', 102, 1, 'send', 'ann', '30'),
    row('100:1', 102, 2, 'receive', 'bob', '30'),
    row('100:1', 102, 3, 'burn', 'bob', '35'),
    row('103:1', 102, 4, 'receive', 'cat', '9'),
    row('103:1', 103, 1, 'etching'),
    '',
  ].join('\n'),
  'runes.csv': [RUNES, rune(0, 100, 'OLD'), rune(1, 103, 'NEW'), ''].join('\n'),
};

describe('a mirror', () => {
  async function mirrorOf(files: Readonly<Record<string, string>>, options: object = {}) {
    const work = temporaryFolder();
    writeFiles(join(work, 'in'), files);
    const log = new RecordingLog();
    const out = join(work, 'out');
    const { manifest } = await testBuild(out, { inputs: [join(work, 'in')], layout: 'archive', lists: true, log, ...options });
    await check(out);
    const mirror = new FetchMirror(fileServer(out).fetchFile, 0);
    const get = async (path: string) => {
      const response = await mirror.answer(new Request(`http://host/runes/v1/${path}`));
      return [response?.status, await response?.json()];
    };
    return { manifest, log, get };
  }

  it('names runes with a balance below zero, and leaves them out', async () => {
    const { manifest, log, get } = await mirrorOf(INPUT);
    expect(manifest.lists?.balances).toEqual({ unbalanced: { runes: ['100:1'], more_runes: 0 } });
    expect(log.summaryRows.get('unbalanced')).toBe('1 rune with a balance below zero, which is left out: 100:1');
    const ann = { balance: '4.0', address: 'ann' };
    expect(await get('etchings/OLD/holders')).toEqual([200, { limit: 20, offset: 0, total: 1, results: [ann] }]);
    expect(await get('etchings/old/holders/bob')).toEqual([200, { balance: '0.0', address: 'bob' }]);
    expect(await get('addresses/bob/balances')).toEqual([200, { limit: 20, offset: 0, total: 0, results: [] }]);
  });

  it('counts no record below the etching, and no digits beyond the divisibility of the rune', async () => {
    const record = (amount: string, tx: number) => ({
      rune: { id: '100:1', number: 0, name: 'OLD', spaced_name: 'OLD' },
      address: 'dan',
      amount,
      operation: 'receive',
      location: { block_hash: hex('b105'), block_height: 105, tx_id: hex(`x${tx}`), tx_index: tx, timestamp: 105 },
    });
    const records = [record('1.55', 1), record('0002', 2), record(`1${'0'.repeat(38)}`, 3)]
      .map((one) => `${JSON.stringify(one)}\n`)
      .join('');
    const { get } = await mirrorOf({ ...INPUT, 'a.ndjson': records });
    expect((await get('addresses/dan/balances'))[1]).toMatchObject({ total: 1, results: [{ balance: '3.5' }] });
    expect((await get('addresses/cat/balances'))[1]).toMatchObject({ total: 0 });
    expect((await get('etchings/NEW/holders/cat'))[0]).toBe(404);
  });

  it.each<[string, object, string[], string]>([
    [
      'without older blocks',
      { blocks: { from: 102, to: 200 } },
      ['etchings', 'rune_activity', 'address_activity'],
      'etchings, activity by rune, activity by address',
    ],
    ['with --no-lists', { lists: false }, ['etchings'], 'etchings'],
    ['of layout files', { layout: 'files', lists: false }, ['etchings'], 'etchings'],
  ])('%s answers 501', async (_, options, lists, has) => {
    const { manifest, get } = await mirrorOf(INPUT, options);
    expect(Object.keys(manifest.lists ?? {})).toEqual(lists);
    const needs = 'layout archive or --lists, and all blocks since the first rune';
    const message = `this mirror does not have balances of addresses; it has: activity by transaction and block, ${has}. Builds have balances of addresses with ${needs}`;
    expect(await get('addresses/ann/balances')).toEqual([501, { statusCode: 501, error: 'Not Implemented', message }]);
    expect((await get('etchings/OLD/holders'))[0]).toBe(501);
    expect((await get('etchings/OLD/holders/ann'))[0]).toBe(501);
  });

  it('has the files of a full build after its newest level became one with ranks', async () => {
    const limits = limitsWith({ listPage: 1, listLevels: { steps: [16, 4, 2], unsettled: 3 } });
    const history = new ModelHistory(randomFor('a level that becomes ranked'), { kind: 'files', blocks: 12, first: 4078 });
    const work = temporaryFolder();
    const inputs = [join(work, 'in')];
    const built = async (name: string) => {
      history.write(join(work, 'in'));
      const { wasFull } = await testBuild(join(work, name), { inputs, layout: 'archive', lists: true, limits });
      return wasFull;
    };
    // Blocks 4,096 to 4,099 become the newest level of lists.
    history.appendTo(4099);
    expect(await built('out')).toBe(true);
    history.appendTo(4102);
    expect(await built('out')).toBe(false);
    await built('full');
    expect(tree(join(work, 'out'))).toEqual(tree(join(work, 'full')));
  });

  it('has the files of a full build when the newest level is written again, above a level without balances', async () => {
    const work = temporaryFolder();
    const options = {
      inputs: [join(work, 'in')],
      layout: 'archive',
      lists: true,
      limits: limitsWith({ listLevels: { steps: [16, 4, 2], unsettled: 3 } }),
    } as const;
    // The levels are 0 to 111, 112 to 119, 120 to 121, and 122 to the tip. Only the last block changes bob's balance of the second level.
    const rows = [row('100:1', 100, 1, 'etching'), row('100:1', 113, 1, 'receive', 'bob', '5')];
    for (let height = 118; height < 125; height += 1) rows.push(row('100:1', height, 1, 'receive', 'ann', '1'));
    const built = (name: string) => {
      writeFiles(join(work, 'in'), {
        'ledger.csv': [LEDGER, ...rows, ''].join('\n'),
        'runes.csv': [RUNES, rune(0, 100, 'OLD'), ''].join('\n'),
      });
      return testBuild(join(work, name), options);
    };
    expect((await built('out')).manifest.lists?.balances).toBeDefined();
    const steps = {
      'a new block': () => rows.push(row('100:1', 125, 1, 'receive', 'bob', '2'), row('100:1', 125, 2, 'receive', 'ann', '1')),
      'another amount below': () =>
        rows.splice(rows.indexOf(row('100:1', 120, 1, 'receive', 'ann', '1')), 1, row('100:1', 120, 1, 'receive', 'ann', '3')),
      'another amount in the newest level, whose documents are lost': () => {
        const { file } = StoredArchive.in(join(work, 'out')).root.lists!.balances!.addresses.at(-1)!.files[0]!;
        rmSync(join(work, 'out', archivePath(file)));
        rows.splice(rows.indexOf(row('100:1', 124, 1, 'receive', 'ann', '1')), 1, row('100:1', 124, 1, 'receive', 'ann', '4'));
      },
    };
    for (const [name, change] of Object.entries(steps)) {
      change();
      expect((await built('out')).wasFull).toBe(false);
      await built(name);
      expect(tree(join(work, 'out')), name).toEqual(tree(join(work, name)));
    }
    await check(join(work, 'out'));
  });
});

/** Tests requests for all parts of the API except records: their paths and rules, and the answers of a mirror without a part. */

import { describe, expect, it } from 'vitest';
import type { Archive } from '../../src/format/archiveReader.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { parsePath, parseTarget } from '../../src/pages/parseRequest.ts';
import { respond } from '../../src/pages/respond.ts';
import { NO_ARCHIVE, noTransactions } from '../support/archives.ts';
import { BARE } from '../support/endpointTable.ts';
import { words } from '../support/records.ts';

const PARTS = ['etchings', 'rune_activity', 'address_activity', 'holders', 'balances', 'outputs'];
/** A mirror that has every part of the API. */
const FULL: BuiltSite = { ...BARE, lists: Object.fromEntries(PARTS.map((part) => [part, {}])) };
const TX = 'ab'.repeat(32);
const LIST = { limit: 20, offset: 0 };
const RUNE = 'params/etching must match pattern "^[0-9]+:[0-9]+$", params/etching must match pattern "^[0-9]+$", ';

describe('a path of such a part', () => {
  it.each<[string, object]>([
    ['etchings', { part: 'etchings', window: LIST }],
    ['etchings?limit=5&offset=7', { part: 'etchings', window: { limit: 5, offset: 7 } }],
    ['etchings/840000:1', { part: 'etchings', rune: '840000:1' }],
    ['etchings/840000%3A1?limit=abc&offset=-1', { part: 'etchings', rune: '840000:1' }],
    ['etchings/0840000:01', { part: 'etchings', rune: '0840000:01' }],
    ['etchings/840000:1;x', { part: 'etchings', rune: '840000:1' }],
    ['etchings/840000:1#/x', { part: 'etchings', rune: '840000:1' }],
    ['etchings/0014', { part: 'etchings', rune: '14' }],
    ['etchings/00', { part: 'etchings', rune: '0' }],
    ['etchings/99999999999999999999999999', { part: 'etchings', rune: '99999999999999999999999999' }],
    ['etchings/UNCOMMONGOODS', { part: 'etchings', rune: 'UNCOMMONGOODS' }],
    ['etchings/Uncommon%E2%80%A2goods', { part: 'etchings', rune: 'UNCOMMONGOODS' }],
    ['etchings/uncommon.go.ods', { part: 'etchings', rune: 'UNCOMMONGOODS' }],
    ['etchings/uncommon•goods', { part: 'etchings', rune: 'UNCOMMONGOODS' }],
    ['etchings/%55NCOMMON', { part: 'etchings', rune: 'UNCOMMON' }],
    [`etchings/${'A'.repeat(101)}`, { part: 'etchings', rune: 'A'.repeat(101) }],
    ['etchings/5/activity', { part: 'rune_activity', rune: '5', window: LIST }],
    ['etchings/5/activity/1Abc?limit=1', { part: 'rune_activity', rune: '5', address: '1Abc', window: { limit: 1, offset: 0 } }],
    ['etchings/5/holders', { part: 'holders', rune: '5', window: LIST }],
    ['etchings/5/holders/x?limit=0', { part: 'holders', rune: '5', address: 'x' }],
    ['addresses/x/balances', { part: 'balances', address: 'x', window: LIST }],
    ['addresses/x/activity', { part: 'address_activity', address: 'x', window: LIST }],
    ['addresses/x/outputs', { part: 'outputs', address: 'x', window: LIST }],
    ['addresses/BC1PABC/balances', { part: 'balances', address: 'bc1pabc', window: LIST }],
    ['addresses/TB1Q/balances', { part: 'balances', address: 'tb1q', window: LIST }],
    ['addresses/BCRT1Q/balances', { part: 'balances', address: 'bcrt1q', window: LIST }],
    ['addresses/BC1pABC/balances', { part: 'balances', address: 'BC1pABC', window: LIST }],
    ['addresses/a%2Fb%20%00/balances', { part: 'balances', address: 'a/b \0', window: LIST }],
    [`addresses/${'x'.repeat(100)}/balances`, { part: 'balances', address: 'x'.repeat(100), window: LIST }],
    [`outputs/${TX}:0?limit=x`, { part: 'outputs', output: `${TX}:0` }],
    [`outputs/0x${TX.toUpperCase()}:007`, { part: 'outputs', output: `${TX}:7` }],
  ])('%s is valid', (path, request) => {
    const { window, ...rest } = { window: undefined, ...request };
    for (const root of ['/runes/v1/', '/runes/']) expect(parseTarget(`${root}${path}`, FULL)).toEqual({ kind: 'further', ...rest, window });
  });

  it.each([
    ['etchings/', RUNE],
    ['etchings//activity', RUNE],
    ['etchings/840000:', RUNE],
    ['etchings/:1', RUNE],
    ['etchings/840000:1:2', RUNE],
    ['etchings/%20840000:6', RUNE],
    ['etchings/840000:6%0A', RUNE],
    ['etchings/A1', RUNE],
    ['etchings/%E2%80%A2GOODS', RUNE],
    ['etchings/GOODS.', RUNE],
    ['etchings/UN%E2%80%A2%E2%80%A2GOODS', RUNE],
    ['etchings/UNCOMMON-GOODS', RUNE],
    ['etchings/%C3%89TOILE', RUNE],
    ['etchings/%E2%80', RUNE],
    ['etchings/%ZZ', RUNE],
    ['etchings/-/activity?offset=-1', RUNE],
    ['etchings/-/holders/?limit=0', RUNE],
    ['etchings/5/activity/', 'params/address must NOT have fewer than 1 characters'],
    ['etchings/5/holders/', 'params/address must NOT have fewer than 1 characters'],
    ['addresses//balances?offset=x', 'params/address must NOT have fewer than 1 characters'],
    [`addresses/${'x'.repeat(101)}/activity`, 'params/address must NOT have more than 100 characters'],
    ['addresses/%FF/balances', 'params/address must be valid percent-encoding'],
    [`outputs/${TX}`, 'params/output must match pattern'],
    [`outputs/${TX}:`, 'params/output must match pattern'],
    ['outputs/ab:1', 'params/output must match pattern'],
    ['etchings?limit=61', 'querystring/limit must be <= 60'],
    ['etchings?limit=0&offset=-1', 'querystring/offset must be >= 0'],
    ['addresses/x/outputs?limit=1&limit=1', 'querystring/limit must be integer'],
  ])('%s breaks a rule', (path, rule) => {
    expect(parseTarget(`/runes/v1/${path}`, FULL)).toMatchObject({ kind: 'refusal', message: expect.stringContaining(rule) });
  });

  it.each(
    words(`
      etching Etchings etchings/5/holder etchings/5/Activity etchings/5/activity/x/ etchings/5/holders/x/y addresses addresses/x
      addresses/x/ addresses/x/balances/ addresses/x/holders outputs outputs/x/y /etchings
    `),
  )('%s is not recognised', (path) => {
    expect(parsePath(`/runes/v1/${path}`).kind).toBe('unknown');
    expect(parseTarget(`/runes/v1/${path}`, FULL).kind).toBe('unknown');
  });
});

describe('a mirror that has every part', () => {
  it('has no data for an address that is not valid Unicode', async () => {
    const lists = { tip: 5, page: 2, names: [], balances: {}, outputs: { tipHash: TX } };
    const archive = { root: { lists } } as unknown as Archive;
    for (const part of ['balances', 'outputs'] as const) {
      const body = await answerFromLists({ kind: 'further', part, address: '\ud800', window: LIST }, 'hiro', archive, noTransactions);
      expect(JSON.parse(String(body))).toMatchObject({ ...LIST, total: 0, results: [] });
    }
  });
});

describe('a mirror that lacks a part', () => {
  const files = { open: () => Promise.reject(new Error('a file was opened')), ...NO_ARCHIVE };

  it.each([
    ['etchings', 'etchings', 'a complete runes table in their input'],
    ['etchings/-?limit=0', 'etchings', 'a complete runes table in their input'],
    ['etchings/5/activity/', 'activity by rune', 'layout archive or --lists'],
    ['etchings/5/holders/x', 'holders of runes', 'layout archive or --lists, and all blocks since the first rune'],
    ['addresses//activity', 'activity by address', 'layout archive or --lists'],
    ['addresses/x/balances?offset=-1', 'balances of addresses', 'layout archive or --lists, and all blocks since the first rune'],
    ['outputs/x', 'unspent outputs', 'layout archive or --lists, and all blocks since the first rune, read from a node'],
  ])('answers %s with 501 and the missing flag, whatever is wrong with the request', async (path, what, needs) => {
    const message = `this mirror does not have ${what}; it has: activity by transaction and block. Builds have ${what} with ${needs}`;
    expect(await respond(`/runes/v1/${path}`, BARE, files, answerFromLists)).toEqual({ kind: 'refusal', status: 501, message });
  });

  it('names the parts that it has', async () => {
    const some: BuiltSite = { ...BARE, lists: { balances: {}, etchings: { total: 3 } } };
    const message = 'it has: activity by transaction and block, etchings, balances of addresses. Builds have unspent outputs with ';
    const answer = { kind: 'refusal', status: 501, message: expect.stringContaining(message) };
    expect(await respond('/runes/v1/addresses/x/outputs', some, files, answerFromLists)).toEqual(answer);
  });

  it.each(['etchings', 'etchings/5', 'etchings/5:0/activity', 'etchings/5/holders', 'addresses/x/balances', 'addresses/x/outputs'])(
    'and whose manifest claims to have it: %s is a damaged archive',
    async (path) => {
      const request = parseTarget(`/runes/v1/${path}`, FULL);
      if (request.kind !== 'further') throw new Error('it is a request for a part');
      const archive = { root: {} } as Archive;
      await expect(answerFromLists(request, 'hiro', archive, noTransactions)).rejects.toThrow(/^the root of the archive has no /);
    },
  );

  it('also answers 501 if a newer program built the part in a form that this version cannot read', async () => {
    expect(await respond('/runes/v1/addresses/x/outputs', FULL, files, answerFromLists)).toMatchObject({ kind: 'refusal', status: 501 });
  });
});

/**
 * Sends the recorded requests for activity by rune and by address to the local server, which has builds of the same data in dialect `hiro`.
 * The answers must equal the recorded ones, except where a rule overrides them.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { FetchMirror } from '../../../src/serve/fetchHost.ts';
import { CONFORMANCE_INPUTS, failedBuild, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { Mirror } from '../../support/bundledClient.ts';
import { ETCHING_INPUTS, replay } from '../../support/recordedLists.ts';
import { ndjson, record } from '../../support/records.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

const INPUTS = { own: ETCHING_INPUTS, parent: CONFORMANCE_INPUTS };
/** Number of recorded answers that each rule overrides (test/support/recordedLists.ts). If a number changes, the API has changed. */
const EXCEPTIONS: Readonly<Record<string, number>> = {
  'a long name is unknown': 1,
  'an empty address is malformed': 2,
  'an offset is at most 2^53 - 1': 5,
  'bech32 in upper case is the same address': 2,
  'each answer has its own ETag': 3,
  'errors have one shape': 12,
  'malformed percent-encoding is a malformed address': 2,
  'names are compared without case and spacers': 5,
  'numbers are decimal digits': 3,
  'numbers beyond any rune, and zero bytes, are unknown': 3,
  'the total is true past the end': 18,
  'the total of an address is its number of records': 40,
};

describe.each(LAYOUTS)('activity by rune and by address, layout %s', (layout) => {
  const hosts = new Map<string, LocalHost>();

  beforeAll(async () => {
    const work = temporaryFolder();
    for (const [name, inputs] of Object.entries(INPUTS)) {
      await testBuild(join(work, name), { inputs, dialect: 'hiro', layout, lists: true });
      hosts.set(name, await startServer(join(work, name)));
    }
  });
  afterAll(async () => {
    for (const host of hosts.values()) await host.close();
  });

  it('is as recorded, or as a rule says', async () => {
    const answers = await replay('activity', (data) => hosts.get(data ?? ''));
    expect(answers).toEqual({ requests: 250, wrong: [], counts: EXCEPTIONS });
  });

  it('needs a rune id that is height:index, unlike a build without lists', async () => {
    const work = temporaryFolder();
    const row = record(840000, 0);
    const options = { inputs: [join(work, 'in')], layout };
    for (const id of ['840000', '0840000:1', '16777216:1', '840000:4294967296', 'x:y', '840000:1:1']) {
      writeFiles(join(work, 'in'), { 'a.ndjson': ndjson([{ ...row, rune: { ...row.rune, id } }]) });
      const error = await failedBuild(join(work, 'out'), { ...options, lists: true });
      expect([error.message, error.details]).toEqual([
        `the rune id "${id}" is not height:index, such as 840000:3; lists by rune need this form`,
        [`Correct the input, or build ${layout === 'archive' ? 'with --no-lists' : 'without --lists'}.`],
      ]);
      expect(existsSync(join(work, 'out'))).toBe(false);
    }
    await testBuild(join(work, 'out'), options);
  });

  it('says in a header which block is the last that a list takes into account, and 304 says so, too', async () => {
    const url = `http://127.0.0.1:${hosts.get('own')?.port}`;
    const code = new FetchMirror((path) => fetch(`${url}/${path}`), 0);
    const hostsOf = {
      server: (target: string, headers: Record<string, string>) => fetch(`${url}${target}`, { headers }),
      code: async (target: string, headers: Record<string, string>) => code.answer(new Request(`${url}${target}`, { headers })),
    };
    const tip = (await new Mirror(url).manifest()).tip?.height;
    for (const [host, ask] of Object.entries(hostsOf))
      for (const [path, expected] of [
        ['etchings?limit=1', String(tip)],
        ['etchings/1/activity', String(tip)],
        ['addresses/x/activity', String(tip)],
        ['blocks/840000/activity', null],
        ['etchings/x:y', null],
      ] as const) {
        const first = await ask(`/runes/v1/${path}`, {});
        const again = await ask(`/runes/v1/${path}`, { 'if-none-match': first?.headers.get('etag') ?? 'none' });
        expect([host, path, first?.headers.get('x-block-height')]).toEqual([host, path, expected]);
        expect([path, again?.headers.get('x-block-height'), again?.headers.get('access-control-expose-headers')]).toEqual([
          ...[path, expected, expected === null ? 'etag' : 'etag, x-block-height'],
        ]);
      }
  });

  it('is answered by the client module from the files alone', async () => {
    const mirror = new Mirror(`http://127.0.0.1:${hosts.get('own')?.port}`);
    const address = 'bc1puhscltmvhv6c8qfdfgqx8gjrr3qeshngc2yxkr2sv5wepn8x75nqefemv0';
    const served = async (path: string) => JSON.parse((await hosts.get('own')?.send('GET', `/runes/v1/${path}`))?.body ?? '') as unknown;
    const window = { limit: 60, offset: 33 };
    expect(await mirror.runeActivity(1, window)).toEqual(await served('etchings/1/activity?limit=60&offset=33'));
    expect(await mirror.runeActivity('iyacrq•iukfatvu')).toEqual(await served('etchings/IYACRQIUKFATVU/activity'));
    expect(await mirror.runeActivity('840000:6', { address, limit: 3 })).toEqual(
      await served(`etchings/840000:6/activity/${address}?limit=3`),
    );
    expect(await mirror.addressActivity(address.toUpperCase(), window)).toEqual(
      await served(`addresses/${address}/activity?limit=60&offset=33`),
    );
    expect(await mirror.addressActivity('a/b?c')).toEqual({ limit: 20, offset: 0, total: 0, results: [] });
    await expect(mirror.addressActivity('')).rejects.toMatchObject({ statusCode: 400 });
    expect((await mirror.manifest()).lists).toMatchObject({ rune_activity: {}, address_activity: {} });
  });
});

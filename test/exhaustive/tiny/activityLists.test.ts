/**
 * Sends the recorded requests for activity by rune and by address to the local server, which has builds of the same
 * data in dialect `hiro`. The answers must equal the recorded ones, except where a rule overrides them.
 */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../../src/pages/mirrorOptions.ts';
import { ActivityOracle, type Asked } from '../../support/activityOracle.ts';
import { ACTIVITY_INPUTS, expectedActivity, readActivityVectors } from '../../support/activityVectors.ts';
import { CONFORMANCE_INPUTS, failedBuild, temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { Mirror } from '../../support/bundledClient.ts';
import { limitsWith, TEST_LIMITS } from '../../support/limits.ts';
import { ndjson, record } from '../../support/records.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

const INPUTS = { own: ACTIVITY_INPUTS, parent: CONFORMANCE_INPUTS };
/**
 * Number of recorded answers that each rule overrides (test/support/activityVectors.ts). If a number changes, the API
 * has changed.
 */
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

const textOf = (file: string | undefined) => {
  const content = readFileSync(file ?? '');
  return (file?.endsWith('.gz') === true ? gunzipSync(content) : content).toString();
};

describe.each(LAYOUTS)('activity by rune and by address, layout %s', (layout) => {
  const hosts = new Map<string, LocalHost>();
  const oracles = new Map<string, ActivityOracle>();

  beforeAll(async () => {
    const work = temporaryFolder();
    const limits = limitsWith({ ...TEST_LIMITS, sortedAtOnce: Math.min(TEST_LIMITS.sortedAtOnce, 500) });
    for (const [name, inputs] of Object.entries(INPUTS)) {
      await testBuild(join(work, name), { inputs, dialect: 'hiro', layout, lists: true, limits });
      hosts.set(name, await startServer(join(work, name)));
      const [ledger, runes] = inputs;
      oracles.set(name, ActivityOracle.of(textOf(ledger), textOf(runes)));
    }
  });
  afterAll(async () => {
    for (const host of hosts.values()) await host.close();
  });

  it('is as recorded, or as a rule says', async () => {
    const vectors = readActivityVectors();
    expect(vectors).toHaveLength(250);
    const counts = new Map<string, number>();
    const wrong: string[] = [];
    for (const vector of vectors) {
      const { method, path, request_headers, line, data } = vector;
      const { rules, status, body } = expectedActivity(vector, oracles.get(data));
      for (const rule of rules) counts.set(rule, (counts.get(rule) ?? 0) + 1);
      const answer = await hosts.get(data)?.send(method, Buffer.from(path).toString('latin1'), request_headers);
      if (answer?.status !== status || (body !== undefined && answer.body !== body)) {
        wrong.push(`${line} ${path}: ${answer?.status} ${answer?.body.slice(0, 200)}, not ${status} ${body?.slice(0, 200)}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(Object.fromEntries(counts)).toEqual(EXCEPTIONS);
  });

  it.each(['840000', '0840000:1', '16777216:1', '840000:4294967296', 'x:y', '840000:1:1'])('needs another rune id than %s', async (id) => {
    const work = temporaryFolder();
    const row = record(840000, 0);
    writeFiles(join(work, 'in'), { 'a.ndjson': ndjson([{ ...row, rune: { ...row.rune, id } }]) });
    const options = { inputs: [join(work, 'in')], layout };
    const error = await failedBuild(join(work, 'out'), { ...options, lists: true });
    expect([error.message, error.details]).toEqual([
      `the rune id "${id}" is not height:index, such as 840000:3; lists by rune need this form`,
      [`Correct the input, or build ${layout === 'archive' ? 'with --no-lists' : 'without --lists'}.`],
    ]);
    expect(existsSync(join(work, 'out'))).toBe(false);
    await testBuild(join(work, 'out'), options);
  });

  it('is answered by the client module from the files alone', async () => {
    const mirror = new Mirror(`http://127.0.0.1:${hosts.get('own')?.port}`);
    const address = 'bc1puhscltmvhv6c8qfdfgqx8gjrr3qeshngc2yxkr2sv5wepn8x75nqefemv0';
    const expected = (asked: Asked) => JSON.parse(oracles.get('own')?.answer(asked) ?? '') as unknown;
    const window = { limit: 60, offset: 33 };
    expect(await mirror.runeActivity(1, window)).toEqual(expected({ rune: '1', ...window }));
    expect(await mirror.runeActivity('iyacrq•iukfatvu')).toEqual(expected({ rune: 'IYACRQIUKFATVU', limit: 20, offset: 0 }));
    expect(await mirror.runeActivity('840000:6', { address, limit: 3 })).toEqual(
      expected({ rune: '840000:6', address, limit: 3, offset: 0 }),
    );
    expect(await mirror.addressActivity(address.toUpperCase(), window)).toEqual(expected({ address, ...window }));
    expect(await mirror.addressActivity('a/b?c')).toEqual({ limit: 20, offset: 0, total: 0, results: [] });
    await expect(mirror.addressActivity('')).rejects.toMatchObject({ statusCode: 400 });
    expect((await mirror.manifest()).lists).toMatchObject({ rune_activity: {}, address_activity: {} });
  });
});

/**
 * Sends the recorded requests for etchings to the local server, which has builds of the same data in dialect `hiro`. The answers must equal
 * the recorded ones, except where a rule overrides them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answerSchemas } from '../../src/contract/answerSchemas.ts';
import { FORMAT } from '../../src/engine/state/state.ts';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { Mirror } from '../support/bundledClient.ts';
import { ROOT } from '../support/cli.ts';
import { recordedOutput } from '../support/recorded.ts';
import { ETCHING_INPUTS, replay } from '../support/recordedLists.ts';
import { type LocalHost, startServer } from '../support/server.ts';

/** Number of recorded answers that each rule overrides (test/support/recordedLists.ts). If a number changes, the API has changed. */
const EXCEPTIONS: Readonly<Record<string, number>> = {
  '1:0 is turbo, and its transaction id is zeros': 15,
  'Node refuses bytes beyond ASCII in a path': 6,
  'a long name is unknown': 1,
  'each answer has its own ETag': 3,
  'errors have one shape': 5,
  'if-none-match * matches': 1,
  'malformed percent-encoding is a malformed rune': 2,
  'mintable is about the next block, and needs a cap': 34,
  'names are compared without case and spacers': 8,
  'numbers are decimal digits': 2,
  'numbers beyond any rune are unknown': 3,
  'other methods get 405': 4,
  'total is the number of etchings': 45,
  'what was burned is not in current': 45,
};

/**
 * SHA-256 of the stored list of etchings, by the constant FORMAT of the state. If the hash changes, old states are no longer valid: raise
 * FORMAT, then update this line.
 */
const ETCHINGS_OF_FORMAT = { 21: '04201d3bd4bc9be2dae6f4a95202245bcc97f1fa5df201e6761d32687652e4f2' };

/** Returns the names of the fields of an object and of its nested objects. */
const fieldsOf = ({ shape }: z.ZodObject): string[] =>
  Object.entries(shape).flatMap(([name, value]) => [name, ...(value instanceof z.ZodObject ? fieldsOf(value) : [])]);

it('test/rehearsal/expected.ts has each field of an etching', () => {
  const text = readFileSync(join(ROOT, 'test/rehearsal/expected.ts'), 'utf8');
  expect(fieldsOf(answerSchemas('hiro').Etching).filter((name) => !new RegExp(`\\b${name}"?:`).test(text))).toEqual([]);
});

describe.each(LAYOUTS)('the recorded requests for etchings, layout %s,', (layout) => {
  const hosts = new Map<string, LocalHost>();

  beforeAll(async () => {
    const own = join(temporaryFolder(), 'own');
    await testBuild(own, { inputs: ETCHING_INPUTS, dialect: 'hiro', layout });
    hosts.set('own', await startServer(own));
    hosts.set('parent', await startServer(await recordedOutput(layout, 'hiro')));
  });
  afterAll(async () => {
    for (const host of hosts.values()) await host.close();
  });

  it('are answered as recorded, or as a rule says', async () => {
    const answers = await replay('etchings', (data) => hosts.get(data ?? ''));
    expect(answers).toEqual({ requests: 234, wrong: [], counts: EXCEPTIONS });
  });

  const listed = async () => (await hosts.get('own')?.send('GET', '/runes/v1/etchings?limit=60'))?.body ?? '';

  it('have each field of their schema', async () => {
    const body = await listed();
    expect(fieldsOf(answerSchemas('hiro').Etching).filter((name) => !body.includes(`"${name}":`))).toEqual([]);
  });

  it('change only with a new FORMAT of the state, because an incremental build keeps older etchings', async () => {
    const body = await listed();
    expect({ [FORMAT]: createHash('sha256').update(body).digest('hex') }).toEqual(ETCHINGS_OF_FORMAT);
  });

  it('are answered by the client module from the files alone', async () => {
    const mirror = new Mirror(`http://127.0.0.1:${hosts.get('own')?.port}`);
    for (const query of [{}, { limit: 60, offset: 3 }, { limit: 5, offset: 99 }]) {
      const { results, ...page } = await mirror.etchings(query);
      const answer = await hosts.get('own')?.send('GET', `/runes/v1/etchings?${new URLSearchParams(JSON.parse(JSON.stringify(query)))}`);
      // Terms above 2^53 are strings with all digits.
      const exact = answer?.body.replace(/:([0-9]{17,})/g, ':"$1"');
      if (query.limit === 60) expect(exact).not.toBe(answer?.body);
      expect(JSON.stringify({ ...page, results })).toBe(exact);
    }
    expect(await mirror.etching(14)).toMatchObject({ id: '840002:3', supply: { premine: '0.0099' } });
    expect(await mirror.etching('uncommon•goods')).toMatchObject({ id: '1:0', turbo: true });
    expect(await mirror.etching('840010:5')).toBeUndefined();
    await expect(mirror.etching('A-B')).rejects.toMatchObject({ statusCode: 400 });
    await expect(mirror.etchings({ limit: 61 })).rejects.toMatchObject({ statusCode: 400, message: 'querystring/limit must be <= 60' });
    expect(await mirror.get('/runes/v1/etchings/40')).toEqual({ status: 404, body: '{"error":"Not found"}' });
    expect(await mirror.get('/runes/v1/addresses/x/balances')).toMatchObject({ status: 501 });
  });
});

/**
 * Sends the recorded requests to the local server, which has builds of the same data in dialect `hiro` and in each layout. The answers must
 * equal the recorded ones, except where a rule overrides them.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { recordedOutput } from '../support/recorded.ts';
import { readVectors, replay } from '../support/recordedLists.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const vectors = readVectors();
/** The ETag that all recorded answers have. A mirror has a different ETag for each answer. */
const RECORDED_ETAG = '00000000000000060d55383e4e7f8eac0aacb091339172792f4e557c98c91973';
/** Number of recorded answers that each rule overrides (test/support/recordedLists.ts). If a number changes, the API has changed. */
const EXCEPTIONS: Readonly<Record<string, number>> = {
  'OPTIONS is always a preflight: 204': 4,
  'other methods on an API path: 405 with Allow': 9,
  'the landing page is at /': 1,
  'numbers other than plain decimal digits up to 2^53 - 1: 400': 26,
  'one ETag for each answer, so the recorded one does not match': 11,
  'if-none-match * matches: 304': 1,
  'the status names this server': 5,
  'ids with 0x or upper case are found': 4,
  'any hash, with or without leading zeros: 200, empty when unknown': 3,
  'over-long ids: a height that does not exist, or no tx_id': 2,
  'an offset at or past the end: the true total': 77,
  'the shape of 404 bodies': 36,
};

describe.each(LAYOUTS)('the 720 recorded requests, layout %s', (layout) => {
  let host: LocalHost;
  beforeAll(async () => {
    host = await startServer(await recordedOutput(layout, 'hiro'));
  });
  afterAll(() => host.close());

  it('are answered as recorded, or as a rule says', async () => {
    expect(await replay('conformance', () => host)).toEqual({ requests: 720, wrong: [], counts: EXCEPTIONS });
  });

  it('with If-None-Match get a 304 with the ETag of the answer', async () => {
    const recorded = vectors.filter((v) => v.status === 304 && (v.request_headers?.['If-None-Match'] ?? '').includes(RECORDED_ETAG));
    for (const { path, method, request_headers } of recorded.filter((v) => !v.path.includes('99999999999999999999'))) {
      const { headers } = await host.send('GET', path);
      const etag = String(headers['etag']).replaceAll('"', '');
      const again = await host.send(method, path, {
        'If-None-Match': String(request_headers?.['If-None-Match']).replace(RECORDED_ETAG, etag),
      });
      expect([path, again.status, again.body]).toEqual([path, 304, '']);
    }
  });

  it('have the recorded headers that clients rely on', async () => {
    for (const vector of vectors.filter((v) => v.group === 'basic' || v.group === 'limit-value')) {
      const answer = await host.send(vector.method, vector.path);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'access-control-allow-origin': '*',
      });
      if (answer.status === 200) expect(answer.headers['cache-control']).toBe('public, no-cache, must-revalidate');
    }
  });
});

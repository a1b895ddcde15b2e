/** Tests pipelined requests. The server answers them completely and in order, and limits their number. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { openSocket, untilClosed } from '../support/raw.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const BLOCK = '/runes/v1/blocks/2000007/activity';
const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;

describe('requests in one packet', () => {
  let host: LocalHost;
  beforeAll(async () => {
    const dist = join(temporaryFolder(), 'dist');
    await testBuild(dist, { inputs: [SAMPLE_INPUT] });
    host = await startServer(dist);
  });
  afterAll(() => host.close());

  it('are answered in order, and the last request closes the connection', async () => {
    const offsets = Array.from({ length: 300 }, (_, i) => i);
    const packet = offsets.map((offset) => get(`${BLOCK}?limit=1&offset=${offset}`, offset === 299 ? 'connection: close\r\n' : ''));
    const text = await untilClosed(openSocket(host.port, packet.join('')));
    expect([...text.matchAll(/"limit":1,"offset":([0-9]+),/g)].map(([, offset]) => Number(offset))).toEqual(offsets);
  });

  it('do not block other connections, and number at most a thousand', async () => {
    const flood = get(`${BLOCK}?limit=60&offset=1`).repeat(1500);
    const sockets = Array.from({ length: 20 }, () => openSocket(host.port, flood));
    const closed = sockets.map((socket) => untilClosed(socket));
    expect((await host.send('GET', '/runes/v1/')).status).toBe(200);
    for (const answers of await Promise.all(closed)) {
      const count = answers.split('HTTP/1.1 200 OK').length - 1;
      expect(count).toBeLessThan(1500);
    }
  });
});

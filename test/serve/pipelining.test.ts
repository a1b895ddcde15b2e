/** Tests pipelined requests. The server answers them completely and in order, and limits their number. */
import { once } from 'node:events';
import { readdirSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attempt } from '../../src/attempt.ts';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { openSocket, untilClosed } from '../support/raw.ts';
import { type LocalHost, startServer } from '../support/server.ts';

const BLOCK = '/runes/v1/blocks/2000007/activity';
/** Bytes of a file that neither the server nor the system can keep for a client that does not read. */
const LARGE = 20 * 1024 * 1024;
const get = (target: string, more = '') => `GET ${target} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;

describe('requests in one packet', () => {
  let host: LocalHost;
  const dist = join(temporaryFolder(), 'dist');
  beforeAll(async () => {
    await testBuild(dist, { inputs: [SAMPLE_INPUT] });
    writeFileSync(join(dist, 'explorer.js'), Buffer.alloc(LARGE));
    host = await startServer(dist);
  });
  afterAll(() => host.close());

  it('are answered in order, and the last request closes the connection', async () => {
    const offsets = Array.from({ length: 100 }, (_, i) => i);
    const packet = offsets.map((offset) => get(`${BLOCK}?limit=1&offset=${offset}`, offset === 99 ? 'connection: close\r\n' : ''));
    const text = await untilClosed(openSocket(host.port, packet.join('')));
    expect([...text.matchAll(/"limit":1,"offset":([0-9]+),/g)].map(([, offset]) => Number(offset))).toEqual(offsets);
  });

  it('do not block other connections, and number at most a hundred', async () => {
    const flood = get(`${BLOCK}?limit=60&offset=1`).repeat(500);
    const sockets = Array.from({ length: 20 }, () => openSocket(host.port, flood));
    const closed = sockets.map((socket) => untilClosed(socket));
    expect((await host.send('GET', '/runes/v1/')).status).toBe(200);
    for (const answers of await Promise.all(closed)) {
      const count = answers.split('HTTP/1.1 200 OK').length - 1;
      expect(count).toBeLessThan(500);
    }
  });

  it.each([
    ['without a host', get('/runes/v1/').replace('host: a\r\n', ''), get('/explorer.js')],
    ['of HTTP/1.0', 'OPTIONS /x HTTP/1.0\r\nconnection: keep-alive\r\n\r\n', get('/explorer.js').replace('1.1', '1.0')],
  ])('after one %s that ends the connection open no file', async (_, first, next) => {
    await Promise.all(Array.from({ length: 5 }, () => untilClosed(openSocket(host.port, first + next))));
    const opened = readdirSync('/proc/self/fd').map((file) => attempt(() => readlinkSync(`/proc/self/fd/${file}`)));
    expect(opened.filter((path) => path?.endsWith('/explorer.js'))).toEqual([]);
  });

  it('get no error inside an answer when the last of them is no HTTP', async () => {
    const socket = openSocket(host.port, get('/explorer.js') + get('/runes/v1/'));
    await once(socket, 'readable');
    socket.pause();
    await new Promise((resolve) => socket.write('nonsense\r\n\r\n', resolve));
    for (let i = 0; i < 3; i += 1) await host.send('GET', '/runes/v1/');
    expect(await untilClosed(socket.resume())).not.toContain('HTTP/1.1 400');
  });

  it('get no answer as the rest of a file that was shortened while it was sent', async () => {
    const file = join(dist, 'details.js');
    writeFileSync(file, Buffer.alloc(LARGE));
    const socket = openSocket(host.port, get('/details.js') + get('/runes/v1/', 'connection: close\r\n'));
    await once(socket, 'readable');
    truncateSync(file, LARGE / 2);
    expect(await untilClosed(socket)).not.toContain('server_version');
  });
});

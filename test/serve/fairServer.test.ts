/**
 * Tests that long requests do not block other requests. Also tests that the server stops reading files for clients that have disconnected.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { crossings, READER_LIMITS } from '../../src/limits.ts';
import { BuiltFiles } from '../../src/serve/local/builtFiles.ts';
import { CLIENT_LIMITS } from '../../src/serve/local/clientLimits.ts';
import { createMirrorServer } from '../../src/serve/local/server.ts';
import { temporaryFolder, testBuild, writeFiles } from '../support/build.ts';
import { openSocket } from '../support/raw.ts';
import { hex, ndjson, record } from '../support/records.ts';
import { type LocalHost, listening } from '../support/server.ts';

const [BLOCKS, TRANSACTIONS] = [10, 40];
const PAGES = BLOCKS * TRANSACTIONS;
const END = '0123456789ab';
const idOf = (text: string) => hex(text).slice(0, -END.length) + END;
/**
 * Returns a request for an unknown id. All ids of the mirror have the same ending, so the server must read the page of each id. A page has
 * one record.
 */
const long = (n: number | string) => `/runes/v1/transactions/${idOf(`unknown ${n}`)}/activity`;
const SHORT = '/runes/v1/blocks/3/activity';

let host: LocalHost;
/** Returns the server's number of open connections. */
let connections: () => Promise<number>;
let inflated = 0;

beforeAll(async () => {
  const work = temporaryFolder();
  const blocks = Array.from({ length: BLOCKS }, (_, height) =>
    Array.from({ length: TRANSACTIONS }, (__, tx) =>
      record(height, TRANSACTIONS - tx, { location: { tx_id: `0x${idOf(`${height} ${tx}`)}` } }),
    ),
  );
  writeFiles(work, { 'in.ndjson': ndjson(blocks.flat()) });
  await testBuild(join(work, 'out'), { inputs: [join(work, 'in.ndjson')], layout: 'archive', pageSizes: [1], objectSize: 2 * 1024 * 1024 });
  // A busy machine may need longer for an answer than a client may stall.
  const server = createMirrorServer(join(work, 'out'), { limits: { ...CLIENT_LIMITS, stalledMs: 1_200_000 } });
  connections = promisify(server.getConnections.bind(server));
  host = await listening(server);
});
afterAll(() => host.close());

const { inflate } = BuiltFiles.prototype;
const spy = vi.spyOn(BuiltFiles.prototype, 'inflate').mockImplementation(function (this: BuiltFiles, member, most) {
  inflated += 1;
  return inflate.call(this, member, most);
});
afterAll(() => spy.mockRestore());
afterEach(() => {
  inflated = 0;
});

it('a long answer is right, and a short answer does not wait for it', async () => {
  const before = crossings.get('freeParts') ?? 0;
  const answers = Array.from({ length: 10 }, (_, n) => host.send('GET', long(n)));
  while (inflated < 100) await turn();
  expect((await host.send('GET', SHORT)).status).toBe(200);
  // Otherwise it would have waited for all pages of the ten answers.
  expect(inflated).toBeLessThan(5 * PAGES);
  for (const { status, body } of await Promise.all(answers)) expect([status, JSON.parse(body)]).toMatchObject([200, { total: 0 }]);
  // The first pages of each answer come from memory. The other pages must be read, so the answer must wait in turn with other answers.
  expect(inflated).toBeGreaterThan(10 * (PAGES - READER_LIMITS.keptPages));
  expect(inflated).toBeLessThan(10 * PAGES);
  expect(crossings.get('freeParts')).toBeGreaterThan(before);
});

it.each([
  ['are gone', (socket: ReturnType<typeof openSocket>) => socket.destroy()],
  ['have reset the connection', (socket: ReturnType<typeof openSocket>) => socket.resetAndDestroy()],
])('no more files are read for clients that %s', async (how, leave) => {
  const sockets = Array.from({ length: 30 }, (_, n) => openSocket(host.port, `GET ${long(`${how} ${n}`)} HTTP/1.1\r\nhost: x\r\n\r\n`));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  while (inflated < 100) await turn();
  for (const socket of sockets) leave(socket);
  while ((await connections()) > 0) await turn();
  const then = inflated;
  // The server ends the connection of a client that sends no more, before it has read all pages.
  expect(then).toBeLessThan((sockets.length * PAGES) / 2);
  // Each turn would read a part of an answer.
  for (let i = 0; i < 50 * sockets.length; i += 1) await turn();
  // Parts that the server was reading.
  expect(inflated - then).toBeLessThanOrEqual(sockets.length);
  expect((await host.send('GET', SHORT)).status).toBe(200);
});

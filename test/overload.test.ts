/** Clients that are slow, endless or too many for the local server: it goes on answering the others, and lets go of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../src/hosts/node/limits.ts';
import { temporaryFolder, testBuild } from './support/build.ts';
import { SAMPLE_INPUT } from './support/cases.ts';
import { ROOT } from './support/cli.ts';
import { openSocket, untilClosed } from './support/raw.ts';
import { type LocalHost, sendTo, startServer } from './support/server.ts';

const dist = join(temporaryFolder(), 'dist');
const BLOCK = '/runes/v1/blocks/2000007/activity';
const LARGE_BYTES = 40 * 1024 * 1024;

beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  writeFileSync(join(dist, 'large.bin'), Buffer.alloc(LARGE_BYTES));
});

/** What /proc says of a process. */
const filesOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
const residentMegabytesOf = (pid: number) => Number(/VmRSS:\s+([0-9]+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

async function until(what: () => boolean): Promise<void> {
  while (!what()) await wait(50);
}

describe('a slow client', () => {
  let host: LocalHost;
  beforeAll(async () => {
    const limits = { ...LIMITS, headersMs: 300, requestMs: 600, idleMs: 500, stalledMs: 700, checkEveryMs: 50 };
    host = await startServer(dist, { limits });
  });
  afterAll(() => host.close());

  it('that never ends its headers, or sends none, is told 408 and closed', async () => {
    for (const text of ['', 'GET / HTTP/1.1\r\n', `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\nx-a: `]) {
      const socket = openSocket(host.port, text);
      const drip = setInterval(() => text !== '' && socket.writable && socket.write('a'), 50);
      const answer = await untilClosed(socket);
      clearInterval(drip);
      expect([text, answer]).toEqual([text, expect.stringMatching(/^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*\{"statusCode":408,/)]);
    }
  });

  it.each(['GET', 'POST'])('that never ends the body of a %s is answered, and closed', async (method) => {
    const socket = openSocket(host.port, `${method} ${BLOCK} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    const drip = setInterval(() => socket.writable && socket.write('1\r\na\r\n'), 50);
    const answer = await untilClosed(socket);
    clearInterval(drip);
    expect(answer).toMatch(method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /);
  });

  it('that asks for nothing more is closed', async () => {
    const answer = await untilClosed(openSocket(host.port, `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\n\r\n`));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('that reads nothing of a large file, or goes away, leaves no file open', async () => {
    const before = filesOf(process.pid);
    const sockets = Array.from({ length: 20 }, () => openSocket(host.port, 'GET /large.bin HTTP/1.1\r\nhost: x\r\n\r\n'));
    await Promise.all(sockets.map((socket) => once(socket, 'readable')));
    for (const socket of sockets.slice(10)) socket.destroy();
    expect((await host.send('GET', BLOCK)).status).toBe(200);
    // The server's ends and the files; the other ten are closed by this test.
    await until(() => filesOf(process.pid) <= before + 10);
    for (const socket of sockets) socket.destroy();
    await until(() => filesOf(process.pid) <= before);
  });

  it('that asks much in one packet and reads nothing of it is not served ahead', async () => {
    const requests = `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\n\r\n`.repeat(20_000);
    // A machine that has just answered a thousand requests of one packet may be late to read the next.
    const own = await startServer(dist, { limits: { ...LIMITS, stalledMs: 700 } });
    const [files, memory] = [filesOf(process.pid), process.memoryUsage().rss];
    const socket = openSocket(own.port, requests).pause();
    await once(socket, 'connect');
    await until(() => filesOf(process.pid) >= files + 2);
    expect((await own.send('GET', BLOCK)).status).toBe(200);
    // The server's end is closed, the client's is not.
    await until(() => filesOf(process.pid) <= files + 1);
    // All answers together would be 200 MB.
    expect(process.memoryUsage().rss - memory).toBeLessThan(150 * 1024 * 1024);
    socket.destroy();
    await own.close();
  });
});

/** A server with so many files allowed, in a process of its own. */
async function startLimited(files: number): Promise<{ child: ChildProcess; pid: number; port: number }> {
  const command = `ulimit -n ${files} && exec "$0" "$@"`;
  const args = ['-c', command, process.execPath, join(ROOT, 'scripts/run.cjs'), 'serve', '--dir', dist, '--port', '0'];
  const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, pid: child.pid ?? 0, port: Number(/:([0-9]+) /.exec(line.toString())?.[1]) };
}

async function openMany(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(250, count - sockets.length) }, () => openSocket(port));
    await Promise.all(some.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])));
    sockets.push(...some);
  }
  return sockets;
}

describe('connections', () => {
  it('in thousands that say nothing: others are answered meanwhile, and they are let go of', async (context) => {
    // Both ends need a file each.
    const room = Number(/Max open files\s+[0-9]+\s+([0-9]+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
    if (room < 11_000) context.skip();
    const { child, pid, port } = await startLimited(Math.min(room, 40_000));
    await sendTo(port)('GET', BLOCK);
    const before = residentMegabytesOf(pid);
    const sockets = await openMany(port, 10_000);
    const closed = Promise.all(sockets.map((socket) => (socket.resume().closed ? undefined : once(socket, 'close'))));
    const during: number[] = [];
    for (let i = 0; i < 20; i += 1) during.push((await sendTo(port)('GET', BLOCK)).status);
    const memory = residentMegabytesOf(pid) - before;
    await closed;
    expect(during).toEqual(during.map(() => 200));
    expect(memory).toBeLessThan(300);
    expect((await sendTo(port)('GET', BLOCK)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('beyond what the system allows to open are closed at once, files can be read, and all is well after them', async () => {
    const { child, pid, port } = await startLimited(300);
    const host = sendTo(port);
    expect((await host('GET', BLOCK)).status).toBe(200);
    // One of them asks for what the server has not read yet.
    const first = openSocket(port);
    await once(first, 'connect');
    const sockets = await openMany(port, 600);
    first.write('GET /runes/v1/blocks/2000004/activity HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    expect(await untilClosed(first)).toMatch(/^HTTP\/1\.1 200 /);
    expect(filesOf(pid)).toBeLessThan(300);
    for (const socket of sockets) socket.destroy();
    await until(() => filesOf(pid) < 100);
    expect((await host('GET', BLOCK)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

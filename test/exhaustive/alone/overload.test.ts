/**
 * Tests too many, slow and endless clients. The local server disconnects them and still answers other clients. Counts the memory and the
 * open files of servers, and needs processors that are free: clients are disconnected after parts of a second, in which the others must be
 * answered, and thousands of connections must be open at once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CLIENT_LIMITS, type ClientLimits } from '../../../src/serve/local/clientLimits.ts';
import { temporaryFolder, testBuild } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { ROOT, saidBy } from '../../support/cli.ts';
import { openSocket, untilClosed } from '../../support/raw.ts';
import { type Host, type LocalHost, sendTo, startServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const dist = join(temporaryFolder(), 'dist');
const BLOCK = '/runes/v1/blocks/2000007/activity';
const LARGE_BYTES = 40 * 1024 * 1024;

beforeAll(async () => {
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  writeFileSync(join(dist, 'explorer.js'), Buffer.alloc(LARGE_BYTES));
});

/** Counts the open files of a process, from /proc. */
const filesOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');
const residentMegabytesOf = (pid: number) => Number(/VmRSS:\s+([0-9]+)/.exec(statusOf(pid))?.[1]) / 1024;
const peakMegabytesOf = (pid: number) => Number(/VmHWM:\s+([0-9]+)/.exec(statusOf(pid))?.[1]) / 1024;

interface Server {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly send: Host['send'];
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Starts a server in its own process, which prints its address. Rejects with its output if it ends instead. */
async function startProcess(program: string, args: readonly string[]): Promise<Server> {
  const child = spawn(program, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const said = saidBy(child);
  const ended = once(child, 'close').then(([code, signal]) => {
    throw new Error(`the server ended (${signal ?? code}): ${said.stderr}`);
  });
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
  ended.catch(() => {});
  const port = Number(/:([0-9]+) /.exec(line.toString())?.[1]);
  return { child, pid: child.pid ?? 0, port, send: sendTo(port) };
}

/** Starts a server with these limits. */
const startWith = (limits: Partial<ClientLimits>) =>
  startProcess(process.execPath, ['--import', 'tsx', join(ROOT, 'test/support/ownProcess.ts'), dist, JSON.stringify(limits)]);

/** Runs `npm start` with this limit of open files. */
const startLimited = (files: number) => {
  const command = `ulimit -n ${files} && exec "$0" "$@"`;
  return startProcess('sh', ['-c', command, process.execPath, join(ROOT, 'scripts/run.cjs'), 'serve', '--dir', dist, '--port', '0']);
};

describe('a slow client', () => {
  let host: LocalHost;
  beforeAll(async () => {
    const limits = { ...CLIENT_LIMITS, headersMs: 300, requestMs: 600, idleMs: 500, stalledMs: 700, checkEveryMs: 50 };
    host = await startServer(dist, { limits });
  });
  afterAll(() => host.close());

  it('that never ends its headers, or sends none, gets a 408 and is closed', async () => {
    for (const text of ['', 'GET / HTTP/1.1\r\n', `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\nx-a: `]) {
      const socket = openSocket(host.port, text);
      const drip = setInterval(() => text !== '' && socket.writable && socket.write('a'), 50);
      const answer = await untilClosed(socket);
      clearInterval(drip);
      expect([text, answer]).toEqual([text, expect.stringMatching(/^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*\{"statusCode":408,/)]);
    }
  });

  it.each(['GET', 'POST'])('that never ends the body of a %s gets an answer, and is closed', async (method) => {
    const socket = openSocket(host.port, `${method} ${BLOCK} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
    const drip = setInterval(() => socket.writable && socket.write('1\r\na\r\n'), 50);
    const answer = await untilClosed(socket);
    clearInterval(drip);
    expect(answer).toMatch(method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /);
  });

  it('that sends no further request is closed', async () => {
    const answer = await untilClosed(openSocket(host.port, `GET ${BLOCK} HTTP/1.1\r\nhost: x\r\n\r\n`));
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('that reads nothing of a large file, or disconnects, leaves no file open', async () => {
    const own = await startWith({ stalledMs: 700, checkEveryMs: 50 });
    const before = filesOf(own.pid);
    const sockets = Array.from({ length: 20 }, () => openSocket(own.port, 'GET /explorer.js HTTP/1.1\r\nhost: x\r\n\r\n'));
    await Promise.all(sockets.map((socket) => once(socket, 'readable')));
    for (const socket of sockets.slice(10)) socket.destroy();
    expect((await own.send('GET', BLOCK)).status).toBe(200);
    await until(() => filesOf(own.pid) <= before);
    for (const socket of sockets) socket.destroy();
  });

  it('that sends many requests in one packet and reads no answer is not served ahead, and is disconnected', async () => {
    const requests = `GET ${BLOCK}?limit=60&offset=1 HTTP/1.1\r\nhost: x\r\n\r\n`;
    const own = await startWith({ stalledMs: 700 });
    const [peak, before] = [peakMegabytesOf(own.pid), filesOf(own.pid)];
    const sockets = [...Array<number>(10).fill(900), 20_000].map((count) => openSocket(own.port, requests.repeat(count)));
    const answers = sockets.map(untilClosed);
    for (const socket of sockets) socket.pause();
    expect((await own.send('GET', BLOCK)).status).toBe(200);
    await until(() => filesOf(own.pid) <= before);
    for (const socket of sockets) socket.resume();
    for (const answer of answers) expect((await answer).split('HTTP/1.1 200 OK').length).toBeLessThan(900);
    // All answers together would be 270 MB and more.
    expect(peakMegabytesOf(own.pid) - peak).toBeLessThan(150);
  });
});

/** Opens `count` connections, `atOnce` at a time. Calls `between` after each group. */
async function openMany(port: number, count: number, atOnce: number, between: () => unknown): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(atOnce, count - sockets.length) }, () => openSocket(port));
    await Promise.all(some.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])));
    sockets.push(...some);
    await between();
  }
  return sockets;
}

describe('connections', () => {
  it('in thousands that send nothing: other clients are answered meanwhile, and the idle ones are closed', async (context) => {
    // Each connection needs a file descriptor in this process and one in the server.
    const room = Number(/Max open files\s+[0-9]+\s+([0-9]+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
    if (room < 11_000) {
      process.stderr.write(
        `10,000 connections were not tried: the system allows ${room} open files, and 11,000 are needed (ulimit -Hn).\n`,
      );
      context.skip();
    }
    const { child, pid, port, send } = await startLimited(Math.min(room, 40_000));
    await send('GET', BLOCK);
    const before = residentMegabytesOf(pid);
    let most = 0;
    const look = () => {
      most = Math.max(most, filesOf(pid));
    };
    const sockets = await openMany(port, 10_000, 250, look);
    const closed = Promise.all(sockets.map((socket) => (socket.resume().closed ? undefined : once(socket, 'close'))));
    const during: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      during.push((await send('GET', BLOCK)).status);
      look();
    }
    const memory = residentMegabytesOf(pid) - before;
    await closed;
    expect(during).toEqual(during.map(() => 200));
    // Not all connections are open at the same time, because a slow machine closes the first ones before the last ones are open.
    expect(most).toBeGreaterThan(5000);
    expect(memory).toBeLessThan(300);
    expect((await send('GET', BLOCK)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

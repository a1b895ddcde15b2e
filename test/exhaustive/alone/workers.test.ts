/** Tests `npm start -- --workers`: it starts several processes, restarts them and ends them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/build.ts';
import { endOf, portOf, ROOT, run, saidBy, start, untilSaid } from '../../support/cli.ts';
import { workFolder } from '../../support/records.ts';
import { sendTo } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/**
 * Returns the worker processes of a server with --workers, oldest first. Skips the process of the compiler, which runs only for a moment.
 */
function workersOf(pid: number | undefined): number[] {
  return childrenOf(pid)
    .filter((child) => textOf(`/proc/${child}/environ`).includes('NODE_UNIQUE_ID='))
    .sort((a, b) => startOf(a) - startOf(b));
}

const childrenOf = (pid: number | undefined) => textOf(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);

/** Returns the start time of a process, by the kernel's clock. */
const startOf = (pid: number) => Number(textOf(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')[19]);

const SIGTERM = constants.signals.SIGTERM;
const hasPending = (pid: number, signal: number) => {
  const pending = BigInt(`0x${/^ShdPnd:\s+(\w+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0}`);
  return (pending & (1n << BigInt(signal - 1))) !== 0n;
};

/** Reads a file of /proc. Returns an empty text if the process has just ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

describe('npm start', () => {
  it('with --workers answers from several processes, replaces one that dies, and ends all of them on SIGTERM', async () => {
    const work = workFolder();
    await run('build', [], work);
    const child = start('serve', ['--port', '0', '--workers', '2', '--no-compression'], work);
    const port = await portOf(child);
    const workers = () => workersOf(child.pid);
    const before = workers();
    expect(before).toHaveLength(2);
    const killed = untilSaid(child, /^Note: .*\n/);
    process.kill(before[0] ?? 0, 'SIGKILL');
    expect((await killed)[0]).toBe(`Note: worker process ${before[0]} ended (SIGKILL); starting another\n`);
    await until(() => workers().length === 2 && !workers().includes(before[0] ?? 0), child);
    for (let i = 0; i < 4; i += 1) {
      const answer = await sendTo(port)('GET', '/runes/v1/blocks/5/activity', { 'accept-encoding': 'gzip' });
      expect([answer.status, answer.headers.vary]).toEqual([200, undefined]);
    }
    const after = workers();
    child.kill('SIGTERM');
    expect(await endOf(child)).toEqual([0, null]);
    for (const pid of after) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  describe('with --workers, of which one is not listening yet,', () => {
    let child: ChildProcess;
    let said: { stdout: string; stderr: string };
    beforeEach(async () => {
      const work = workFolder();
      await run('build', [], work);
      child = start('serve', ['--port', '0', '--workers', '2'], work);
      said = saidBy(child);
    });
    afterEach(() => child.kill('SIGKILL'));

    /** Waits for the nth worker that starts, stops it immediately with SIGSTOP, and waits until all its threads have stopped. */
    async function stopped(nth: number): Promise<number> {
      await until(() => workersOf(child.pid).length >= nth, child);
      const pid = workersOf(child.pid)[nth - 1] ?? 0;
      process.kill(pid, 'SIGSTOP');
      const threads = () => readdirSync(`/proc/${pid}/task`).map((thread) => textOf(`/proc/${pid}/task/${thread}/stat`));
      await until(() => threads().every((stat) => stat.split(') ').at(-1)?.startsWith('T')), child);
      return pid;
    }

    it.each([1, 2])('ends on SIGTERM, though the worker numbered %s has not started', async (nth) => {
      const pid = await stopped(nth);
      child.kill('SIGTERM');
      // A pending signal proves that the parent has sent it.
      await until(() => hasPending(pid, SIGTERM), child);
      process.kill(pid, 'SIGCONT');
      expect([await endOf(child), said]).toEqual([[0, null], { stdout: '', stderr: '' }]);
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    });

    it.each([1, 2])('replaces the worker numbered %s when it is killed, and says when all workers serve', async (nth) => {
      const pid = await stopped(nth);
      process.kill(pid, 'SIGKILL');
      await until(() => said.stdout.includes('\n'), child);
      expect(said).toEqual({
        stdout: expect.stringMatching(/^Serving dist on http:\/\/127\.0\.0\.1:\d+ \(press Ctrl-C to stop\)\.\n$/),
        stderr: `Note: worker process ${pid} ended (SIGKILL); starting another\n`,
      });
      expect(workersOf(child.pid)).toHaveLength(2);
      const port = Number(/:(\d+) /.exec(said.stdout)?.[1]);
      expect((await sendTo(port)('GET', '/runes/v1/blocks/5/activity')).status).toBe(200);
      child.kill('SIGTERM');
      expect(await endOf(child)).toEqual([0, null]);
    });
  });

  it('serves from a folder with a space in its name, with --workers too', async () => {
    const work = workFolder();
    await run('build', [], work);
    const copy = join(temporaryFolder(), 'a folder');
    for (const name of ['scripts', 'src', 'package.json', 'tsconfig.json']) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const child = spawn(process.execPath, [join(copy, 'scripts/run.cjs'), 'serve', '--port', '0', '--workers', '2'], { cwd: work });
    await untilSaid(child, /^Serving dist on /);
    child.kill('SIGTERM');
    expect(await endOf(child)).toEqual([0, null]);
  });
});

/**
 * The processes of the hosts: starting and ending them, and what they use, as the kernel counts it (on Linux only).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, codeOf, EXIT } from '../../src/errors.ts';

/** Throws when a program cannot be started, with the way to get it. */
export function requireProgram(name: string, hint: string): void {
  const { error } = spawnSync(name, ['-v'], { stdio: 'ignore' });
  if (codeOf(error) === 'ENOENT') throw new CliError(`the program ${name} is missing`, EXIT.usage, [hint]);
}

/** A started process; what it writes to standard error is kept for the error that it may end with. */
export class Started {
  readonly #child: ChildProcess;
  #errors = '';

  constructor(
    readonly name: string,
    program: string,
    args: readonly string[],
  ) {
    this.#child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString('utf8')).slice(-2000);
    });
    this.#child.on('error', (error) => {
      this.#errors += error.message;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it listens on the port. Rejects when it ends or does not listen after 20 seconds. */
  async listening(port: number): Promise<void> {
    for (let i = 0; i < 400; i += 1) {
      if (this.#child.exitCode !== null || this.#child.pid === undefined) break;
      if (await answersAt(port)) return;
      await sleep(50);
    }
    throw this.#failure();
  }

  #failure(): CliError {
    return new CliError(`${this.name} did not start`, EXIT.buildFailed, this.#errors === '' ? [] : [this.#errors.trim()]);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.pid === undefined) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exit;
  }
}

const answersAt = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.unref().once('connect', () => socket.destroy());
  });

/** A process and all below it. */
function familyOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(familyOf)];
}

/** CPU seconds of a process and of its children that have ended; the kernel counts hundredths. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
}

/** CPU seconds of processes and all below them so far, also of those that have ended; undefined where the system does not tell. */
export const cpuSecondsOf = (pids: readonly number[]): number | undefined =>
  told(() => pids.flatMap(familyOf).reduce((sum, pid) => sum + cpuOf(pid), 0));

/** CPU seconds of this process and of its children that have ended. */
export const ownCpuSeconds = (): number | undefined => told(() => cpuOf(process.pid));

/** CPU seconds that all cores have spent on anything. */
export const machineCpuSeconds = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000;

/** Resident bytes of processes and all below them; what several share is counted once (PSS). Undefined where the system does not tell. */
export const memoryOf = (pids: readonly number[]): number | undefined =>
  told(() =>
    pids
      .flatMap(familyOf)
      .reduce((sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024, 0),
  );

function told(read: () => number): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

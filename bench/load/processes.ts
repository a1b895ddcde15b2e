/** Starts and stops the processes of hosts, and reads their CPU time and memory from the kernel (Linux only). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError, codeOf, EXIT } from '../../src/errors.ts';

/** Throws a CliError with the advice `hint` if a program is not installed. */
export function requireProgram(name: string, hint: string): void {
  const { error } = spawnSync(name, ['-v'], { stdio: 'ignore' });
  if (codeOf(error) === 'ENOENT') throw new CliError(`the program ${name} is not installed`, EXIT.usage, [hint]);
}

/** A started process. Keeps the end of its standard error for error messages. */
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

  /** Resolves when the process listens on the port. Rejects when it ends, or after 20 seconds. */
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

  /** Stops the process and waits for its end. */
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

/** Returns a process id and those of all descendants. */
function familyOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(familyOf)];
}

/** Returns the CPU seconds of a process and its ended children. The kernel counts in hundredths of a second. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
}

/**
 * Returns the CPU seconds of processes and all their descendants, including ended ones. Undefined on systems that do not report CPU time.
 */
export const cpuSecondsOf = (pids: readonly number[]): number | undefined =>
  orUndefined(() => pids.flatMap(familyOf).reduce((sum, pid) => sum + cpuOf(pid), 0));

/** Returns the CPU seconds of this process and its ended children. Undefined on systems that do not report CPU time. */
export const ownCpuSeconds = (): number | undefined => orUndefined(() => cpuOf(process.pid));

/** Returns the busy seconds of all cores since the machine started. */
export const machineCpuSeconds = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000;

/**
 * Returns the resident bytes of processes and their descendants. Shared memory counts once (PSS). Undefined on systems that do not report
 * PSS.
 */
export const memoryOf = (pids: readonly number[]): number | undefined =>
  orUndefined(() =>
    pids
      .flatMap(familyOf)
      .reduce((sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) * 1024, 0),
  );

/** Size of a memory page on all systems that report memory use in pages. */
const PAGE_BYTES = 4096;

/**
 * Returns the resident bytes of processes and their descendants. Shared memory counts for each process. Cheaper than `memoryOf`, which
 * takes milliseconds because the kernel walks all pages. Undefined on systems that do not report memory.
 */
export const residentOf = (pids: readonly number[]): number | undefined =>
  orUndefined(() => {
    const sizes = new Map<string, number>();
    for (const pid of pids.flatMap(familyOf)) {
      // A child that has forked but not yet executed its command has the command line and the pages of its parent.
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const bytes = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
      sizes.set(command, Math.max(sizes.get(command) ?? 0, bytes));
    }
    return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  });

function orUndefined(read: () => number): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

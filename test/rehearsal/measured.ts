/** Runs commands as a user does, and measures their time and the peak memory of the command and its child processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { residentOf } from '../../bench/load/processes.ts';
import { CliError, EXIT } from '../../src/errors.ts';
import type { Limits } from '../../src/limits.ts';
import { ROOT } from '../support/cli.ts';

/** Milliseconds between two measurements of memory. */
const LOOK_MS = 250;

/** Limits of the commands that differ from the default. Each process adds a line to the file `crossed`, with the limits that it crossed. */
export interface Limited {
  readonly changes: Partial<Limits>;
  readonly crossed: string;
}

/** Starts a command in a folder. */
export function startCommand(args: readonly string[], cwd: string, limited: Limited | undefined): ChildProcess {
  const script = limited === undefined ? 'scripts/run.cjs' : 'test/rehearsal/limited.cjs';
  const env = { ...process.env, ...(limited === undefined ? {} : { REHEARSAL_LIMITS: JSON.stringify(limited) }) };
  return spawn(process.execPath, [join(ROOT, script), ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
}

export interface Measured {
  readonly seconds: number;
  /** Peak memory in MB. Undefined on systems that do not report memory. */
  readonly peakMb: number | undefined;
}

/** Measures the memory of processes repeatedly until `end` is called. */
export class MemoryWatch {
  #peak: number | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(readonly pids: () => readonly number[]) {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
    this.#timer.unref();
  }

  /** Stops, and returns the peak memory in MB. */
  end(): number | undefined {
    clearInterval(this.#timer);
    return this.#peak === undefined ? undefined : Math.round(this.#peak / 1e6);
  }

  #look(): void {
    const bytes = residentOf(this.pids());
    if (bytes !== undefined) this.#peak = Math.max(this.#peak ?? 0, bytes);
  }
}

/** Waits for a command to end. Throws a CliError if it fails. */
export async function measured(name: string, child: ChildProcess): Promise<Measured & { readonly said: string }> {
  const begin = performance.now();
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-10_000);
    });
  }
  const watch = new MemoryWatch(() => [child.pid ?? 0]);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  const peakMb = watch.end();
  if (code !== 0) throw new CliError(`${name} ended with ${signal ?? `exit code ${code}`}`, EXIT.buildFailed, [said.trim()]);
  return { seconds: (performance.now() - begin) / 1000, peakMb, said };
}
